/** Conversations that were deleted are hidden, not gone: they can be read, restored, or erased for good. */

import { useState } from "react";

import { useDeletedConversations, useRemove } from "../../api/queries";
import { count, day, firstLine } from "../../lib/format";
import { useTexts } from "../../texts";
import { Trouble } from "../Bits";
import { EraseBox, type ToErase } from "./EraseBox";

export function DeletedConversations({ onOpen }: { readonly onOpen: (conversation: string) => void }) {
  const { t, language } = useTexts();
  const deleted = useDeletedConversations();
  const change = useRemove();
  const [erasing, setErasing] = useState<ToErase | null>(null);
  return (
    <div className="stack">
      <p className="soft">{t.deletedText}</p>
      {deleted.isError && <Trouble problem={deleted.error} />}
      {deleted.data?.length === 0 && <p className="faint">{t.noneDeleted}</p>}
      <ul className="list">
        {deleted.data?.map((one) => (
          <li key={one.id} className="row">
            <button className="link grow" onClick={() => onOpen(one.id)}>{firstLine(one.title ?? "") || t.untitled}</button>
            <span className="faint number">{t.messages(count(one.messages, language))} · {day(one.saidAt, language)}</span>
            <button onClick={() => change.mutate({ id: one.id, isBack: true })}>{t.restore}</button>
            <button className="danger" onClick={() => setErasing({ conversation: one.id, title: one.title ?? "" })}>{t.erase}</button>
          </li>
        ))}
      </ul>
      <EraseBox what={erasing} onClose={() => setErasing(null)} />
    </div>
  );
}
