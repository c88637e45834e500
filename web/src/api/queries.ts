/** What the page knows of the service, kept by TanStack Query: one hook per question, one per change. */

import { keepPreviousData, useInfiniteQuery, useMutation, useQuery, useQueryClient, type QueryClient } from "@tanstack/react-query";

import { useEffect, useMemo, useState } from "react";

import type { AgentSession } from "../lib/agents";
import { arrangedIn, type Feedback, type Listed } from "../lib/conversations";
import type { Compaction, Gauge, Message, OpenBranch, Part, Version } from "../lib/model";
import type { Attached } from "../lib/uploads";
import { blockOf } from "../lib/payload";
import { quotationsIn } from "../lib/quotations";
import { readChoices } from "../state/choices";
import { watchedWindow } from "../state/watched";
import { call, open } from "./http";
import { compactionsFrom, gaugeFrom, messageFrom, type Shape } from "./wire";

const PAGE = 200;
/** Pages held at once: 2,000 messages, however long the conversation is. */
const MOST_PAGES = 10;
const MOST_BRANCHES = 8;
const MOST_ENDS = 20;
/** Greater than any seq. */
const NEWEST = 4_294_967_295;

export function useAbout() {
  return useQuery({
    queryKey: ["about"],
    queryFn: async () => {
      const about = await call("get", "/about");
      return { isToyModel: about.is_toy_model, model: about.model, models: about.models, owner: about.owner, isAdmin: about.is_admin, via: about.via, version: about.version };
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
      const page = await call("get", "/conversations", { query: { limit: 100, order: "said", ...(pageParam === null ? {} : { cursor: pageParam }) } });
      return { items: page.items.map(listed), next: page.next_cursor };
    },
    getNextPageParam: (page) => page.next,
  });
}

function listed(wire: Shape<"ConversationOut">): Listed {
  return {
    id: wire.id,
    title: wire.title,
    parentId: wire.parent_id,
    messages: wire.message_count,
    createdAt: wire.created_at,
    saidAt: wire.last_said_at ?? wire.created_at,
    isDeleted: wire.is_deleted,
    isOffRecord: wire.off_record,
    isShared: wire.metadata["share"] !== undefined,
    ...arrangedIn(wire.metadata),
    metadata: wire.metadata,
  };
}

/** Where a conversation stands in the list: above the others, in a folder, under tags. */
export function useArrange() {
  return useChange(async ({ id, ...changes }: { id: string; pinned?: boolean; folder?: string; tags?: readonly string[] }) => {
    const at = { conversation_id: id };
    const { metadata } = await call("get", "/conversations/{conversation_id}", { at }); // as it is now: others write there too
    const arranged = Object.entries({ ...metadata, ...changes }).filter(([name, value]) => !(name in changes) || (Array.isArray(value) ? value.length > 0 : Boolean(value)));
    await call("patch", "/conversations/{conversation_id}", { at, body: { metadata: Object.fromEntries(arranged) } });
  });
}

/** What the person thinks of an answer; null takes it back. */
export function useGiveFeedback() {
  return useChange(async ({ id, message, feedback }: { id: string; message: string; feedback: Feedback | null }) => {
    const at = { conversation_id: id, message_id: message };
    if (feedback === null) await call("delete", "/conversations/{conversation_id}/messages/{message_id}/feedback", { at });
    else await call("put", "/conversations/{conversation_id}/messages/{message_id}/feedback", { at, body: { ...feedback } });
  });
}

/** Where a message went: the summaries, memories and requests to models that it reached. */
export function useSpread(id: string, message: string | null) {
  return useQuery({
    queryKey: ["spread", id, message],
    enabled: message !== null,
    queryFn: () => call("get", "/conversations/{conversation_id}/messages/{message_id}/spread", { at: { conversation_id: id, message_id: message ?? "" } }),
  });
}

/** Takes a message out of every view at once, or back into them. */
export function useQuarantine() {
  return useChange(async ({ id, message, isBack }: { id: string; message: string; isBack: boolean }) => {
    const at = { conversation_id: id, message_id: message };
    if (isBack) await call("delete", "/conversations/{conversation_id}/messages/{message_id}/quarantine", { at });
    else await call("put", "/conversations/{conversation_id}/messages/{message_id}/quarantine", { at });
  });
}

/** A memory that rests on what is not the user's own becomes the user's own. */
export function useConfirmMemory() {
  return useChange((memory: string) => call("post", "/memories/{memory_id}/confirm", { at: { memory_id: memory } }));
}

