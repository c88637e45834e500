/** Makes a link with which anybody may read a conversation, and revokes it. The link is shown once: only its hash is kept. */

import { useState } from "react";

import { useRevokeShare, useShare } from "../api/queries";
import { useTexts } from "../texts";
import { Box, Trouble } from "./Bits";
import { Copy } from "./Said";

interface Props {
  readonly conversation: string | null;
  readonly isShared: boolean;
  readonly onClose: () => void;
}

export function ShareBox({ conversation, isShared, onClose }: Props) {
  const { t } = useTexts();
  return (
    <Box title={t.share} open={conversation !== null} onClose={onClose}>
      {conversation !== null && <Sharing conversation={conversation} isShared={isShared} />}
    </Box>
  );
}

function Sharing({ conversation, isShared }: { readonly conversation: string; readonly isShared: boolean }) {
  const { t } = useTexts();
  const [tools, setTools] = useState(false);
  const share = useShare();
  const revoke = useRevokeShare();
  const link = share.data;
  return (
    <div className="stack">
      <p className="soft" style={{ margin: 0 }}>{t.shareText}</p>
      {link !== undefined ? (
        <div className="row whole">
          <input readOnly value={link} aria-label={t.shareLink} onFocus={(event) => event.currentTarget.select()} />
          <Copy text={() => link} />
        </div>
      ) : (
        <label className="check">
          <input type="checkbox" checked={tools} onChange={(event) => setTools(event.target.checked)} />
          {t.shareTools}
        </label>
      )}
      {link !== undefined && <p className="faint" style={{ margin: 0 }}>{t.shareOnce}</p>}
      <div className="row ends">
        {isShared && <button className="danger" disabled={revoke.isPending} onClick={() => revoke.mutate(conversation, { onSuccess: () => share.reset() })}>{t.shareRevoke}</button>}
        {link === undefined && <button className="primary" disabled={share.isPending} onClick={() => share.mutate({ id: conversation, tools })}>{isShared ? t.shareAnew : t.shareMake}</button>}
      </div>
      {share.isError && <Trouble problem={share.error} />}
      {revoke.isError && <Trouble problem={revoke.error} />}
    </div>
  );
}
