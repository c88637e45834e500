/** The answer that is coming in, or what became of it. */

import { isOver, type Answer } from "../../state/answer";
import { useTexts } from "../../texts";
import { Said } from "../Said";
import { Folded } from "./Folded";

export function LiveAnswer({ answer, onRetry }: { readonly answer: Answer; readonly onRetry: () => void }) {
  const { t } = useTexts();
  return (
    <article className="message" data-role="assistant" data-live="true" aria-busy={!isOver(answer)}>
      <header className="row">
        <span className="who">{t.assistant}</span>
        {!isOver(answer) && <span className="dot" aria-label={t.running} role="img" />}
        {answer.note !== null && <span className="faint">{answer.note === "compaction" ? t.compacted : t.recalledNote}</span>}
      </header>
      {answer.thinking !== "" && (
        <Folded label={t.thinking}>
          <Said text={answer.thinking} />
        </Folded>
      )}
      {answer.calls.map((call) => (
        <Folded key={call.id} label={`${t.toolCall(call.name)}${call.result === null ? " …" : call.ok ? "" : " ✗"}`}>
          <pre className="plain">{call.arguments}</pre>
          {call.result !== null && <pre className="plain">{call.result}</pre>}
        </Folded>
      ))}
      <Said text={answer.text} />
      <Ending answer={answer} onRetry={onRetry} />
    </article>
  );
}

function Ending({ answer, onRetry }: { readonly answer: Answer; readonly onRetry: () => void }) {
  const { t } = useTexts();
  if (answer.state === "cancelled") return <p className="faint">{t.stopped}</p>;
  if (answer.state === "interrupted") return <p className="faint">{t.interrupted}</p>;
  if (answer.state !== "failed") return null;
  return (
    <div className="notice problem" role="alert">
      <strong>{t.failed}</strong> {answer.error?.message} <span className="faint">{t.partial}</span>{" "}
      <button onClick={onRetry}>{t.retry}</button>
    </div>
  );
}
