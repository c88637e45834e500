/** The sessions of coding agents as they are shown: by the folder they ran in, subagents counted with the session that called them. */

import type { Listed } from "./conversations";

export interface AgentSession {
  readonly conversation: Listed;
  readonly agent: string;
  readonly path: string | null;
  /** Null where nobody looks after its file. */
  readonly isOnDisk: boolean | null;
  readonly changedAt: string | null;
}

export interface Project {
  /** Empty for sessions that do not say where they ran. */
  readonly folder: string;
  readonly sessions: readonly (AgentSession & { readonly subagents: number })[];
  readonly messages: number;
}

const NAMES: Readonly<Record<string, string>> = {
  "claude-code": "Claude Code", codex: "Codex", "gemini-cli": "Gemini CLI", "qwen-code": "Qwen Code", "copilot-cli": "Copilot CLI", "cursor-cli": "Cursor CLI",
  openclaw: "OpenClaw", kimi: "Kimi Code", grok: "Grok", deepseek: "DeepSeek", antigravity: "Antigravity", cline: "Cline", roo: "Roo Code", goose: "Goose", hermes: "Hermes", zed: "Zed",
  chatgpt: "ChatGPT", "claude-ai": "Claude.ai", "open-webui": "Open WebUI", librechat: "LibreChat", sharegpt: "ShareGPT", letta: "Letta", langsmith: "LangSmith", otel: "OpenTelemetry", opencode: "opencode",
};
/** Of these a session's file can be written again. */
const RESUMED = ["claude-code", "codex"];
/** Programs whose conversations are imported, and in which nobody writes on. */
const NO_AGENTS = ["chatgpt", "claude-ai", "open-webui", "librechat", "sharegpt", "openai-chat", "letta", "langsmith", "otel", "openai-agents"];
const LIVE_MILLISECONDS = 120_000;

/** The agent whose session a conversation is, which alone goes on with it; null for others, such as a copy of one. */
export function agentOf({ id, metadata }: Pick<Listed, "id" | "metadata">): string | null {
  const agent = metadata["agent"];
  return typeof agent === "string" && id.startsWith(`${agent}:`) && !NO_AGENTS.includes(agent) ? agent : null;
}

export function agentName(agent: string): string {
  return NAMES[agent] ?? agent;
}

/** The program that a conversation was imported from, also where it is a copy; null where it began here. */
export function importedFrom(conversation: Pick<Listed, "metadata"> | null | undefined): string | null {
  const program = conversation?.metadata["agent"];
  return typeof program === "string" && program !== "" ? program : null;
}

/** How many sessions there are of each agent, the most first; subagents are none. */
export function agentsIn(all: readonly AgentSession[]): readonly { readonly agent: string; readonly sessions: number }[] {
  const counts = new Map<string, number>();
  for (const { agent } of withoutSubagents(all)) counts.set(agent, (counts.get(agent) ?? 0) + 1);
  return [...counts].map(([agent, sessions]) => ({ agent, sessions })).sort((one, other) => other.sessions - one.sessions);
}

/** In the order in which something was said last. */
export function projectsOf(all: readonly AgentSession[], agent: string | null): readonly Project[] {
  const below = new Map<string, number>();
  for (const { conversation } of all) if (conversation.parentId !== null) below.set(conversation.parentId, (below.get(conversation.parentId) ?? 0) + 1);
  const projects = new Map<string, Project>();
  for (const session of withoutSubagents(all)) {
    if (agent !== null && session.agent !== agent) continue;
    const cwd = session.conversation.metadata["cwd"];
    const folder = typeof cwd === "string" ? cwd : "";
    const known = projects.get(folder);
    const shown = { ...session, subagents: below.get(session.conversation.id) ?? 0 };
    projects.set(folder, { folder, sessions: [...(known?.sessions ?? []), shown], messages: (known?.messages ?? 0) + session.conversation.messages });
  }
  return [...projects.values()];
}

function withoutSubagents(all: readonly AgentSession[]): readonly AgentSession[] {
  const known = new Set(all.map(({ conversation }) => conversation.id));
  return all.filter(({ conversation }) => conversation.parentId === null || !known.has(conversation.parentId));
}

/** Whether its agent is writing it just now, as far as anybody looks. */
export function isLive(session: AgentSession, now: number): boolean {
  return session.isOnDisk === true && session.changedAt !== null && now - Date.parse(session.changedAt) < LIVE_MILLISECONDS;
}

/** The command that writes its file again, for agents where there is one. */
export function resumeCommand(session: AgentSession): string | null {
  return RESUMED.includes(session.agent) ? `everthread resume ${session.conversation.id}` : null;
}
