/** The right column: how full the context is, what compaction did, what is to do and remembered, files, settings. */

import { useMemo, useRef, useState, type ReactNode } from "react";

import { downloadFile } from "../../api/actions";
import { useCompact, useCompactionPlan, useCompactions, useFiles, useForget, useGauge, useMemories, useMessages, usePolicy, useRecalled, useTodos, useTurns, useUpload, useWhyRecalled, type Recalled, type Todo } from "../../api/queries";
import { agentName } from "../../lib/agents";
import { beside } from "../../lib/costs";
import { bytes, count, moment, withoutJson } from "../../lib/format";
import { useTexts } from "../../texts";
import { Trouble, useToast, Waiting } from "../Bits";
import { AskingForm } from "./AskingForm";
import { Gauge } from "./Gauge";
import { PolicyForm } from "./PolicyForm";
import { TokensPlot } from "./TokensPlot";

interface Props {
  readonly conversation: string;
  readonly onJump: (seq: number, conversation?: string) => void;
}

type OnBand = (seq: number) => void;

export function ContextColumn({ conversation, onJump, onBand }: Props & { /** To the compaction that ends with a message. */ readonly onBand: OnBand }) {
  const { t } = useTexts();
  const recalled = useRecalled(conversation);
  const todos = useTodos(conversation);
  return (
    <>
      <Card title={t.context}>
        <Fullness conversation={conversation} />
      </Card>
      {recalled.seqs.size > 0 && (
        <Card title={t.recalledFor}>
          <RecalledPieces conversation={conversation} recalled={recalled} onJump={onJump} />
        </Card>
      )}
      <Card title={t.timeline}>
        <Timeline conversation={conversation} onJump={onJump} onBand={onBand} />
      </Card>
      <PerTurn conversation={conversation} />
      {todos.data !== undefined && todos.data.length > 0 && (
        <Card title={t.todos}>
          <Todos todos={todos.data} />
        </Card>
      )}
      <Card title={t.memories}>
        <Memories conversation={conversation} onJump={onJump} />
      </Card>
      <Card title={t.files}>
        <Files conversation={conversation} />
      </Card>
      <section className="card" aria-label={t.settings}>
        <details className="card-fold">
          <summary><h2>{t.settings}</h2></summary>
          <AskingForm key={`asking-${conversation}`} conversation={conversation} />
          <PolicyForm key={conversation} conversation={conversation} />
        </details>
      </section>
    </>
  );
}

function Card({ title, children }: { readonly title: string; readonly children: ReactNode }) {
  return (
    <section className="card" aria-label={title}>
      <h2>{title}</h2>
      {children}
    </section>
  );
}

const MOST_PIECES = 4;

/** What was brought back for the last question, and by what it was found. */
function RecalledPieces({ conversation, recalled, onJump }: Props & { readonly recalled: Recalled }) {
  const { t } = useTexts();
  const [isAsked, setAsked] = useState(false);
  const [isWhole, setWhole] = useState(false);
  const shown = isWhole ? recalled.pieces : recalled.pieces.slice(0, MOST_PIECES);
  const question = useMessages(isAsked && recalled.questionSeq !== null ? conversation : "", recalled.questionSeq);
  const asked = question.data?.pages.flatMap((page) => page.items).find((one) => one.seq === recalled.questionSeq)?.text ?? null;
  const why = useWhyRecalled(conversation, isAsked ? asked : null);
  const reasonOf = (seq: number) => {
    const hit = why.data?.find((one) => one.seqs.includes(seq));
    return hit === undefined ? null : t.foundBy(hit.why.map((one) => t.foundBys[one] ?? one), hit.words);
  };
  return (
    <>
      <ul className="list sources">
        {shown.map((one) => (
          <li key={one.seq}>
            <button className="link number" onClick={() => onJump(one.seq)}>#{one.seq}</button>
            <div>
              <p className="brief">{withoutJson(one.text)}</p>
              {one.speaker !== null && <span className="faint">{t.roles[one.speaker] ?? one.speaker}</span>}
              {why.data && <span className="faint"> · {reasonOf(one.seq) ?? t.foundBeside}</span>}
            </div>
          </li>
        ))}
      </ul>
      {recalled.pieces.length > shown.length && <p style={{ margin: 0 }}><button className="link" onClick={() => setWhole(true)}>{t.moreSources(recalled.pieces.length - shown.length)}</button></p>}
      {!isAsked && <button className="link" onClick={() => setAsked(true)}>{t.whyRecalled}</button>}
      {why.isError && <Trouble problem={why.error} />}
    </>
  );
}

function Fullness({ conversation }: { readonly conversation: string }) {
  const { t, language } = useTexts();
  const toast = useToast();
  const gauge = useGauge(conversation);
  const policy = usePolicy(conversation);
  const compact = useCompact(conversation);
  const plan = useCompactionPlan(conversation);
  const run = () => compact.mutate(undefined, { onSuccess: (isDone) => toast({ text: isDone ? t.compacted : t.nothingToCompact }) });
  const tryOut = () => plan.mutate();
  const planned = plan.data;
  const n = (value: number) => count(value, language);
  return (
    <>
      {gauge.isPending && <Waiting lines={4} />}
      {gauge.data && <Gauge figures={gauge.data} mostMessages={policy.data?.max_message_history ?? null} />}
      {gauge.data && <p className="faint">{t.besides}</p>}
      {gauge.isError && <Trouble problem={gauge.error} onRetry={() => void gauge.refetch()} />}
      <div className="row">
        <button onClick={run} disabled={compact.isPending}>{t.compactNow}</button>
        <button className="plain" onClick={tryOut} disabled={plan.isPending}>{t.compactTry}</button>
      </div>
      {planned !== undefined && <p className="faint" role="status">{planned === null ? t.nothingToCompact : t.wouldCompact(n(planned.messages), n(planned.first), n(planned.last), n(planned.before), n(planned.after))}</p>}
      {plan.isError && <Trouble problem={plan.error} />}
      {compact.isError && <Trouble problem={compact.error} />}
    </>
  );
}

