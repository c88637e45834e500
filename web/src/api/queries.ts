/** What the page knows of the service, kept by TanStack Query: one hook per question, one per change. */

import { keepPreviousData, useInfiniteQuery, useMutation, useQuery, useQueryClient, type QueryClient } from "@tanstack/react-query";

import type { Compaction, Gauge, Message, Part, Version } from "../lib/model";
import type { Listed } from "../lib/tree";
import { call } from "./http";
import { compactionFrom, gaugeFrom, messageFrom, type Shape } from "./wire";

const PAGE = 200;
/** Pages held at once: 2,000 messages, however long the conversation is. */
const MOST_PAGES = 10;
const MOST_BRANCHES = 8;
/** Greater than any seq. */
const NEWEST = 4_294_967_295;

export function useAbout() {
  return useQuery({
    queryKey: ["about"],
    queryFn: async () => {
      const about = await call("get", "/about");
      return { isToyModel: about.is_toy_model, model: about.model, owner: about.owner };
    },
    staleTime: Infinity,
  });
}

// --- conversations ---

export function useConversations() {
  return useInfiniteQuery({
    queryKey: ["conversations"],
    initialPageParam: null as string | null,
    queryFn: async ({ pageParam }) => {
      const page = await call("get", "/conversations", { query: { limit: 100, ...(pageParam === null ? {} : { cursor: pageParam }) } });
      return { items: page.items.map(listed), next: page.next_cursor };
    },
    getNextPageParam: (page) => page.next,
  });
}

function listed(wire: Shape<"ConversationOut">): Listed {
  return { id: wire.id, title: wire.title, parentId: wire.parent_id, count: wire.entry_count };
}

export function useConversation(id: string | null) {
  return useQuery({
    queryKey: ["conversation", id],
    enabled: id !== null,
    queryFn: async () => listed(await call("get", "/conversations/{conversation_id}", { at: { conversation_id: id ?? "" } })),
  });
}

export function useRename() {
  return useChange(async ({ id, title }: { id: string; title: string }) => {
    await call("patch", "/conversations/{conversation_id}", { at: { conversation_id: id }, body: { title } });
  });
}

export function useRemove() {
  return useChange(async ({ id, isBack }: { id: string; isBack: boolean }) => {
    if (isBack) await call("post", "/conversations/{conversation_id}/restore", { at: { conversation_id: id } });
    else await call("delete", "/conversations/{conversation_id}", { at: { conversation_id: id } });
  });
}

export function useImport() {
  return useChange(async (file: File) => {
    const report = await call("post", "/import", { body: file });
    return [...report.imported, ...report.skipped];
  });
}

export function useLoadDemo() {
  return useChange(async () => (await call("post", "/demo")).id);
}

// --- messages ---

type Span = { readonly before: number } | { readonly after: number };

interface Messages {
  readonly items: readonly Message[];
  readonly hasOlder: boolean;
  readonly hasNewer: boolean;
}

async function messagesOf(id: string, query: Span & { readonly limit: number; readonly branch?: string; readonly include_deleted?: boolean }): Promise<Messages> {
  const page = await call("get", "/conversations/{conversation_id}/messages", { at: { conversation_id: id }, query });
  return { items: page.items.map(messageFrom), hasOlder: page.has_older, hasNewer: page.has_newer };
}

/** Pages around a message, or the newest; more are loaded in both directions. */
export function useMessages(id: string, at: number | null) {
  return useInfiniteQuery({
    queryKey: ["messages", id, at],
    enabled: id !== "",
    initialPageParam: (at === null ? { before: NEWEST } : { after: Math.max(0, at - 20) }) as Span,
    maxPages: MOST_PAGES,
    queryFn: ({ pageParam }) => messagesOf(id, { ...pageParam, limit: PAGE, include_deleted: true }),
    getPreviousPageParam: (page): Span | null => (page.hasOlder && page.items[0] ? { before: page.items[0].seq } : null),
    getNextPageParam: (page): Span | null => (page.hasNewer && page.items.length > 0 ? { after: page.items.at(-1)!.seq } : null),
  });
}

