/** One message of the history, whole: what was said, thought and called, and what can be done with it. */

import * as Menu from "@radix-ui/react-dropdown-menu";
import { memo, useRef, useState } from "react";

import type { Recalled } from "../../api/queries";
import type { Feedback } from "../../lib/conversations";
import { briefly, count, firstLine, moment, withoutJson } from "../../lib/format";
import type { Message, Version } from "../../lib/model";
import { attachedIn, withAttached } from "../../lib/uploads";
import { isComposing } from "../../state/keys";
import { useTexts } from "../../texts";
import { useToast } from "../Bits";
import { Icon, IconButton, type IconName } from "../Icon";
import { copied, Said, Typed, Verbatim } from "../Said";
import { Attachments } from "./Attachments";
import { Folded } from "./Folded";

export interface MessageActions {
  readonly edit: (message: Message, text: string) => void;
  readonly regenerate: (message: Message) => void;
  readonly fork: (message: Message) => void;
  readonly pin: (message: Message) => void;
  readonly remove: (message: Message) => void;
  readonly erase: (message: Message) => void;
  /** Between versions, in front of one's eyes. */
  readonly switchTo: (branch: string) => void;
  /** To a branch, with a word about it and a way back. */
  readonly show: (branch: string) => void;
  /** What the model saw when it said this; null where that is not known. */
  readonly why: (message: Message) => void;
  readonly rate: (message: Message, rating: Feedback["rating"], before: Feedback | null) => void;
  readonly trust: (message: Message) => void;
}

/** How the model sees a message in the next request: as it is, in a summary, or not at all. */
export type Seen = "window" | "summarized" | "recalled" | "outside";

/** What is said once above all messages, and not with each. */
export interface Told {
  /** That they are an agent's session. */
  readonly isImport: boolean;
  /** That most of them are gone from its file: the others say that they are still there. */
  readonly isRemoved: boolean;
}

interface Props {
  readonly conversation: string;
  readonly message: Message;
  readonly results: readonly Message[];
  /** Goes on with what the message above it says. */
  readonly isContinued: boolean;
  readonly versions: readonly Version[];
  readonly seen: Seen;
  readonly told: Told;
  /** What was recalled to say this. */
  readonly sources: Recalled["pieces"];
  readonly onJump: (seq: number) => void;
  /** What the person thinks of it. */
  readonly feedback: Feedback | null;
  readonly isCurrent: boolean;
  /** Whether one jumped here. */
  readonly isTarget: boolean;
  readonly isEditing: boolean;
  readonly onEditing: (id: string | null) => void;
  readonly actions: MessageActions;
}

