/** Tokens that each turn sent, under the line of what the full history would have cost. */

import { useEffect, useRef } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";

import { brief } from "../../lib/format";
import { useTexts } from "../../texts";

interface Props {
  readonly sent: readonly number[];
  readonly whole: readonly number[];
}

const HEIGHT = 150;
/** One turn is two figures, not a line. */
const FEWEST_TURNS = 2;

export function TokensPlot({ sent, whole }: Props) {
  const { t, language } = useTexts();
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (place.current === null || sent.length < FEWEST_TURNS) return;
    const style = getComputedStyle(place.current);
    const colour = (name: string) => style.getPropertyValue(name);
    const axis = { stroke: colour("--faint"), grid: { stroke: colour("--line"), width: 1 } };
    const points = { show: sent.length < 30, size: 5 };
    const plot = new uPlot(
      {
        width: place.current.clientWidth,
        height: HEIGHT,
        scales: { x: { time: false }, y: { range: (_, __, most) => [0, most * 1.1 || 1] } },
        axes: [
          { ...axis, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000] },
          { ...axis, size: 54, values: (_, values) => values.map((value) => brief(value, language)) },
        ],
        cursor: { points: { size: 6 } },
        legend: { show: false },
        series: [
          { label: t.turn },
          { label: t.sent, stroke: colour("--part-window"), width: 2, points },
          { label: t.fullHistory, stroke: colour("--part-recalled"), width: 2, dash: [5, 4], points: { show: false } },
        ],
      },
      [sent.map((_, index) => index + 1), [...sent], [...whole]],
      place.current,
    );
    // drawn while its column was hidden, as on a phone, it has no width yet
    const box = place.current;
    const watcher = new ResizeObserver(() => box.clientWidth > 0 && box.clientWidth !== plot.width && plot.setSize({ width: box.clientWidth, height: HEIGHT }));
    watcher.observe(box);
    return () => {
      watcher.disconnect();
      plot.destroy();
    };
  }, [sent, whole, t, language]);
  const [last, full] = [brief(sent.at(-1) ?? 0, language), brief(whole.at(-1) ?? 0, language)];
  return (
    <>
      {sent.length >= FEWEST_TURNS && <div ref={place} className="plot" role="img" aria-label={t.plotLabel(last, full)} />}
      <ul className="legend" aria-hidden={sent.length >= FEWEST_TURNS}>
        <li><i style={{ background: "var(--part-window)" }} /><span className="grow">{t.sent}</span><span className="number">{last}</span></li>
        <li><i style={{ background: "var(--part-recalled)" }} /><span className="grow">{t.fullHistory}</span><span className="number">{full}</span></li>
      </ul>
    </>
  );
}
