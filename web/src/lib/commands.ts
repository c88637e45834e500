/** What a person can type into the composer besides words for the model. */

export const COMMANDS = ["compact", "fork", "export", "search", "new", "help"] as const;
export type Command = (typeof COMMANDS)[number];

export interface Typed {
  readonly command: Command;
  readonly rest: string;
}

/** A command, or null when the text is for the model. A slash that begins no command is ordinary text. */
export function parseCommand(text: string): Typed | null {
  const match = /^\/(\w+)(?:\s+([\s\S]*))?$/.exec(text.trim());
  const name = match?.[1];
  const command = COMMANDS.find((known) => known === name);
  return command === undefined ? null : { command, rest: (match?.[2] ?? "").trim() };
}

/** The word that stands before the cursor, if it begins with one of these signs: what completion is offered for. */
export function wordAt(text: string, cursor: number, signs: string): string | null {
  const word = text.slice(wordStart(text, cursor), cursor);
  return word.length > 0 && signs.includes(word[0]!) ? word : null;
}

/** Step by step: a pattern would try each letter of a pasted megabyte as the beginning. */
function wordStart(text: string, cursor: number): number {
  let start = Math.min(cursor, text.length);
  while (start > 0 && !/\s/.test(text[start - 1]!)) start--;
  return start;
}

/** The text with the word before the cursor replaced, and where the cursor then is. */
export function completed(text: string, cursor: number, word: string): { text: string; cursor: number } {
  const before = text.slice(0, wordStart(text, cursor));
  const head = `${before}${word} `;
  return { text: head + text.slice(cursor), cursor: head.length };
}
