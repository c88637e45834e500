/** The page: three columns, one place in the address, one answer at a time. */

import { useCallback, useEffect, useMemo, useRef, useState } from "react";

import { Problem } from "./api/http";
import { useMessageActions } from "./api/messageActions";
import { useAbout, useConversation, useNames, useCompact, useRemove, useRename, useTurns, useUpload, useVersions } from "./api/queries";
import { Box, Trouble, useToast } from "./components/Bits";
import { ContextColumn } from "./components/context/ContextColumn";
import { Conversations } from "./components/conversations/Conversations";
import { TitleBar } from "./components/conversations/TitleBar";
import { download } from "./api/actions";
import { Empty } from "./components/Empty";
import { IconButton } from "./components/Icon";
import { Composer } from "./components/history/Composer";
import { History } from "./components/history/History";
import { ModelView } from "./components/history/ModelView";
import { Palette } from "./components/Palette";
import { SignIn } from "./components/SignIn";
import type { Typed } from "./lib/commands";
import type { Message } from "./lib/model";
import { versionsOf } from "./lib/rows";
import { isOver } from "./state/answer";
import { usePlace } from "./state/usePlace";
import { useAnswer } from "./state/useAnswer";
import { useKeys } from "./state/useKeys";
import { useTheme } from "./state/useTheme";
import { useTexts } from "./texts";

type Column = "conversations" | "history" | "context";

