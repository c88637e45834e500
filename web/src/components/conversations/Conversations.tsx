/** The left column: all conversations by day, subagents under their parent, and the search over everything said. */

import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useMemo, useRef, useState } from "react";

import { useConversations, useImport } from "../../api/queries";
import { agentName, agentOf } from "../../lib/agents";
import { linesOf, namesIn, type Day, type Line, type Listed } from "../../lib/conversations";
import { brief, count, firstLine, moment } from "../../lib/format";
import { useTexts } from "../../texts";
import { Trouble, useToast } from "../Bits";
import { Icon } from "../Icon";
import { SearchBox } from "./SearchBox";

interface Props {
  readonly current: string | null;
  /** What the current one is called until it has a title. */
  readonly working: string;
  readonly running: string | null;
  readonly onOpen: (conversation: string, at?: number) => void;
  readonly searchRef: React.RefObject<HTMLInputElement | null>;
}

type Kind = "chats" | "agents";

const LINE_PIXELS = 34;
const HEADING_PIXELS = 36;
/** So near the end more are asked for. */
const NEAR_LINES = 20;

export function Conversations({ current, working, running, onOpen, searchRef }: Props) {
  const { t } = useTexts();
  const list = useConversations();
  const [isSearching, setSearching] = useState(false);
  const [tag, setTag] = useState<string | null>(null);
  const all = useMemo(() => list.data?.pages.flatMap((page) => page.items) ?? [], [list.data]);
  const tags = useMemo(() => namesIn(all, "tags"), [all]);
  const chosen = tag !== null && tags.includes(tag) ? tag : null;
  const [kind, setKind] = useState<Kind | null>(null);
  const isMixed = all.some((one) => agentOf(one) !== null) && all.some((one) => agentOf(one) === null);
  const shown = useMemo(() => {
    const isWanted = (one: Listed) => (chosen === null || one.tags.includes(chosen)) && (kind === null || !isMixed || (agentOf(one) !== null) === (kind === "agents"));
    return all.filter(isWanted);
  }, [all, chosen, kind, isMixed]);
  return (
    <>
      <SearchBox inputRef={searchRef} current={current} onOpen={onOpen} onSearching={setSearching} />
      {list.isError && <Trouble problem={list.error} onRetry={() => void list.refetch()} />}
      {!isSearching && list.data && all.length === 0 && <p className="faint grow">{t.noConversations}</p>}
      {!isSearching && isMixed && (
        <div className="tag-row" role="group" aria-label={t.kinds}>
          {(["chats", "agents"] as const).map((one) => <button key={one} className="tag" aria-pressed={one === kind} onClick={() => setKind(one === kind ? null : one)}>{one === "chats" ? t.chats : t.sections.agents}</button>)}
        </div>
      )}
      {!isSearching && tags.length > 0 && (
        <div className="tag-row" role="group" aria-label={t.tags}>
          {tags.map((one) => <button key={one} className="tag" aria-pressed={one === chosen} onClick={() => setTag(one === chosen ? null : one)}>{one}</button>)}
        </div>
      )}
      {!isSearching && all.length > 0 && (
        <Lines
          all={shown}
          current={current}
          working={working}
          running={running}
          onOpen={onOpen}
          onEnd={() => list.hasNextPage && !list.isFetching && void list.fetchNextPage()}
        />
      )}
    </>
  );
}

interface LinesProps extends Omit<Props, "searchRef"> {
  readonly all: readonly Listed[];
  readonly onEnd: () => void;
}

