/** Markdown as a chat shows it: HTML in it is text like any other, and a line that was begun anew stays a new line. */

interface Node {
  readonly type: string;
  readonly value?: string;
  readonly tagName?: string;
  properties?: Readonly<Record<string, unknown>>;
  children?: Node[];
}

interface Processor {
  data: () => object;
}

/** HTML is not read as such, so that none of it can be lost, and Markdown within it is still Markdown. */
export function htmlIsText(this: Processor): void {
  const data = this.data() as { micromarkExtensions?: object[] };
  (data.micromarkExtensions ??= []).push({ disable: { null: ["htmlFlow", "htmlText"] } });
}

export function linesStay(): (tree: Node) => void {
  return broken;
}

/** Each block runs from left to right or from right to left as its first letter does; code is left alone. */
export function directed(): (tree: Node) => void {
  return (tree) => {
    for (const block of tree.children ?? []) if (block.type === "element" && block.tagName !== "pre") block.properties = { ...block.properties, dir: "auto" };
  };
}

function broken(node: Node): void {
  if (node.children === undefined) return;
  node.children = node.children.flatMap((child): Node[] => {
    broken(child);
    if (child.type !== "text" || child.value === undefined) return [child];
    return child.value.split("\n").flatMap((value, line): Node[] => [...(line > 0 ? [{ type: "break" }] : []), ...(value === "" ? [] : [{ type: "text", value }])]);
  });
}