function PerTurn({ conversation }: { readonly conversation: string }) {
  const { t } = useTexts();
  const turns = useTurns(conversation);
  const compactions = useCompactions(conversation);
  const { sent, whole } = useMemo(() => {
    const spent = (turns.data ?? []).flatMap((turn) => (turn.sent === null ? [] : [{ at: turn.receivedAt, sent: turn.sent }]));
    return beside(spent.reverse(), compactions.data ?? []);
  }, [turns.data, compactions.data]);
  return sent.length === 0 ? null : <Card title={t.perTurn}><TokensPlot sent={sent} whole={whole} /></Card>;
}

function Timeline({ conversation, onJump, onBand }: Props & { readonly onBand: OnBand }) {
  const { t, language } = useTexts();
  const compactions = useCompactions(conversation);
  const all = [...(compactions.data ?? [])].reverse();
  if (compactions.isPending) return <Waiting />;
  if (all.length === 0) return <p className="faint">{t.noCompactions}</p>;
  return (
    <ol className="list timeline">
      {all.map((one) => (
        <li key={one.id} data-live={one.isLive || one.madeBy !== null}>
          <div className="row">
            <button className="link number spans" onClick={() => (one.isLive ? onBand(one.lastSeq) : onJump(one.firstSeq))}>#{one.firstSeq}–{one.lastSeq}</button>
            <span className="grow" />
            <span className="number">{count(one.tokensBefore, language)} → {count(one.tokensAfter, language)}</span>
          </div>
          <div className="saved" aria-hidden="true"><i style={{ width: `${Math.min(100, (100 * one.tokensAfter) / Math.max(1, one.tokensBefore))}%` }} /></div>
          <span className="faint">
            {one.madeBy !== null ? t.byItself(agentName(one.madeBy)) : one.isLive ? (one.trigger === "manual" ? t.manual : t.automatic) : one.endedAt === null ? t.notHere : t.notLive} · {t.level(one.level)} · {moment(one.createdAt, language)}
          </span>
        </li>
      ))}
    </ol>
  );
}

const TODO_SIGNS = { pending: "☐", in_progress: "◐", completed: "☑" } as const;

function Todos({ todos }: { readonly todos: readonly Todo[] }) {
  const { t } = useTexts();
  return (
    <ol className="list">
      {todos.map((todo, index) => (
        <li key={index} className="todo" data-status={todo.status}>
          <span role="img" aria-label={t.todoStates[todo.status]}>{TODO_SIGNS[todo.status]}</span> <span>{todo.content}</span>
        </li>
      ))}
    </ol>
  );
}

function Memories({ conversation, onJump }: Props) {
  const { t } = useTexts();
  const toast = useToast();
  const memories = useMemories(conversation);
  const change = useForget();
  const forget = (memory: string) =>
    change.mutate({ memory, isBack: false }, { onSuccess: () => toast({ text: t.forgotten, undo: () => change.mutate({ memory, isBack: true }) }) });
  if (memories.isError) return <Trouble problem={memories.error} onRetry={() => void memories.refetch()} />;
  if (memories.isPending) return <Waiting />;
  if (!memories.data.length) return <p className="faint">{t.noMemories}</p>;
  return (
    <ul className="list">
      {memories.data.map((memory) => (
        <li key={memory.id}>
          <div>{memory.text}</div>
          <div className="row whole faint">
            <span className="grow">{t.memoryKinds[memory.kind] ?? memory.kind}{memory.isOnlyHere && ` · ${t.onlyHere}`}</span>
            {memory.source !== null && (
              <button className="link" onClick={() => onJump(memory.source!.seq, memory.source!.conversation)}>{t.source} #{memory.source.seq}</button>
            )}
            <button className="link" onClick={() => forget(memory.id)}>{t.forget}</button>
          </div>
        </li>
      ))}
    </ul>
  );
}

function Files({ conversation }: { readonly conversation: string }) {
  const { t, language } = useTexts();
  const files = useFiles(conversation);
  const upload = useUpload();
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      {files.isError && <Trouble problem={files.error} onRetry={() => void files.refetch()} />}
      {files.data?.length === 0 && <p className="faint">{t.noFiles}</p>}
      <ul className="list">
        {files.data?.map((file) => (
          <li key={file.path} className="row">
            <button className="link grow" title={file.path} onClick={() => void downloadFile(conversation, file.path)}>{file.name}</button>
            {file.isUpload && <span className="tag">{t.uploaded}</span>}
            <span className="faint">{bytes(file.bytes, language)}</span>
          </li>
        ))}
      </ul>
      <button onClick={() => input.current?.click()} disabled={upload.isPending}>{t.upload}</button>
      <input ref={input} type="file" multiple hidden aria-label={t.upload} onChange={(event) => event.target.files?.[0] && upload.mutate({ id: conversation, files: [...event.target.files] })} />
      {upload.isError && <Trouble problem={upload.error} />}
    </>
  );
}