/** A link with which anybody may read the conversation; one made before is revoked. */
export function useShare() {
  return useChange(async ({ id, tools }: { id: string; tools: boolean }) => {
    const made = await call("post", "/conversations/{conversation_id}/share", { at: { conversation_id: id }, body: { tools, thinking: tools } });
    return new URL(made.path, location.origin).href;
  });
}

export function useRevokeShare() {
  return useChange(async (id: string) => {
    await call("delete", "/conversations/{conversation_id}/share", { at: { conversation_id: id } });
  });
}

/** Those that were deleted: hidden, and not gone. */
export function useDeletedConversations() {
  return useQuery({
    queryKey: ["deleted"],
    queryFn: async () => (await call("get", "/conversations", { query: { limit: 1000, include_deleted: true } })).items.map(listed).filter((one) => one.isDeleted),
  });
}

/** A conversation that is not indexed, and erased when the server stops. */
export function useCreateOffRecord() {
  return useChange(async () => (await call("post", "/conversations", { body: { off_record: true } })).id);
}

export function useConversation(id: string | null) {
  return useQuery({
    queryKey: ["conversation", id],
    enabled: id !== null,
    queryFn: async () => listed(await call("get", "/conversations/{conversation_id}", { at: { conversation_id: id ?? "" } })),
  });
}

