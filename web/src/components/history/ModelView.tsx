/** The exact request of a turn, block by block: what the model saw, from where it came, what was left out and why. */

import { useState } from "react";

import { useSeen, useTurns } from "../../api/queries";
import { count, moment } from "../../lib/format";
import { blockOf } from "../../lib/payload";
import { useTexts } from "../../texts";
import { Trouble } from "../Bits";
import { colour } from "../context/Gauge";
import { Copy } from "../Said";

const LONG_CHARACTERS = 3000;

interface Props {
  readonly conversation: string;
  readonly turn: string | null;
  readonly onTurn: (turn: string | null) => void;
  readonly onJump: (seq: number) => void;
}

export function ModelView({ conversation, turn, onTurn, onJump }: Props) {
  const { t, language } = useTexts();
  const turns = useTurns(conversation);
  const seen = useSeen(conversation, turn);
  const [place, setPlace] = useState(-1);
  const request = seen.data?.at(place) ?? seen.data?.at(-1);
  return (
    <div className="scroll" tabIndex={0} aria-label={t.modelView} role="region">
      <div className="row bar">
        <label className="row">
          <span>{t.turn}</span>
          <select className="short" value={turn ?? ""} onChange={(event) => onTurn(event.target.value || null)}>
            <option value="">{t.newestTurn}</option>
            {turns.data?.map((one) => (
              <option key={one.id} value={one.id}>{`${moment(one.receivedAt, language)} · ${t.turnStates[one.state] ?? one.state}`}</option>
            ))}
          </select>
        </label>
        {seen.data && seen.data.length > 1 && (
          <select className="short" aria-label={t.request} value={place < 0 ? seen.data.length - 1 : place} onChange={(event) => setPlace(Number(event.target.value))}>
            {seen.data.map((_, index) => (
              <option key={index} value={index}>{`${t.request} ${index + 1}/${seen.data.length}`}</option>
            ))}
          </select>
        )}
        {request && <span className="faint">{t.seenTokens(count(request.tokens, language))}</span>}
        {request && <Copy label={t.copyJson} text={() => JSON.stringify(request.messages, null, 2)} />}
      </div>
      {seen.isError && <Trouble problem={seen.error} onRetry={() => void seen.refetch()} />}
      {seen.isLoading && <p className="faint bar">{t.loading}</p>}
      {request && (
        <ul className="legend wide">
          {request.parts.map((part, index) => (
            <li key={index}>
              <i style={{ background: colour(part.kind) }} />
              <span>{t.parts[part.kind] ?? part.kind}</span>
              <span className="faint">{t.seenTokens(count(part.tokens, language))}{!part.isExact && ` (${t.estimated})`}</span>
              <Sources seqs={part.seqs} onJump={onJump} />
            </li>
          ))}
        </ul>
      )}
      {request?.messages.map((message, index) => <Block key={index} message={message} tokens={request.messageTokens[index]} />)}
      {request && request.omitted.length > 0 && (
        <section className="notice">
          <h3>{t.leftOut}</h3>
          <ul>
            {request.omitted.map((one, index) => (
              <li key={index}>
                <button className="link" onClick={() => onJump(one.seq)}>#{one.seq}{one.lastSeq !== null && `–${one.lastSeq}`}</button> {t.reasons[one.reason] ?? one.reason}
              </li>
            ))}
          </ul>
        </section>
      )}
    </div>
  );
}

function Sources({ seqs, onJump }: { readonly seqs: readonly number[]; readonly onJump: (seq: number) => void }) {
  const first = seqs[0];
  const last = seqs.at(-1);
  if (first === undefined || last === undefined) return null;
  return (
    <button className="link" onClick={() => onJump(first)}>
      #{first}
      {last !== first && `–${last}`}
    </button>
  );
}

function Block({ message, tokens }: { readonly message: unknown; readonly tokens: number | undefined }) {
  const [isWhole, setWhole] = useState(false);
  const { t, language } = useTexts();
  const { role, text, rest } = blockOf(message);
  const shown = isWhole || text.length < LONG_CHARACTERS ? text : `${text.slice(0, LONG_CHARACTERS)} …`;
  return (
    <div className="block" data-role={role}>
      <strong>{t.roles[role] ?? role}</strong>
      {tokens !== undefined && <span className="faint"> {t.seenTokens(count(tokens, language))}</span>}
      {text !== "" && <pre className="plain" tabIndex={0}>{shown}</pre>}
      {rest !== "" && <pre className="plain" tabIndex={0}>{rest}</pre>}
      {shown !== text && <button onClick={() => setWhole(true)}>{t.showAll}</button>}
    </div>
  );
}
