/** The messages of a request that quote the log instead of being part of it: summaries, pinned and recalled messages, memories,
 * each between tags that say where it is from. */

export interface Quotation {
  readonly kind: "summary" | "pinned" | "recalled" | "memory";
  /** The messages it stands for; null where it is of none. */
  readonly firstSeq: number | null;
  readonly lastSeq: number | null;
  readonly speaker: string | null;
  readonly text: string;
}

/** How the service begins a message that quotes. */
const BEGINNINGS = ["What follows between the tags", "What stands between <memory> tags"];
const QUOTED = /<(summary|pinned|recalled|memory)((?:\s+\w+="[^"]*")*)>\n([\s\S]*?)\n<\/\1>/g;

/** What a message quotes; nothing when it is one that somebody said. */
export function quotationsIn(text: string): readonly Quotation[] {
  if (!BEGINNINGS.some((beginning) => text.startsWith(beginning))) return [];
  return [...text.matchAll(QUOTED)].map(([, kind, attributes, quoted]) => {
    const where = new Map([...(attributes ?? "").matchAll(/(\w+)="([^"]*)"/g)].map(([, name, value]) => [name, value]));
    const [first, last] = (where.get("messages") ?? where.get("message") ?? "").split("-").map(Number);
    return { kind: kind as Quotation["kind"], firstSeq: first || null, lastSeq: last || first || null, speaker: where.get("speaker") ?? null, text: quoted ?? "" };
  });
}

/** The messages that a request shows as they are, or in other words. */
export interface Contents {
  readonly window: ReadonlySet<number>;
  readonly recalled: ReadonlySet<number>;
}

/** What came in and went out from one request to the next. */
export function changesBetween(before: Contents, now: Contents): { readonly added: number; readonly left: number; readonly recalled: readonly number[] } {
  const isIn = (seqs: ReadonlySet<number>) => (seq: number) => seqs.has(seq);
  return {
    added: [...now.window].filter((seq) => !isIn(before.window)(seq)).length,
    left: [...before.window].filter((seq) => !isIn(now.window)(seq)).length,
    recalled: [...now.recalled].filter((seq) => !isIn(before.recalled)(seq)),
  };
}
