/** The exact request of a turn, block by block: what the model saw, from where it came, what was left out and why. A slider
 * goes through the turns, and says what came in and went out since the one before. */

import { useMemo, useState } from "react";

import { useSeen, useTurns, type Seen } from "../../api/queries";
import { briefly, count, firstLine, moment } from "../../lib/format";
import { blockOf } from "../../lib/payload";
import { changesBetween, quotationsIn, type Contents, type Quotation } from "../../lib/quotations";
import { useTexts } from "../../texts";
import { Trouble } from "../Bits";
import { Icon } from "../Icon";
import { colour } from "../context/Gauge";
import { faceOf, whoSays } from "./MessageRow";
import { Copy, Said, Typed, Verbatim } from "../Said";

interface Props {
  readonly conversation: string;
  readonly turn: string | null;
  readonly onTurn: (turn: string | null) => void;
  readonly onJump: (seq: number) => void;
}

export function ModelView({ conversation, turn, onTurn, onJump }: Props) {
  const { t, language } = useTexts();
  const turns = useTurns(conversation);
  const known = [...(turns.data ?? [])].reverse();
  const at = turn === null ? known.length : known.findIndex((one) => one.id === turn);
  const seen = useSeen(conversation, turn);
  const before = useSeen(conversation, known[at - 1]?.id ?? null, at > 0 && at <= known.length);
  const [place, setPlace] = useState(-1);
  const request = seen.data?.at(place) ?? seen.data?.at(-1);
  const seqs = useMemo(() => (request === undefined ? [] : originalsOf(request)), [request]);
  const chosen = known[at];
  const name = chosen === undefined ? t.newestTurn : t.turnOf(at + 1, known.length, moment(chosen.receivedAt, language), t.turnStates[chosen.state] ?? chosen.state);
  return (
    <>
      {known.length > 0 && (
        <div className="slider">
          <label htmlFor="turn-slider">{t.turn}</label>
          <input id="turn-slider" type="range" min={0} max={known.length} value={at < 0 ? known.length : at} aria-valuetext={name} onChange={(event) => onTurn(known[Number(event.target.value)]?.id ?? null)} />
          <output htmlFor="turn-slider">{name}</output>
          {request && before.data?.at(-1) && <Changes before={before.data.at(-1)!} now={request} onJump={onJump} />}
        </div>
      )}
      <div className="scroll" tabIndex={0} aria-label={t.modelView} role="region">
        <div className="blocks">
          <div className="row">
            {request && <strong className="number">{t.seenTokens(count(request.tokens, language))}</strong>}
            {seen.data && seen.data.length > 1 && (
              <select className="short" aria-label={t.request} value={place < 0 ? seen.data.length - 1 : place} onChange={(event) => setPlace(Number(event.target.value))}>
                {seen.data.map((_, index) => (
                  <option key={index} value={index}>{`${t.request} ${index + 1}/${seen.data.length}`}</option>
                ))}
              </select>
            )}
            <span className="grow" />
            {request && <Copy label={t.copyJson} text={() => JSON.stringify(request.messages, null, 2)} />}
          </div>
          {turn === null && request && <p className="faint">{t.besides}</p>}
          {seen.isError && <Trouble problem={seen.error} onRetry={() => void seen.refetch()} />}
          {seen.isLoading && <p className="faint">{t.loading}</p>}
          {request && (
            <ul className="legend wide">
              {request.parts.map((part, index) => (
                <li key={index}>
                  <i style={{ background: colour(part.kind) }} />
                  <span>{t.parts[part.kind] ?? part.kind}</span>
                  <span className="faint number">{count(part.tokens, language)}{!part.isExact && ` (${t.estimated})`}</span>
                </li>
              ))}
            </ul>
          )}
          {request?.messages.map((message, index) => <Block key={index} message={message} seq={seqs[index] ?? null} tokens={request.messageTokens[index]} isLast={index === request.messages.length - 1} onJump={onJump} />)}
          {request && request.omitted.length > 0 && (
            <section className="card">
              <h3>{t.leftOut}</h3>
              <ul className="list">
                {request.omitted.map((one, index) => (
                  <li key={index}>
                    <button className="link number" onClick={() => onJump(one.seq)}>#{one.seq}{one.lastSeq !== null && `–${one.lastSeq}`}</button> {t.reasons[one.reason] ?? one.reason}
                  </li>
                ))}
              </ul>
            </section>
          )}
        </div>
      </div>
    </>
  );
}

