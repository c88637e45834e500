/** The map of a conversation: every message has its place in it, however many there are, and a colour for how the model sees it. */

import type { Compaction, Gap } from "./model";
import { outermost } from "./rows";

export type MapKind = "none" | "summary" | "window" | "recalled" | "pinned";

export interface Bar {
  readonly kind: MapKind;
  /** Of a summary: how far it is from its messages. */
  readonly level: number;
  readonly firstSeq: number;
}

export interface Mapped {
  /** The greatest seq. */
  readonly total: number;
  readonly gap: Gap;
  readonly compactions: readonly Compaction[];
  readonly window: ReadonlySet<number>;
  readonly recalled: ReadonlySet<number>;
  readonly pinned: ReadonlySet<number>;
}

/** At most so many bars, each for the same number of messages. What is rare wins over what is common. */
export function barsOf({ total, gap, compactions, window, recalled, pinned }: Mapped, most: number): readonly Bar[] {
  const places = placeOf(total, gap);
  const length = Math.max(1, Math.min(places, most));
  const slot = (seq: number): number => Math.min(length - 1, Math.max(0, Math.floor(((placeOf(seq, gap) - 1) * length) / Math.max(1, places))));
  const bars = Array.from({ length }, (_, index): Bar => ({ kind: "none", level: 0, firstSeq: seqOf(Math.floor((index * places) / length) + 1, gap) }));
  const paint = (seq: number, kind: MapKind) => {
    if (seq > gap.after && seq <= gap.after + gap.length) return; // of another branch
    const index = slot(seq);
    bars[index] = { ...bars[index]!, kind };
  };
  for (const one of outermost(compactions)) {
    for (let index = slot(one.firstSeq); index <= slot(one.lastSeq); index++) bars[index] = { ...bars[index]!, kind: "summary", level: one.level };
  }
  for (const seq of window) paint(seq, "window");
  for (const seq of recalled) paint(seq, "recalled");
  for (const seq of pinned) paint(seq, "pinned");
  return bars;
}

/** The how-manieth message of the map it is: what was said on another branch has no place. */
export function placeOf(seq: number, gap: Gap): number {
  return seq <= gap.after ? seq : Math.max(gap.after, seq - gap.length);
}

function seqOf(place: number, gap: Gap): number {
  return place <= gap.after ? place : place + gap.length;
}

/** The message at a height of the map, from 0 to 1. */
export function seqAt(share: number, total: number, gap: Gap): number {
  const places = placeOf(total, gap);
  return seqOf(Math.min(places, Math.max(1, Math.round(share * (places - 1)) + 1)), gap);
}
