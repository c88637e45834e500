/** The whole history, newest at the foot: pages of 200 are loaded as one scrolls, and only what is in sight is drawn. */

import { useQueryClient } from "@tanstack/react-query";
import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useMemo, useRef, type RefObject } from "react";

import { newestMessagesKey, useCompactions, useConversation, useGauge, useElsewhere, useErasedEnd, useMessages, useOpenBranch, useRecalled, type Recalled } from "../../api/queries";
import { agentName, importedFrom } from "../../lib/agents";
import { firstLine } from "../../lib/format";
import type { Compaction, Gap, Message, Version } from "../../lib/model";
import { isBandOf, outermost, rowsOf, versionsOf, type Row } from "../../lib/rows";
import { restOf, type Answer } from "../../state/answer";
import { useTexts } from "../../texts";
import { Trouble } from "../Bits";
import { Band } from "../compaction/Band";
import { Icon } from "../Icon";
import { ConversationMap } from "./ConversationMap";
import { Ending, LiveAnswer, LiveQuestion } from "./LiveAnswer";
import { MessageRow, type MessageActions, type Seen } from "./MessageRow";
import { useScrollGoal } from "./useScrollGoal";

export interface Visible {
  readonly first: number;
  readonly last: number;
}

interface Props {
  readonly conversation: string;
  /** The message to show; the newest ones when there is none. */
  readonly at: number | null;
  /** Whether it is the compaction there that one jumped to. */
  readonly isAtBand: boolean;
  /** How often one jumped: also to where one is already. */
  readonly jumps: number;
  readonly answer: Answer | null;
  readonly current: string | null;
  readonly editing: string | null;
  readonly versions: readonly Version[];
  readonly actions: MessageActions;
  /** Where the messages in sight are told. */
  readonly visible: RefObject<Visible | null>;
  readonly onEditing: (id: string | null) => void;
  readonly onRows: (messages: readonly Message[]) => void;
  readonly onRetry: () => void;
  /** To a message; to the newest with null. */
  readonly onJump: (seq: number | null) => void;
}

const NEAR_PIXELS = 600;
/** By then a page that was just loaded has been drawn, and one's place in it found again. */
const SETTLE_MILLISECONDS = 150;
const NOTHING: ReadonlySet<number> = new Set();
const NO_GAP: Gap = { after: 0, length: 0 };
const NO_SOURCES: Recalled["pieces"] = [];

