/** The list of the history: messages with the bands of their compactions between them. */

import type { Compaction, Message, Version } from "./model";

export type Row =
  | { readonly kind: "message"; readonly key: string; readonly message: Message; readonly results: readonly Message[]; /** Said by the same one as the message right above it: one answer in several steps. */ readonly isContinued: boolean }
  | { /** What stands in the place of a message that was erased. */ readonly kind: "erased"; readonly key: string; readonly seq: number }
  | { readonly kind: "band"; readonly key: string; readonly compaction: Compaction };

/** Messages in order, tools' answers under the message that called, and after each summarised stretch its band. Of what was
 * erased those are known that a message follows, and the last one of the branch. */
export function rowsOf(messages: readonly Message[], compactions: readonly Compaction[], erasedEnd: number | null = null): Row[] {
  const seqs = new Set(messages.map((message) => message.seq));
  const isFrom = messages[0]?.seq ?? 0;
  const answered = answersByCaller(messages);
  const taken = new Set([...answered.values()].flat());
  const shown = messages.filter((message) => !taken.has(message));
  const theirs = compactions.filter((one) => one.madeBy !== null && one.lastSeq > 0);
  const bands = [...outermost(compactions), ...theirs].sort((one, other) => one.lastSeq - other.lastSeq);
  const rows: Row[] = [];
  let next = 0;
  for (const message of shown) {
    while (next < bands.length && bands[next]!.lastSeq < message.seq) rows.push(bandRow(bands[next++]!));
    if (message.parentSeq !== null && message.parentSeq > isFrom && !seqs.has(message.parentSeq)) rows.push(erasedRow(message.parentSeq));
    const above = rows.at(-1);
    const isContinued = above?.kind === "message" && message.role === "assistant" && above.message.role === "assistant" && above.message.name === message.name;
    rows.push({ kind: "message", key: message.id, message, results: answered.get(message.id) ?? [], isContinued });
  }
  const end = messages.at(-1)?.seq ?? 0;
  while (next < bands.length && bands[next]!.lastSeq <= end) rows.push(bandRow(bands[next++]!));
  if (erasedEnd !== null) rows.push(erasedRow(erasedEnd));
  return rows;
}

/** Whether a row is the band of the compaction that summarizes a message. */
export function isBandOf(row: Row, seq: number | null): boolean {
  return seq !== null && row.kind === "band" && row.compaction.firstSeq <= seq && seq <= row.compaction.lastSeq;
}

function erasedRow(seq: number): Row {
  return { kind: "erased", key: `erased-${seq}`, seq };
}

function bandRow(compaction: Compaction): Row {
  return { kind: "band", key: `band-${compaction.id}`, compaction };
}

function answersByCaller(messages: readonly Message[]): Map<string, Message[]> {
  const callers = new Map<string, string>();
  const found = new Map<string, Message[]>();
  for (const message of messages) {
    for (const call of message.calls) callers.set(call.id, message.id);
    const caller = message.answers === null ? undefined : callers.get(message.answers);
    if (caller !== undefined) found.set(caller, [...(found.get(caller) ?? []), message]);
  }
  return found;
}

/** Of summaries that nest, those that no other live one stands for, in order. */
export function outermost(compactions: readonly Compaction[]): Compaction[] {
  const live = compactions.filter((one) => one.isLive);
  const isInside = (one: Compaction, other: Compaction): boolean =>
    other.id !== one.id &&
    other.firstSeq <= one.firstSeq &&
    one.lastSeq <= other.lastSeq &&
    (other.level > one.level || other.lastSeq - other.firstSeq > one.lastSeq - one.firstSeq);
  return live
    .filter((one) => !live.some((other) => isInside(one, other)))
    .sort((one, other) => one.lastSeq - other.lastSeq);
}

/** The versions of a message, itself among them: same parent, same role. */
export function versionsOf(message: Message, all: readonly Version[]): readonly Version[] {
  return all.filter(({ message: other }) => other.parentSeq === message.parentSeq && other.role === message.role);
}
