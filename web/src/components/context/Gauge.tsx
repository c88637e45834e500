/** How full the model's context is, of what, and where compaction begins. */

import type { Gauge as Figures } from "../../lib/model";
import { count } from "../../lib/format";
import { useTexts } from "../../texts";

export function Gauge({ figures }: { readonly figures: Figures }) {
  const { t, language } = useTexts();
  const { used, limit, threshold, parts } = figures;
  const label = t.gauge(count(used, language), count(limit, language));
  return (
    <>
      <p style={{ margin: "0 0 0.3rem" }}>
        {label} <span className="faint">({figures.isExact ? t.exact : t.estimated})</span>
      </p>
      <div className="gauge" role="meter" aria-label={label} aria-valuemin={0} aria-valuemax={limit} aria-valuenow={Math.min(used, limit)}>
        {parts.map((part, index) => (
          <i key={index} title={`${t.parts[part.kind] ?? part.kind} ${count(part.tokens, language)}`} style={{ width: `${(100 * part.tokens) / limit}%`, background: colour(part.kind) }} />
        ))}
        <span className="mark" title={t.threshold} style={{ left: `${100 * threshold}%` }} />
      </div>
      <ul className="legend">
        {parts.map((part, index) => (
          <li key={index}>
            <i style={{ background: colour(part.kind) }} />
            <span className="grow">{t.parts[part.kind] ?? part.kind}</span>
            {count(part.tokens, language)}
          </li>
        ))}
      </ul>
    </>
  );
}

export function colour(kind: string): string {
  return `var(--part-${kind}, var(--faint))`;
}
