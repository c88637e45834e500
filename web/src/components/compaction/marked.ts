/** A text in pieces, those marked that are one of the facts. */

export interface Piece {
  readonly text: string;
  readonly isMarked: boolean;
}

export function marked(text: string, facts: readonly string[]): readonly Piece[] {
  const known = [...new Set(facts.filter((fact) => fact.trim() !== ""))].sort((one, other) => other.length - one.length);
  if (known.length === 0 || text === "") return [{ text, isMarked: false }];
  const pattern = new RegExp(known.map((fact) => fact.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("|"), "gi");
  const pieces: Piece[] = [];
  let from = 0;
  for (const match of text.matchAll(pattern)) {
    if (match.index > from) pieces.push({ text: text.slice(from, match.index), isMarked: false });
    pieces.push({ text: match[0], isMarked: true });
    from = match.index + match[0].length;
  }
  if (from < text.length) pieces.push({ text: text.slice(from), isMarked: false });
  return pieces;
}

/** A snippet of the search: what stands between two pairs of stars was looked for. */
export function emphasised(snippet: string): readonly Piece[] {
  const cut = snippet.split("**");
  if (cut.length % 2 === 0) return [{ text: snippet, isMarked: false }]; // stars of its own, not ours
  return cut.map((text, place) => ({ text, isMarked: place % 2 === 1 })).filter((piece) => piece.text !== "");
}