export const MessageRow = memo(function MessageRow(props: Props) {
  const { message, results, seen, told, feedback, isCurrent, isTarget, isEditing, onEditing, actions } = props;
  const { t, language } = useTexts();
  const { text, files } = attachedIn(message.text);
  const gutter = message.isPinned ? "pinned" : seen === "window" ? null : seen;
  return (
    <article
      className="message"
      data-seq={message.seq}
      data-role={message.role}
      data-continued={props.isContinued}
      data-outside={seen === "summarized" || seen === "outside"}
      data-deleted={message.isDeleted || message.isQuarantined}
      data-current={isCurrent}
      data-target={isTarget}
      aria-label={`${whoSays(message, t)} ${message.seq}`}
    >
      <span className="face"><Icon name={faceOf(message.role)} /></span>
      <header className="row">
        <span className="who">{whoSays(message, t)}</span>
        <span className="faint number">
          <time dateTime={message.saidAt} title={t.tokensOf(count(message.tokens, language))}>{moment(message.saidAt, language)}</time><span className="between"> · </span>#{message.seq}
        </span>
        {message.isPinned && <span className="tag" data-kind="pinned">{t.pinned}</span>}
        {message.isDeleted && <span className="tag">{t.deleted}</span>}
        {message.isRemoved && !told.isRemoved && <span className="tag" title={told.isImport ? t.removedFromFileWhy : t.removedByFrameworkWhy}>{told.isImport ? t.removedFromFile : t.removedByFramework}</span>}
        {message.isQuarantined && <span className="tag" data-kind="bad">{t.quarantinedTag}</span>}
        {told.isRemoved && message.origin === "import" && !message.isRemoved && <span className="tag">{t.stillInFile}</span>}
        {FROM_OUTSIDE.includes(message.origin) && !(told.isImport && message.origin === "import") && <span className="tag" data-kind="outside" title={t.outsideHint}>{t.doors[message.origin]}</span>}
        {!message.isComplete && <span className="tag">{t.cutShort}</span>}
        {seen === "recalled" && <span className="tag" data-kind="recalled">{t.recalledTag}</span>}
        <Versions {...props} />
        <Tools message={message} feedback={feedback} actions={actions} onEdit={() => onEditing(message.id)} />
      </header>
      {gutter !== null && <span className="gutter" data-kind={gutter} role="img" aria-label={t.gutters[gutter]} title={t.gutters[gutter]} />}
      <Sources {...props} />
      {message.thinking !== "" && (
        <Folded icon="thinking" label={t.thinking}>
          <Said text={message.thinking} />
        </Folded>
      )}
      {isEditing ? (
        <Editor onDone={() => onEditing(null)} text={text} onSave={(edited) => actions.edit(message, withAttached(edited, files))} />
      ) : (
        <>
          <Attachments conversation={props.conversation} files={files} />
          {text !== "" && (message.role === "tool" ? <Verbatim text={text} /> : message.role === "assistant" ? <Said text={text} /> : <Typed text={text} />)}
        </>
      )}
      {message.images.map((source, index) => (
        <img key={index} src={source} alt={t.picture} />
      ))}
      {message.attachments.map((label, index) => (
        <p key={index} className="faint">[{label}]</p>
      ))}
      {message.calls.map((call) => {
        const result = results.find((one) => one.answers === call.id);
        return (
          <Folded key={call.id} icon="tool" label={call.name} hint={briefly(call.arguments)} state={result ? <span className="good">✓</span> : null}>
            <div className="faint">{t.arguments}</div>
            <Verbatim text={call.arguments} />
            <div className="faint">{t.result}</div>
            <Verbatim text={result?.text ?? t.noResult} />
          </Folded>
        );
      })}
    </article>
  );
});

const MOST_SOURCES = 8;
/** Doors through which what others wrote comes in: the message says so. */
const FROM_OUTSIDE: readonly string[] = ["outside_tool", "import", "subagent"];

