// Every method of LangGraph's client for JavaScript, one step after the other, against the address it is given; prints
// what each came to as one JSON object. What a version of the client does not have is left out.
import { randomUUID } from "node:crypto";
import { Client } from "@langchain/langgraph-sdk";

const client = new Client({ apiUrl: process.argv[2] });
const says = (text) => ({ messages: [{ role: "user", content: text }] });
const seen = {};

async function step(title, act) {
  try {
    seen[title] = (await act()) ?? null;
    return seen[title];
  } catch (error) {
    seen[title] = { raised: error.name, status: error.status ?? null };
    return {};
  }
}

async function all(stream, limit = Infinity) {
  const parts = [];
  for await (const part of stream) {
    parts.push({ [part.event]: part.data ?? null });
    if (parts.length >= limit) break;
  }
  return parts;
}

// -- assistants
const { assistants, threads, runs, crons, store } = client;
const mark = { of: `steps-${randomUUID()}` };
const id = randomUUID();
const named = { assistantId: id, name: "mine", metadata: mark, context: { k: 1 }, description: "what it is" };
await step("assistants.create", () => assistants.create({ graphId: "agent", ...named }));
await step("assistants.create, again", () => assistants.create({ graphId: "agent", ...named, ifExists: "do_nothing" }));
await step("assistants.get", () => assistants.get(id));
await step("assistants.get, by graph", () => assistants.get("agent"));
await step("assistants.getGraph", () => assistants.getGraph(id, { xray: true }));
await step("assistants.getSchemas", () => assistants.getSchemas(id));
await step("assistants.getSubgraphs", () => assistants.getSubgraphs(id, { recurse: true }));
await step("assistants.search", () => assistants.search({ graphId: "agent", metadata: mark, limit: 5, sortBy: "name" }));
await step("assistants.count", () => assistants.count({ metadata: mark }));
await step("assistants.update", () => assistants.update(id, { name: "ours", metadata: { more: 1 } }));
await step("assistants.getVersions", () => assistants.getVersions(id));
await step("assistants.setLatest", () => assistants.setLatest(id, 1));

// -- threads
const made = await step("threads.create", () => threads.create({ metadata: mark, graphId: "agent" }));
const thread = made.thread_id;
const past = [{ updates: [{ values: says("hi"), asNode: "__start__" }] }];
await step("threads.create, with a past", () => threads.create({ metadata: mark, graphId: "agent", supersteps: past }));
await step("threads.create, again", () => threads.create({ threadId: thread, ifExists: "do_nothing" }));
await step("threads.get", () => threads.get(thread));
await step("threads.update", () => threads.update(thread, { metadata: { more: 1 } }));
const modes = ["values", "messages-tuple", "updates", "custom", "tasks", "checkpoints"];
await step("runs.stream", async () => all(runs.stream(thread, "agent", { input: says("hi"), streamMode: modes })));
await step("runs.stream, messages", async () =>
  all(runs.stream(thread, "agent", { input: says("hi"), streamMode: "messages" })),
);
await step("runs.stream, events", async () =>
  all(runs.stream(thread, "agent", { input: says("hi"), streamMode: "events" })),
);
await step("runs.stream, debug", async () => all(runs.stream(thread, "agent", { input: says("hi"), streamMode: "debug" })));
await step("runs.stream, subgraphs", async () => {
  const { thread_id } = await threads.create();
  return all(runs.stream(thread_id, "nested", { input: says("hi"), streamMode: modes, streamSubgraphs: true }));
});
await step("runs.stream, a failure", async () => all(runs.stream(thread, "agent", { input: says("fail") })));
await step("runs.wait, a failure", () => runs.wait(thread, "agent", { input: says("fail"), raiseError: false }));
await step("runs.wait", () => runs.wait(thread, "agent", { input: says("please stop") }));
await step("threads.get, interrupted", () => threads.get(thread));
const asked = await step("threads.getState", () => threads.getState(thread));
await step("threads.getState, subgraphs", () => threads.getState(thread, undefined, { subgraphs: true }));
await step("threads.getState, at a checkpoint", () => threads.getState(thread, asked.checkpoint));
await step("threads.getState, at an id", () => threads.getState(thread, asked.checkpoint.checkpoint_id));
await step("runs.wait, resumed", () => runs.wait(thread, "agent", { command: { resume: "yes" } }));
await step("threads.getHistory", () => threads.getHistory(thread, { limit: 50 }));
await step("threads.getHistory, before", () =>
  threads.getHistory(thread, { limit: 2, before: { configurable: { checkpoint_id: asked.checkpoint.checkpoint_id } } }),
);
await step("threads.getHistory, metadata", () => threads.getHistory(thread, { metadata: { source: "input" } }));
await step("threads.updateState", () => threads.updateState(thread, { values: { step: 7 }, asNode: "ask" }));
await step("threads.updateState, at a checkpoint", () =>
  threads.updateState(thread, { values: { step: 8 }, asNode: "ask", checkpoint: asked.checkpoint }),
);
await step("threads.updateState, as nobody", () => threads.updateState(thread, { values: { step: 8 }, asNode: "nobody" }));
await step("threads.patchState", () => threads.patchState(thread, { patched: true }));
await step("threads.search", () => threads.search({ metadata: mark, limit: 5, sortBy: "created_at", sortOrder: "asc" }));
await step("threads.search, by values", () => threads.search({ ids: [thread], values: { step: 8 } }));
await step("threads.search, a part", () => threads.search({ ids: [thread], select: ["thread_id", "status"] }));
await step("threads.search, by status", () => threads.search({ metadata: mark, status: "idle" }));
await step("threads.count", () => threads.count({ metadata: mark }));
await step("threads.copy", () => threads.copy(thread));

