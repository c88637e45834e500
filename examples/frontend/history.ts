// The whole history of a thread for a page that restores it: thinking, tool calls and all.
//
// A server with everthread answers `GET /threads/{id}/full-history` in the format of `/threads/{id}/state`. A server
// without it answers 404, and the page is then given the state, as before; `source` says which it was.

import type { Client, Message } from "@langchain/langgraph-sdk";

export interface Gap {
  reason: "not_archived" | "archive_began_late" | "summarised_unseen";
  after: string | null;
}

export interface FullHistory {
  messages: Message[];
  source: "archive" | "merged" | "checkpoint" | "state";
  complete: boolean;
  gaps: Gap[];
}

interface Page {
  values: { messages?: Message[] };
  source: "archive" | "merged" | "checkpoint";
  complete: boolean;
  gaps: Gap[];
  next_cursor: string | null;
}

/** The SDK's own way to the server: its address, keys, headers and retries. TypeScript calls it protected. */
interface Door {
  fetch<T>(path: string, options?: { params?: Record<string, unknown> }): Promise<T>;
}

const PAGE = 200;

/** Everything that was said in a thread, oldest first. */
export async function loadFullHistory(client: Client, threadId: string): Promise<FullHistory> {
  try {
    return await loadPages(client, threadId);
  } catch (problem) {
    if (!isUnknown(problem)) throw problem; // a server that is down must not look like a short history
    const state = await client.threads.getState<{ messages?: Message[] }>(threadId);
    return { messages: state.values.messages ?? [], source: "state", complete: false, gaps: [] };
  }
}

async function loadPages(client: Client, threadId: string): Promise<FullHistory> {
  const door = client.threads as unknown as Door;
  const messages: Message[] = [];
  let cursor: string | undefined;
  for (;;) {
    const params = { merge_checkpoint: true, limit: PAGE, cursor };
    const page = await door.fetch<Page>(`/threads/${encodeURIComponent(threadId)}/full-history`, { params });
    messages.push(...(page.values.messages ?? []));
    if (page.next_cursor === null) {
      return { messages, source: page.source, complete: page.complete, gaps: page.gaps };
    }
    cursor = page.next_cursor;
  }
}

/** Whether the server does not know the path, or the thread. */
function isUnknown(problem: unknown): boolean {
  const status = (problem as { status?: number }).status;
  return status === 404 || status === 405;
}
