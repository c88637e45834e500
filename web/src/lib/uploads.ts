/** Files that go with a message stand in it as lines of their own, as `everthread chat` writes them: the model reads which
 * files there are, and the page shows them. */

export interface Attached {
  readonly path: string;
  readonly mime: string;
  readonly bytes: number;
}

/** Whether a file may hold conversations, as `everthread import` reads them: an archive, a log of lines, an export in a zip. */
export function mayBeImported(name: string): boolean {
  return /\.(jsonl(\.zst)?|zst|zip)$/i.test(name);
}

const LINE = /^\[uploaded: (.+), ([\w.+-]+\/[\w.+-]+), ([\d,]+) bytes\]$/;

export function withAttached(text: string, files: readonly Attached[]): string {
  return [...files.map((file) => `[uploaded: ${file.path}, ${file.mime}, ${file.bytes.toLocaleString("en")} bytes]`), text].join("\n");
}

/** The words of a message, and the files that its first lines name. */
export function attachedIn(message: string): { readonly text: string; readonly files: readonly Attached[] } {
  const lines = message.split("\n", 20);
  const files: Attached[] = [];
  let length = 0;
  for (const line of lines) {
    const match = LINE.exec(line);
    if (match === null) break;
    files.push({ path: match[1]!, mime: match[2]!, bytes: Number(match[3]!.replaceAll(",", "")) });
    length += line.length + 1;
  }
  return { text: message.slice(length), files };
}
