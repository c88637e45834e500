/** One message of the history, whole: what was said, thought and called, and what can be done with it. */

import { memo, useState } from "react";

import { briefly, moment } from "../../lib/format";
import type { Message, Version } from "../../lib/model";
import { useTexts } from "../../texts";
import { useToast } from "../Bits";
import { IconButton } from "../Icon";
import { Said } from "../Said";
import { Folded } from "./Folded";

export interface MessageActions {
  readonly edit: (message: Message, text: string) => void;
  readonly regenerate: (message: Message) => void;
  readonly fork: (message: Message) => void;
  readonly pin: (message: Message) => void;
  readonly remove: (message: Message) => void;
  readonly switchTo: (version: Version) => void;
}

interface Props {
  readonly message: Message;
  readonly results: readonly Message[];
  readonly versions: readonly Version[];
  readonly isOutside: boolean;
  readonly isCurrent: boolean;
  readonly isEditing: boolean;
  readonly onEditing: (isEditing: boolean) => void;
  readonly actions: MessageActions;
}

export const MessageRow = memo(function MessageRow(props: Props) {
  const { message, results, isOutside, isCurrent, isEditing, onEditing, actions } = props;
  const { t, language } = useTexts();
  return (
    <article
      className="message"
      data-seq={message.seq}
      data-role={message.role}
      data-outside={isOutside}
      data-deleted={message.isDeleted}
      data-current={isCurrent}
      aria-label={`${whoSays(message, t)} ${message.seq}`}
    >
      <header className="row">
        <span className="who">{whoSays(message, t)}</span>
        <time className="faint" dateTime={message.saidAt} title={`#${message.seq}`}>
          {moment(message.saidAt, language)}
        </time>
        <span className="faint">#{message.seq}</span>
        {message.isPinned && <span className="tag">{t.pinned}</span>}
        {message.isDeleted && <span className="tag">{t.deleted}</span>}
        {!message.isComplete && <span className="tag">{t.cutShort}</span>}
        {isOutside && <span className="tag" title={t.outside} aria-label={t.outside} role="img">{t.outsideBrief}</span>}
        <Versions {...props} />
        <Tools message={message} actions={actions} onEdit={() => onEditing(true)} />
      </header>
      {message.thinking !== "" && (
        <Folded label={t.thinking}>
          <Said text={message.thinking} />
        </Folded>
      )}
      {isEditing ? (
        <Editor message={message} onDone={() => onEditing(false)} onSave={(text) => actions.edit(message, text)} />
      ) : (
        message.text !== "" && <Said text={message.text} />
      )}
      {message.images.map((source, index) => (
        <img key={index} src={source} alt="" />
      ))}
      {message.calls.map((call) => (
        <Folded key={call.id} label={t.toolCall(call.name)} hint={briefly(call.arguments)}>
          <div className="faint">{t.arguments}</div>
          <pre className="plain" tabIndex={0}>{call.arguments}</pre>
          <div className="faint">{t.result}</div>
          <pre className="plain" tabIndex={0}>{results.find((result) => result.answers === call.id)?.text ?? t.noResult}</pre>
        </Folded>
      ))}
    </article>
  );
});

function whoSays(message: Message, t: ReturnType<typeof useTexts>["t"]): string {
  if (message.name !== null && message.name !== "") return message.name;
  const known: Record<string, string> = { user: t.you, assistant: t.assistant, tool: t.tool, system: t.system };
  return known[message.role] ?? message.role;
}

function Versions({ message, versions, actions }: Props) {
  const { t } = useTexts();
  const place = versions.findIndex((other) => other.message.id === message.id);
  if (versions.length < 2 || place < 0) return null;
  const before = versions[place - 1];
  const after = versions[place + 1];
  return (
    <span className="row" style={{ gap: 0 }}>
      <IconButton icon="left" label={t.earlierVersion} disabled={!before} onClick={() => before && actions.switchTo(before)} />
      <span className="faint">
        {place + 1}/{versions.length}
      </span>
      <IconButton icon="right" label={t.laterVersion} disabled={!after} onClick={() => after && actions.switchTo(after)} />
    </span>
  );
}

function Tools({ message, actions, onEdit }: { readonly message: Message; readonly actions: MessageActions; readonly onEdit: () => void }) {
  const { t } = useTexts();
  const toast = useToast();
  const copy = () => void navigator.clipboard.writeText(message.text).then(() => toast({ text: t.copied }));
  return (
    <span className="tools">
      {message.text !== "" && <IconButton icon="copy" label={t.copy} onClick={copy} />}
      {message.role === "user" && <IconButton icon="edit" label={t.edit} onClick={onEdit} />}
      {message.role === "assistant" && <IconButton icon="answer" label={t.regenerate} onClick={() => actions.regenerate(message)} />}
      <IconButton icon="fork" label={t.fork} onClick={() => actions.fork(message)} />
      <IconButton icon="pin" label={message.isPinned ? t.unpin : t.pin} onClick={() => actions.pin(message)} />
      <IconButton icon={message.isDeleted ? "undo" : "remove"} label={message.isDeleted ? t.undo : t.remove} onClick={() => actions.remove(message)} />
    </span>
  );
}

function Editor({ message, onSave, onDone }: { readonly message: Message; readonly onSave: (text: string) => void; readonly onDone: () => void }) {
  const { t } = useTexts();
  const [text, setText] = useState(message.text);
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        onSave(text);
        onDone();
      }}
    >
      <textarea autoFocus aria-label={t.edit} value={text} rows={4} onChange={(event) => setText(event.target.value)} />
      <div className="row">
        <button className="primary" disabled={text.trim() === ""}>{t.save}</button>
        <button type="button" onClick={onDone}>{t.cancel}</button>
      </div>
    </form>
  );
}
