/** The page: three columns, one place in the address, one answer at a time. */

import { useCallback, useEffect, useMemo, useRef, useState } from "react";

import { download } from "./api/actions";
import { Problem } from "./api/http";
import { useMessageActions } from "./api/messageActions";
import { useAbout, useCompact, useConversation, useCreateOffRecord, useNames, useArrange, useBranches, useRemove, useRename, useTurns, useVerify, useVersions } from "./api/queries";
import { AccountMenu } from "./components/AccountMenu";
import { Box, Trouble, useToast, Waiting } from "./components/Bits";
import { ContextColumn } from "./components/context/ContextColumn";
import { ArrangeBox } from "./components/conversations/ArrangeBox";
import { Conversations, useImporting } from "./components/conversations/Conversations";
import { ExportBox } from "./components/conversations/ExportBox";
import { TitleBar } from "./components/conversations/TitleBar";
import { Empty } from "./components/Empty";
import { AgentsOwn } from "./components/history/AgentsOwn";
import { BranchesBox } from "./components/history/BranchesBox";
import { Composer } from "./components/history/Composer";
import { DropPlace, useDropping } from "./components/history/DropPlace";
import { FeedbackBox } from "./components/history/FeedbackBox";
import { History, type Visible } from "./components/history/History";
import { ModelView } from "./components/history/ModelView";
import { TrustBox } from "./components/history/TrustBox";
import { useAttachments } from "./components/history/useAttachments";
import { Icon, IconButton, Wave, type IconName } from "./components/Icon";
import { EraseBox, type ToErase } from "./components/manage/EraseBox";
import { Manage, type Section } from "./components/manage/Manage";
import { Palette, type Choice } from "./components/Palette";
import { ReplayBar } from "./components/ReplayBar";
import { ShareBox } from "./components/ShareBox";
import { SignIn } from "./components/SignIn";
import { agentOf } from "./lib/agents";
import type { Typed } from "./lib/commands";
import type { Feedback } from "./lib/conversations";
import type { Message } from "./lib/model";
import { count, firstLine } from "./lib/format";
import { versionsOf } from "./lib/rows";
import { attachedIn, withAttached } from "./lib/uploads";
import { isOver } from "./state/answer";
import { keepChoices, NEW, readChoices } from "./state/choices";
import { useConnection } from "./state/connection";
import { keepDraft, readDraft } from "./state/drafts";
import { useIsIn } from "./state/entry";
import { readUnsent } from "./state/unsent";
import { useAnswer } from "./state/useAnswer";
import { useKeys } from "./state/useKeys";
import { usePlace } from "./state/usePlace";
import { useReplay } from "./state/useReplay";
import { useTheme } from "./state/useTheme";
import { useTexts } from "./texts";

const SECTION_ICONS: Record<Section, IconName> = { memories: "thinking", knowledge: "file", agents: "folder", verify: "shield", deleted: "remove", server: "system" };

type Column = "conversations" | "history" | "context";

export function App() {
  const about = useAbout();
  const isIn = useIsIn();
  const [isAdding, setAdding] = useState(false);
  if (isAdding) return <SignIn onCancel={() => setAdding(false)} />;
  const isRefused = !isIn || (about.error instanceof Problem && about.error.status === 401);
  if (isRefused && about.data === undefined) return <SignIn />;
  return (
    <>
      {isRefused && <SignIn owner={about.data?.owner ?? null} />}
      {/* what was typed and not sent stays, out of sight, until its owner is back */}
      <div className="signed" data-away={isRefused} inert={isRefused}><Signed onAddKey={() => setAdding(true)} /></div>
    </>
  );
}

