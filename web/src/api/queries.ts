/** What the page knows of the service, kept by TanStack Query: one hook per question, one per change. */

import { keepPreviousData, useInfiniteQuery, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";

import type { Compaction, Gauge, Message, Part, Version } from "../lib/model";
import type { Listed } from "../lib/tree";
import { ask, askJson, path } from "./http";
import {
  compactionFrom, gaugeFrom, messageFrom,
  type WireCompaction, type WireContext, type WireConversation, type WireHit, type WireMessages, type WirePage,
} from "./wire";

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
      const about = await askJson<{ is_toy_model: boolean }>("/about");
      return { isToyModel: about.is_toy_model };
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
      const page = await askJson<WirePage<WireConversation>>("/conversations", { query: { limit: 100, cursor: pageParam } });
      return { items: page.items.map(listed), next: page.next_cursor };
    },
    getNextPageParam: (page) => page.next,
  });
}

function listed(wire: WireConversation): Listed {
  return { id: wire.id, title: wire.title, parentId: wire.parent_id, count: wire.entry_count };
}

export function useConversation(id: string | null) {
  return useQuery({
    queryKey: ["conversation", id],
    enabled: id !== null,
    queryFn: async () => listed(await askJson<WireConversation>(path`/conversations/${id ?? ""}`)),
  });
}

export function useRename() {
  return useChange(async ({ id, title }: { id: string; title: string }) => {
    await askJson(path`/conversations/${id}`, { method: "PATCH", body: { title } });
  });
}

export function useRemove() {
  return useChange(async ({ id, isBack }: { id: string; isBack: boolean }) => {
    if (isBack) await ask(path`/conversations/${id}/restore`, { method: "POST" });
    else await ask(path`/conversations/${id}`, { method: "DELETE" });
  });
}

export function useImport() {
  return useChange(async (file: File) => {
    const report = await askJson<{ imported: string[]; skipped: string[] }>("/import", { method: "POST", body: file });
    return [...report.imported, ...report.skipped];
  });
}

export function useLoadDemo() {
  return useChange(async () => (await askJson<{ id: string }>("/demo", { method: "POST" })).id);
}

// --- messages ---

type Span = { readonly before: number } | { readonly after: number };

interface Messages {
  readonly items: readonly Message[];
  readonly hasOlder: boolean;
  readonly hasNewer: boolean;
}

async function messagesOf(id: string, query: Span & { readonly limit: number; readonly branch?: string }): Promise<Messages> {
  const page = await askJson<WireMessages>(path`/conversations/${id}/messages`, { query });
  return { items: page.items.map(messageFrom), hasOlder: page.has_older, hasNewer: page.has_newer };
}

/** Pages around a message, or the newest; more are loaded in both directions. */
export function useMessages(id: string, at: number | null) {
  return useInfiniteQuery({
    queryKey: ["messages", id, at],
    enabled: id !== "",
    initialPageParam: (at === null ? { before: NEWEST } : { after: Math.max(0, at - 20) }) as Span,
    maxPages: MOST_PAGES,
    queryFn: ({ pageParam }) => messagesOf(id, { ...pageParam, limit: PAGE }),
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
      type Wire = { id: string; fork_seq: number; leaf_seq: number };
      const { items } = await askJson<{ items: Wire[] }>(path`/conversations/${id ?? ""}/branches`);
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
    queryFn: async (): Promise<Gauge> => gaugeFrom(await askJson<WireContext>(path`/conversations/${id}/context`)),
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
      type Wire = { id: string; state: string; received_at: string; usage: Record<string, number> };
      const page = await askJson<{ items: Wire[] }>(path`/conversations/${id ?? ""}/turns`, { query: { limit: 100 } });
      return page.items.map((turn) => ({ id: turn.id, state: turn.state, receivedAt: turn.received_at, sent: turn.usage["input_tokens"] ?? null }));
    },
  });
}

/** A request as a model was sent it, or as it would be sent now. */
export interface Seen {
  readonly tokens: number;
  readonly parts: readonly Part[];
  readonly messages: readonly unknown[];
  readonly omitted: readonly string[];
}

export function useSeen(id: string, turn: string | null) {
  return useQuery({
    queryKey: ["seen", id, turn],
    queryFn: async (): Promise<readonly Seen[]> => {
      if (turn === null) return [seenFrom(await askJson<WireContext>(path`/conversations/${id}/context`, { query: { messages: true } }))];
      const { requests } = await askJson<{ requests: WireContext[] }>(path`/conversations/${id}/turns/${turn}/context`);
      return requests.map(seenFrom);
    },
  });
}

