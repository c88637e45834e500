import { describe, expect, it } from "vitest";

import { completed, parseCommand, wordAt } from "../src/lib/commands";
import { bytes, firstLine } from "../src/lib/format";
import type { Compaction, Message } from "../src/lib/model";
import { answeredCall, attachmentsOf, callsOf, imagesOf, shown, thinkingOf } from "../src/lib/payload";
import { outermost, rowsOf, versionsOf } from "../src/lib/rows";
import { EventCutter } from "../src/lib/sse";

const message = (seq: number, more: Partial<Message> = {}): Message => ({
  id: `m${seq}`, seq, role: "user", name: null, text: `text ${seq}`, thinking: "", calls: [], answers: null, images: [], attachments: [],
  tokens: 3, saidAt: "2026-01-01T00:00:00Z", parentSeq: seq - 1 || null, revision: 1, isDeleted: false, isPinned: false, isRemoved: false, isQuarantined: false, origin: "user", isComplete: true, ...more,
});
const compaction = (id: string, firstSeq: number, lastSeq: number, more: Partial<Compaction> = {}): Compaction => ({
  id, number: 1, level: 1, firstSeq, lastSeq, summary: "s", trigger: "auto", strategy: "extract", madeBy: null, originalCount: 2,
  tokensBefore: 10, tokensAfter: 5, factsTotal: 1, factsKept: 1, seconds: 1, createdAt: "", isLive: true, endedAt: null, ...more,
});

describe("the rows of the history", () => {
  it("has a band for what an agent summed up for itself, though no view of ours uses it", () => {
    const own = compaction("own", 1, 2, { madeBy: "claude-code", isLive: false });
    expect(rowsOf([1, 2, 3].map((seq) => message(seq)), [own]).map((row) => row.key)).toEqual(["m1", "m2", "band-own", "m3"]);
  });
  it("puts a band after the last message of its stretch", () => {
    const rows = rowsOf([1, 2, 3, 4].map((seq) => message(seq)), [compaction("a", 1, 2)]);
    expect(rows.map((row) => row.key)).toEqual(["m1", "m2", "band-a", "m3", "m4"]);
  });
  it("shows a tool's answer under the message that called", () => {
    const calling = message(1, { role: "assistant", calls: [{ id: "c", name: "look", arguments: "{}" }] });
    const rows = rowsOf([calling, message(2, { role: "tool", answers: "c" }), message(3)], []);
    expect(rows.map((row) => row.key)).toEqual(["m1", "m3"]);
    expect(rows[0]).toMatchObject({ results: [{ id: "m2" }] });
  });
  it("goes on with what the same one said right above", () => {
    const said = (seq: number) => message(seq, { role: "assistant" });
    const rows = rowsOf([message(1), said(2), said(3), message(4, { role: "assistant", name: "planner" }), said(5)], [compaction("a", 1, 2)]);
    expect(rows.flatMap((row) => (row.kind === "message" && row.isContinued ? [row.message.seq] : []))).toEqual([]);
    const unbroken = rowsOf([message(1), said(2), said(3), said(4)], []);
    expect(unbroken.flatMap((row) => (row.kind === "message" && row.isContinued ? [row.message.seq] : []))).toEqual([3, 4]);
  });
  it("shows a tool's answer by itself when its call is not loaded", () => {
    expect(rowsOf([message(2, { role: "tool", answers: "gone" })], [])).toHaveLength(1);
  });
  it("shows the summary that stands for others, and no undone one", () => {
    const known = [compaction("a", 1, 4), compaction("b", 5, 8), compaction("top", 1, 8, { level: 2 }), compaction("old", 9, 12, { isLive: false })];
    expect(outermost(known).map((one) => one.id)).toEqual(["top"]);
  });
  it("knows the versions of a message", () => {
    const all = [message(2, { parentSeq: 1 }), message(5, { parentSeq: 1 }), message(3, { parentSeq: 2 })];
    const versions = all.map((one) => ({ message: one, branch: `b${one.seq}` }));
    expect(versionsOf(all[0]!, versions).map((one) => one.branch)).toEqual(["b2", "b5"]);
  });
});

describe("payloads of any shape", () => {
  it.each([
    [{ role: "assistant", content: "", tool_calls: [{ id: "1", function: { name: "f", arguments: '{"a":1}' } }] }],
    [{ role: "assistant", content: [{ type: "tool_use", id: "1", name: "f", input: { a: 1 } }] }],
    [{ type: "ai", data: { content: "", tool_calls: [{ id: "1", name: "f", args: { a: 1 } }] } }],
  ])("finds the call in %j", (payload) => {
    expect(callsOf(payload)).toEqual([{ id: "1", name: "f", arguments: '{\n  "a": 1\n}' }]);
  });
  it("finds thinking in blocks and beside them", () => {
    expect(thinkingOf({ content: [{ type: "thinking", thinking: "hm" }, { type: "text", text: "x" }] })).toBe("hm");
    expect(thinkingOf({ content: "x", additional_kwargs: { reasoning_content: "well" } })).toBe("well");
  });
  it("takes pictures of the message itself and none from elsewhere", () => {
    const blocks = ["data:image/png;base64,AA==", "https://example.org/x.png", "data:image/svg+xml;base64,AA=="];
    expect(imagesOf({ content: blocks.map((url) => ({ type: "image_url", image_url: { url } })) })).toEqual([blocks[0]]);
  });
  it.each([[null], [3], ["x"], [{}], [{ content: [null, 3, "x"] }], [{ tool_calls: [null], content: null }]])("stands %j", (payload) => {
    expect([callsOf(payload), thinkingOf(payload), imagesOf(payload), attachmentsOf(payload), answeredCall(payload)]).toEqual([[], "", [], [], null]);
  });
  it("shows arguments that are no JSON as they are", () => {
    expect(shown("{broken")).toBe("{broken");
  });
});

describe("events of a stream", () => {
  it.each([1, 2, 3, 7, 1000])("are the same in pieces of %i", (size) => {
    const text = 'id: 1\r\nevent: token\r\ndata: {"a":1}\r\n\r\n: comment\r\n\r\ndata: two\ndata: lines\n\n';
    const cutter = new EventCutter();
    const found = [];
    for (let at = 0; at < text.length; at += size) found.push(...cutter.push(text.slice(at, at + size)));
    expect(found).toEqual([
      { id: "1", event: "token", data: '{"a":1}' },
      { id: null, event: "message", data: "two\nlines" },
    ]);
  });
});

describe("what is typed", () => {
  it("is a command only when it names one", () => {
    expect(parseCommand("/compact")).toEqual({ command: "compact", rest: "" });
    expect(parseCommand("/search 两 words")).toEqual({ command: "search", rest: "两 words" });
    expect(parseCommand("/etc/passwd is a file")).toBeNull();
    expect(parseCommand("what about /compact")).toBeNull();
  });
  it("is completed at the cursor", () => {
    expect(wordAt("ask @pl", 7, "@/")).toBe("@pl");
    expect(wordAt("mail me@x", 9, "@/")).toBeNull();
    expect(completed("ask @pl now", 7, "@plot")).toEqual({ text: "ask @plot  now", cursor: 10 });
  });
});

describe("figures", () => {
  it("are short and never cut a character in two", () => {
    expect(firstLine("😀".repeat(90)).endsWith("😀…")).toBe(true);
    expect(firstLine("one\ntwo")).toBe("one");
    expect(bytes(0, "en")).toBe("0 B");
    expect(bytes(669, "zh")).toBe("669 B");
    expect(bytes(1_500_000, "en")).toBe("1.5 MB");
  });
});
