/** Every entry hashed again, every chain followed: what was found, in one line. */

import { useVerify } from "../../api/queries";
import { count } from "../../lib/format";
import { useTexts } from "../../texts";
import { Trouble } from "../Bits";
import { Icon } from "../Icon";

export function Verify() {
  const { t, language } = useTexts();
  const verify = useVerify();
  const report = verify.data;
  return (
    <div className="stack">
      <p className="soft">{t.verifyText}</p>
      <p><button className="primary" disabled={verify.isPending} onClick={() => verify.mutate(null)}>{verify.isPending ? t.verifying : t.verify}</button></p>
      {verify.isError && <Trouble problem={verify.error} />}
      {report && (
        <div className="proof" role="status">
          <p className={`row ${report.ok ? "good" : "bad"}`}>
            <Icon name={report.ok ? "shield" : "close"} />
            <strong>{report.ok ? t.intact(count(report.entries, language)) : t.broken(count(report.problems.length, language))}</strong>
          </p>
          <p className="faint">{t.verified(count(report.conversations, language), count(report.messages, language), count(report.erased, language))}</p>
          <ul className="list">
            {report.problems.map((problem, index) => (
              <li key={index}>{problem.conversation_id} {problem.seq !== null && `#${problem.seq}`}: {problem.detail}</li>
            ))}
          </ul>
        </div>
      )}
    </div>
  );
}
