/** The keyboard: single keys and pairs such as "g h", never while a person types. */

export type Action =
  | "next" | "previous" | "search" | "history" | "model" | "earlier-sibling" | "later-sibling"
  | "edit" | "regenerate" | "newest" | "compact" | "help" | "palette" | "close";

const SINGLE: Readonly<Record<string, Action>> = {
  j: "next",
  k: "previous",
  "/": "search",
  "[": "earlier-sibling",
  "]": "later-sibling",
  e: "edit",
  r: "regenerate",
  c: "compact",
  G: "newest",
  "?": "help",
};
const AFTER_G: Readonly<Record<string, Action>> = { h: "history", m: "model" };

export interface Pressed {
  readonly key: string;
  readonly isTyping: boolean;
  readonly isWithControl: boolean;
}

/** The action of a key, and what is then waited for: "g" stands until the next key. */
export function press(pressed: Pressed, waiting: string): { action: Action | null; waiting: string } {
  if (pressed.key === "Escape") return { action: "close", waiting: "" };
  if (pressed.isWithControl) return { action: pressed.key.toLowerCase() === "k" ? "palette" : null, waiting: "" };
  if (pressed.isTyping) return { action: null, waiting: "" };
  if (waiting === "g") return { action: AFTER_G[pressed.key] ?? null, waiting: "" };
  if (pressed.key === "g") return { action: null, waiting: "g" };
  return { action: SINGLE[pressed.key] ?? null, waiting: "" };
}

/** Whether a key belongs to an input method that is choosing a character. Safari ends the choice before it tells of the key that
 * ended it; of that one only the code 229 says so. */
export function isComposing(event: KeyboardEvent): boolean {
  return event.isComposing || event.keyCode === 229;
}
