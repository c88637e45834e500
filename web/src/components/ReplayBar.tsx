/** Over the history while a conversation is written before one's eyes: what happens, and how full the window is. */

import { useGauge } from "../api/queries";
import { count } from "../lib/format";
import type { Replay } from "../lib/replay";
import { useTexts } from "../texts";
import type { Texts } from "../texts/en";
import { colour } from "./context/Gauge";
import { Icon, IconButton } from "./Icon";

interface Props {
  readonly replay: Replay;
  readonly onJump: (seq: number) => void;
  readonly onAgain: () => void;
  readonly onClose: () => void;
}

export function ReplayBar({ replay, onJump, onAgain, onClose }: Props) {
  const { t, language } = useTexts();
  const gauge = useGauge(replay.conversation).data;
  const share = (tokens: number) => `${Math.min(100, (100 * tokens) / Math.max(1, gauge?.limit ?? 1))}%`;
  const source = replay.recalled[0];
  return (
    <section className="replay" data-kind={replay.kind} aria-label={t.watch}>
      <div className="row whole">
        {replay.kind === "verified" ? <span className="good"><Icon name="shield" /></span> : <span className="dot" />}
        <p className="grow" role="status">{captionOf(replay, t, language)}</p>
        {replay.kind === "answered" && source !== undefined && <button className="link number" onClick={() => onJump(source)}>#{source}</button>}
        {replay.kind === "verified" && <button onClick={onAgain}>{t.watchAgain}</button>}
        <IconButton icon="close" label={t.close} onClick={onClose} />
      </div>
      {gauge && (
        <div className="row whole">
          <div className="gauge" aria-hidden="true">
            {gauge.parts.map((part, index) => <i key={index} style={{ width: share(part.tokens), background: colour(part.kind) }} />)}
            {gauge.mark !== null && <span className="mark" style={{ left: share(gauge.mark) }} />}
          </div>
          <span className="faint number">{t.gauge(count(gauge.used, language), count(gauge.limit, language))}</span>
        </div>
      )}
    </section>
  );
}

function captionOf(replay: Replay, t: Texts, language: string): string {
  const n = (value: number) => count(value, language);
  if (replay.kind === "compacted") return t.watchCompacted(n(replay.firstSeq), n(replay.lastSeq), n(replay.tokensBefore), n(replay.tokensAfter));
  if (replay.kind === "asked") return t.watchAsked;
  if (replay.kind === "answered") return t.watchAnswered;
  if (replay.kind === "verified") return replay.isIntact ? t.watchVerified(n(replay.entries)) : t.watchBroken;
  return replay.lastSeq === 0 ? t.watchFilling : t.watchGoingOn;
}
