/** The branches of a conversation, newest first: what was said last on each, and a way to open it. */

import { useBranches, useBranchEnds } from "../../api/queries";
import { count, firstLine, moment } from "../../lib/format";
import { useTexts } from "../../texts";
import { Box, Trouble } from "../Bits";

interface Props {
  readonly conversation: string | null;
  readonly onShow: (branch: string) => void;
  readonly onClose: () => void;
}

export function BranchesBox({ conversation, onShow, onClose }: Props) {
  const { t } = useTexts();
  return (
    <Box title={t.branches} open={conversation !== null} onClose={onClose}>
      {conversation !== null && <Branches conversation={conversation} onShow={onShow} onClose={onClose} />}
    </Box>
  );
}

function Branches({ conversation, onShow, onClose }: Props & { readonly conversation: string }) {
  const { t, language } = useTexts();
  const branches = useBranches(conversation);
  const ends = useBranchEnds(conversation, branches.data ?? []);
  const n = (value: number) => count(value, language);
  return (
    <>
      <p className="soft">{t.branchesText}</p>
      {branches.isError && <Trouble problem={branches.error} onRetry={() => void branches.refetch()} />}
      <ul className="list">
        {[...(branches.data ?? [])].reverse().map((branch) => (
          <li key={branch.id} className="row whole">
            <div className="grow">
              <div className="one-line">{branch.lastSeq <= branch.forkSeq ? t.emptyBranch(n(branch.forkSeq)) : firstLine(ends.data?.get(branch.id)?.text ?? "", 120) || "…"}</div>
              <span className="faint number">{t.branchOf(n(branch.lastSeq), n(branch.forkSeq), moment(branch.createdAt, language))}</span>
            </div>
            {branch.isActive ? (
              <span className="tag" data-kind="good">{t.isOpenBranch}</span>
            ) : (
              <button
                onClick={() => {
                  onShow(branch.id);
                  onClose();
                }}
              >
                {t.openBranch}
              </button>
            )}
          </li>
        ))}
      </ul>
    </>
  );
}
