/** What the service says while it writes a conversation that somebody watches. */

import type { ServerEvent } from "./sse";

const KINDS = ["begun", "said", "compacted", "asked", "answered", "verified"] as const;

/** Where a replay is, and the figures of what happened last. */
export interface Replay {
  readonly kind: (typeof KINDS)[number];
  readonly conversation: string;
  /** From 0 to 1. */
  readonly progress: number;
  readonly firstSeq: number;
  readonly lastSeq: number;
  readonly tokensBefore: number;
  readonly tokensAfter: number;
  readonly recalled: readonly number[];
  readonly entries: number;
  readonly isIntact: boolean;
}

const NOTHING: Omit<Replay, "kind" | "conversation"> = { progress: 0, firstSeq: 0, lastSeq: 0, tokensBefore: 0, tokensAfter: 0, recalled: [], entries: 0, isIntact: false };

/** The next state; null for an event of another kind, or before there is a conversation. */
export function replayFrom(event: ServerEvent, before: Replay | null): Replay | null {
  const kind = KINDS.find((one) => one === event.event);
  if (kind === undefined) return before;
  const told = JSON.parse(event.data) as Record<string, unknown>;
  const number = (name: string) => Number(told[name] ?? 0);
  if (kind === "begun") return { ...NOTHING, kind, conversation: String(told["conversation_id"]) };
  if (before === null) return null;
  const now = { ...before, kind };
  if (kind === "said") return { ...now, progress: number("turn") / Math.max(1, number("turns")) };
  if (kind === "compacted") return { ...now, firstSeq: number("first_seq"), lastSeq: number("last_seq"), tokensBefore: number("tokens_before"), tokensAfter: number("tokens_after") };
  if (kind === "answered") return { ...now, recalled: (told["recalled"] as number[] | undefined) ?? [] };
  return kind === "verified" ? { ...now, entries: number("entries"), isIntact: told["ok"] === true } : now;
}
