/** What was just asked, and the answer that is coming in, or what became of it. */

import { useEffect, useState } from "react";

import { useAbout } from "../../api/queries";
import { briefly, moment, seconds as secondsIn, sentences } from "../../lib/format";
import { attachedIn } from "../../lib/uploads";
import { hasSaid, isOver, type Answer, type LiveStep } from "../../state/answer";
import { useConnection } from "../../state/connection";
import { useTexts } from "../../texts";
import { Detail, inOurWords } from "../Bits";
import { Icon } from "../Icon";
import { Said, Typed, Verbatim } from "../Said";
import { Attachments } from "./Attachments";
import { Folded } from "./Folded";

/** My question, at once: it is kept in this browser until the server has it. */
export function LiveQuestion({ answer, conversation }: { readonly answer: Answer; readonly conversation: string }) {
  const { t, language } = useTexts();
  const isConnected = useConnection();
  const { question } = answer;
  if (question === null) return null;
  const isSent = answer.turnId !== null;
  const { text, files } = attachedIn(question.text);
  return (
    <article className="message" data-role="user" data-sent={isSent} aria-label={t.you}>
      <span className="face"><Icon name="user" /></span>
      <header className="row">
        <span className="who">{t.you}</span>
        <time className="faint" dateTime={question.at}>{moment(question.at, language)}</time>
        {!isSent && <span className="tag" role="status">{isConnected ? t.sending : t.notSent}</span>}
      </header>
      <Attachments conversation={conversation} files={files} />
      {text !== "" && <Typed text={text} />}
    </article>
  );
}

interface Props {
  readonly answer: Answer;
  readonly onRetry: () => void;
  readonly onJump: (seq: number) => void;
}

export function LiveAnswer({ answer, onRetry, onJump }: Props) {
  const { t } = useTexts();
  const isConnected = useConnection();
  if (answer.turnId === null && !isConnected) return null; // nobody answers what was not sent
  return (
    <article className="message" data-role="assistant" data-live="true" aria-busy={!isOver(answer)} aria-label={t.assistant}>
      <span className="face"><Icon name="answer" /></span>
      <header className="row">
        <span className="who">{t.assistant}</span>
        {!isOver(answer) && <span className="dot" aria-label={t.running} role="img" />}
        {answer.isCompacted && <span className="tag" data-kind="summary">{t.compacted}</span>}
      </header>
      {answer.recalled.length > 0 && (
        <p className="recall-line">
          <b>{t.recalledNote}</b> {answer.recalled.map((seq) => <button key={seq} className="link" onClick={() => onJump(seq)}>#{seq}</button>)}
        </p>
      )}
      {answer.steps.map((one, place) => <Step key={place} said={one} />)}
      {answer.turnId !== null && !isOver(answer) && !hasSaid(answer) && <Awaited />}
      <Ending answer={answer} onRetry={onRetry} />
    </article>
  );
}

const SOON_SECONDS = 2;
const LONG_SECONDS = 8;

/** That the model has not begun to answer, and after a while why that may be. */
function Awaited() {
  const { t, language } = useTexts();
  const about = useAbout();
  const seconds = useSeconds();
  if (seconds < SOON_SECONDS) return null;
  return (
    <p className="faint" role="status">
      {about.data?.isToyModel === true && seconds >= LONG_SECONDS ? t.waitingForToy : t.waitingForModel}{" "}
      <span className="number" aria-hidden="true">{secondsIn(seconds, language)}</span>
    </p>
  );
}

/** Since it is shown. */
function useSeconds(): number {
  const [began] = useState(() => Date.now());
  const [now, setNow] = useState(began);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, []);
  return Math.floor((now - began) / 1000);
}

function Step({ said }: { readonly said: LiveStep }) {
  const { t } = useTexts();
  return (
    <div className="step">
      {said.thinking !== "" && (
        <Folded icon="thinking" label={t.thinking}>
          <Said text={said.thinking} />
        </Folded>
      )}
      {said.text !== "" && <Said text={said.text} />}
      {said.calls.map((call) => (
        <Folded key={call.id} icon="tool" label={call.name} hint={briefly(call.arguments)} state={call.result === null ? <span className="dot" role="img" aria-label={t.running} /> : call.ok ? <span className="good">✓</span> : <span className="bad">✗</span>}>
          <Verbatim text={call.arguments} />
          {call.result !== null && <Verbatim text={call.result} />}
        </Folded>
      ))}
    </div>
  );
}

/** How an answer ended that ended too soon. */
export function Ending({ answer, onRetry }: { readonly answer: Answer; readonly onRetry: () => void }) {
  const { t } = useTexts();
  const again = <button onClick={onRetry}>{t.retry}</button>;
  if (answer.state === "cancelled") return <p className="faint" role="status">{hasSaid(answer) ? t.stopped : t.stoppedEarly}</p>;
  if (answer.state === "interrupted") return <p className="faint row">{t.interrupted} {again}</p>;
  if (answer.state !== "failed") return null;
  const told = inOurWords(answer.error?.code ?? "", sentences([answer.error?.message]), t);
  return (
    <div className="notice problem" role="alert">
      <div className="row"><strong>{t.failed}</strong> {answer.error?.code !== "turn_failed" && told.words} {again}</div>
      <Detail text={told.detail} />
      {answer.steps.some((one) => one.text !== "") && <p className="faint">{t.partial}</p>}
    </div>
  );
}
