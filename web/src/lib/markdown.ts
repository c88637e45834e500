/** Markdown as a chat shows it: HTML in it is text like any other, and a line that was begun anew stays a new line. */

interface Node {
  readonly type: string;
  readonly value?: string;
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

function broken(node: Node): void {
  if (node.children === undefined) return;
  node.children = node.children.flatMap((child): Node[] => {
    broken(child);
    if (child.type !== "text" || child.value === undefined) return [child];
    return child.value.split("\n").flatMap((value, line): Node[] => [...(line > 0 ? [{ type: "break" }] : []), ...(value === "" ? [] : [{ type: "text", value }])]);
  });
}
