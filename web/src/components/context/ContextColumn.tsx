/** The right column: how full the context is, what compaction did, what is remembered, files, settings. */

import { useRef, type ReactNode } from "react";

import { downloadFile } from "../../api/actions";
import { useCompact, useCompactions, useFiles, useForget, useGauge, useMemories, useTurns, useUpload } from "../../api/queries";
import { bytes, count, moment } from "../../lib/format";
import { useTexts } from "../../texts";
import { Trouble, useToast } from "../Bits";
import { Gauge } from "./Gauge";
import { PolicyForm } from "./PolicyForm";
import { TokensPlot } from "./TokensPlot";

interface Props {
  readonly conversation: string;
  readonly onJump: (seq: number, conversation?: string) => void;
}

export function ContextColumn({ conversation, onJump }: Props) {
  const { t } = useTexts();
  return (
    <>
      <Card title={t.context}>
        <Fullness conversation={conversation} />
      </Card>
      <Card title={t.perTurn}>
        <PerTurn conversation={conversation} />
      </Card>
      <Card title={t.timeline}>
        <Timeline conversation={conversation} onJump={onJump} />
      </Card>
      <Card title={t.memories}>
        <Memories onJump={onJump} />
      </Card>
      <Card title={t.files}>
        <Files conversation={conversation} />
      </Card>
      <Card title={t.settings}>
        <PolicyForm key={conversation} conversation={conversation} />
      </Card>
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

function Fullness({ conversation }: { readonly conversation: string }) {
  const { t } = useTexts();
  const toast = useToast();
  const gauge = useGauge(conversation);
  const compact = useCompact(conversation);
  const run = () => compact.mutate(undefined, { onSuccess: (isDone) => !isDone && toast({ text: t.nothingToCompact }) });
  return (
    <>
      {gauge.data && <Gauge figures={gauge.data} />}
      {gauge.isError && <Trouble problem={gauge.error} onRetry={() => void gauge.refetch()} />}
      <button onClick={run} disabled={compact.isPending}>{t.compactNow}</button>
      {compact.isError && <Trouble problem={compact.error} />}
    </>
  );
}

function PerTurn({ conversation }: { readonly conversation: string }) {
  const { t } = useTexts();
  const turns = useTurns(conversation);
  const spent = (turns.data ?? []).flatMap((turn) => (turn.sent === null ? [] : [turn.sent])).reverse();
  return spent.length === 0 ? <p className="faint">{t.none}</p> : <TokensPlot spent={spent} />;
}

function Timeline({ conversation, onJump }: Props) {
  const { t, language } = useTexts();
  const compactions = useCompactions(conversation);
  const all = [...(compactions.data ?? [])].reverse();
  if (all.length === 0) return <p className="faint">{t.none}</p>;
  return (
    <ol className="list">
      {all.map((one) => (
        <li key={one.id} style={one.isLive ? {} : { textDecoration: "line-through" }}>
          <button className="plain" onClick={() => onJump(one.firstSeq)}>#{one.firstSeq}–{one.lastSeq}</button>{" "}
          <span className="faint">
            {count(one.tokensBefore, language)} → {count(one.tokensAfter, language)} · {t.level(one.level)} · {moment(one.createdAt, language)}
          </span>
        </li>
      ))}
    </ol>
  );
}

function Memories({ onJump }: Pick<Props, "onJump">) {
  const { t } = useTexts();
  const memories = useMemories();
  const forget = useForget();
  if (!memories.data?.length) return <p className="faint">{t.none}</p>;
  return (
    <ul className="list">
      {memories.data.map((memory) => (
        <li key={memory.id} className="row">
          <span className="grow">{memory.text}</span>
          {memory.source !== null && (
            <button className="plain" onClick={() => onJump(memory.source!.seq, memory.source!.conversation)}>{t.source}</button>
          )}
          <button className="plain" onClick={() => forget.mutate(memory.id)}>{t.forget}</button>
        </li>
      ))}
    </ul>
  );
}

function Files({ conversation }: { readonly conversation: string }) {
  const { t, language } = useTexts();
  const files = useFiles(conversation);
  const upload = useUpload(conversation);
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      {!files.data?.length && <p className="faint">{t.none}</p>}
      <ul className="list">
        {files.data?.map((file) => (
          <li key={file.name}>
            <button className="plain" onClick={() => void downloadFile(conversation, file.name)}>{file.name}</button> <span className="faint">{bytes(file.bytes, language)}</span>
          </li>
        ))}
      </ul>
      <button onClick={() => input.current?.click()} disabled={upload.isPending}>{t.upload}</button>
      <input ref={input} type="file" hidden onChange={(event) => event.target.files?.[0] && upload.mutate([...event.target.files])} />
      {upload.isError && <Trouble problem={upload.error} />}
    </>
  );
}
