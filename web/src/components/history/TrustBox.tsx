/** Where a message came from, and where it went: the summaries, memories and requests that it reached; and the way to take it
 * out of all of them at once. */

import { useCompactions, useMemories, useQuarantine, useSpread } from "../../api/queries";
import { firstLine } from "../../lib/format";
import type { Message } from "../../lib/model";
import { useTexts } from "../../texts";
import { Box, Trouble, useToast } from "../Bits";
import { Icon } from "../Icon";

interface Props {
  readonly conversation: string;
  readonly message: Message | null;
  readonly onClose: () => void;
  readonly onJump: (seq: number) => void;
}

export function TrustBox({ message, onClose, ...rest }: Props) {
  const { t } = useTexts();
  return (
    <Box title={message === null ? "" : t.trustOf(message.seq)} open={message !== null} onClose={onClose}>
      {message !== null && <Trust {...rest} message={message} onClose={onClose} />}
    </Box>
  );
}

function Trust({ conversation, message, onClose, onJump }: Props & { readonly message: Message }) {
  const { t } = useTexts();
  const toast = useToast();
  const spread = useSpread(conversation, message.id);
  const compactions = useCompactions(conversation);
  const memories = useMemories(conversation);
  const quarantine = useQuarantine();
  const found = spread.data;
  const change = (isBack: boolean) =>
    quarantine.mutate({ id: conversation, message: message.id, isBack }, {
      onSuccess: () => {
        onClose();
        toast({ text: isBack ? t.released : t.quarantined, ...(isBack ? {} : { undo: () => quarantine.mutate({ id: conversation, message: message.id, isBack: true }) }) });
      },
    });
  const leave = (seq: number) => {
    onClose();
    onJump(seq);
  };
  return (
    <div className="stack">
      <p className="proof">{firstLine(message.text, 160) || t.noWords}</p>
      <p style={{ margin: 0 }}><b>{t.cameFrom}</b> {t.doors[message.origin] ?? message.origin}</p>
      {spread.isError && <Trouble problem={spread.error} />}
      {spread.isLoading && <p className="faint">{t.loading}</p>}
      {found && (
        <>
          <h3 style={{ margin: 0 }}>{t.wentTo}</h3>
          <ul className="list spread">
            <li>
              <Icon name="layers" /> <span className="grow">{t.spreadSummaries(found.summaries.length)}</span>
              {found.summaries.map((id) => {
                const one = compactions.data?.find((each) => each.id === id);
                return one === undefined ? null : <button key={id} className="link number" onClick={() => leave(one.lastSeq)}>#{one.firstSeq}–{one.lastSeq}</button>;
              })}
            </li>
            <li>
              <Icon name="thinking" />
              <div className="grow">
                {t.spreadMemories(found.memories.length)}
                {found.memories.map((id) => <p key={id} className="faint" style={{ margin: 0 }}>{memories.data?.find((one) => one.id === id)?.text}</p>)}
              </div>
            </li>
            <li>
              <Icon name="send" /> <span className="grow">{t.spreadRequests(found.requests.length)}</span>
            </li>
          </ul>
          <p className="faint" style={{ margin: 0 }}>{message.isQuarantined ? t.releaseText : t.quarantineText}</p>
        </>
      )}
      {quarantine.isError && <Trouble problem={quarantine.error} />}
      <div className="row ends">
        <button onClick={onClose}>{t.close}</button>
        {message.isQuarantined ? (
          <button className="primary" disabled={quarantine.isPending} onClick={() => change(true)}>{t.release}</button>
        ) : (
          <button className="danger" disabled={quarantine.isPending} onClick={() => change(false)}>{t.quarantine}</button>
        )}
      </div>
    </div>
  );
}
