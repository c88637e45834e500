/** How much is stored; and for an admin, what the server is doing in the background. */

import { useAbout, useDiscardJob, useJobs, useRetryJobs, useStats } from "../../api/queries";
import { bytes, count, moment } from "../../lib/format";
import { useConnection } from "../../state/connection";
import { useTexts } from "../../texts";
import { Trouble } from "../Bits";

export function Server({ isAdmin }: { readonly isAdmin: boolean }) {
  const { t, language } = useTexts();
  const about = useAbout();
  const stats = useStats();
  const isConnected = useConnection();
  const shown = (name: string, value: number) => (name.endsWith("bytes") ? bytes(value, language) : count(value, language));
  return (
    <div className="stack">
      <table className="plain">
        <tbody>
          <tr><th scope="row">{t.health}</th><td className={isConnected ? "good" : "bad"}>{isConnected ? t.healthy : t.problems["unreachable"]}</td></tr>
          <tr><th scope="row">{t.version}</th><td>{about.data?.version}</td></tr>
          <tr><th scope="row">{t.model}</th><td>{about.data?.model ?? t.localModel}</td></tr>
          {stats.data && stats.data.database === null && <tr><th scope="row">{t.yours}</th><td>{t.storedOfYours(count(stats.data.conversations, language), count(stats.data.entries, language))}</td></tr>}
          {Object.entries(stats.data?.database ?? {}).map(([name, value]) => <tr key={name}><th scope="row">{t.stats[name] ?? name.replaceAll("_", " ")}</th><td className="number">{shown(name, value)}</td></tr>)}
        </tbody>
      </table>
      {stats.isError && <Trouble problem={stats.error} />}
      {isAdmin ? <Jobs /> : <p className="faint">{t.adminOnly}</p>}
    </div>
  );
}

function Jobs() {
  const { t, language } = useTexts();
  const jobs = useJobs(true);
  const retry = useRetryJobs();
  const discard = useDiscardJob();
  if (!jobs.data) return jobs.isError ? <Trouble problem={jobs.error} /> : null;
  const { waiting, running, dead, items } = jobs.data;
  return (
    <section aria-label={t.jobs}>
      <h3>{t.jobs}</h3>
      <p>{t.jobCounts(count(waiting, language), count(running, language), count(dead, language))} {dead > 0 && <button onClick={() => retry.mutate(null)}>{t.retryAll}</button>}</p>
      {items.length > 0 && (
        <table className="plain">
          <thead><tr><th>{t.job}</th><th>{t.state}</th><th>{t.since("")}</th><th /></tr></thead>
          <tbody>
            {items.map((job) => (
              <tr key={job.id}>
                <td>{job.kind}<div className="faint">{job.owner} · {job.conversation_id}</div>{job.error && <div className="bad">{job.error}</div>}</td>
                <td>{t.jobStates[job.state] ?? job.state}</td>
                <td className="faint">{moment(job.put_at, language)}</td>
                <td>{job.state === "dead" && <span className="row tight"><button onClick={() => retry.mutate(job.id)}>{t.retry}</button><button onClick={() => discard.mutate(job.id)}>{t.discard}</button></span>}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  );
}
