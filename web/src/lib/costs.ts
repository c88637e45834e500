/** What turns sent, beside what they would have sent with the whole history in every request. */

import type { Compaction } from "./model";

export interface Spent {
  readonly at: string;
  readonly sent: number;
}

/** Each turn's tokens, and at least how many it would have been without compaction: every summary that stood for its
 * originals at that time saved their difference once a request, and a turn has one request or more. */
export function beside(turns: readonly Spent[], compactions: readonly Compaction[]): { readonly sent: number[]; readonly whole: number[] } {
  return {
    sent: turns.map((turn) => turn.sent),
    whole: turns.map((turn) => turn.sent + savedAt(turn.at, compactions)),
  };
}

function savedAt(moment: string, compactions: readonly Compaction[]): number {
  const time = Date.parse(moment);
  return compactions
    .filter((one) => Date.parse(one.createdAt) <= time && (one.endedAt === null || Date.parse(one.endedAt) > time))
    .reduce((sum, one) => sum + one.tokensBefore - one.tokensAfter, 0);
}