/** Of each place where branches part, the message that each of them goes on with. */
export function useVersions(id: string | null) {
  return useQuery({
    queryKey: ["versions", id],
    enabled: id !== null,
    queryFn: async (): Promise<readonly Version[]> => {
      const { items } = await call("get", "/conversations/{conversation_id}/branches", { at: { conversation_id: id ?? "" } });
      const newest = items.slice(-MOST_BRANCHES);
      const forks = [...new Set(newest.map((branch) => branch.fork_seq))].filter((seq) => newest.length > 1 && seq >= 0);
      const found = await Promise.all(
        forks.flatMap((seq) =>
          newest
            .filter((branch) => branch.leaf_seq > seq)
            .map(async (branch) => {
              const page = await messagesOf(id ?? "", { after: seq, limit: 1, branch: branch.id });
              return page.items.map((message) => ({ message, branch: branch.id }));
            }),
        ),
      );
      return [...new Map(found.flat().map((version) => [version.message.id, version])).values()].sort((one, other) => one.message.seq - other.message.seq);
    },
  });
}

// --- what the model sees ---

export function useGauge(id: string) {
  return useQuery({
    queryKey: ["gauge", id],
    enabled: id !== "",
    queryFn: async (): Promise<Gauge> => gaugeFrom(await call("get", "/conversations/{conversation_id}/context", { at: { conversation_id: id } })),
  });
}

export interface TurnLine {
  readonly id: string;
  readonly state: string;
  readonly receivedAt: string;
  /** Tokens of its requests, by the provider's word; null when it gave none. */
  readonly sent: number | null;
}

export function useTurns(id: string | null) {
  return useQuery({
    queryKey: ["turns", id],
    enabled: id !== null && id !== "",
    queryFn: async (): Promise<readonly TurnLine[]> => {
      const page = await call("get", "/conversations/{conversation_id}/turns", { at: { conversation_id: id ?? "" }, query: { limit: 100 } });
      return page.items.map((turn) => ({ id: turn.id, state: turn.state, receivedAt: turn.received_at, sent: turn.usage["input_tokens"] ?? null }));
    },
  });
}

/** A request as a model was sent it, or as it would be sent now. */
export interface Seen {
  readonly tokens: number;
  readonly parts: readonly Part[];
  readonly messages: readonly unknown[];
  /** What each of them counts to. */
  readonly messageTokens: readonly number[];
  readonly omitted: readonly { readonly seq: number; readonly lastSeq: number | null; readonly reason: string }[];
}

export function useSeen(id: string, turn: string | null) {
  return useQuery({
    queryKey: ["seen", id, turn],
    queryFn: async (): Promise<readonly Seen[]> => {
      if (turn === null) return [seenFrom(await call("get", "/conversations/{conversation_id}/context", { at: { conversation_id: id }, query: { messages: true } }))];
      const { requests } = await call("get", "/conversations/{conversation_id}/turns/{turn_id}/context", { at: { conversation_id: id, turn_id: turn } });
      return requests.map(seenFrom);
    },
  });
}

function seenFrom(wire: Shape<"Gauge"> | Shape<"SeenRequest">): Seen {
  return {
    tokens: wire.tokens,
    parts: gaugeFrom(wire).parts,
    messages: wire.messages ?? [],
    messageTokens: wire.message_tokens ?? [],
    omitted: wire.omitted.map((one) => ({ seq: one.seq, lastSeq: one.last_seq, reason: one.reason })),
  };
}

// --- compaction ---

export function useCompactions(id: string) {
  return useQuery({
    queryKey: ["compactions", id],
    enabled: id !== "",
    queryFn: async (): Promise<readonly Compaction[]> => {
      const page = await call("get", "/conversations/{conversation_id}/compactions", { at: { conversation_id: id }, query: { limit: 200 } });
      return page.items.map(compactionFrom);
    },
  });
}

export interface Diff {
  readonly originals: readonly { readonly seq: number; readonly role: string; readonly text: string }[];
  readonly lost: readonly string[];
}

export function useDiff(id: string, compaction: Compaction) {
  return useQuery({
    queryKey: ["diff", id, compaction.id],
    queryFn: async (): Promise<Diff> => {
      const at = { conversation_id: id, compaction: String(compaction.number) };
      const wire = await call("get", "/conversations/{conversation_id}/compactions/{compaction}/diff", { at });
      return { originals: wire.originals, lost: wire.facts_only_in_originals };
    },
  });
}

export function useCompact(id: string) {
  return useChange(async () => (await call("post", "/conversations/{conversation_id}/compact", { at: { conversation_id: id }, body: { dry_run: false } })).compacted);
}

export function useUndo(id: string) {
  return useChange(async (compaction: string) => {
    await call("post", "/conversations/{conversation_id}/compactions/{compaction}/undo", { at: { conversation_id: id, compaction } });
  });
}

export type Policy = Shape<"Policy">;

