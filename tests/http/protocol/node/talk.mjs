// LangGraph's own client for JavaScript against the address it is given; prints one JSON object of what it saw.
import { Client } from "@langchain/langgraph-sdk";

const client = new Client({ apiUrl: process.argv[2] });
const says = (text) => ({ messages: [{ role: "user", content: text }] });

const thread = await client.threads.create({ metadata: { from: "node" } });
const told = [];
for await (const part of client.runs.stream(thread.thread_id, "agent", {
  input: says("please stop"),
  streamMode: ["values", "messages-tuple", "updates"],
})) {
  told.push(part.event);
}
const asked = await client.threads.get(thread.thread_id);
const resumed = await client.runs.wait(thread.thread_id, "agent", { command: { resume: "yes" } });
const run = await client.runs.create(thread.thread_id, "slow", { input: says("go on"), streamMode: "custom" });
const followed = [];
for await (const part of client.runs.joinStream(thread.thread_id, run.run_id, { lastEventId: "-1" })) {
  followed.push(part.event);
}
const modes = new Set();
for await (const part of client.runs.joinStream(thread.thread_id, run.run_id, {
  lastEventId: "-1",
  streamMode: ["values", "custom"],
})) {
  modes.add(part.event);
}
const whole = await client.threads.getHistory(thread.thread_id, { limit: 100 });
const paged = [];
for (let before; paged.length < 100; ) {
  const page = await client.threads.getHistory(thread.thread_id, { limit: 2, before });
  if (!page.length) break;
  paged.push(...page);
  before = { configurable: { checkpoint_id: page.at(-1).checkpoint.checkpoint_id } };
}
const ids = (states) => states.map((state) => state.checkpoint.checkpoint_id).join();
const found = await client.threads.search({ metadata: { from: "node" } });
const history = await client.threads.getHistory(thread.thread_id, { limit: 3 });
await client.store.putItem(["notes"], "one", { text: "milk" });
const item = await client.store.getItem(["notes"], "one");
const assistants = await client.assistants.search({ graphId: "agent" });

console.log(
  JSON.stringify({
    told,
    status: asked.status,
    last: resumed.messages.at(-1).content,
    followed: followed.length,
    end: followed.at(-1),
    modes: [...modes],
    isPagedToItsEnd: whole.length > 4 && ids(paged) === ids(whole),
    found: found.length,
    history: history.length,
    item: item.value,
    assistant: assistants[0].name,
  }),
);