// -- runs
const pace = { context: { ticks: 10, seconds: 0.05 } };
const long = { context: { ticks: 1000, seconds: 0.05 } };
const run = await step("runs.create", () => runs.create(thread, "slow", { input: says("go"), ...pace, streamMode: "custom" }));
await step("runs.joinStream", async () => all(runs.joinStream(thread, run.run_id, { lastEventId: "-1" })));
await step("runs.join", () => runs.join(thread, run.run_id));
await step("runs.get", () => runs.get(thread, run.run_id));
await step("runs.list", () => runs.list(thread, { limit: 3, status: "success" }));
const cut = await step("runs.create, to be cancelled", () => runs.create(thread, "slow", { input: says("go"), ...long }));
await step("runs.create, rejected", () =>
  runs.create(thread, "slow", { input: says("go"), multitaskStrategy: "reject" }),
);
await step("runs.cancel", () => runs.cancel(thread, cut.run_id, true));
await step("runs.get, cancelled", () => runs.get(thread, cut.run_id));
const other = await step("runs.create, to be interrupted", () => runs.create(thread, "slow", { input: says("go"), ...long }));
await step("runs.wait, interrupting", () =>
  runs.wait(thread, "agent", { input: says("hi"), multitaskStrategy: "interrupt" }),
);
await step("runs.get, interrupted", () => runs.get(thread, other.run_id));
const back = await step("runs.create, to be rolled back", () => runs.create(thread, "slow", { input: says("go"), ...long }));
await step("runs.wait, rolling back", () => runs.wait(thread, "agent", { input: says("hi"), multitaskStrategy: "rollback" }));
await step("runs.get, rolled back", () => runs.get(thread, back.run_id));
await step("runs.wait, from a checkpoint", () =>
  runs.wait(thread, "agent", { input: says("hi"), checkpointId: asked.checkpoint.checkpoint_id }),
);
await step("runs.wait, with breakpoints", () => runs.wait(thread, "agent", { input: says("hi"), interruptBefore: ["ask"] }));
await step("runs.delete", () => runs.delete(thread, run.run_id));
await step("runs.stream, without a thread", async () => all(runs.stream(null, "agent", { input: says("hi") })));
await step("runs.wait, without a thread", () => runs.wait(null, "agent", { input: says("hi") }));
await step("runs.createBatch", () => runs.createBatch([{ assistantId: "slow", input: says("go"), ...long }]));
await step("runs.cancelMany", () => runs.cancelMany({ status: "all" }));
await step("threads.joinStream", async () => {
  const { thread_id } = await threads.create();
  await runs.create(thread_id, "slow", { input: says("go"), ...pace });
  return all(threads.joinStream(thread_id, { lastEventId: "-1" }), 2);
});

// -- the second version of streaming
async function spoken(assistantId, text, answer) {
  const session = threads.stream({ assistantId });
  try {
    await session.submitRun({ input: says(text) });
    const first = await session.output;
    const interrupts = session.interrupts.map((one) => one.payload ?? one.value);
    if (!answer) return { output: first, interrupts };
    const { interruptId, namespace } = session.interrupts[0];
    await session.respondInput({ interrupt_id: interruptId, namespace, response: answer });
    return { interrupts, output: await session.output };
  } finally {
    await session.close();
  }
}
await step("threads.stream", () => spoken("agent", "hi"));
await step("threads.stream, a subgraph", () => spoken("nested", "hi"));
await step("threads.stream, asked and answered", () => spoken("agent", "please stop", "yes"));
await step("threads.stream, events", async () => {
  const session = threads.stream({ assistantId: "agent" });
  const heard = [];
  try {
    session.onEvent((event) => heard.push(event));
    const subscription = await session.subscribe(["values", "messages", "custom", "lifecycle"]);
    await session.submitRun({ input: says("hi") });
    await session.output;
    await subscription.unsubscribe();
    return heard.map((event) => ({ [event.method]: event.params }));
  } finally {
    await session.close();
  }
});

// -- crons, the store, and the end
const yearly = { schedule: "0 0 1 1 *", input: says("hi"), metadata: mark };
const cron = await step("crons.create", () => crons.create("agent", yearly));
await step("crons.createForThread", () => crons.createForThread(thread, "agent", yearly));
await step("crons.search", () => crons.search({ assistantId: cron.assistant_id, limit: 3 }));
await step("crons.count", () => crons.count({ assistantId: cron.assistant_id }));
await step("crons.update", () => crons.update(cron.cron_id, { schedule: "0 0 2 1 *", enabled: false }));
await step("crons.delete", () => crons.delete(cron.cron_id));
const space = ["steps", randomUUID().replaceAll("-", "")];
await step("store.putItem", () => store.putItem(space, "k", { v: 1, text: "a red apple" }, { index: ["text"], ttl: 60 }));
await step("store.getItem", () => store.getItem(space, "k", { refreshTtl: true }));
await step("store.searchItems", () => store.searchItems(space, { filter: { v: 1 }, limit: 3, query: "apple" }));
await step("store.listNamespaces", () => store.listNamespaces({ prefix: space, maxDepth: 2 }));
await step("store.deleteItem", () => store.deleteItem(space, "k"));
await step("threads.prune", () => threads.prune([thread], { strategy: "keep_latest" }));
await step("threads.delete", () => threads.delete(thread));
await step("threads.get, deleted", () => threads.get(thread));
await step("assistants.delete", () => assistants.delete(id));

process.stdout.write(JSON.stringify(seen), () => process.exit(0)); // whatever a stream still holds open