function seenFrom(wire: WireContext): Seen {
  return {
    tokens: wire.tokens,
    parts: gaugeFrom(wire).parts,
    messages: wire.messages ?? [],
    omitted: wire.omitted.map((one) => `#${one.seq}${one.last_seq === null ? "" : `–${one.last_seq}`}: ${one.reason}`),
  };
}

// --- compaction ---

export function useCompactions(id: string) {
  return useQuery({
    queryKey: ["compactions", id],
    enabled: id !== "",
    queryFn: async (): Promise<readonly Compaction[]> => {
      const page = await askJson<WirePage<WireCompaction>>(path`/conversations/${id}/compactions`, { query: { limit: 200 } });
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
      type Wire = { originals: { seq: number; role: string; text: string }[]; facts_only_in_originals: string[] };
      const wire = await askJson<Wire>(path`/conversations/${id}/compactions/${compaction.number}/diff`);
      return { originals: wire.originals, lost: wire.facts_only_in_originals };
    },
  });
}

export function useCompact(id: string) {
  return useChange(async () => (await askJson<{ compacted: boolean }>(path`/conversations/${id}/compact`, { method: "POST", body: {} })).compacted);
}

export function useUndo(id: string) {
  return useChange(async (compaction: string) => {
    await ask(path`/conversations/${id}/compactions/${compaction}/undo`, { method: "POST" });
  });
}

export interface Policy {
  readonly threshold: number;
  readonly keep_recent: number;
  readonly max_message_history: number;
}

export function usePolicy(id: string) {
  return useQuery({
    queryKey: ["policy", id],
    queryFn: () => askJson<Policy>(path`/conversations/${id}/config/compaction`),
  });
}

export function useSetPolicy(id: string) {
  return useChange(async (policy: Record<string, number>) => {
    await askJson(path`/conversations/${id}/config/compaction`, { method: "PUT", body: policy });
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
      const page = await askJson<{ items: WireHit[] }>("/search", { query: { q: text, meaning: isByMeaning || null, limit: 30 } });
      return page.items.map((hit) => ({ conversationId: hit.conversation_id, seq: hit.seq, snippet: hit.snippet }));
    },
  });
}

export interface Memory {
  readonly id: string;
  readonly text: string;
  readonly source: { readonly conversation: string; readonly seq: number } | null;
}

export function useMemories() {
  return useQuery({
    queryKey: ["memories"],
    queryFn: async (): Promise<readonly Memory[]> => {
      type Wire = { id: string; text: string; source: { conversation_id: string; seq: number } | null };
      const page = await askJson<{ items: Wire[] }>("/memories", { query: { limit: 100 } });
      return page.items.map((one) => ({
        id: one.id,
        text: one.text,
        source: one.source && { conversation: one.source.conversation_id, seq: one.source.seq },
      }));
    },
  });
}

export function useForget() {
  return useChange(async (memory: string) => {
    await ask(path`/memories/${memory}`, { method: "DELETE" });
  });
}

export function useFiles(id: string) {
  return useQuery({
    queryKey: ["files", id],
    queryFn: async () => {
      const page = await askJson<{ items: { path: string; size_bytes: number }[] }>(path`/conversations/${id}/files`);
      return page.items.map((file) => ({ name: file.path, bytes: file.size_bytes }));
    },
  });
}

export function useUpload(id: string) {
  return useChange((files: readonly File[]) => uploaded(id, files));
}

export function useUploadTo() {
  return useChange(({ id, files }: { id: string; files: readonly File[] }) => uploaded(id, files));
}

async function uploaded(id: string, files: readonly File[]): Promise<void> {
  for (const file of files) {
    const form = new FormData();
    form.append("file", file);
    await ask(path`/conversations/${id}/files`, { method: "POST", body: form });
  }
}

/** What can be mentioned with @. */
export function useNames() {
  return useQuery({
    queryKey: ["names"],
    staleTime: 60_000,
    queryFn: async (): Promise<readonly string[]> => {
      const known = await askJson<{ items: ({ name: string } | string)[] }>("/chat/tools");
      return known.items.map((one) => (typeof one === "string" ? one : one.name));
    },
  });
}

/** A change of anything: when it is done, what is shown is asked for again. */
export function useChange<In, Out>(change: (given: In) => Promise<Out>) {
  const cache = useQueryClient();
  return useMutation({ mutationFn: change, onSettled: () => cache.invalidateQueries() });
}
