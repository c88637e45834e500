/** Erasing for good: asks first, and then proves what is gone, and that the rest is whole. */

import { useState } from "react";

import { useErase, useVerify } from "../../api/queries";
import { erasedKinds, outOfReach } from "../../lib/erased";
import { count, firstLine, moment } from "../../lib/format";
import { useTexts } from "../../texts";
import { Box, Trouble } from "../Bits";
import { Icon } from "../Icon";

export type ToErase = { readonly conversation: string; readonly title: string; readonly message?: { readonly id: string; readonly seq: number; readonly text: string } };

interface Props {
  readonly what: ToErase | null;
  readonly onClose: () => void;
  /** Called when it is gone. */
  readonly onErased?: (what: ToErase) => void;
}

export function EraseBox({ what, onClose, onErased }: Props) {
  const { t } = useTexts();
  return (
    <Box title={what?.message === undefined ? t.eraseConversation : t.eraseMessage} open={what !== null} onClose={onClose}>
      {what !== null && <Erasing what={what} onClose={onClose} onErased={onErased} />}
    </Box>
  );
}

function Erasing({ what, onClose, onErased }: { readonly what: ToErase; readonly onClose: () => void; readonly onErased: Props["onErased"] }) {
  const { t, language } = useTexts();
  const erase = useErase(() => onErased?.(what));
  const verify = useVerify();
  const [isSure, setSure] = useState(false);
  const proof = erase.data;
  const run = () =>
    erase.mutate(what.message === undefined ? { conversation: what.conversation } : { conversation: what.conversation, message: what.message.id }, {
      onSuccess: () => verify.mutate(null),
    });
  if (proof === undefined) {
    return (
      <div className="stack">
        <p>{what.message === undefined ? t.eraseConversationText : t.eraseMessageText(what.message.seq)}</p>
        <p className="proof">{what.message === undefined ? firstLine(what.title) || t.untitled : firstLine(what.message.text, 160)}</p>
        <label className="check"><input type="checkbox" checked={isSure} onChange={(event) => setSure(event.target.checked)} />{t.eraseSure}</label>
        {erase.isError && <Trouble problem={erase.error} />}
        <div className="row ends">
          <button onClick={onClose}>{t.cancel}</button>
          <button className="danger" disabled={!isSure || erase.isPending} onClick={run}>{t.eraseForGood}</button>
        </div>
      </div>
    );
  }
  const kinds = erasedKinds(proof.reached, what.message !== undefined).map(([kind, rows]) => t.erasedKinds[kind](count(rows, language)));
  const notes = proof.cannot_reach.map((note) => t.outOfReach[outOfReach(note)!] ?? note);
  return (
    <div className="stack" role="status">
      <div className="proof">
        <p className="row good"><Icon name="check" /><strong>{t.erased(count(proof.entries, language), moment(proof.erased_at, language))}</strong></p>
        {kinds.length > 0 && <p>{t.erasedList(kinds)}</p>}
        {notes.length > 0 && <p className="faint">{t.cannotReach([...new Set(notes)])}</p>}
      </div>
      {verify.data && <p className={verify.data.ok ? "good" : "bad"}>{verify.data.ok ? t.intact(count(verify.data.entries, language)) : t.broken(count(verify.data.problems.length, language))}</p>}
      <div className="row ends"><button className="primary" onClick={onClose}>{t.close}</button></div>
    </div>
  );
}
