/** Search in everything said or in this conversation, by words and, if asked, by meaning; a hit opens its message. */

import { useEffect, useMemo, useState } from "react";

import { useSearch, type Found } from "../../api/queries";
import { firstLine, moment, withoutCutJson } from "../../lib/format";
import { isComposing } from "../../state/keys";
import { useTexts } from "../../texts";
import { Detail, Trouble } from "../Bits";
import { emphasised } from "../compaction/marked";
import { whoSays } from "../history/MessageRow";
import { Icon } from "../Icon";

interface Props {
  readonly inputRef: React.RefObject<HTMLInputElement | null>;
  readonly current: string | null;
  readonly onOpen: (conversation: string, at: number) => void;
  readonly onSearching: (isSearching: boolean) => void;
}

export function SearchBox({ inputRef, current, onOpen, onSearching }: Props) {
  const { t, language } = useTexts();
  const [typed, setTyped] = useState("");
  const [isByMeaning, setByMeaning] = useState(false);
  const [isHere, setHere] = useState(false);
  const asked = useSettled(typed.trim(), 250);
  const found = useSearch(asked, isByMeaning, isHere ? current : null);
  const isSearching = asked !== "";
  const groups = useMemo(() => byConversation(found.data?.hits ?? []), [found.data]);
  useEffect(() => onSearching(isSearching), [isSearching, onSearching]);
  return (
    <search style={isSearching ? { display: "contents" } : {}}>
      <div className="search">
        <div className="field">
          <Icon name="search" />
          <input
            ref={inputRef}
            type="search"
            placeholder={t.searchAll}
            aria-label={t.searchAll}
            value={typed}
            onChange={(event) => setTyped(event.target.value)}
            onKeyDown={(event) => event.key === "Escape" && !isComposing(event.nativeEvent) && setTyped("")}
          />
        </div>
        {typed !== "" && (
          <div className="row">
            <label className="check faint">
              <input type="checkbox" checked={isByMeaning} onChange={(event) => setByMeaning(event.target.checked)} />
              {t.byMeaning}
            </label>
            {current !== null && (
              <label className="check faint">
                <input type="checkbox" checked={isHere} onChange={(event) => setHere(event.target.checked)} />
                {t.onlyThisConversation}
              </label>
            )}
          </div>
        )}
      </div>
      {isSearching && (
        <div className="conversations" aria-live="polite" role="region" aria-label={t.searchResults} tabIndex={0}>
          {found.isError && <Trouble problem={found.error} />}
          {found.data && <p className="faint">{found.data.hits.length === 0 ? t.noHits : t.hits(found.data.hits.length)}</p>}
          {isByMeaning && found.data?.whyWordsAlone && <div className="notice" role="status">{t.wordsAlone}<Detail text={found.data.whyWordsAlone} /></div>}
          <ul>
            {groups.map(([conversation, hits]) => [
              <li key={conversation}><h3 className="where" dir="auto">{firstLine(hits[0]!.title ?? "") || t.untitled}</h3></li>,
              ...hits.map((hit) => (
              <li key={`${hit.conversationId}/${hit.seq}`}>
                <button className="conversation hit" onClick={() => onOpen(hit.conversationId, hit.seq)}>
                  <span className="snippet" dir="auto">{emphasised(withoutCutJson(hit.snippet)).map((piece, at) => (piece.isMarked ? <mark key={at}>{piece.text}</mark> : piece.text))}</span>
                  <span className="faint number">{whoSays(hit, t)} · {moment(hit.saidAt, language)} · #{hit.seq}</span>
                </button>
              </li>
              )),
            ])}
          </ul>
        </div>
      )}
    </search>
  );
}

/** The best conversation first, and in it the best hit. */
function byConversation(hits: readonly Found[]): readonly (readonly [string, readonly Found[]])[] {
  const groups = new Map<string, Found[]>();
  for (const hit of hits) groups.set(hit.conversationId, [...(groups.get(hit.conversationId) ?? []), hit]);
  return [...groups];
}

/** A value once it has stood for a while: no request per key pressed. */
function useSettled(value: string, milliseconds: number): string {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), milliseconds);
    return () => clearTimeout(timer);
  }, [value, milliseconds]);
  return settled;
}