export function App() {
  const { t, language, change } = useTexts();
  const toast = useToast();
  const [place, go] = usePlace();
  const [column, setColumn] = useState<Column>("history");
  const [shown, setShown] = useState<readonly Message[]>([]);
  const [current, setCurrent] = useState<string | null>(null);
  const [editing, setEditing] = useState<string | null>(null);
  const [box, setBox] = useState<"help" | "palette" | null>(null);
  const [problem, setProblem] = useState<unknown>(null);
  const search = useRef<HTMLInputElement>(null);
  const toggleTheme = useTheme();
  const about = useAbout();
  const id = place.conversation;
  const conversation = useConversation(id);
  const turns = useTurns(id);
  const names = useNames();
  const versions = useVersions(id);
  const remove = useRemove();
  const rename = useRename();
  const upload = useUpload();
  const compact = useCompact(id ?? "");

  const asking = useAnswer(useCallback((made: string) => go((now) => (now.conversation === made ? now : { ...now, conversation: made, at: null })), [go]));
  const { answer, follow } = asking;
  const isRunning = answer !== null && !isOver(answer);
  const actions = useMessageActions(id, asking, { onEditing: setEditing, onFork: (branch) => go((now) => ({ ...now, conversation: branch, at: null })), onProblem: setProblem });

  const running = turns.data?.find((turn) => turn.state === "running");
  useEffect(() => {
    if (id !== null && running !== undefined && answer === null) void follow(id, running.id);
  }, [id, running, answer, follow]);

  const open = useCallback(
    (next: string, at?: number) => {
      asking.clear();
      setShown([]);
      setColumn("history");
      go(() => ({ conversation: next, view: "history", turn: null, at: at ?? null }));
    },
    [asking, go],
  );
  const begin = () => {
    asking.clear();
    setShown([]);
    setColumn("history");
    go(() => ({ conversation: null, view: "history", turn: null, at: null }));
  };
  const jump = (seq: number | null, elsewhere?: string) => {
    setColumn("history");
    if (elsewhere !== undefined && elsewhere !== id) open(elsewhere, seq ?? undefined);
    else go((now) => ({ ...now, view: "history", at: seq }));
  };
  const send = (message: string) => {
    go((now) => ({ ...now, view: "history", at: null }));
    asking.ask({ message, conversation: id }).catch(setProblem);
  };
  const compactThis = () => {
    if (id === null) return;
    setColumn("context");
    compact.mutate(undefined, { onSuccess: (isDone) => toast({ text: isDone ? t.compacted : t.nothingToCompact }), onError: setProblem });
  };
  const handIn = (files: readonly File[]) =>
    upload.mutate(
      { id, files },
      {
        onSuccess: (into) => {
          toast({ text: t.uploadedFiles(files.length) });
          if (into !== id) open(into);
        },
        onError: setProblem,
      },
    );
  const command = (typed: Typed) => {
    if (typed.command === "new") begin();
    else if (typed.command === "search") search.current?.focus();
    else if (typed.command === "help") setBox("help");
    else if (typed.command === "compact") compactThis();
    else if (typed.command === "export" && id !== null) void download(id, "md").catch(setProblem);
    else if (typed.command === "fork" && shown.at(-1)) actions.fork(shown.at(-1)!);
  };
  const removeThis = () => {
    if (id === null) return;
    remove.mutate({ id, isBack: false }, { onSuccess: () => toast({ text: t.removed, undo: () => remove.mutate({ id, isBack: true }) }), onError: setProblem });
    begin();
  };

  const steps = useMemo(() => shown.filter((message) => message.answers === null), [shown]);
  useKeys((action) => {
    const at = steps.findIndex((message) => message.id === current);
    const message = steps[at];
    const other = message && versionsOf(message, versions.data ?? []);
    if (action === "next" || action === "previous") setCurrent(steps[Math.max(0, Math.min(steps.length - 1, at < 0 ? steps.length - 1 : at + (action === "next" ? 1 : -1)))]?.id ?? null);
    else if (action === "search") search.current?.focus();
    else if (action === "history" || action === "model") go((now) => ({ ...now, view: action }));
    else if (action === "help" || action === "palette") setBox(action);
    else if (action === "edit" && message?.role === "user") setEditing(message.id);
    else if (action === "regenerate" && message) actions.regenerate(message);
    else if (action === "compact") compactThis();
    else if (action === "close") setEditing(null);
    else if (message && other && (action === "earlier-sibling" || action === "later-sibling")) {
      const next = other[other.findIndex((one) => one.message.id === message.id) + (action === "later-sibling" ? 1 : -1)];
      if (next) actions.switchTo(next);
    }
  });

  if (about.error instanceof Problem && about.error.status === 401) return <SignIn />;

  return (
    <div className="page">
      <nav className="tabs" role="tablist" aria-label="everthread">
        {(["conversations", "history", "context"] as const).map((one) => (
          <button key={one} role="tab" aria-selected={column === one} onClick={() => setColumn(one)}>
            {one === "conversations" ? t.conversations : one === "history" ? t.historyTab : t.contextTab}
          </button>
        ))}
      </nav>
      <aside className="column left" data-shown={column === "conversations"} aria-label={t.conversations}>
        <h1 className="brand">everthread</h1>
        <Conversations current={id} running={isRunning ? (answer?.conversationId ?? id) : null} onOpen={open} onNew={begin} searchRef={search} />
        <div className="row foot">
          <IconButton icon="theme" label={t.theme} onClick={toggleTheme} />
          <IconButton icon="key" label={t.help} onClick={() => setBox("help")} />
          <span className="grow" />
          <button className="plain" onClick={() => change(language === "en" ? "zh" : "en")}>{t.language}</button>
        </div>
      </aside>
      <main className="column middle" data-shown={column === "history"}>
        {id !== null && (
          <TitleBar
            conversation={id}
            title={conversation.data?.title ?? ""}
            view={place.view}
            onView={(view) => go((now) => ({ ...now, view }))}
            onJump={jump}
            onRename={(title) => rename.mutate({ id, title }, { onError: setProblem })}
            onRemove={removeThis}
            onProblem={setProblem}
          />
        )}
        {about.data?.isToyModel && (
          <p className="notice">
            {t.toyModel} <code>EVERTHREAD_MODEL=openai:gpt-5-mini everthread serve</code>
          </p>
        )}
        {!asking.isConnected && <p className="notice" role="status">{t.reconnecting}</p>}
        {problem !== null && <Trouble problem={problem} onClose={() => setProblem(null)} />}
        {id === null && answer === null ? (
          <Empty onTry={send} onOpen={open} />
        ) : place.view === "model" && id !== null ? (
          <ModelView conversation={id} turn={place.turn} onTurn={(turn) => go((now) => ({ ...now, turn }))} onJump={jump} />
        ) : (
          <History
            key={`${id ?? "new"}/${place.at ?? ""}`}
            conversation={id ?? ""}
            at={place.at}
            answer={answer}
            current={current}
            editing={editing}
            versions={versions.data ?? []}
            actions={actions}
            onEditing={setEditing}
            onRows={setShown}
            onRetry={() => steps.length > 0 && actions.regenerate(steps.at(-1)!)}
          />
        )}
        <Composer
          draft={id ?? "new"}
          isRunning={isRunning}
          names={names.data ?? []}
          onSend={send}
          onCommand={command}
          onStop={asking.stop}
          onFiles={handIn}
        />
      </main>
      <aside className="column right" data-shown={column === "context"} aria-label={t.context}>
        {id !== null ? <ContextColumn conversation={id} onJump={jump} /> : <p className="faint">{t.contextEmpty}</p>}
      </aside>
      <Box title={t.help} open={box === "help"} onClose={() => setBox(null)}>
        <dl>
          {Object.entries(t.keys).map(([key, meaning]) => (
            <div key={key} className="row line-below">
              <dt style={{ minWidth: "5rem" }}><kbd>{key}</kbd></dt>
              <dd style={{ margin: 0 }}>{meaning}</dd>
            </div>
          ))}
        </dl>
      </Box>
      <Palette open={box === "palette"} onClose={() => setBox(null)} onOpen={open} onNew={begin} onView={(view) => go((now) => ({ ...now, view }))} onHelp={() => setBox("help")} />
    </div>
  );
}
