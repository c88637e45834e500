/** How full the model's context is, of what, and where compaction begins: by tokens, and by messages. */

import type { Gauge as Figures } from "../../lib/model";
import { brief, count } from "../../lib/format";
import { useTexts } from "../../texts";

interface Props {
  readonly figures: Figures;
  /** How many messages the window may grow to. */
  readonly mostMessages: number | null;
}

export function Gauge({ figures, mostMessages }: Props) {
  const { t, language } = useTexts();
  const { used, limit, mark, parts, uncovered } = figures;
  const share = (tokens: number) => `${Math.min(100, (100 * tokens) / limit)}%`;
  const isFarRight = mark !== null && mark / limit > 0.55;
  return (
    <>
      <p className="figure number">
        {count(used, language)} <span>{t.gaugeOf(count(limit, language))}</span>
      </p>
      <p className="faint one-line" title={figures.model ?? ""}>{figures.model !== null && `${figures.model} · `}{figures.isExact ? t.exact : t.estimated}</p>
      <div className="gauge" role="meter" aria-label={t.gauge(count(used, language), count(limit, language))} aria-valuemin={0} aria-valuemax={limit} aria-valuenow={Math.min(used, limit)}>
        {parts.map((part, index) => (
          <i key={index} title={`${t.parts[part.kind] ?? part.kind} ${count(part.tokens, language)}`} style={{ width: share(part.tokens), background: colour(part.kind) }} />
        ))}
        {mark !== null && <span className="mark" style={{ left: share(mark) }} />}
        <span className="mark hard" />
      </div>
      <div className="ticks faint number">
        {mark !== null && <span style={isFarRight ? { right: `max(calc(100% - ${share(mark)}), 4.5em)` } : { left: share(mark) }}>{t.threshold} {brief(mark, language)}</span>}
        <span style={{ right: 0 }} title={t.hardLimit}>{brief(limit, language)}</span>
      </div>
      <ul className="legend">
        {parts.map((part, index) => (
          <li key={index}>
            <i style={{ background: colour(part.kind) }} />
            <span className="grow">{t.parts[part.kind] ?? part.kind}</span>
            <span className="number">{count(part.tokens, language)}</span>
          </li>
        ))}
      </ul>
      {mostMessages !== null && (
        <>
          <p className="faint" style={{ margin: 0 }}>{t.windowOf(count(uncovered, language), count(mostMessages, language))}</p>
          <div className="gauge thin" role="meter" aria-label={t.windowOf(count(uncovered, language), count(mostMessages, language))} aria-valuemin={0} aria-valuemax={mostMessages} aria-valuenow={Math.min(uncovered, mostMessages)}>
            <i style={{ width: `${Math.min(100, (100 * uncovered) / mostMessages)}%`, background: colour("window") }} />
          </div>
        </>
      )}
    </>
  );
}

export function colour(kind: string): string {
  return `var(--part-${kind}, var(--faint))`;
}
