/** Asks what was wrong with an answer. It is kept with the answer's turn, and goes with exports. */

import { useGiveFeedback } from "../../api/queries";
import type { Feedback } from "../../lib/conversations";
import { useTexts } from "../../texts";
import { Box, Trouble, useToast } from "../Bits";

interface Props {
  readonly conversation: string;
  /** The answer, with what was said of it before; null while nothing is asked. */
  readonly about: { readonly message: string; readonly before: Feedback | null } | null;
  readonly onClose: () => void;
}

export function FeedbackBox({ conversation, about, onClose }: Props) {
  const { t } = useTexts();
  const toast = useToast();
  const give = useGiveFeedback();
  return (
    <Box title={t.whatWasWrong} open={about !== null} onClose={onClose}>
      <form
        className="stack"
        onSubmit={(event) => {
          event.preventDefault();
          if (about === null) return;
          const reason = String(new FormData(event.currentTarget).get("reason") ?? "").trim();
          give.mutate({ id: conversation, message: about.message, feedback: { rating: "bad", reason: reason || null } }, {
            onSuccess: () => {
              toast({ text: t.feedbackKept });
              onClose();
            },
          });
        }}
      >
        <textarea name="reason" autoFocus rows={4} maxLength={2000} aria-label={t.whatWasWrong} placeholder={t.reasonHint} defaultValue={about?.before?.reason ?? ""} />
        <p className="faint" style={{ margin: 0 }}>{t.feedbackText}</p>
        {give.isError && <Trouble problem={give.error} />}
        <div className="row ends">
          <button type="button" onClick={onClose}>{t.cancel}</button>
          <button className="primary" disabled={give.isPending}>{t.save}</button>
        </div>
      </form>
    </Box>
  );
}
