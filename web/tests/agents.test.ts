import { describe, expect, it } from "vitest";

import { agentOf, agentsIn, isLive, projectsOf, resumeCommand, type AgentSession } from "../src/lib/agents";

const NOW = Date.parse("2026-03-01T10:00:00Z");

function session(id: string, agent: string, cwd: string | null, more: { parentId?: string; changedAt?: string; isOnDisk?: boolean | null } = {}): AgentSession {
  const conversation = {
    id, title: id, parentId: more.parentId ?? null, messages: 10, createdAt: "", saidAt: "", isPinned: false, isDeleted: false, isOffRecord: false, isShared: false,
    folder: "", tags: [], feedback: {}, metadata: cwd === null ? {} : { cwd },
  };
  return { conversation, agent, path: null, isOnDisk: more.isOnDisk === undefined ? true : more.isOnDisk, changedAt: more.changedAt ?? null };
}

const ALL = [
  session("claude-code:1", "claude-code", "/srv/a"), session("codex:1", "codex", "/srv/b"), session("claude-code:1/sub", "claude-code", "/srv/a", { parentId: "claude-code:1" }),
  session("codex:2", "codex", "/srv/a"), session("aider:1", "aider", null),
];

describe("sessions of agents", () => {
  it("are gone on with by their agent alone; a copy, and what a chat service exported, is not", () => {
    const of = (id: string, agent: string) => agentOf({ id, metadata: { agent } });
    expect([of("claude-code:1", "claude-code"), of("made-1", "claude-code"), of("chatgpt:1", "chatgpt"), agentOf({ id: "codex:1", metadata: {} })]).toEqual(["claude-code", null, null, null]);
  });
  it("stand under the folder they ran in, the newest first, with their subagents counted", () => {
    const projects = projectsOf(ALL, null);
    expect(projects.map((one) => [one.folder, one.sessions.length, one.messages])).toEqual([["/srv/a", 2, 20], ["/srv/b", 1, 10], ["", 1, 10]]);
    expect(projects[0]!.sessions.map((one) => one.subagents)).toEqual([1, 0]);
  });

  it("can be those of one agent", () => {
    expect(projectsOf(ALL, "codex").map((one) => one.folder)).toEqual(["/srv/b", "/srv/a"]);
    expect(agentsIn(ALL)).toEqual([{ agent: "codex", sessions: 2 }, { agent: "claude-code", sessions: 1 }, { agent: "aider", sessions: 1 }]);
  });

  it("shows a subagent whose session is not listed", () => {
    expect(projectsOf([ALL[2]!], null)[0]!.sessions).toHaveLength(1);
  });

  it("are live while their file changes", () => {
    expect(isLive(session("x", "codex", null, { changedAt: "2026-03-01T09:59:00Z" }), NOW)).toBe(true);
    expect(isLive(session("x", "codex", null, { changedAt: "2026-03-01T09:00:00Z" }), NOW)).toBe(false);
    expect(isLive(session("x", "codex", null, { changedAt: "2026-03-01T09:59:00Z", isOnDisk: false }), NOW)).toBe(false);
  });

  it("name the command that continues them, where there is one", () => {
    expect(resumeCommand(ALL[1]!)).toBe("everthread resume codex:1");
    expect(resumeCommand(ALL[4]!)).toBeNull();
  });
});