function contentsOf(seen: Seen): Contents {
  const of = (kinds: readonly string[]) => new Set(seen.parts.filter((part) => kinds.includes(part.kind)).flatMap((part) => part.seqs));
  return { window: of(["window", "question"]), recalled: of(["recalled"]) };
}

function Changes({ before, now, onJump }: { readonly before: Seen; readonly now: Seen; readonly onJump: (seq: number) => void }) {
  const { t } = useTexts();
  const { added, left, recalled } = changesBetween(contentsOf(before), contentsOf(now));
  return (
    <div className="changes">
      <span>{t.sinceTurnBefore}</span>
      <span className="tag">{t.cameIn(added)}</span>
      {left > 0 && <span className="tag" data-kind="summary">{t.wentOut(left)}</span>}
      {recalled.length > 0 && <span className="tag" data-kind="recalled">{t.recalledTag} {recalled.map((seq) => <button key={seq} className="link number" onClick={() => onJump(seq)}>#{seq}</button>)}</span>}
    </div>
  );
}

/** Of each message of a request the one of the log that it is; null for what quotes several, or where they do not pair. */
function originalsOf(request: Seen): readonly (number | null)[] {
  const isOwn = request.messages.map((message) => {
    const { role, text } = blockOf(message);
    return role !== "system" && quotationsIn(text).length === 0;
  });
  const seqs = request.parts.filter((part) => part.kind === "window" || part.kind === "question").flatMap((part) => part.seqs).sort((one, other) => one - other);
  if (isOwn.filter(Boolean).length !== seqs.length) return [];
  let next = 0;
  return isOwn.map((own) => (own ? (seqs[next++] ?? null) : null));
}

interface BlockProps {
  readonly message: unknown;
  /** The original in the log. */
  readonly seq: number | null;
  readonly tokens: number | undefined;
  readonly isLast: boolean;
  readonly onJump: (seq: number) => void;
}

/** What somebody said, unfolded where it is short; what stands for others, by its parts. */
function Block({ message, seq, tokens, isLast, onJump }: BlockProps) {
  const { t, language } = useTexts();
  const { role, name: speaker, text, calls, rest } = blockOf(message);
  const quotations = quotationsIn(text);
  const kind = quotations[0]?.kind ?? (role === "system" ? "system" : isLast && role === "user" ? "question" : "window");
  const name = quotations.length > 0 ? t.sentAs([...new Set(quotations.map((one) => t.parts[one.kind] ?? one.kind))].join(", "), role) : whoSays({ role, name: speaker }, t);
  return (
    <div className="block" data-role={role} data-kind={kind}>
      <details open={quotations.length === 0 && text.length < 1200}>
        <summary>
          <Icon name={quotations.length > 0 ? "layers" : faceOf(role)} />
          <strong>{name}</strong> {tokens !== undefined && <span className="faint number">{t.seenTokens(count(tokens, language))}</span>} <span className="faint brief">{quotations.length === 0 && (firstLine(text, 60) || calls.map((call) => call.name).join(", "))}</span>
        </summary>
        {quotations.length > 0 ? quotations.map((one, index) => <Quoted key={index} quotation={one} onJump={onJump} />) : text !== "" && (role === "assistant" ? <Said text={text} /> : role === "user" ? <Typed text={text} /> : <Verbatim text={text} />)}
        {calls.map((call) => <p key={call.id} className="call"><Icon name="tool" /><b>{call.name}</b> <span>{briefly(call.arguments)}</span></p>)}
        {rest !== "" && <Verbatim text={rest} />}
      </details>
      {seq !== null && <button className="link number" onClick={() => onJump(seq)}>#{seq}</button>}
    </div>
  );
}

function Quoted({ quotation, onJump }: { readonly quotation: Quotation; readonly onJump: (seq: number) => void }) {
  const { t } = useTexts();
  const { kind, firstSeq, lastSeq, text } = quotation;
  return (
    <section>
      <p className="row faint">
        <span className="tag" data-kind={kind}>{t.parts[kind]}</span>
        {firstSeq !== null && <button className="link number" onClick={() => onJump(firstSeq)}>#{firstSeq}{lastSeq !== firstSeq && `–${lastSeq}`}</button>}
        {quotation.speaker !== null && <span>{t.roles[quotation.speaker] ?? quotation.speaker}</span>}
      </p>
      {quotation.speaker === "user" ? <Typed text={text} /> : <Said text={text} onMessage={onJump} />}
    </section>
  );
}
