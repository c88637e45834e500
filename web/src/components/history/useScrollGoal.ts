/** Where the history is to stand: at its foot, at the message one jumped to, or where the reader has scrolled. A goal holds while
 * what is above it is drawn and measured, until the reader scrolls away: so a jump arrives, whatever has to be loaded for it. */

import type { useVirtualizer } from "@tanstack/react-virtual";
import { useCallback, useEffect, useLayoutEffect, useRef, useState, type RefObject } from "react";

import { isBandOf, type Row } from "../../lib/rows";

type List = ReturnType<typeof useVirtualizer<HTMLDivElement, Element>>;
type Goal = { readonly kind: "foot" } | { readonly kind: "message"; readonly seq: number } | { readonly kind: "reader" };

const FOOT_PIXELS = 80;
const ABOVE_PIXELS = 12;
/** A smaller difference is one of rounding. */
const SAME_PIXELS = 3;

interface Given {
  readonly list: RefObject<HTMLDivElement | null>;
  readonly content: RefObject<HTMLDivElement | null>;
  readonly virtual: List;
  readonly rows: readonly Row[];
  readonly at: number | null;
  /** Whether the band of what was summarized there is the goal. */
  readonly isAtBand: boolean;
  /** Grows with the answer that comes in. */
  readonly growth: number;
  readonly hasNewer: boolean;
}

export function useScrollGoal({ list, content, virtual, rows, at, isAtBand, growth, hasNewer }: Given) {
  const [isAway, setAway] = useState(false);
  const goal = useRef<Goal>(goalOf(at));
  const ours = useRef(-1);
  const anchor = useRef<{ readonly key: string; readonly below: number } | null>(null);
  const before = useRef<string | undefined>(undefined);
  const now = useRef({ rows, isAtBand, hasNewer });
  useLayoutEffect(() => {
    now.current = { rows, isAtBand, hasNewer };
  });

  const apply = useCallback(() => {
    const box = list.current;
    if (box === null || now.current.rows.length === 0 || goal.current.kind === "reader") return;
    const wanted = goal.current;
    let top = box.scrollHeight;
    if (wanted.kind === "message") {
      const band = now.current.isAtBand ? now.current.rows.findIndex((row) => isBandOf(row, wanted.seq)) : -1;
      const index = band >= 0 ? band : now.current.rows.findIndex((row) => row.kind === "message" && (row.message.seq >= wanted.seq || row.results.some((one) => one.seq >= wanted.seq)));
      if (index < 0) return;
      top = (virtual.measurementsCache[index]?.start ?? 0) - ABOVE_PIXELS;
    }
    box.scrollTop = top;
    ours.current = box.scrollTop;
  }, [list, virtual]);

  useEffect(() => {
    const box = list.current;
    if (box === null) return;
    const look = () => {
      const isAtFoot = box.scrollHeight - box.scrollTop - box.clientHeight < FOOT_PIXELS;
      setAway(!isAtFoot);
      const top = virtual.getVirtualItemForOffset(box.scrollTop);
      anchor.current = top === undefined ? null : { key: String(top.key), below: box.scrollTop - top.start };
      if (Math.abs(box.scrollTop - ours.current) <= SAME_PIXELS) return;
      ours.current = -1;
      goal.current = isAtFoot && !now.current.hasNewer ? { kind: "foot" } : { kind: "reader" };
    };
    box.addEventListener("scroll", look, { passive: true });
    const watcher = new ResizeObserver(apply); // pictures, fonts and folded things change heights without a new row
    if (content.current !== null) watcher.observe(content.current);
    watcher.observe(box);
    return () => {
      box.removeEventListener("scroll", look);
      watcher.disconnect();
    };
  }, [list, content, virtual, apply]);

  virtual.shouldAdjustScrollPositionOnItemSizeChange = (item) => goal.current.kind === "reader" && item.start < (virtual.scrollOffset ?? 0);

  const first = rows[0]?.key;
  const height = virtual.getTotalSize();
  useLayoutEffect(() => {
    const box = list.current;
    if (box === null || rows.length === 0) return;
    const kept = anchor.current;
    if (goal.current.kind !== "reader") apply();
    else if (before.current !== first && kept !== null) {
      const index = rows.findIndex((row) => row.key === kept.key);
      if (index >= 0) box.scrollTop = (virtual.measurementsCache[index]?.start ?? 0) + kept.below;
    }
    before.current = first;
  }, [first, height, rows, growth, list, virtual, apply]);

  /** Go to a message, or with null to the newest. */
  const aim = useCallback(
    (seq: number | null) => {
      goal.current = goalOf(seq);
      apply();
    },
    [apply],
  );
  return { isAway, aim };
}

function goalOf(at: number | null): Goal {
  return at === null ? { kind: "foot" } : { kind: "message", seq: at };
}
