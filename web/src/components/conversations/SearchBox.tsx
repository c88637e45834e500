/** Search over everything said, by words and, if asked, by meaning; a hit opens its message. */

import { useEffect, useState } from "react";

import { useSearch } from "../../api/queries";
import { useTexts } from "../../texts";
import { emphasised } from "../compaction/marked";
import { Trouble } from "../Bits";

interface Props {
  readonly inputRef: React.RefObject<HTMLInputElement | null>;
  readonly onOpen: (conversation: string, at: number) => void;
}

export function SearchBox({ inputRef, onOpen }: Props) {
  const { t } = useTexts();
  const [typed, setTyped] = useState("");
  const [isByMeaning, setByMeaning] = useState(false);
  const asked = useSettled(typed.trim(), 250);
  const found = useSearch(asked, isByMeaning);
  return (
    <search>
      <div className="search">
        <input ref={inputRef} type="search" placeholder={t.searchAll} aria-label={t.searchAll} value={typed} onChange={(event) => setTyped(event.target.value)} />
        <label className="check faint">
          <input type="checkbox" checked={isByMeaning} onChange={(event) => setByMeaning(event.target.checked)} />
          {t.byMeaning}
        </label>
      </div>
      {asked !== "" && (
        <div aria-live="polite">
          {found.isError && <Trouble problem={found.error} />}
          {found.data && <p className="faint">{found.data.length === 0 ? t.noHits : t.hits(found.data.length)}</p>}
          <ul className="list">
            {found.data?.map((hit) => (
              <li key={`${hit.conversationId}/${hit.seq}`}>
                <button className="conversation hit" onClick={() => onOpen(hit.conversationId, hit.seq)}>
                  <span className="snippet">{emphasised(hit.snippet).map((piece, at) => (piece.isMarked ? <mark key={at}>{piece.text}</mark> : piece.text))}</span>
                  <span className="faint">#{hit.seq}</span>
                </button>
              </li>
            ))}
          </ul>
        </div>
      )}
    </search>
  );
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
