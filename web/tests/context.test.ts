import { describe, expect, it } from "vitest";

import { emphasised } from "../src/components/compaction/marked";
import { beside } from "../src/lib/costs";
import { briefly, withoutCutJson, withoutJson } from "../src/lib/format";
import type { Compaction } from "../src/lib/model";
import { blockOf } from "../src/lib/payload";
import { choicesFrom } from "../src/state/choices";

const compaction = (createdAt: string, endedAt: string | null = null): Compaction => ({
  id: createdAt, number: 1, level: 1, firstSeq: 1, lastSeq: 9, summary: "", trigger: "manual", strategy: "auto", madeBy: null, originalCount: 9, tokensBefore: 900,
  tokensAfter: 100, factsTotal: 0, factsKept: 0, seconds: 0, createdAt, isLive: endedAt === null, endedAt,
});

describe("what the full history would have cost", () => {
  it("is what was sent before anything was summed up, and more by each saving after", () => {
    const turns = [{ at: "2026-01-01T00:00:00Z", sent: 500 }, { at: "2026-01-03T00:00:00Z", sent: 300 }];
    expect(beside(turns, [compaction("2026-01-02T00:00:00Z")])).toEqual({ sent: [500, 300], whole: [500, 1100] });
  });
  it("forgets a saving once it was undone", () => {
    const turns = [{ at: "2026-01-03T00:00:00Z", sent: 300 }, { at: "2026-01-05T00:00:00Z", sent: 900 }];
    expect(beside(turns, [compaction("2026-01-02T00:00:00Z", "2026-01-04T00:00:00Z")]).whole).toEqual([1100, 900]);
  });
});

describe("choices kept in the browser", () => {
  it("are only what is known, whatever stands there", () => {
    expect(choicesFrom('{"model":" openai:x ","recall":false,"memory":"no","model_pref":"code","evil":1}')).toEqual({ model: "openai:x", model_pref: "code", recall: false });
    expect(choicesFrom("not json")).toEqual({});
    expect(choicesFrom('{"model":"","model_pref":"default"}')).toEqual({});
    expect(choicesFrom(null)).toEqual({});
  });
});

describe("a line that unfolds", () => {
  it("tells arguments in a few words", () => {
    expect(briefly('{"town":"Guiyang","days":2,"with":["a"]}')).toBe('Guiyang · 2 · ["a"]');
    expect(briefly("not json")).toBe("not json");
    expect(briefly('{"ok":true,"result":"By the park","loops":2}')).toBe("By the park · 2");
    expect(briefly('{"ok":true}')).toBe('{"ok":true}');
    expect(withoutJson('forecast {"town": "成都", "month": "十月"}\nguide {"town": "Guiyang"}')).toBe("forecast 成都 · 十月\nguide Guiyang");
    expect(withoutJson("set {1, 2} or {not json}")).toBe("set {1, 2} or {not json}");
  });
  it("is as plain where it was cut for the search, and stars mark what was found", () => {
    expect(withoutCutJson('guide {"town": "**Kunming**"}')).toBe("guide **Kunming**");
    expect(withoutCutJson('find_train {"origin": "**Kunming**", "kind": "slow"} find_train {"origin":…')).toBe("find_train **Kunming** · slow find_train …");
    expect(withoutCutJson('he said "so" {and} [went], "to": sea')).toBe('he said "so" {and} [went], "to": sea');
  });
});

describe("a snippet", () => {
  it("marks what was looked for, and leaves stars of its own", () => {
    expect(emphasised("a **plum** fell")).toEqual([{ text: "a ", isMarked: false }, { text: "plum", isMarked: true }, { text: " fell", isMarked: false }]);
    expect(emphasised("2 ** 3")).toEqual([{ text: "2 ** 3", isMarked: false }]);
  });
});

describe("a block of a request", () => {
  it("shows its words as they are and the rest as JSON", () => {
    expect(blockOf({ role: "user", content: "a\nb" })).toEqual({ role: "user", name: null, text: "a\nb", calls: [], rest: "" });
    expect(blockOf({ role: "assistant", content: null, tool_calls: [1] })).toMatchObject({ text: "", rest: '{\n  "tool_calls": [\n    1\n  ]\n}' });
    const call = { id: "c1", type: "function", function: { name: "guide", arguments: "{}" } };
    expect(blockOf({ role: "assistant", content: null, tool_calls: [call] })).toEqual({ role: "assistant", name: null, text: "", calls: [{ id: "c1", name: "guide", arguments: "{}" }], rest: "" });
    expect(blockOf(7)).toEqual({ role: "", name: null, text: "", calls: [], rest: "7" });
  });
});