/** When the first of its messages was said: an import tells of days long before it. Null where there is none yet. */
export function useFirstSaidAt(id: string | null): string | null {
  const first = useQuery({
    queryKey: ["first-said", id],
    enabled: id !== null,
    queryFn: async () => (await messagesOf(id ?? "", { after: 0, limit: 1, include_deleted: true })).items[0]?.saidAt ?? null,
  });
  return first.data ?? null;
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

export function useCopy() {
  return useChange(async (id: string) => (await call("post", "/conversations/{conversation_id}/copy", { at: { conversation_id: id }, body: {} })).id);
}

export function useImport() {
  return useChange(async (file: File) => {
    const report = await call("post", "/import", { body: file });
    return [...report.imported, ...report.skipped];
  });
}

/** Why messages would be recalled for a question, by their seqs: asked only when somebody wants to know. */
export function useWhyRecalled(id: string, question: string | null) {
  return useQuery({
    queryKey: ["why-recalled", id, question],
    enabled: question !== null && question !== "",
    queryFn: async () => {
      const { items } = await call("get", "/conversations/{conversation_id}/recall", { at: { conversation_id: id }, query: { q: (question ?? "").slice(0, 2000), limit: 20 } });
      return items.map((hit) => ({ seqs: hit.seqs, why: hit.why, words: hit.words }));
    },
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

export function newestMessagesKey(id: string): readonly unknown[] {
  return ["messages", id, null];
}

/** Pages around a message, or the newest; more are loaded in both directions. */
export function useMessages(id: string, at: number | null) {
  return useInfiniteQuery({
    queryKey: at === null ? newestMessagesKey(id) : ["messages", id, at],
    enabled: id !== "",
    initialPageParam: (at === null ? { before: NEWEST } : { after: Math.max(0, at - 20) }) as Span,
    maxPages: MOST_PAGES,
    queryFn: ({ pageParam }) => messagesOf(id, { ...pageParam, limit: PAGE, include_deleted: true }),
    getPreviousPageParam: (page): Span | null => (page.hasOlder && page.items[0] ? { before: page.items[0].seq } : null),
    getNextPageParam: (page): Span | null => (page.hasNewer && page.items.length > 0 ? { after: page.items.at(-1)!.seq } : null),
  });
}

/** The branches of a conversation, in the order they were made; what was said last on each, on the newest of them. */
export interface Branch {
  readonly id: string;
  readonly lastSeq: number;
  readonly forkSeq: number;
  readonly isActive: boolean;
  readonly createdAt: string;
}

export function useBranches(id: string | null) {
  return useQuery({
    queryKey: ["branches", id],
    enabled: id !== null && id !== "",
    queryFn: () => branchesOf(id ?? ""),
  });
}

async function branchesOf(id: string): Promise<readonly Branch[]> {
  const { items } = await call("get", "/conversations/{conversation_id}/branches", { at: { conversation_id: id } });
  return items.map((one) => ({ id: one.id, lastSeq: one.leaf_seq, forkSeq: one.fork_seq, isActive: one.is_active, createdAt: one.created_at }));
}

/** The branch in sight: its greatest seq, and the seqs that it has no messages of because they were said elsewhere. */
export function useOpenBranch(id: string): OpenBranch | null {
  const branches = useBranches(id).data;
  const shown = branches?.find((branch) => branch.isActive);
  const forkSeq = shown?.forkSeq ?? 0;
  const isLonger = shown !== undefined && shown.lastSeq > forkSeq;
  const first = useQuery({
    queryKey: ["first-after-fork", id, shown?.id ?? null, forkSeq],
    enabled: isLonger && (branches?.length ?? 0) > 1,
    queryFn: async () => (await messagesOf(id, { after: forkSeq, limit: 1, include_deleted: true })).items[0]?.seq ?? null,
  }).data;
  return useMemo(() => {
    const elsewhere = isLonger ? Math.max(0, (first ?? 0) - forkSeq - 1) : 0;
    return shown === undefined ? null : { lastSeq: shown.lastSeq, gap: { after: forkSeq, length: elsewhere } };
  }, [shown, isLonger, first, forkSeq]);
}

/** Whether the branch in sight ends with messages that were erased: it knows of them, and there is nothing to show. */
export function useErasedEnd(id: string, shownTo: number, lastSeq: number, isWanted: boolean): number | null {
  const isErased = useQuery({
    queryKey: ["erased-end", id, shownTo, lastSeq],
    enabled: isWanted && id !== "" && lastSeq > shownTo,
    queryFn: async () => (await messagesOf(id, { after: shownTo, limit: 1, include_deleted: true })).items.length === 0,
  }).data;
  return isWanted && lastSeq > shownTo && isErased === true ? lastSeq : null;
}

/** What was said last on each branch, by the branch. */
export function useBranchEnds(id: string | null, branches: readonly Branch[]) {
  const newest = branches.slice(-MOST_ENDS).map((branch) => branch.id);
  return useQuery({
    queryKey: ["branch-ends", id, newest],
    enabled: id !== null && newest.length > 0,
    queryFn: async (): Promise<ReadonlyMap<string, Message>> => {
      const ends = await Promise.all(newest.map((branch) => messagesOf(id ?? "", { before: NEWEST, limit: 1, branch })));
      return new Map(ends.flatMap((page, at) => page.items.map((message): [string, Message] => [newest[at]!, message])));
    },
  });
}

/** A message that the branch in sight does not have, and a branch that has it; null where none has. */
export function useElsewhere(id: string, seq: number | null) {
  return useQuery({
    queryKey: ["elsewhere", id, seq],
    enabled: id !== "" && seq !== null,
    queryFn: async (): Promise<{ readonly message: Message; readonly branch: string } | null> => {
      for (const branch of [...(await branchesOf(id))].reverse()) {
        if (branch.lastSeq < (seq ?? 0)) continue;
        const found = (await messagesOf(id, { after: (seq ?? 0) - 1, limit: 1, branch: branch.id, include_deleted: true })).items[0];
        if (found?.seq === seq) return { message: found, branch: branch.id };
      }
      return null;
    },
  });
}

/** Of each place where branches part, the message that each of them goes on with. */
export function useVersions(id: string | null) {
  return useQuery({
    queryKey: ["versions", id],
    enabled: id !== null,
    queryFn: async (): Promise<readonly Version[]> => {
      const newest = (await branchesOf(id ?? "")).slice(-MOST_BRANCHES);
      const forks = [...new Set(newest.map((branch) => branch.forkSeq))].filter((seq) => newest.length > 1 && seq >= 0);
      const found = await Promise.all(
        forks.flatMap((seq) =>
          newest
            .filter((branch) => branch.lastSeq > seq)
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

/** How full the next request is, for the model that will answer it. */
export function useGauge(id: string) {
  return useQuery({
    queryKey: ["gauge", id],
    enabled: id !== "",
    queryFn: async (): Promise<Gauge> => gaugeFrom(await call("get", "/conversations/{conversation_id}/context", { at: { conversation_id: id }, query: { as: "turn", ...modelOf(id), ...watchedWindow(id) } })),
  });
}

function modelOf(id: string): { model?: string } {
  const { model } = readChoices(id);
  return model === undefined ? {} : { model };
}

export interface TurnLine {
  readonly id: string;
  readonly number: number;
  readonly answerId: string;
  readonly questionSeq: number | null;
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
      return page.items.map((turn) => ({ id: turn.id, number: turn.number, answerId: turn.answer_id, questionSeq: turn.question_seq, state: turn.state, receivedAt: turn.received_at, sent: turn.usage["input_tokens"] ?? null }));
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

export function useSeen(id: string, turn: string | null, isWanted = true) {
  return useQuery({
    queryKey: ["seen", id, turn],
    enabled: isWanted && id !== "",
    queryFn: async (): Promise<readonly Seen[]> => {
      if (turn === null) return [seenFrom(await call("get", "/conversations/{conversation_id}/context", { at: { conversation_id: id }, query: { as: "turn", messages: true, ...modelOf(id) } }))];
      const { requests } = await call("get", "/conversations/{conversation_id}/turns/{turn_id}/context", { at: { conversation_id: id, turn_id: turn } });
      return requests.map(seenFrom);
    },
  });
}

/** What was recalled for the newest question. */
export interface Recalled {
  readonly seqs: ReadonlySet<number>;
  /** The answer that it was recalled for. */
  readonly answerId: string | null;
  readonly questionSeq: number | null;
  /** As the model was shown it. */
  readonly pieces: readonly { readonly seq: number; readonly speaker: string | null; readonly text: string }[];
}

const NOTHING_RECALLED: Recalled = { seqs: new Set(), answerId: null, questionSeq: null, pieces: [] };
/** What was recalled is of less interest than the messages themselves: it is asked for when those have come. */
const LATER_MILLISECONDS = 1200;

/** The newest turn that was answered and whose question is on the branch in sight. */
function useNewestComplete(id: string, isWanted: boolean): TurnLine | undefined {
  const complete = useTurns(id).data?.filter((turn) => turn.state === "complete");
  const newest = complete?.[0]?.id ?? null;
  return useQuery({
    queryKey: ["newest-complete", id, newest],
    enabled: isWanted && newest !== null,
    queryFn: async (): Promise<TurnLine | null> => {
      let left = complete ?? [];
      while (left[0] !== undefined) {
        const asked = left[0].questionSeq ?? 0;
        const reached = (await messagesOf(id, { before: asked + 1, limit: 1, include_deleted: true })).items.at(-1)?.seq ?? 0;
        if (reached === asked) return left[0];
        left = left.filter((turn) => (turn.questionSeq ?? 0) <= Math.min(reached, asked - 1)); // all others are further on
      }
      return null;
    },
  }).data ?? undefined;
}

export function useRecalled(id: string): Recalled {
  const [isWanted, setWanted] = useState(false);
  useEffect(() => {
    setWanted(false);
    const timer = setTimeout(() => setWanted(true), LATER_MILLISECONDS);
    return () => clearTimeout(timer);
  }, [id]);
  const newest = useNewestComplete(id, isWanted);
  const seen = useSeen(id, newest?.id ?? null, isWanted && newest !== undefined);
  return useMemo(() => {
    const requests = newest === undefined ? [] : (seen.data ?? []);
    const seqs = new Set(requests.flatMap((request) => request.parts.filter((part) => part.kind === "recalled").flatMap((part) => part.seqs)));
    if (newest === undefined || seqs.size === 0) return NOTHING_RECALLED;
    const quoted = (requests.at(-1)?.messages ?? []).flatMap((message) => quotationsIn(blockOf(message).text)).filter((one) => one.kind === "recalled");
    const pieces = quoted.flatMap(({ firstSeq, speaker, text }) => (firstSeq === null || text.trim() === "" ? [] : [{ seq: firstSeq, speaker, text }]));
    return { seqs, answerId: newest.answerId, questionSeq: newest.questionSeq, pieces };
  }, [newest, seen.data]);
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
      const at = { conversation_id: id };
      const [page, summary] = await Promise.all([
        call("get", "/conversations/{conversation_id}/compactions", { at, query: { limit: 200 } }),
        call("get", "/conversations/{conversation_id}/summary", { at }),
      ]);
      return compactionsFrom(page.items, summary.compactions);
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

/** What a compaction would summarize now; null where that is nothing. Nothing is written. */
export function useCompactionPlan(id: string) {
  return useMutation({
    mutationFn: async () => {
      const outcome = await call("post", "/conversations/{conversation_id}/compact", { at: { conversation_id: id }, body: { dry_run: true } });
      const figures = (name: string) => outcome.planned.map((span) => Number(span[name] ?? 0));
      if (outcome.planned.length === 0) return null;
      const messages = figures("messages").reduce((sum, one) => sum + one, 0);
      return { messages, first: Math.min(...figures("first_seq")), last: Math.max(...figures("last_seq")), before: outcome.tokens_before, after: outcome.tokens_after };
    },
  });
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
  readonly title: string | null;
  readonly seq: number;
  readonly role: string;
  readonly name: string | null;
  readonly saidAt: string;
  readonly snippet: string;
}

export interface Search {
  readonly hits: readonly Found[];
  /** Why meaning was not used though asked for. */
  readonly whyWordsAlone: string | null;
}

/** In everything said, or in one conversation. */
export function useSearch(text: string, isByMeaning: boolean, conversation: string | null) {
  return useQuery({
    queryKey: ["search", text, isByMeaning, conversation],
    enabled: text !== "",
    placeholderData: keepPreviousData,
    queryFn: async (): Promise<Search> => {
      const where = conversation === null ? {} : { conversation_id: conversation };
      const page = await call("get", "/search", { query: { q: text, meaning: isByMeaning, limit: 30, ...where } });
      const hits = page.items.map((hit) => ({
        conversationId: hit.conversation_id, title: hit.conversation_title, seq: hit.seq, role: hit.role, name: hit.name, saidAt: hit.said_at, snippet: hit.snippet,
      }));
      return { hits, whyWordsAlone: page.by_meaning ? null : page.why_words_alone };
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

/** Hand files in; into a conversation of their own when there is none yet. Gives the conversation, and where they stand in it. */
export function useUpload() {
  return useChange(async ({ id, files, title }: { id: string | null; files: readonly File[]; title?: string }) => {
    const into = id ?? (await call("post", "/conversations", { body: title === undefined ? {} : { title } })).id;
    return { into, attached: await uploaded(into, files) };
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

async function uploaded(id: string, files: readonly File[]): Promise<readonly Attached[]> {
  const done: Attached[] = [];
  for (const file of files) {
    const form = new FormData();
    form.append("file", file);
    const made = await call("post", "/conversations/{conversation_id}/files", { at: { conversation_id: id }, body: form });
    done.push({ path: made.path, mime: made.mime, bytes: made.size_bytes });
  }
  return done;
}

/** A tool or a skill, with what it is for; or a kind of subagent. */
export interface Mention {
  readonly name: string;
  readonly about: string | null;
}

/** What can be mentioned with @. */
export function useNames() {
  return useQuery({
    queryKey: ["names"],
    staleTime: 60_000,
    queryFn: async (): Promise<readonly Mention[]> => {
      const known = await call("get", "/chat/tools");
      return [...[...known.items, ...known.skills].map((one) => ({ name: one.name, about: one.description })), ...known.agent_types.map((name) => ({ name, about: null }))];
    },
  });
}

/** A change of anything: when it is done, what is shown is asked for again. */
export function useChange<In, Out>(change: (given: In) => Promise<Out>, onDone?: (given: In) => Promise<void>) {
  const cache = useQueryClient();
  return useMutation({ mutationFn: change, ...(onDone === undefined ? {} : { onSuccess: (_: Out, given: In) => onDone(given) }), onSettled: () => renew(cache) });
}

/** Ask again for all that is shown. What is on its way may have been read before the change: it is not waited for. */
export async function renew(cache: QueryClient): Promise<void> {
  await cache.cancelQueries();
  await cache.invalidateQueries();
}

// --- what the service can do besides: verify, erase, knowledge, jobs ---

export function useVerify() {
  return useMutation({ mutationFn: (conversation: string | null) => call("post", "/verify", { query: conversation === null ? {} : { conversation_id: conversation } }) });
}

export type EraseProof = Shape<"EraseOut">;

/** What is shown of it is left before the rest is asked for again: of what is erased there is nothing to ask for. */
export function useErase(onErased?: () => void) {
  const leave = async () => {
    onErased?.();
    await new Promise((drawn) => setTimeout(drawn));
  };
  return useChange(async (what: { conversation: string } | { conversation: string; message: string } | { memory: string }): Promise<EraseProof> => {
    if ("memory" in what) return call("post", "/memories/{memory_id}/erase", { at: { memory_id: what.memory }, body: { confirm: what.memory } });
    if ("message" in what) return call("post", "/conversations/{conversation_id}/messages/{message_id}/erase", { at: { conversation_id: what.conversation, message_id: what.message }, body: { confirm: what.message } });
    return call("post", "/conversations/{conversation_id}/erase", { at: { conversation_id: what.conversation }, body: { confirm: what.conversation } });
  }, leave);
}

/** All memories of the person, or those that a search finds. */
export function useAllMemories(text: string) {
  return useQuery({
    queryKey: ["memories", "all", text],
    placeholderData: keepPreviousData,
    queryFn: async () =>
      text === ""
        ? (await call("get", "/memories", { query: { limit: 200 } })).items
        : (await call("get", "/memories/search", { query: { q: text, limit: 50 } })).items.map((hit) => hit["memory"] as Shape<"MemoryOut">),
  });
}

export function useMemoryHistory(id: string | null) {
  return useQuery({
    queryKey: ["memory-history", id],
    enabled: id !== null,
    queryFn: async () => (await call("get", "/memories/{memory_id}/history", { at: { memory_id: id ?? "" } })).items,
  });
}

export function useAddMemory() {
  return useChange((text: string) => call("post", "/memories", { body: { text } }));
}

export function useChangeMemory() {
  return useChange(({ id, ...changes }: { id: string; text?: string; pinned?: boolean }) => call("patch", "/memories/{memory_id}", { at: { memory_id: id }, body: changes }));
}

export function useCollections() {
  return useQuery({ queryKey: ["knowledge"], queryFn: async () => (await call("get", "/knowledge")).items });
}

export function useDocuments(collection: string | null) {
  return useQuery({
    queryKey: ["knowledge", collection],
    enabled: collection !== null,
    queryFn: async () => (await call("get", "/knowledge/{collection}/documents", { at: { collection: collection ?? "" }, query: { limit: 200 } })).items,
  });
}

export function usePassages(collection: string | null, text: string) {
  return useQuery({
    queryKey: ["knowledge", collection, "search", text],
    enabled: collection !== null && text !== "",
    queryFn: async () => (await call("get", "/knowledge/{collection}/search", { at: { collection: collection ?? "" }, query: { q: text } })).items,
  });
}

export function useAddDocuments() {
  return useChange(async ({ collection, files }: { collection: string; files: readonly File[] }) => {
    for (const file of files) {
      const form = new FormData();
      form.append("file", file);
      form.append("collection", collection);
      await call("post", "/knowledge/files", { body: form });
    }
  });
}

export function useRemoveDocument() {
  return useChange(async ({ collection, document }: { collection: string; document: string | null }) => {
    if (document === null) await call("delete", "/knowledge/{collection}", { at: { collection } });
    else await call("delete", "/knowledge/{collection}/documents/{document_id}", { at: { collection, document_id: document } });
  });
}

/** How much is stored, and what waits to be done: the latter for an admin. */
/** The sessions of coding agents, asked for again while one looks at them: their agents go on writing. */
export function useAgentSessions() {
  return useInfiniteQuery({
    queryKey: ["agent-sessions"],
    initialPageParam: null as string | null,
    refetchInterval: 5_000,
    queryFn: async ({ pageParam }) => {
      const page = await call("get", "/agents/sessions", { query: { limit: 1000, ...(pageParam === null ? {} : { cursor: pageParam }) } });
      const items = page.items.map((one): AgentSession => ({ conversation: listed(one.conversation), agent: one.agent, path: one.path, isOnDisk: one.is_on_disk, changedAt: one.changed_at }));
      return { items, next: page.next_cursor, following: page.following };
    },
    getNextPageParam: (page) => page.next,
  });
}

export function useSessionTotals(id: string) {
  return useQuery({ queryKey: ["agent-sessions", id], queryFn: () => call("get", "/agents/sessions/{conversation_id}", { at: { conversation_id: id } }) });
}

export function useStats() {
  return useQuery({ queryKey: ["stats"], queryFn: () => call("get", "/stats") });
}

export function useJobs(isAdmin: boolean) {
  return useQuery({ queryKey: ["jobs"], enabled: isAdmin, refetchInterval: 5_000, queryFn: () => call("get", "/jobs", { query: { limit: 50 } }) });
}

export function useRetryJobs() {
  return useChange(async (job: number | null) => {
    if (job === null) await call("post", "/jobs/retry");
    else await call("post", "/jobs/{job_id}/retry", { at: { job_id: job } });
  });
}

export function useDiscardJob() {
  return useChange(async (job: number) => {
    await open("delete", "/jobs/{job_id}", { at: { job_id: job } });
  });
}