export function usePolicy(id: string) {
  return useQuery({
    queryKey: ["policy", id],
    queryFn: () => call("get", "/conversations/{conversation_id}/config/compaction", { at: { conversation_id: id } }),
  });
}

export function useSetPolicy(id: string) {
  return useChange(async (policy: Partial<Policy>) => {
    await call("put", "/conversations/{conversation_id}/config/compaction", { at: { conversation_id: id }, body: policy });
  });
}

// --- search, memories, files ---

export interface Found {
  readonly conversationId: string;
  readonly seq: number;
  readonly snippet: string;
}

export function useSearch(text: string, isByMeaning: boolean) {
  return useQuery({
    queryKey: ["search", text, isByMeaning],
    enabled: text !== "",
    placeholderData: keepPreviousData,
    queryFn: async (): Promise<readonly Found[]> => {
      const page = await call("get", "/search", { query: { q: text, meaning: isByMeaning, limit: 30 } });
      return page.items.map((hit) => ({ conversationId: hit.conversation_id, seq: hit.seq, snippet: hit.snippet }));
    },
  });
}

export interface Memory {
  readonly id: string;
  readonly text: string;
  readonly kind: string;
  readonly isOnlyHere: boolean;
  readonly source: { readonly conversation: string; readonly seq: number } | null;
}

/** What is remembered of the person, and what holds in this conversation alone. */
export function useMemories(id: string) {
  return useQuery({
    queryKey: ["memories", id],
    queryFn: async (): Promise<readonly Memory[]> => {
      const page = await call("get", "/memories", { query: { limit: 100, conversation_id: id } });
      return page.items.map((one) => ({
        id: one.id,
        text: one.text,
        kind: one.kind,
        isOnlyHere: one.scope !== "user",
        source: one.source && one.source.seq > 0 ? { conversation: one.source.conversation_id, seq: one.source.seq } : null,
      }));
    },
  });
}

export function useForget() {
  return useChange(async ({ memory, isBack }: { memory: string; isBack: boolean }) => {
    if (isBack) await call("post", "/memories/{memory_id}/restore", { at: { memory_id: memory } });
    else await call("delete", "/memories/{memory_id}", { at: { memory_id: memory } });
  });
}

export function useFiles(id: string) {
  return useQuery({
    queryKey: ["files", id],
    queryFn: async () => {
      const page = await call("get", "/conversations/{conversation_id}/files", { at: { conversation_id: id } });
      const handedIn = new Map(page.uploads.map((one) => [one.path, one.name]));
      return page.items.map((file) => ({ path: file.path, name: handedIn.get(file.path) ?? file.path, bytes: file.size_bytes, isUpload: handedIn.has(file.path) }));
    },
  });
}

/** Hand files in; into a conversation of their own when there is none yet. Gives the conversation. */
export function useUpload() {
  return useChange(async ({ id, files }: { id: string | null; files: readonly File[] }) => {
    const into = id ?? (await call("post", "/conversations", { body: {} })).id;
    await uploaded(into, files);
    return into;
  });
}

export interface Todo {
  readonly content: string;
  readonly status: "pending" | "in_progress" | "completed";
}

/** What the agent has set itself to do. */
export function useTodos(id: string) {
  return useQuery({
    queryKey: ["todos", id],
    queryFn: async (): Promise<readonly Todo[]> => (await call("get", "/conversations/{conversation_id}/todos", { at: { conversation_id: id } })).items,
  });
}

async function uploaded(id: string, files: readonly File[]): Promise<void> {
  for (const file of files) {
    const form = new FormData();
    form.append("file", file);
    await call("post", "/conversations/{conversation_id}/files", { at: { conversation_id: id }, body: form });
  }
}

/** What can be mentioned with @. */
export function useNames() {
  return useQuery({
    queryKey: ["names"],
    staleTime: 60_000,
    queryFn: async (): Promise<readonly string[]> => {
      const known = await call("get", "/chat/tools");
      return [...[...known.items, ...known.skills].map((one) => one.name), ...known.agent_types];
    },
  });
}

/** A change of anything: when it is done, what is shown is asked for again. */
export function useChange<In, Out>(change: (given: In) => Promise<Out>) {
  const cache = useQueryClient();
  return useMutation({ mutationFn: change, onSettled: () => renew(cache) });
}

/** Ask again for all that is shown. What is on its way may have been read before the change: it is not waited for. */
export async function renew(cache: QueryClient): Promise<void> {
  await cache.cancelQueries();
  await cache.invalidateQueries();
}
