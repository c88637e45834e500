/** A slim map beside the history: what is in the model's window, summarized, recalled, pinned; click or drag to move. */

import { useEffect, useMemo, useRef, useState } from "react";

import { barsOf, placeOf, seqAt, type Mapped } from "../../lib/map";
import { useTexts } from "../../texts";

interface Props {
  readonly mapped: Mapped;
  /** The messages in sight. */
  readonly view: { readonly first: number; readonly last: number } | null;
  /** Go there; while the pointer still moves, only if that costs nothing. */
  readonly onGo: (seq: number, isFinal: boolean) => void;
}

const WIDTH = 46;
const EDGE = 10;
const BAR = 4;
const WIDE_BAR = 9;

export function ConversationMap({ mapped, view, onGo }: Props) {
  const { t } = useTexts();
  const box = useRef<HTMLDivElement>(null);
  const [height, setHeight] = useState(0);
  useEffect(() => {
    if (box.current === null) return;
    const watcher = new ResizeObserver(([entry]) => setHeight(entry?.contentRect.height ?? 0));
    watcher.observe(box.current);
    return () => watcher.disconnect();
  }, []);
  const room = Math.max(0, height - 2 * EDGE);
  const bars = useMemo(() => barsOf(mapped, Math.max(1, Math.floor(room / BAR))), [mapped, room]);
  const step = Math.min(WIDE_BAR, room / bars.length);
  const long = step * bars.length;
  const { total, gap } = mapped;
  const place = (seq: number) => EDGE + ((placeOf(seq, gap) - 1) / Math.max(1, placeOf(total, gap))) * long;
  const go = (event: React.PointerEvent, isFinal: boolean) => {
    const top = box.current?.getBoundingClientRect().top ?? 0;
    onGo(seqAt((event.clientY - top - EDGE) / Math.max(1, long), total, gap), isFinal);
  };
  const move = (event: React.KeyboardEvent) => {
    const page = Math.max(1, (view?.last ?? 1) - (view?.first ?? 1));
    const steps: Record<string, number> = { ArrowUp: -page, ArrowDown: page, PageUp: -page * 5, PageDown: page * 5, Home: -total, End: total };
    const by = steps[event.key];
    if (by === undefined) return;
    event.preventDefault();
    onGo(Math.min(total, Math.max(1, (view?.first ?? 1) + by)), true);
  };
  return (
    <div
      ref={box}
      className="map"
      role="slider"
      tabIndex={0}
      aria-label={t.map}
      aria-orientation="vertical"
      aria-valuemin={1}
      aria-valuemax={Math.max(1, total)}
      aria-valuenow={Math.min(Math.max(1, total), view?.first ?? 1)}
      aria-valuetext={view === null ? "" : `#${view.first}–${view.last}`}
      title={t.mapHint}
      onKeyDown={move}
      onPointerDown={(event) => {
        event.currentTarget.setPointerCapture(event.pointerId);
        go(event, false);
      }}
      onPointerMove={(event) => event.buttons > 0 && go(event, false)}
      onPointerUp={(event) => go(event, true)}
    >
      <svg viewBox={`0 0 ${WIDTH} ${Math.max(1, height)}`} preserveAspectRatio="none" aria-hidden="true">
        {bars.map((bar, index) => (
          <rect
            key={index}
            data-kind={bar.kind}
            x={9}
            y={EDGE + index * step}
            width={20 + ((bar.firstSeq * 7) % 9)}
            height={Math.max(1, step - 1.2)}
            rx={Math.min(2, step / 3)}
            opacity={bar.kind === "summary" ? Math.max(0.45, 0.85 - 0.15 * bar.level) : bar.kind === "none" ? 0.7 : 1}
          />
        ))}
        {view !== null && <rect className="view" x={4} width={WIDTH - 8} y={place(view.first) - 2} height={Math.max(10, place(view.last + 1) - place(view.first) + 4)} rx={5} />}
      </svg>
    </div>
  );
}
