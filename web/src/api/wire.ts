/** From what the service sends to what the page shows. */

import type { Compaction, Gauge, Message, Part } from "../lib/model";
import { answeredCall, attachmentsOf, callsOf, imagesOf, thinkingOf } from "../lib/payload";
import type { components, paths } from "./schema";

/** A shape of the service's OpenAPI, by its name there. */
export type Shape<Name extends keyof components["schemas"]> = components["schemas"][Name];
/** What may be asked in the query of an address. */
export type Query<Path extends keyof paths> = paths[Path] extends { get: { parameters: { query?: infer Q } } } ? NonNullable<Q> : never;

export function messageFrom(wire: Shape<"MessageOut">): Message {
  return {
    id: wire.id,
    seq: wire.seq,
    role: wire.role,
    name: wire.name,
    text: wire.text,
    thinking: thinkingOf(wire.payload),
    calls: callsOf(wire.payload),
    answers: answeredCall(wire.payload),
    images: imagesOf(wire.payload),
    attachments: attachmentsOf(wire.payload),
    tokens: wire.tokens,
    saidAt: wire.said_at ?? wire.created_at,
    parentSeq: wire.parent_seq,
    revision: wire.revision,
    isDeleted: wire.is_deleted,
    isRemoved: wire.is_removed,
    isPinned: wire.is_pinned,
    isQuarantined: wire.is_quarantined,
    origin: wire.origin,
    isComplete: wire.is_complete,
  };
}

/** Those of a conversation, of which some ids are in the view of the branch in sight: the others are of another branch, or
 * wait behind a gap. Those that an agent or a framework made for itself are in no view of ours. */
export function compactionsFrom(wires: readonly Shape<"CompactionOut">[], inView: readonly string[]): Compaction[] {
  const children = new Map(wires.map((one) => [one.id, one.children]));
  const live = new Set<string>();
  const enter = (id: string) => {
    live.add(id);
    children.get(id)?.forEach(enter);
  };
  inView.forEach(enter);
  return wires.map((wire) => ({ ...compactionFrom(wire), isLive: wire.is_live && live.has(wire.id) }));
}

function compactionFrom(wire: Shape<"CompactionOut">): Omit<Compaction, "isLive"> {
  return {
    id: wire.id,
    number: wire.number,
    level: wire.level,
    firstSeq: wire.first_seq,
    lastSeq: wire.last_seq,
    summary: wire.summary,
    trigger: wire.trigger,
    madeBy: wire.trigger === "framework" ? wire.strategy : null,
    strategy: wire.strategy,
    originalCount: wire.original_count,
    tokensBefore: wire.tokens_before,
    tokensAfter: wire.tokens_after,
    factsTotal: wire.facts_total,
    factsKept: wire.facts_kept,
    seconds: wire.seconds,
    createdAt: wire.created_at,
    endedAt: wire.undone_at ?? wire.invalid_at ?? (wire.trigger === "framework" ? wire.created_at : null),
  };
}

export function gaugeFrom(wire: Shape<"Gauge"> | Shape<"SeenRequest">): Gauge {
  const parts: Part[] = wire.parts.map((part) => ({ kind: part.kind, tokens: part.tokens, seqs: part.seqs, isExact: part.exact }));
  const seen = parts.filter((part) => part.kind !== "summary" && part.kind !== "recalled").flatMap((part) => part.seqs);
  return {
    used: wire.tokens,
    limit: wire.limit,
    mark: "mark_tokens" in wire ? wire.mark_tokens : null,
    uncovered: "uncovered" in wire ? wire.uncovered : 0,
    parts,
    model: "model" in wire ? wire.model : null,
    isExact: "exact" in wire ? wire.exact : parts.every((part) => part.isExact),
    windowSeqs: new Set(seen),
  };
}
