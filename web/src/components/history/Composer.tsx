/** Where one writes: sends, stops, keeps the draft, completes @names and /commands, takes files, and says who answers. */

import { useEffect, useMemo, useRef, useState } from "react";

import { COMMANDS, completed, parseCommand, wordAt, type Typed } from "../../lib/commands";
import type { Mention } from "../../api/queries";
import { bytes, firstLine } from "../../lib/format";
import type { Attached } from "../../lib/uploads";
import { useConnection } from "../../state/connection";
import { keepDraft, readDraft } from "../../state/drafts";
import { isComposing } from "../../state/keys";
import { useTexts } from "../../texts";
import type { Texts } from "../../texts/en";
import { Icon, IconButton } from "../Icon";
import { ModelPicker } from "./ModelPicker";

/** A file that goes with the next message. */
export interface Chip {
  readonly key: string;
  readonly name: string;
  readonly size: number;
  readonly state: "waiting" | "uploading" | "ready" | "failed";
  readonly attached: Attached | null;
  /** An address of the picture, where it is one. */
  readonly picture: string | null;
}

/** A longer text scrolls in a box of its greatest height and runs as the page does: to find both out for it takes minutes. */
const LONG_CHARACTERS = 20_000;

interface Props {
  /** Whose draft it is; "new" before there is a conversation. */
  readonly draft: string;
  readonly isRunning: boolean;
  readonly names: readonly Mention[];
  readonly chips: readonly Chip[];
  readonly onSend: (text: string) => void;
  readonly onCommand: (typed: Typed) => void;
  readonly onStop: () => void;
  readonly onFiles: (files: readonly File[]) => void;
  readonly onDrop: (chip: string) => void;
}

export function Composer(props: Props) {
  const { t, language } = useTexts();
  const [text, setText] = useState(() => readDraft(props.draft));
  const [cursor, setCursor] = useState(0);
  const [chosen, setChosen] = useState(0);
  const [isTooEarly, setTooEarly] = useState(false);
  const isConnected = useConnection();
  const area = useRef<HTMLTextAreaElement>(null);
  const files = useRef<HTMLInputElement>(null);
  useEffect(() => setText(readDraft(props.draft)), [props.draft]);

  const change = (next: string) => {
    setText(next);
    keepDraft(props.draft, next);
    setTooEarly(false);
  };
  const offers = useMemo(() => offersFor(text, cursor, props.names, t), [text, cursor, props.names, t]);
  const take = (word: string) => {
    const next = completed(text, cursor, word);
    change(next.text);
    setCursor(next.cursor);
    area.current?.focus();
  };
  const isUploading = props.chips.some((chip) => chip.state === "uploading");
  const canSend = (text.trim() !== "" || props.chips.some((chip) => chip.state === "ready" || chip.state === "waiting")) && !isUploading;
  const send = () => {
    const typed = parseCommand(text);
    if (typed !== null) props.onCommand(typed);
    else if (!canSend) return;
    else if (props.isRunning) {
      setTooEarly(true);
      return;
    } else props.onSend(text);
    change("");
  };
  const onKeyDown = (event: React.KeyboardEvent) => {
    if (isComposing(event.nativeEvent)) return;
    if (offers.length > 0 && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
      event.preventDefault();
      setChosen((chosen + (event.key === "ArrowDown" ? 1 : offers.length - 1)) % offers.length);
    } else if (offers.length > 0 && (event.key === "Tab" || (event.key === "Enter" && offers[chosen]?.word !== text.trim()))) {
      event.preventDefault();
      take((offers[chosen] ?? offers[0]!).word);
    } else if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      send();
    }
  };

  return (
    <form
      className="composer"
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      {offers.length > 0 && (
        <ul className="offers" role="listbox" aria-label={t.palette}>
          {offers.map((offer, index) => (
            <li key={offer.word} role="presentation">
              <button type="button" role="option" aria-label={offer.word} aria-description={offer.about} aria-selected={index === chosen} onClick={() => take(offer.word)}>
                <b>{offer.word}</b> <span className="faint">{offer.about}</span>
              </button>
            </li>
          ))}
        </ul>
      )}
      <div className="writing">
        {props.chips.length > 0 && (
          <div className="chips" role="list" aria-label={t.attachments}>
            {props.chips.map((chip) => (
              <span key={chip.key} className="chip" role="listitem" data-state={chip.state}>
                {chip.picture === null ? <Icon name="file" /> : <img src={chip.picture} alt="" />}
                <span>{chip.name}</span>
                <small className="faint">{chip.state === "uploading" ? t.uploading : chip.state === "failed" ? t.uploadFailed : bytes(chip.size, language)}</small>
                <IconButton icon="close" label={t.dropFile(chip.name)} onClick={() => props.onDrop(chip.key)} />
              </span>
            ))}
          </div>
        )}
        <textarea
          ref={area}
          rows={1}
          data-long={text.length > LONG_CHARACTERS}
          {...(text.length > LONG_CHARACTERS ? {} : { dir: "auto" })}
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
          onPaste={(event) => {
            const pasted = [...event.clipboardData.files];
            const words = event.clipboardData.getData("text/plain");
            if (pasted.length > 0) {
              event.preventDefault();
              props.onFiles(pasted);
            } else if (words.length > LONG_CHARACTERS) {
              event.preventDefault(); // the browser takes them in line by line, half a minute for a megabyte
              const { selectionStart, selectionEnd } = event.currentTarget;
              change(text.slice(0, selectionStart) + words.replaceAll("\r\n", "\n") + text.slice(selectionEnd));
            }
          }}
        />
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
        <div className="row">
          <IconButton icon="clip" label={t.upload} onClick={() => files.current?.click()} />
          <ModelPicker key={props.draft} conversation={props.draft} />
          <span className="grow" />
          {props.isRunning ? (
            <button type="button" onClick={props.onStop}><span className="row tight whole"><Icon name="stop" />{t.stop}</span></button>
          ) : (
            <button className="primary" disabled={!canSend}><span className="row tight whole"><Icon name="send" />{t.send}</span></button>
          )}
        </div>
      </div>
      {isTooEarly && props.isRunning ? <p className="keys" role="status">{isConnected ? t.waitForAnswer : t.waitForConnection}</p> : <p className="faint keys">{t.composerHint}</p>}
    </form>
  );
}

interface Offer {
  readonly word: string;
  /** What it does, in a line. */
  readonly about: string;
}

function offersFor(text: string, cursor: number, names: readonly Mention[], t: Texts): readonly Offer[] {
  const word = wordAt(text, cursor, "@/");
  if (word === null || (word.startsWith("/") && text.trim() !== word)) return [];
  const known = word.startsWith("/")
    ? COMMANDS.map((command) => ({ word: `/${command}`, about: t.commands[command] }))
    : names.map(({ name, about }) => ({ word: `@${name}`, about: about === null ? t.agentType : firstLine(about, 140) }));
  return known.filter((one) => one.word.startsWith(word) && one.word !== word).slice(0, 8);
}