function Signed({ onAddKey }: { readonly onAddKey: () => void }) {
  const { t, language, change } = useTexts();
  const toast = useToast();
  const [place, go] = usePlace();
  const [jumps, setJumps] = useState(0);
  const [band, setBand] = useState<number | null>(null);
  const [column, setColumn] = useState<Column>("history");
  const [isContextShown, setContextShown] = useState(true);
  const [shown, setShown] = useState<readonly Message[]>([]);
  const [current, setCurrent] = useState<string | null>(null);
  const [editing, setEditing] = useState<string | null>(null);
  const [box, setBox] = useState<"help" | "palette" | null>(null);
  const [section, setSection] = useState<Section | null>(null);
  const [erasing, setErasing] = useState<ToErase | null>(null);
  const [sharing, setSharing] = useState<string | null>(null);
  const [exporting, setExporting] = useState<string | null>(null);
  const [arranging, setArranging] = useState<string | null>(null);
  const [branching, setBranching] = useState<string | null>(null);
  const [rated, setRated] = useState<{ readonly message: string; readonly before: Feedback | null } | null>(null);
  const [trusted, setTrusted] = useState<Message | null>(null);
  const [proof, setProof] = useState<{ readonly of: string; readonly isIntact: boolean; readonly text: string } | null>(null);
  const [problem, setProblem] = useState<unknown>(null);
  const search = useRef<HTMLInputElement>(null);
  const importing = useRef<HTMLInputElement>(null);
  const visible = useRef<Visible | null>(null);
  const toggleTheme = useTheme();
  const isConnected = useConnection();
  const about = useAbout();
  const id = place.conversation;
  const conversation = useConversation(id);
  const turns = useTurns(id);
  const names = useNames();
  const versions = useVersions(id);
  const branches = useBranches(id);
  const remove = useRemove();
  const rename = useRename();
  const arrange = useArrange();
  const verify = useVerify();
  const offRecord = useCreateOffRecord();
  const compact = useCompact(id ?? "");

  const asking = useAnswer(
    useCallback(
      (made: string) =>
        go((now) => {
          if (now.conversation !== null) return now;
          keepChoices(made, readChoices(NEW));
          return { ...now, conversation: made, at: null };
        }),
      [go],
    ),
  );
  const { answer, follow, askAgain, clear } = asking;
  const isRunning = answer !== null && !isOver(answer);
  const begun = shown[0]?.seq === 1 ? shown[0].text : answer?.conversationId === id ? (answer?.question?.text ?? "") : "";
  /** Its first question, until the server has found a title for it. */
  const working = firstLine(attachedIn(begun).text);
  const isThere = id !== null || answer !== null;
  const title = conversation.data?.title || working;
  const own = conversation.data ? agentOf(conversation.data) : null;
  useEffect(() => {
    document.title = isThere && title !== "" ? `${title} · everthread` : "everthread";
  }, [isThere, title]);
  const isGone = conversation.error instanceof Problem && conversation.error.status === 404 && !isRunning;
  /** Says which branch is open now, with a way back to the former one. */
  const back = useRef<(text: string, former: string | null) => void>(() => undefined);
  const told = useMemo(
    () => ({
      onEditing: setEditing,
      onFork: (message: Message, former: string | null) => {
        go((now) => ({ ...now, at: null }));
        back.current(t.forked(message.seq), former);
      },
      onBranch: (former: string | null) => back.current(t.branchOpened, former),
      onErase: (message: Message) => setErasing({ conversation: id ?? "", title: "", message }),
      onWhy: (message: Message) => {
        const turn = turns.data?.find((one) => one.answerId === message.id);
        if (turn === undefined) toast({ text: t.whyUnknown });
        else go((now) => ({ ...now, view: "model", turn: turn.id }));
      },
      onBad: (message: Message, before: Feedback | null) => setRated({ message: message.id, before }),
      onTrust: setTrusted,
      onProblem: setProblem,
    }),
    [go, id, turns.data, toast, t],
  );
  const actions = useMessageActions(id, asking, told);
  useEffect(() => {
    back.current = (text, former) => toast({ text, ...(former === null ? {} : { undo: () => actions.switchTo(former) }) });
  }, [actions, toast]);

  const running = turns.data?.find((turn) => turn.state === "running");
  useEffect(() => {
    if (id !== null && running !== undefined && answer === null) void follow(id, running.id);
  }, [id, running, answer, follow]);

  const [returned, setReturned] = useState(0);
  /** What was not sent stands in the composer again, before what was typed since. */
  const giveBack = useCallback((to: string | null, message: string) => {
    const typed = readDraft(to ?? NEW);
    keepDraft(to ?? NEW, typed === "" ? message : `${message}\n\n${typed}`);
    setReturned((times) => times + 1);
  }, []);
  const isIdle = answer === null;
  useEffect(() => {
    const kept = isIdle ? readUnsent(id) : null;
    if (kept === null) return;
    askAgain(kept).catch((refused: unknown) => {
      giveBack(kept.conversation, kept.message);
      setProblem(refused);
    });
  }, [id, isIdle, askAgain, giveBack]);

  const leave = useCallback(() => {
    clear();
    setShown([]);
    setCurrent(null);
    setProblem(null);
    setColumn("history");
  }, [clear]);
  const wasAt = useRef(id);
  useEffect(() => {
    if (wasAt.current !== id && answer !== null && answer.conversationId !== id) leave(); // by the browser's own way back
    wasAt.current = id;
  }, [id, answer, leave]);
  const open = useCallback(
    (next: string, at?: number) => {
      leave();
      setJumps((times) => times + 1);
      go(() => ({ conversation: next, view: "history", turn: null, at: at ?? null }));
    },
    [leave, go],
  );
  const begin = () => {
    leave();
    go(() => ({ conversation: null, view: "history", turn: null, at: null }));
  };
  const jump = (seq: number | null, elsewhere?: string) => {
    setColumn("history");
    setJumps((times) => times + 1);
    setBand(null);
    if (elsewhere !== undefined && elsewhere !== id) open(elsewhere, seq ?? undefined);
    else go((now) => ({ ...now, view: "history", turn: null, at: seq }));
  };
  const jumpToBand = (seq: number) => {
    jump(seq);
    setBand(seq);
  };
  const watching = useReplay({ onBegun: open, onJump: jump, onProblem: setProblem });
  const { replay } = watching;
  const attachments = useAttachments(id, setProblem);
  const bring = useImporting(open, setProblem);
  const dropping = useDropping({ onAttach: attachments.add, onImport: bring });
  const ask = ({ into, files }: Awaited<ReturnType<typeof attachments.handIn>>, words: string) => {
    const message = withAttached(words, files);
    const choices = readChoices(id ?? NEW);
    jump(null);
    attachments.clear();
    if (id === null && into !== null) {
      keepChoices(into, choices);
      go((now) => ({ ...now, conversation: into, at: null }));
    }
    asking.ask({ message, conversation: into, files: files.map((file) => file.path), choices }).catch((refused: unknown) => {
      giveBack(into, message);
      setProblem(refused);
    });
  };
  const send = (words: string) => {
    setProblem(null);
    attachments.handIn(words).then(
      (handedIn) => ask(handedIn, words),
      (refused: unknown) => {
        giveBack(id, words);
        setProblem(refused);
      },
    );
  };
  const stop = () => {
    const unsent = asking.stop();
    if (unsent !== null) giveBack(unsent.conversation, unsent.message);
  };
  const compactThis = () => {
    if (id === null) return;
    setColumn("context");
    compact.mutate(undefined, { onSuccess: (isDone) => toast({ text: isDone ? t.compacted : t.nothingToCompact }), onError: setProblem });
  };
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
  const stepBy = (by: 1 | -1) => {
    const sight = visible.current;
    const at = steps.findIndex((message) => message.id === current);
    const chosen = steps[at];
    const isInSight = chosen !== undefined && (sight === null || (chosen.seq >= sight.first && chosen.seq <= sight.last));
    const start = steps.findIndex((message) => message.seq >= (sight?.first ?? 0)); // from where one reads, not from where one was
    const end = steps.findLastIndex((message) => message.seq <= (sight?.last ?? Infinity));
    const next = isInSight ? at + by : by > 0 ? start : end;
    setCurrent(steps[Math.max(0, Math.min(steps.length - 1, next))]?.id ?? null);
  };
  useKeys((action) => {
    const message = steps.find((one) => one.id === current);
    const other = message && versionsOf(message, versions.data ?? []);
    if (action === "next" || action === "previous") stepBy(action === "next" ? 1 : -1);
    else if (action === "search") {
      setColumn("conversations");
      setTimeout(() => search.current?.focus());
    } else if (action === "history" || action === "model") go((now) => ({ ...now, view: action }));
    else if (action === "help" || action === "palette") setBox(action);
    else if (action === "edit" && message?.role === "user") setEditing(message.id);
    else if (action === "regenerate" && message) actions.regenerate(message);
    else if (action === "compact") compactThis();
    else if (action === "newest") jump(null);
    else if (action === "close") setEditing(null);
    else if (message && other && (action === "earlier-sibling" || action === "later-sibling")) {
      const next = other[other.findIndex((one) => one.message.id === message.id) + (action === "later-sibling" ? 1 : -1)];
      if (next) actions.switchTo(next.branch);
    }
  });

  const view = (next: "history" | "model") => go((now) => ({ ...now, view: next, turn: null }));
  const commands: readonly Choice[] = [
    { icon: "plus", label: t.newConversation, run: begin },
    { icon: "chat", label: t.history, keys: "g h", run: () => view("history") },
    { icon: "layers", label: t.modelView, keys: "g m", run: () => view("model") },
    { icon: "down", label: t.toNewest, keys: "G", run: () => jump(null) },
    ...(Object.entries(SECTION_ICONS) as [Section, IconName][]).map(([one, icon]) => ({ icon, label: t.sections[one], run: () => setSection(one) })),
    { icon: "play", label: t.watch, run: () => void watching.begin() },
    { icon: "theme", label: t.theme, run: toggleTheme },
    { icon: "key", label: t.help, keys: "?", run: () => setBox("help") },
  ];

  return (
    <>
      <a className="skip" href="#main" onClick={(event) => {
        event.preventDefault();
        document.getElementById("main")?.focus();
      }}>{t.skip}</a>
      <div className="page" data-context={isContextShown && isThere && !isGone}>
        <div className="tabs">
          <div role="tablist" aria-label="everthread">
            {(["conversations", "history", "context"] as const).map((one) => (
              <button key={one} role="tab" aria-selected={column === one} onClick={() => setColumn(one)}>
                {one === "conversations" ? t.conversationsTab : one === "history" ? t.historyTab : t.contextTab}
              </button>
            ))}
          </div>
          <IconButton icon="plus" label={t.newConversation} onClick={begin} />
        </div>
        <aside className="column left" data-shown={column === "conversations"} aria-label={t.conversations}>
          <div className="row whole">
            <h1 className="brand"><Wave />everthread</h1>
            <span className="wide-only"><IconButton icon="plus" label={t.newConversation} onClick={begin} /></span>
          </div>
          <Conversations current={id} working={working} running={isRunning ? (answer?.conversationId ?? id) : null} onOpen={open} searchRef={search} />
          <div className="row foot">
            <AccountMenu
              onAdd={onAddKey}
              onManage={() => setSection("memories")}
              onImport={() => importing.current?.click()}
              onOffRecord={() => offRecord.mutate(undefined, { onSuccess: (made) => open(made), onError: setProblem })}
              onHelp={() => setBox("help")}
            />
            <span className="grow" />
            <button className="plain" onClick={() => setSection("verify")}><span className="row tight whole"><Icon name="system" />{t.manage}</span></button>
            <IconButton icon="theme" label={t.theme} onClick={toggleTheme} />
            <button className="plain" lang={language === "en" ? "zh-CN" : "en"} aria-label={t.language} onClick={() => change(language === "en" ? "zh" : "en")}>{t.languageBrief}</button>
            <input
              ref={importing}
              type="file"
              hidden
              aria-label={t.import}
              onChange={(event) => {
                const file = event.target.files?.[0];
                if (file) bring(file);
                event.target.value = "";
              }}
            />
          </div>
        </aside>
        <main className="column middle" id="main" tabIndex={-1} data-shown={column === "history"} {...(isGone ? {} : dropping.handlers)}>
          <DropPlace {...dropping} />
          {isThere && !isGone && (
            <TitleBar
              conversation={conversation.data ?? null}
              working={working}
              branches={branches.data?.length ?? 0}
              view={place.view}
              isContextShown={isContextShown}
              onView={view}
              onContext={() => setContextShown(!isContextShown)}
              onJump={jump}
              onRename={(title) => id !== null && rename.mutate({ id, title }, { onError: setProblem })}
              onPin={() => conversation.data && arrange.mutate({ id: conversation.data.id, pinned: !conversation.data.isPinned }, { onError: setProblem })}
              onArrange={() => setArranging(id)}
              onBranches={() => setBranching(id)}
              proof={proof?.of === id ? proof : null}
              onVerify={() => id !== null && verify.mutate(id, { onSuccess: (found) => setProof({ of: id, isIntact: found.ok, text: found.ok ? t.intact(count(found.entries, language)) : t.broken(String(found.problems.length)) }), onError: setProblem })}
              onShare={() => setSharing(id)}
              onExport={() => setExporting(id)}
              onRemove={removeThis}
              onErase={() => conversation.data && setErasing({ conversation: conversation.data.id, title: conversation.data.title ?? "" })}
            />
          )}
          {!isConnected && <p className="notice lost" role="status"><span className="dot" />{t.reconnecting}</p>}
          {replay !== null && replay.conversation === id && <ReplayBar replay={replay} onJump={jump} onAgain={() => void watching.begin()} onClose={watching.end} />}
          {problem !== null && <Trouble problem={problem} onClose={() => setProblem(null)} />}
          {isGone ? (
            <div className="gone">
              <h1>{t.gone}</h1>
              <p className="soft">{t.goneText}</p>
              <button className="primary" onClick={begin}>{t.newConversation}</button>
            </div>
          ) : id === null && answer === null ? (
            <Empty onTry={send} onOpen={open} onWatch={() => void watching.begin()} />
          ) : place.view === "model" && id !== null ? (
            <ModelView conversation={id} turn={place.turn} onTurn={(turn) => go((now) => ({ ...now, turn }))} onJump={jump} />
          ) : (
            <History
              key={`${id ?? NEW}/${place.at ?? ""}`}
              conversation={id ?? ""}
              at={place.at}
              isAtBand={band !== null && band === place.at}
              jumps={jumps}
              answer={answer}
              current={current}
              editing={editing}
              versions={versions.data ?? []}
              actions={actions}
              visible={visible}
              onEditing={setEditing}
              onRows={setShown}
              onRetry={() => id !== null && void asking.again(id, null).catch(setProblem)}
              onJump={jump}
            />
          )}
          {about.data?.isToyModel && id === null && <p className="notice">{t.toyModel}</p>}
          {!isGone && own !== null && id !== null && <AgentsOwn conversation={id} agent={own} onOpen={open} />}
          {!isGone && own === null && <Composer
            key={returned}
            draft={id ?? NEW}
            isRunning={isRunning}
            names={names.data ?? []}
            chips={attachments.chips}
            onSend={send}
            onCommand={command}
            onStop={stop}
            onFiles={attachments.add}
            onDrop={attachments.drop}
          />}
        </main>
        <aside className="column right" data-shown={column === "context"} aria-label={t.context}>
          {id !== null && !isGone ? <ContextColumn conversation={id} onJump={jump} onBand={jumpToBand} /> : isThere ? <section className="card"><Waiting lines={4} /></section> : <p className="faint">{t.contextEmpty}</p>}
        </aside>
      </div>
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
      <Palette open={box === "palette"} onClose={() => setBox(null)} onOpen={open} commands={commands} />
      <Manage section={section} onSection={setSection} onOpen={open} />
      <ShareBox conversation={sharing} isShared={conversation.data?.isShared ?? false} onClose={() => setSharing(null)} />
      <ExportBox conversation={exporting} onClose={() => setExporting(null)} onProblem={setProblem} />
      <ArrangeBox conversation={arranging !== null && arranging === id ? (conversation.data ?? null) : null} onClose={() => setArranging(null)} />
      <BranchesBox conversation={branching !== null && branching === id ? id : null} onShow={actions.show} onClose={() => setBranching(null)} />
      <FeedbackBox conversation={id ?? ""} about={rated} onClose={() => setRated(null)} />
      <TrustBox conversation={id ?? ""} message={trusted} onClose={() => setTrusted(null)} onJump={jump} />
      <EraseBox what={erasing} onClose={() => setErasing(null)} onErased={(what) => (what.message === undefined ? begin() : isRunning || clear())} />
    </>
  );
}
