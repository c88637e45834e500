/** From what the service sends to what the page shows. */

import type { Compaction, Gauge, Message, Part } from "../lib/model";
import { answeredCall, callsOf, imagesOf, thinkingOf } from "../lib/payload";

export interface WireMessage {
  id: string; seq: number; role: string; name: string | null; text: string; payload: unknown; tokens: number;
  created_at: string; said_at: string | null; parent_seq: number | null; revision: number; is_deleted: boolean; is_pinned: boolean;
  is_complete: boolean;
}

export interface WireMessages { items: WireMessage[]; has_older: boolean; has_newer: boolean }

export interface WireCompaction {
  number: number; id: string; level: number; first_seq: number; last_seq: number; summary: string; trigger: string; strategy: string;
  original_count: number; tokens_before: number; tokens_after: number; facts_total: number; facts_kept: number; seconds: number;
  created_at: string; is_live: boolean;
}

export interface WirePart { kind: string; tokens: number; seqs: number[]; exact: boolean }

export interface WireContext {
  tokens: number; limit: number; mark_tokens?: number; parts: WirePart[];
  omitted: { seq: number; last_seq: number | null; reason: string }[];
  messages?: unknown[] | null;
}

export interface WireConversation {
  id: string; title: string | null; parent_id: string | null; created_at: string; updated_at: string; deleted_at: string | null;
  metadata: Record<string, unknown>; entry_count: number;
}

export interface WirePage<T> { items: T[]; next_cursor: string | null }

export interface WireHit { conversation_id: string; seq: number; id: string; snippet: string; score: number }

export function messageFrom(wire: WireMessage): Message {
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
    tokens: wire.tokens,
    saidAt: wire.said_at ?? wire.created_at,
    parentSeq: wire.parent_seq,
    revision: wire.revision,
    isDeleted: wire.is_deleted,
    isPinned: wire.is_pinned,
    isComplete: wire.is_complete,
  };
}

export function compactionFrom(wire: WireCompaction): Compaction {
  return {
    id: wire.id,
    number: wire.number,
    level: wire.level,
    firstSeq: wire.first_seq,
    lastSeq: wire.last_seq,
    summary: wire.summary,
    trigger: wire.trigger,
    strategy: wire.strategy,
    originalCount: wire.original_count,
    tokensBefore: wire.tokens_before,
    tokensAfter: wire.tokens_after,
    factsTotal: wire.facts_total,
    factsKept: wire.facts_kept,
    seconds: wire.seconds,
    createdAt: wire.created_at,
    isLive: wire.is_live,
  };
}

export function gaugeFrom(wire: WireContext): Gauge {
  const parts: Part[] = wire.parts.map((part) => ({ kind: part.kind, tokens: part.tokens, seqs: part.seqs, isExact: part.exact }));
  const seen = parts.filter((part) => part.kind !== "summary" && part.kind !== "recalled").flatMap((part) => part.seqs);
  return {
    used: wire.tokens,
    limit: wire.limit,
    threshold: wire.mark_tokens === undefined ? 0.8 : wire.mark_tokens / wire.limit,
    parts,
    isExact: parts.every((part) => part.isExact),
    windowSeqs: new Set(seen),
  };
}
