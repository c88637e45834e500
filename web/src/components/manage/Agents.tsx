/** The sessions of coding agents that are kept here, by project: which are being written, which files are gone, what they took. */

import { useState } from "react";

import { useAgentSessions, useSessionTotals } from "../../api/queries";
import { agentName, agentsIn, isLive, projectsOf, resumeCommand, type AgentSession, type Project } from "../../lib/agents";
import { count, firstLine, moment, money } from "../../lib/format";
import { useTexts } from "../../texts";
import { Detail, Trouble, useToast, Waiting } from "../Bits";
import { Icon, IconButton } from "../Icon";

type Open = (conversation: string) => void;

export function Agents({ onOpen }: { readonly onOpen: Open }) {
  const { t, language } = useTexts();
  const list = useAgentSessions();
  const [agent, setAgent] = useState<string | null>(null);
  const all = list.data?.pages.flatMap((page) => page.items) ?? [];
  const following = list.data?.pages[0]?.following ?? null;
  const agents = agentsIn(all);
  const chosen = agents.some((one) => one.agent === agent) ? agent : null;
  if (list.isError) return <Trouble problem={list.error} onRetry={() => void list.refetch()} />;
  if (list.data === undefined) return <Waiting lines={4} />;
  return (
    <div className="stack">
      <p className="soft">{t.agentsText}</p>
      {following !== null ? (
        <p className="row whole good"><span className="dot" aria-hidden="true" />{t.followed}</p>
      ) : (
        <p className="notice">{t.notFollowed} <code>everthread watch</code></p>
      )}
      {following !== null && following.problems.length > 0 && (
        <details className="faint">
          <summary>{t.notRead(following.problems.length)}</summary>
          {following.problems.map((problem) => <Detail key={problem} text={problem} />)}
        </details>
      )}
      {agents.length > 1 && (
        <div className="row tight" role="group" aria-label={t.sections.agents}>
          {agents.map((one) => (
            <button key={one.agent} className="tag" aria-pressed={one.agent === chosen} onClick={() => setAgent(one.agent === chosen ? null : one.agent)}>
              {agentName(one.agent)} <span className="number">{count(one.sessions, language)}</span>
            </button>
          ))}
        </div>
      )}
      {all.length === 0 && !list.hasNextPage && <p className="faint">{t.noAgents}</p>}
      {projectsOf(all, chosen).map((project) => <OneProject key={project.folder} project={project} isFollowed={following !== null} onOpen={onOpen} />)}
      {list.hasNextPage && <p><button disabled={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()}>{t.older}</button></p>}
    </div>
  );
}

function OneProject({ project, isFollowed, onOpen }: { readonly project: Project; readonly isFollowed: boolean; readonly onOpen: Open }) {
  const { t, language } = useTexts();
  return (
    <section className="project" aria-label={project.folder || t.noProject}>
      <h3 className="row whole" title={project.folder}>
        <Icon name="folder" />
        <bdi className="grow">{project.folder || t.noProject}</bdi>
        <span className="faint number">{t.sessions(count(project.sessions.length, language))} · {t.messages(count(project.messages, language))}</span>
      </h3>
      <ul className="list">
        {project.sessions.map((session) => <OneSession key={session.conversation.id} session={session} isFollowed={isFollowed} onOpen={onOpen} />)}
      </ul>
    </section>
  );
}

function OneSession({ session, isFollowed, onOpen }: { readonly session: Project["sessions"][number]; readonly isFollowed: boolean; readonly onOpen: Open }) {
  const { t, language } = useTexts();
  const [isAsked, setAsked] = useState(false);
  const { conversation, agent } = session;
  const title = firstLine(conversation.title ?? "") || t.untitled;
  return (
    <li>
      <div className="row whole">
        <button className="link grow" dir="auto" onClick={() => onOpen(conversation.id)}>{title}</button>
        {isFollowed && isLive(session, Date.now()) && <span className="tag" data-kind="good"><span className="dot" aria-hidden="true" /> {t.live}</span>}
        {session.isOnDisk === false && <span className="tag" data-kind="outside" title={t.fileGoneText}>{t.fileGone}</span>}
        <IconButton icon="chevron" label={t.detailsOf(title)} isOn={isAsked} onClick={() => setAsked(!isAsked)} />
      </div>
      <div className="faint">
        {agentName(agent)} · <span className="number">{t.messages(count(conversation.messages, language))}</span>
        {session.subagents > 0 && ` · ${t.subagents(count(session.subagents, language))}`} · {moment(conversation.saidAt, language)}
      </div>
      {isAsked && <Totals session={session} />}
    </li>
  );
}

function Totals({ session }: { readonly session: AgentSession }) {
  const { t, language } = useTexts();
  const toast = useToast();
  const totals = useSessionTotals(session.conversation.id);
  const command = resumeCommand(session);
  if (totals.isError) return <Trouble problem={totals.error} />;
  if (totals.data === undefined) return <Waiting />;
  const { messages, not_on_disk, summaries, models } = totals.data;
  const isGone = session.isOnDisk === false;
  const hasLost = isGone || not_on_disk > 0;
  const copy = (text: string) => navigator.clipboard.writeText(text).then(() => toast({ text: t.copied }), () => toast({ text: t.notCopied }));
  return (
    <div className="proof stack" role="status">
      {hasLost ? (
        <p className="row whole"><Icon name="shield" /><strong>{isGone ? t.allStillHere(count(messages, language)) : t.lostOnDisk(count(not_on_disk, language))}</strong></p>
      ) : (
        <p>{session.isOnDisk === null ? t.messages(count(messages, language)) : t.nothingLost(count(messages, language))}</p>
      )}
      {summaries > 0 && <p>{t.agentCompacted(count(summaries, language))}</p>}
      {models.length === 0 ? (
        <p className="faint">{t.noUsage}</p>
      ) : (
        <table className="plain">
          <thead><tr><th>{t.model}</th><th>{t.answers}</th><th>{t.tokensIn}</th><th>{t.fromCache}</th><th>{t.toCache}</th><th>{t.tokensOut}</th><th>{t.cost}</th></tr></thead>
          <tbody>
            {models.map((one) => (
              <tr key={one.model ?? ""}>
                <td>{one.model ?? t.notNoted}</td><td className="number">{count(one.answers, language)}</td><td className="number">{count(one.input_tokens, language)}</td>
                <td className="number">{count(one.cache_read_tokens, language)}</td><td className="number">{count(one.cache_write_tokens, language)}</td>
                <td className="number">{count(one.output_tokens, language)}</td><td className="number">{one.cost === null ? t.notNoted : money(one.cost, language)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {session.path !== null && <p className="faint"><code>{session.path}</code></p>}
      {command !== null && <p className="row whole"><span className="faint">{t.toResume}</span><code className="grow">{command}</code><IconButton icon="copy" label={t.copy} onClick={() => void copy(command)} /></p>}
    </div>
  );
}
