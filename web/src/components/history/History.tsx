/** The whole history, newest at the foot: pages of 200 are loaded as one scrolls, and only what is in sight is drawn. */

import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";

import { useCompactions, useGauge, useMessages } from "../../api/queries";
import type { Message, Version } from "../../lib/model";
import { rowsOf, versionsOf, type Row } from "../../lib/rows";
import { isOf, type Answer } from "../../state/answer";
import { useTexts } from "../../texts";
import { Trouble } from "../Bits";
import { Band } from "../compaction/Band";
import { LiveAnswer } from "./LiveAnswer";
import { MessageRow, type MessageActions } from "./MessageRow";

interface Props {
  readonly conversation: string;
  /** The message to show; the newest ones when there is none. */
  readonly at: number | null;
  readonly answer: Answer | null;
  readonly current: string | null;
  readonly editing: string | null;
  readonly versions: readonly Version[];
  readonly actions: MessageActions;
  readonly onEditing: (id: string | null) => void;
  readonly onRows: (messages: readonly Message[]) => void;
  readonly onRetry: () => void;
}

const NEAR_PIXELS = 600;
/** By then a page that was just loaded has been drawn, and one's place in it found again. */
const SETTLE_MILLISECONDS = 150;

export function History(props: Props) {
  const { conversation, at, answer, onRows } = props;
  const { t } = useTexts();
  const pages = useMessages(conversation, at);
  const compactions = useCompactions(conversation);
  const gauge = useGauge(conversation);
  const messages = useMemo(() => pages.data?.pages.flatMap((page) => page.items) ?? [], [pages.data]);
  const rows = useMemo(() => rowsOf(messages, compactions.data ?? []), [messages, compactions.data]);
  useEffect(() => onRows(messages), [messages, onRows]);
  const list = useRef<HTMLDivElement>(null);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => list.current,
    estimateSize: () => 110,
    getItemKey: (index) => rows[index]?.key ?? index,
    overscan: 6,
  });
  useStaying(rows, list, virtual, at, answer);

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

  return (
    <>
      {pages.isError && <Trouble problem={pages.error} onRetry={() => void pages.refetch()} />}
      <div className="scroll" ref={list} onScroll={loadMore} tabIndex={0} role="log" aria-label={t.history} aria-busy={pages.isFetching}>
        {pages.isLoading && <p className="faint bar">{t.loading}</p>}
        {pages.data && messages.length === 0 && answer === null && <p className="faint bar">{t.nothingSaid}</p>}
        <div style={{ height: virtual.getTotalSize(), position: "relative" }}>
          {virtual.getVirtualItems().map((item) => (
            <div
              key={item.key}
              data-index={item.index}
              ref={virtual.measureElement}
              style={{ position: "absolute", top: 0, left: 0, right: 0, transform: `translateY(${item.start}px)` }}
            >
              <OneRow {...props} row={rows[item.index]!} window={gauge.data?.windowSeqs ?? null} />
            </div>
          ))}
        </div>
        {answer !== null && !messages.some((message) => isOf(answer, message.id)) && (
          <LiveAnswer answer={answer} onRetry={props.onRetry} />
        )}
      </div>
    </>
  );
}

function OneRow({ row, window, ...props }: Props & { readonly row: Row; readonly window: ReadonlySet<number> | null }) {
  if (row.kind === "band") return <Band conversation={props.conversation} compaction={row.compaction} />;
  const { message } = row;
  return (
    <MessageRow
      message={message}
      results={row.results}
      versions={versionsOf(message, props.versions)}
      isOutside={window !== null && window.size > 0 && !window.has(message.seq)}
      isCurrent={props.current === message.id}
      isEditing={props.editing === message.id}
      onEditing={(isEditing) => props.onEditing(isEditing ? message.id : null)}
      actions={props.actions}
    />
  );
}

type List = ReturnType<typeof useVirtualizer<HTMLDivElement, Element>>;

/** Keep one's place: at the foot while one is there, at the same message when others are loaded above it or let go. */
function useStaying(rows: readonly Row[], list: React.RefObject<HTMLDivElement | null>, virtual: List, at: number | null, answer: Answer | null) {
  const [isAtFoot, setAtFoot] = useState(true);
  const before = useRef<string | undefined>(undefined);
  const anchor = useRef<{ readonly key: string; readonly below: number } | null>(null);
  useEffect(() => {
    const box = list.current;
    const look = () => {
      if (box === null) return;
      setAtFoot(box.scrollHeight - box.scrollTop - box.clientHeight < 80);
      const top = virtual.getVirtualItemForOffset(box.scrollTop);
      anchor.current = top === undefined ? null : { key: String(top.key), below: box.scrollTop - top.start };
    };
    box?.addEventListener("scroll", look, { passive: true });
    return () => box?.removeEventListener("scroll", look);
  }, [list, virtual]);
  const first = rows[0]?.key;
  const height = virtual.getTotalSize();
  useLayoutEffect(() => {
    const box = list.current;
    if (box === null || rows.length === 0) return;
    const place = at === null ? -1 : rows.findIndex((row) => row.kind === "message" && row.message.seq >= at);
    const kept = anchor.current;
    const index = kept === null ? -1 : rows.findIndex((row) => row.key === kept.key);
    if (before.current === undefined) virtual.scrollToIndex(place >= 0 ? place : rows.length - 1, { align: place >= 0 ? "start" : "end" });
    else if (before.current !== first && index >= 0) box.scrollTop = (virtual.measurementsCache[index]?.start ?? 0) + (kept?.below ?? 0);
    before.current = first;
  }, [first, height, rows, at, list, virtual]);
  useEffect(() => {
    if (isAtFoot && at === null && list.current !== null) list.current.scrollTop = list.current.scrollHeight;
  }, [isAtFoot, at, rows.length, height, answer?.last, list]);
}
