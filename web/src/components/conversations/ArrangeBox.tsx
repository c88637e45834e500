/** Puts a conversation into a folder and under tags. */

import { useArrange, useConversations } from "../../api/queries";
import { namesIn, type Listed } from "../../lib/conversations";
import { useTexts } from "../../texts";
import { Box, Trouble } from "../Bits";

interface Props {
  /** Null while nothing is asked. */
  readonly conversation: Listed | null;
  readonly onClose: () => void;
}

export function ArrangeBox({ conversation, onClose }: Props) {
  const { t } = useTexts();
  return (
    <Box title={t.arrange} open={conversation !== null} onClose={onClose}>
      {conversation !== null && <Arranging conversation={conversation} onClose={onClose} />}
    </Box>
  );
}

function Arranging({ conversation, onClose }: { readonly conversation: Listed; readonly onClose: () => void }) {
  const { t } = useTexts();
  const all = useConversations().data?.pages.flatMap((page) => page.items) ?? [];
  const arrange = useArrange();
  return (
    <form
      className="stack"
      onSubmit={(event) => {
        event.preventDefault();
        const form = new FormData(event.currentTarget);
        const tags = String(form.get("tags") ?? "").split(/[,，、]/).map((tag) => tag.trim().replace(/^#/, "")).filter((tag) => tag !== "");
        arrange.mutate({ id: conversation.id, folder: String(form.get("folder") ?? "").trim(), tags: [...new Set(tags)] }, { onSuccess: onClose });
      }}
    >
      <label>
        <span className="label">{t.folder}</span>
        <input name="folder" autoFocus defaultValue={conversation.folder} list="known-folders" maxLength={60} placeholder={t.noFolder} />
        <datalist id="known-folders">{namesIn(all, "folder").map((name) => <option key={name} value={name} />)}</datalist>
      </label>
      <label>
        <span className="label">{t.tags}</span>
        <input name="tags" defaultValue={conversation.tags.join(", ")} maxLength={200} placeholder={namesIn(all, "tags").slice(0, 3).join(", ")} aria-describedby="tags-hint" />
      </label>
      <p id="tags-hint" className="faint" style={{ margin: 0 }}>{t.tagsHint}</p>
      {arrange.isError && <Trouble problem={arrange.error} />}
      <div className="row ends">
        <button type="button" onClick={onClose}>{t.cancel}</button>
        <button className="primary" disabled={arrange.isPending}>{t.save}</button>
      </div>
    </form>
  );
}
