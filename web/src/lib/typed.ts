/** What a person typed, taken apart for showing it as it was typed: only links and fenced code are more than text. */

export type Piece =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "link"; readonly text: string }
  | { readonly kind: "code"; readonly text: string; readonly language: string };

const OPENING = /^(`{3,}|~{3,})[ \t]*([\w+#.-]*)[ \t]*$/;
const CLOSING = /^(`{3,}|~{3,})[ \t]*$/;
/** Up to what no address holds: blanks, quotation marks, angle brackets, the punctuation of Chinese. */
const LINK = /\bhttps?:\/\/[^\s<>"'`“”‘’，。；：！？、（）《》「」『』【】]+/g;

/** A fence that nothing ends is only text. */
export function typedPieces(text: string): readonly Piece[] {
  const lines = text.split("\n");
  const unended = new Map<string, number>(); // looked for once: a text of fences alone must not be read again for each
  const pieces: Piece[] = [];
  let plain: string[] = [];
  const linked = () => pieces.push(...linkedPieces(plain.join("\n")));
  for (let at = 0; at < lines.length; at++) {
    const [, fence, language] = OPENING.exec(lines[at]!) ?? [];
    const end = fence === undefined || fence.length >= (unended.get(fence[0]!) ?? Infinity) ? -1 : lines.findIndex((line, place) => place > at && isEndOf(fence, line));
    if (fence === undefined || end < 0) {
      if (fence !== undefined) unended.set(fence[0]!, Math.min(fence.length, unended.get(fence[0]!) ?? Infinity));
      plain.push(lines[at]!);
      continue;
    }
    linked();
    plain = [];
    pieces.push({ kind: "code", text: lines.slice(at + 1, end).join("\n"), language: (language ?? "").toLowerCase() });
    at = end;
  }
  linked();
  return pieces;
}

function isEndOf(fence: string, line: string): boolean {
  const found = CLOSING.exec(line)?.[1];
  return found !== undefined && found[0] === fence[0] && found.length >= fence.length;
}

function linkedPieces(text: string): readonly Piece[] {
  const pieces: Piece[] = [];
  let from = 0;
  for (const match of text.matchAll(LINK)) {
    const address = addressIn(match[0]);
    if (match.index > from) pieces.push({ kind: "text", text: text.slice(from, match.index) });
    pieces.push({ kind: "link", text: address });
    from = match.index + address.length;
  }
  if (from < text.length) pieces.push({ kind: "text", text: text.slice(from) });
  return pieces;
}

/** Without the sign that ends the sentence, or a bracket that was opened before it. */
function addressIn(found: string): string {
  const cut = found.replace(/[.,;:!?*_~]+$/, "");
  const isUnopened = cut.endsWith(")") && cut.split(")").length > cut.split("(").length;
  return isUnopened ? addressIn(cut.slice(0, -1)) : cut;
}
