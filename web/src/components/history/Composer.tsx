/** Where one writes: sends, stops, keeps the draft, completes @names and /commands, takes dropped files. */

import { useEffect, useMemo, useRef, useState } from "react";

import { COMMANDS, completed, parseCommand, wordAt, type Typed } from "../../lib/commands";
import { keepDraft, readDraft } from "../../state/drafts";
import { useTexts } from "../../texts";
import { IconButton } from "../Icon";

interface Props {
  /** Whose draft it is; "new" before there is a conversation. */
  readonly draft: string;
  readonly isRunning: boolean;
  readonly names: readonly string[];
  readonly onSend: (text: string) => void;
  readonly onCommand: (typed: Typed) => void;
  readonly onStop: () => void;
  readonly onFiles: (files: readonly File[]) => void;
}

export function Composer(props: Props) {
  const { t } = useTexts();
  const [text, setText] = useState(() => readDraft(props.draft));
  const [cursor, setCursor] = useState(0);
  const [chosen, setChosen] = useState(0);
  const [isOver, setOver] = useState(false);
  const area = useRef<HTMLTextAreaElement>(null);
  const files = useRef<HTMLInputElement>(null);
  useEffect(() => setText(readDraft(props.draft)), [props.draft]);

  const change = (next: string) => {
    setText(next);
    keepDraft(props.draft, next);
  };
  const offers = useMemo(() => offersFor(text, cursor, props.names), [text, cursor, props.names]);
  const take = (word: string) => {
    const next = completed(text, cursor, word);
    change(next.text);
    setCursor(next.cursor);
    area.current?.focus();
  };
  const send = () => {
    const typed = parseCommand(text);
    if (typed !== null) props.onCommand(typed);
    else if (text.trim() === "" || props.isRunning) return;
    else props.onSend(text);
    change("");
  };
  const onKeyDown = (event: React.KeyboardEvent) => {
    if (event.nativeEvent.isComposing) return; // an input method chooses a character: not ours
    if (offers.length > 0 && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
      event.preventDefault();
      setChosen((chosen + (event.key === "ArrowDown" ? 1 : offers.length - 1)) % offers.length);
    } else if (offers.length > 0 && (event.key === "Tab" || (event.key === "Enter" && offers[chosen] !== text.trim()))) {
      event.preventDefault();
      take(offers[chosen] ?? offers[0]!);
    } else if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      send();
    }
  };

  return (
    <form
      className="composer"
      data-over={isOver}
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
      onDragOver={(event) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={(event) => {
        event.preventDefault();
        setOver(false);
        props.onFiles([...event.dataTransfer.files]);
      }}
    >
      {offers.length > 0 && (
        <ul className="offers" role="listbox" aria-label={t.palette}>
          {offers.map((offer, index) => (
            <li key={offer} role="presentation">
              <button type="button" role="option" aria-selected={index === chosen} onClick={() => take(offer)}>
                {offer}
              </button>
            </li>
          ))}
        </ul>
      )}
      <div className="writing">
        <IconButton icon="clip" label={t.upload} onClick={() => files.current?.click()} />
        <input
          ref={files}
          type="file"
          multiple
          hidden
          aria-label={t.upload}
          onChange={(event) => {
            if (event.target.files?.length) props.onFiles([...event.target.files]);
            event.target.value = "";
          }}
        />
        <textarea
          ref={area}
          className="grow"
          rows={Math.min(8, text.split("\n").length)}
          value={text}
          placeholder={t.write}
          aria-label={t.write}
          onChange={(event) => {
            change(event.target.value);
            setCursor(event.target.selectionStart);
            setChosen(0);
          }}
          onSelect={(event) => setCursor(event.currentTarget.selectionStart)}
          onKeyDown={onKeyDown}
        />
        {props.isRunning ? (
          <button type="button" onClick={props.onStop}>{t.stop}</button>
        ) : (
          <button className="primary" disabled={text.trim() === ""}>{t.send}</button>
        )}
      </div>
      <p className="faint keys">{isOver ? t.dropHere : t.composerHint}</p>
    </form>
  );
}

function offersFor(text: string, cursor: number, names: readonly string[]): readonly string[] {
  const word = wordAt(text, cursor, "@/");
  if (word === null || (word.startsWith("/") && text.trim() !== word)) return [];
  const known = word.startsWith("/") ? COMMANDS.map((command) => `/${command}`) : names.map((name) => `@${name}`);
  return known.filter((one) => one.startsWith(word) && one !== word).slice(0, 8);
}