export function History(props: Props) {
  const { conversation, at, isAtBand, jumps, answer, current, visible, onRows, onJump } = props;
  const { t } = useTexts();
  const cache = useQueryClient();
  const pages = useMessages(conversation, at);
  const compactions = useCompactions(conversation);
  const gauge = useGauge(conversation);
  const about = useConversation(conversation === "" ? null : conversation);
  const recalled = useRecalled(conversation);
  const loaded = useMemo(() => pages.data?.pages.flatMap((page) => page.items) ?? [], [pages.data]);
  const rest = answer === null || pages.hasNextPage ? null : restOf(answer, loaded);
  const live = rest === "all" ? answer : null;
  const messages = useMemo(() => upToQuestion(loaded, live?.questionId ?? null), [loaded, live?.questionId]);
  const isMissing = at !== null && pages.isSuccess && !pages.isFetching && !loaded.some((message) => message.seq === at);
  const elsewhere = useElsewhere(conversation, isMissing ? at : null);
  const branch = useOpenBranch(conversation);
  const isAtEnd = pages.isSuccess && !pages.isFetching && !pages.hasNextPage && live === null;
  const erasedEnd = useErasedEnd(conversation, messages.at(-1)?.seq ?? 0, branch?.lastSeq ?? 0, isAtEnd);
  const rows = useMemo(() => rowsOf(messages, compactions.data ?? [], erasedEnd), [messages, compactions.data, erasedEnd]);
  useEffect(() => onRows(messages), [messages, onRows]);
  const list = useRef<HTMLDivElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => list.current,
    estimateSize: () => 110,
    getItemKey: (index) => rows[index]?.key ?? index,
    overscan: 6,
  });
  const { isAway, aim } = useScrollGoal({ list, content, virtual, rows, at, isAtBand, growth: answer?.last ?? 0, hasNewer: pages.hasNextPage });

  const hasNewer = pages.hasNextPage;
  const jumped = useRef(jumps);
  useEffect(() => {
    if (jumped.current === jumps) return;
    jumped.current = jumps;
    if (at === null && hasNewer) void cache.resetQueries({ queryKey: newestMessagesKey(conversation) });
    aim(at);
  }, [jumps, at, aim, hasNewer, cache, conversation]);
  useEffect(() => {
    const index = current === null ? -1 : rows.findIndex((row) => row.key === current);
    if (index >= 0) virtual.scrollToIndex(index, { align: "auto" });
    // only when another one was chosen: what is loaded later must not pull one back
  }, [current]);

  const loadMore = () => {
    const box = list.current;
    if (box === null || pages.isFetching) return;
    if (box.scrollTop < NEAR_PIXELS && pages.hasPreviousPage) void pages.fetchPreviousPage();
    else if (box.scrollHeight - box.scrollTop - box.clientHeight < NEAR_PIXELS && pages.hasNextPage) void pages.fetchNextPage();
  };
  const newest = useRef(loadMore);
  useEffect(() => {
    newest.current = loadMore;
  });
  useEffect(() => {
    if (pages.isFetching) return;
    const timer = setTimeout(() => newest.current(), SETTLE_MILLISECONDS); // whoever stands at the very top cannot scroll to ask again
    return () => clearTimeout(timer);
  }, [pages.isFetching, rows.length]);

  const view = inSight(rows, virtual, list.current);
  useEffect(() => {
    visible.current = view;
  });
  const window = gauge.data?.windowSeqs ?? NOTHING;
  const program = importedFrom(about.data);
  const told = useMemo(() => ({ isImport: program !== null, isRemoved: program !== null && isMostRemoved(loaded) }), [program, loaded]);
  const summaries = useMemo(() => outermost(compactions.data ?? []), [compactions.data]);
  const pinned = useMemo(() => new Set([...(gauge.data?.parts.filter((part) => part.kind === "pinned").flatMap((part) => part.seqs) ?? []), ...messages.filter((one) => one.isPinned).map((one) => one.seq)]), [gauge.data, messages]);
  const total = Math.max(branch?.lastSeq ?? 0, messages.at(-1)?.seq ?? 0);
  const gap = branch?.gap ?? NO_GAP;
  const mapped = useMemo(() => ({ total, gap, compactions: compactions.data ?? [], window, recalled: recalled.seqs, pinned }), [total, gap, compactions.data, window, recalled.seqs, pinned]);
  const goOnMap = (seq: number, isFinal: boolean) => {
    const isLoaded = messages.length > 0 && messages[0]!.seq <= seq && seq <= messages.at(-1)!.seq;
    if (isLoaded) aim(seq);
    else if (isFinal) onJump(seq);
  };

  return (
    <>
      {pages.isError && <Trouble problem={pages.error} onRetry={() => void pages.refetch()} />}
      {isMissing && elsewhere.isSuccess && (
        <div className="notice row" role="status">
          {elsewhere.data === null ? t.nowhere(at) : (
            <>
              <span className="grow"><b>{t.onOtherBranch(at)}</b> {firstLine(elsewhere.data.message.text, 120)}</span>
              <button onClick={() => props.actions.show(elsewhere.data!.branch)}>{t.openItsBranch}</button>
            </>
          )}
        </div>
      )}
      {program !== null && loaded.length > 0 && <p className="faint from-agent" role="note"><Icon name="folder" />{t.importedFrom(agentName(program))}{told.isRemoved && ` ${t.mostRemovedFromFile}`}</p>}
      <div className="thread">
        <div className="scroll" ref={list} onScroll={loadMore} tabIndex={0} role="log" aria-label={t.history} aria-busy={pages.isFetching}>
          <div ref={content}>
            {pages.isLoading && conversation !== "" && <p className="faint bar">{t.loading}</p>}
            {pages.data && messages.length === 0 && answer === null && <p className="faint bar">{t.nothingSaid}</p>}
            <div style={{ height: virtual.getTotalSize(), position: "relative" }}>
              {virtual.getVirtualItems().map((item) => {
                const row = rows[item.index]!;
                return (
                  <div
                    key={item.key}
                    data-index={item.index}
                    ref={virtual.measureElement}
                    style={{ position: "absolute", top: 0, left: 0, right: 0, transform: `translateY(${item.start}px)` }}
                  >
                    {row.kind === "band" ? (
                      <Band conversation={conversation} compaction={row.compaction} jumps={isAtBand && isBandOf(row, at) ? jumps : 0} onJump={onJump} />
                    ) : row.kind === "erased" ? (
                      <p className="faint erased number">{t.erasedHere(row.seq)}</p>
                    ) : (
                      <MessageRow
                        conversation={conversation}
                        message={row.message}
                        results={row.results}
                        isContinued={row.isContinued}
                        versions={versionsOf(row.message, props.versions)}
                        seen={seenAs(row.message.seq, window, recalled.seqs, summaries)}
                        told={told}
                        feedback={about.data?.feedback[row.message.id] ?? null}
                        sources={row.message.id === recalled.answerId ? recalled.pieces : NO_SOURCES}
                        onJump={onJump}
                        isCurrent={current === row.message.id}
                        isTarget={at !== null && !isAtBand && (at === row.message.seq || row.results.some((one) => one.seq === at))}
                        isEditing={props.editing === row.message.id}
                        onEditing={props.onEditing}
                        actions={props.actions}
                      />
                    )}
                  </div>
                );
              })}
            </div>
            {live !== null && live.question !== null && messages.at(-1)?.id !== live.questionId && <LiveQuestion answer={live} conversation={conversation} />}
            {live !== null && <LiveAnswer answer={live} onRetry={props.onRetry} onJump={onJump} />}
            {answer !== null && rest === "ending" && <div className="ending"><Ending answer={answer} onRetry={props.onRetry} /></div>}
          </div>
        </div>
        {total > 12 && <ConversationMap mapped={mapped} view={view} onGo={goOnMap} />}
        {(isAway || pages.hasNextPage) && messages.length > 0 && (
          <button className="newest" onClick={() => onJump(null)}>
            <Icon name="down" />
            {t.toNewest}
          </button>
        )}
      </div>
    </>
  );
}

