/** All that is remembered of the person: search, add, edit, pin, forget, erase; and where each comes from. */

import { useState } from "react";

import { useAddMemory, useAllMemories, useChangeMemory, useConfirmMemory, useErase, useForget, useMemoryHistory } from "../../api/queries";
import { moment } from "../../lib/format";
import type { Shape } from "../../api/wire";
import { useTexts } from "../../texts";
import { Trouble, useToast } from "../Bits";
import { IconButton } from "../Icon";

export function AllMemories({ onOpen }: { readonly onOpen: (conversation: string, at?: number) => void }) {
  const { t } = useTexts();
  const [text, setText] = useState("");
  const memories = useAllMemories(text.trim());
  const add = useAddMemory();
  return (
    <div className="stack">
      <form
        className="row whole"
        onSubmit={(event) => {
          event.preventDefault();
          const form = event.currentTarget;
          const said = String(new FormData(form).get("memory") ?? "").trim();
          if (said !== "") add.mutate(said, { onSuccess: () => form.reset() });
        }}
      >
        <input name="memory" aria-label={t.newMemory} placeholder={t.newMemory} />
        <button className="primary" disabled={add.isPending}>{t.add}</button>
      </form>
      {add.isError && <Trouble problem={add.error} />}
      <input type="search" value={text} aria-label={t.searchMemories} placeholder={t.searchMemories} onChange={(event) => setText(event.target.value)} />
      {memories.isError && <Trouble problem={memories.error} />}
      {memories.data?.length === 0 && <p className="faint">{text === "" ? t.noMemories : t.noHits}</p>}
      <ul className="list">
        {memories.data?.map((memory) => <OneMemory key={memory.id} memory={memory} onOpen={onOpen} />)}
      </ul>
    </div>
  );
}

function OneMemory({ memory, onOpen }: { readonly memory: Shape<"MemoryOut">; readonly onOpen: (conversation: string, at?: number) => void }) {
  const { t, language } = useTexts();
  const toast = useToast();
  const [isEditing, setEditing] = useState(false);
  const [isAsked, setAsked] = useState(false);
  const change = useChangeMemory();
  const confirmed = useConfirmMemory();
  const forget = useForget();
  const erase = useErase();
  const history = useMemoryHistory(isAsked ? memory.id : null);
  return (
    <li>
      {isEditing ? (
        <form
          className="row whole"
          onSubmit={(event) => {
            event.preventDefault();
            change.mutate({ id: memory.id, text: String(new FormData(event.currentTarget).get("text") ?? "") }, { onSuccess: () => setEditing(false) });
          }}
        >
          <input name="text" autoFocus defaultValue={memory.text} aria-label={t.edit} />
          <button>{t.save}</button>
        </form>
      ) : (
        <div>{memory.text}</div>
      )}
      <div className="row faint">
        <span>{t.memoryKinds[memory.kind] ?? memory.kind}{memory.scope !== "user" && ` · ${t.onlyHere}`}</span>
        {memory.is_pinned && <span className="tag" data-kind="pinned">{t.pinned}</span>}
        {memory.trust === "data" && <span className="tag" data-kind="outside" title={t.unconfirmedHint}>{t.unconfirmed}</span>}
        {memory.source !== null && memory.source.seq > 0 && <button className="link" onClick={() => onOpen(memory.source!.conversation_id, memory.source!.seq)}>{t.source} #{memory.source.seq}</button>}
        <span className="grow" />
        <span className="row tight whole">
        {memory.trust === "data" && <button onClick={() => confirmed.mutate(memory.id)}>{t.confirmMemory}</button>}
        <IconButton icon="edit" label={t.edit} onClick={() => setEditing(!isEditing)} />
        <IconButton icon="pin" label={memory.is_pinned ? t.unpin : t.pin} isOn={memory.is_pinned} onClick={() => change.mutate({ id: memory.id, pinned: !memory.is_pinned })} />
        <IconButton icon="spread" label={t.whyMemory} isOn={isAsked} onClick={() => setAsked(!isAsked)} />
        <IconButton icon="remove" label={t.forget} onClick={() => forget.mutate({ memory: memory.id, isBack: false }, { onSuccess: () => toast({ text: t.forgotten, undo: () => forget.mutate({ memory: memory.id, isBack: true }) }) })} />
        <IconButton icon="close" className="bad" label={t.erase} onClick={() => confirm(t.eraseMemoryAsk) && erase.mutate({ memory: memory.id }, { onSuccess: (proof) => toast({ text: t.erasedBrief(proof.entries) }) })} />
        </span>
      </div>
      {isAsked && history.data && (
        <ul className="list faint">
          {history.data.map((one) => <li key={one.id}>{moment(one.created_at, language)} · {t.origins[one.origin] ?? one.origin}: {one.text}</li>)}
        </ul>
      )}
      {change.isError && <Trouble problem={change.error} />}
    </li>
  );
}
