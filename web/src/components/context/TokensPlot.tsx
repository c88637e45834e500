/** Tokens that each turn sent. */

import { useEffect, useRef } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";

import { useTexts } from "../../texts";

export function TokensPlot({ spent }: { readonly spent: readonly number[] }) {
  const { t } = useTexts();
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (place.current === null || spent.length === 0) return;
    const style = getComputedStyle(place.current);
    const ink = style.getPropertyValue("--faint");
    const axis = { stroke: ink, grid: { stroke: style.getPropertyValue("--line"), width: 1 } };
    const plot = new uPlot(
      {
        width: place.current.clientWidth,
        height: 160,
        scales: { x: { time: false } },
        axes: [axis, { ...axis, size: 56 }],
        series: [
          {},
          { label: t.sent, stroke: style.getPropertyValue("--part-window"), width: 2 },
        ],
      },
      [spent.map((_, index) => index + 1), [...spent]],
      place.current,
    );
    return () => plot.destroy();
  }, [spent, t]);
  return <div ref={place} role="img" aria-label={t.perTurn} />;
}