/** How many earlier messages were brought back for this answer, and where they stand; their words are in the right column. */
function Sources({ sources, onJump }: Props) {
  const { t } = useTexts();
  const [isWhole, setWhole] = useState(false);
  if (sources.length === 0) return null;
  const shown = isWhole ? sources : sources.slice(0, MOST_SOURCES);
  return (
    <div className="recall-line">
      <b>{t.recalledCount(sources.length)}</b>
      <ul aria-label={t.recalledFor}>
        {shown.map((one) => <li key={one.seq}><button className="link number" title={firstLine(withoutJson(one.text), 110)} onClick={() => onJump(one.seq)}>#{one.seq}</button></li>)}
        {sources.length > shown.length && <li><button className="link" onClick={() => setWhole(true)}>{t.moreSources(sources.length - shown.length)}</button></li>}
      </ul>
    </div>
  );
}

export function faceOf(role: string): IconName {
  return role === "user" ? "user" : role === "assistant" ? "answer" : role === "tool" ? "tool" : "system";
}

export function whoSays(message: { readonly role: string; readonly name: string | null }, t: ReturnType<typeof useTexts>["t"]): string {
  if (message.name !== null && message.name !== "") return message.name;
  return t.roles[message.role] ?? message.role;
}

function Versions({ message, versions, actions }: Props) {
  const { t } = useTexts();
  const place = versions.findIndex((other) => other.message.id === message.id);
  if (versions.length < 2 || place < 0) return null;
  const before = versions[place - 1];
  const after = versions[place + 1];
  return (
    <span className="row tight">
      <IconButton icon="left" label={t.earlierVersion} disabled={!before} onClick={() => before && actions.switchTo(before.branch)} />
      <span className="faint number">
        {place + 1}/{versions.length}
      </span>
      <IconButton icon="right" label={t.laterVersion} disabled={!after} onClick={() => after && actions.switchTo(after.branch)} />
    </span>
  );
}

/** The usual ones at hand, the others behind one button; on a phone all of them behind it. */
function Tools({ message, feedback, actions, onEdit }: { readonly message: Message; readonly feedback: Feedback | null; readonly actions: MessageActions; readonly onEdit: () => void }) {
  const { t } = useTexts();
  const toast = useToast();
  const isToEdit = useRef(false);
  const copy = () => void copied(attachedIn(message.text).text).then((isDone) => toast({ text: isDone ? t.copied : t.notCopied }));
  const isAnswer = message.role === "assistant" && message.text !== "";
  const usual: { icon: IconName; label: string; run: () => void; isShown: boolean; isOn?: boolean }[] = [
    { icon: "copy", label: t.copy, run: copy, isShown: message.text !== "" },
    { icon: "edit", label: t.edit, run: onEdit, isShown: message.role === "user" },
    { icon: "again", label: t.regenerate, run: () => actions.regenerate(message), isShown: message.role === "assistant" },
    { icon: "good", label: t.goodAnswer, run: () => actions.rate(message, "good", feedback), isShown: isAnswer, isOn: feedback?.rating === "good" },
    { icon: "bad", label: t.badAnswer, run: () => actions.rate(message, "bad", feedback), isShown: isAnswer, isOn: feedback?.rating === "bad" },
  ];
  const offered = usual.filter((one) => one.isShown);
  return (
    <span className="tools" data-rated={feedback !== null}>
      {offered.map((one) => <IconButton key={one.icon} icon={one.icon} label={one.label} onClick={one.run} {...(one.isOn === undefined ? {} : { isOn: one.isOn })} />)}
      <Menu.Root>
        <Menu.Trigger className="plain always" aria-label={t.messageActions} title={t.messageActions}><Icon name="more" /></Menu.Trigger>
        <Menu.Portal>
          <Menu.Content
            className="menu"
            align="end"
            sideOffset={4}
            onCloseAutoFocus={(event) => {
              if (!isToEdit.current) return;
              isToEdit.current = false;
              event.preventDefault(); // the keyboard goes to what is edited, not back to the menu's button
              onEdit();
            }}
          >
            {offered.map((one) => <Item key={one.icon} icon={one.icon} label={one.label} onSelect={one.icon === "edit" ? () => (isToEdit.current = true) : one.run} />)}
            <Item icon="pin" label={message.isPinned ? t.unpin : t.pin} onSelect={() => actions.pin(message)} />
            <Item icon="branch" label={t.fork} onSelect={() => actions.fork(message)} />
            {message.role === "assistant" && <Item icon="context" label={t.why} onSelect={() => actions.why(message)} />}
            <Item icon="spread" label={`${t.trust} …`} onSelect={() => actions.trust(message)} />
            <Menu.Separator className="line" />
            <Item icon={message.isDeleted ? "undo" : "remove"} label={message.isDeleted ? t.restore : t.remove} onSelect={() => actions.remove(message)} />
            <Menu.Item className="bad" onSelect={() => actions.erase(message)}><Icon name="close" />{t.erase} …</Menu.Item>
          </Menu.Content>
        </Menu.Portal>
      </Menu.Root>
    </span>
  );
}

function Item({ icon, label, onSelect }: { readonly icon: IconName; readonly label: string; readonly onSelect: () => unknown }) {
  return (
    <Menu.Item onSelect={() => void onSelect()}>
      <Icon name={icon} />
      {label}
    </Menu.Item>
  );
}

function Editor({ text: before, onSave, onDone }: { readonly text: string; readonly onSave: (text: string) => void; readonly onDone: () => void }) {
  const { t } = useTexts();
  const [text, setText] = useState(before);
  return (
    <form
      className="stack"
      onSubmit={(event) => {
        event.preventDefault();
        onSave(text);
        onDone();
      }}
    >
      <textarea
        autoFocus
        aria-label={t.edit}
        value={text}
        rows={Math.min(12, text.split("\n").length + 1)}
        onFocus={(event) => event.currentTarget.setSelectionRange(text.length, text.length)}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) => {
          if (isComposing(event.nativeEvent)) return;
          if (event.key === "Escape") onDone();
          else if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && text.trim() !== "") event.currentTarget.form?.requestSubmit();
        }}
      />
      <div className="row">
        <button className="primary" disabled={text.trim() === ""}>{t.saveAndAnswer}</button>
        <button type="button" onClick={onDone}>{t.cancel}</button>
        <span className="faint wide-only">{t.editHint}</span>
      </div>
    </form>
  );
}