/** Drawn as far as they are in sight: there may be thousands. */
function Lines({ all, current, working, running, onOpen, onEnd }: LinesProps) {
  const [shut, setShut] = useState(shutFolders);
  const lines = useMemo(() => linesOf(all, new Date(), shut), [all, shut]);
  const toggle = (folder: string) => {
    const next = new Set(shut);
    if (!next.delete(folder)) next.add(folder);
    setShut(next);
    localStorage.setItem(SHUT, JSON.stringify([...next]));
  };
  const box = useRef<HTMLElement>(null);
  const { t } = useTexts();
  const virtual = useVirtualizer({
    count: lines.length,
    getScrollElement: () => box.current,
    estimateSize: (index) => (lines[index]?.kind === "heading" ? HEADING_PIXELS : LINE_PIXELS),
    getItemKey: (index) => lines[index]?.key ?? index,
    overscan: 8,
  });
  const last = virtual.getVirtualItems().at(-1)?.index ?? 0;
  useEffect(() => {
    if (last > lines.length - NEAR_LINES) onEnd();
  }, [last, lines.length, onEnd]);
  return (
    <nav className="conversations" ref={box} aria-label={t.conversations}>
      <ul style={{ height: virtual.getTotalSize() }}>
        {virtual.getVirtualItems().map((item) => (
          <li key={item.key} data-index={item.index} ref={virtual.measureElement} style={{ position: "absolute", top: 0, left: 0, right: 0, transform: `translateY(${item.start}px)` }}>
            <OneLine line={lines[item.index]!} current={current} working={working} running={running} onOpen={onOpen} shut={shut} onToggle={toggle} />
          </li>
        ))}
      </ul>
    </nav>
  );
}

interface LineProps extends Omit<Props, "searchRef"> {
  readonly line: Line;
  readonly shut: ReadonlySet<string>;
  readonly onToggle: (folder: string) => void;
}

const SHUT = "everthread.shut-folders";

function shutFolders(): ReadonlySet<string> {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(SHUT) ?? "[]");
    return new Set(Array.isArray(kept) ? kept.map(String) : []);
  } catch {
    return new Set();
  }
}

function OneLine({ line, current, working, running, onOpen, shut, onToggle }: LineProps) {
  const { t, language } = useTexts();
  if (line.kind === "heading") {
    const { day } = line;
    if (typeof day === "string" || "month" in day) return <h2 className="group">{dayName(day, t.days, language)}</h2>;
    return (
      <h2 className="group">
        <button className="folder" aria-expanded={!shut.has(day.folder)} onClick={() => onToggle(day.folder)}><Icon name="folder" /><span>{day.folder}</span><Icon name="chevron" /></button>
      </h2>
    );
  }
  const { conversation, depth } = line;
  const title = firstLine(conversation.title ?? "") || (current === conversation.id && working) || `${t.untitled} · ${moment(conversation.saidAt, language)}`;
  const agent = agentOf(conversation);
  return (
    <button className="conversation" data-depth={Math.min(2, depth)} aria-current={current === conversation.id} title={title} onClick={() => onOpen(conversation.id)}>
      {depth > 0 ? <Icon name="branch" /> : agent !== null && <span className="of-agent" role="img" aria-label={agentName(agent)} title={agentName(agent)}><Icon name="folder" /></span>}
      <span className="title" dir="auto">{title}</span>
      {running === conversation.id && <span className="dot" role="img" aria-label={t.running} />}
      {conversation.isOffRecord && <span className="tag">{t.offRecordTag}</span>}
      <span className="faint number" title={t.messages(count(conversation.messages, language))}>{brief(conversation.messages, language)}</span>
    </button>
  );
}

function dayName(day: Exclude<Day, { readonly folder: string }>, names: Readonly<Record<"pinned" | "today" | "yesterday" | "week", string>>, language: string): string {
  if (typeof day === "string") return names[day];
  const [year, month] = day.month.split("-").map(Number);
  const isThisYear = year === new Date().getFullYear();
  return new Intl.DateTimeFormat(language, { month: "long", ...(isThisYear ? {} : { year: "numeric" }) }).format(new Date(year!, month! - 1, 1));
}

export function useImporting(onOpen: (conversation: string) => void, onProblem: (problem: unknown) => void) {
  const { t } = useTexts();
  const toast = useToast();
  const bring = useImport();
  return (file: File) =>
    bring.mutate(file, {
      onSuccess: (ids) => {
        toast({ text: t.imported(ids.length) });
        if (ids[0] !== undefined) onOpen(ids[0]);
      },
      onError: onProblem,
    });
}