/** What the history has of an answer that is shown as it comes in, or in place of which another comes, is not shown twice. */
function upToQuestion(messages: readonly Message[], question: string | null): readonly Message[] {
  const place = question === null ? -1 : messages.findIndex((message) => message.id === question);
  return place < 0 ? messages : messages.slice(0, place + 1);
}

/** Whether most of what came from a file is gone from it. */
function isMostRemoved(messages: readonly Message[]): boolean {
  const imported = messages.filter((message) => message.origin === "import");
  return imported.filter((message) => message.isRemoved).length > imported.length / 2;
}

function seenAs(seq: number, window: ReadonlySet<number>, recalled: ReadonlySet<number>, summaries: readonly Compaction[]): Seen {
  if (window.size === 0 || window.has(seq)) return "window";
  if (recalled.has(seq)) return "recalled";
  return summaries.some((one) => one.firstSeq <= seq && seq <= one.lastSeq) ? "summarized" : "outside";
}

type List = ReturnType<typeof useVirtualizer<HTMLDivElement, Element>>;

/** The first and the last message in sight. */
function inSight(rows: readonly Row[], virtual: List, box: HTMLDivElement | null): Visible | null {
  if (box === null) return null;
  const top = box.scrollTop;
  const seqs = virtual
    .getVirtualItems()
    .filter((item) => item.end > top && item.start < top + box.clientHeight)
    .map((item) => rows[item.index])
    .flatMap((row) => (row?.kind === "message" ? [row.message.seq] : []));
  const [first, last] = [seqs[0], seqs.at(-1)];
  return first === undefined || last === undefined ? null : { first, last };
}
