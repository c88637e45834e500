import { describe, expect, it } from "vitest";

import { NO_ANSWER, hasSaid, isOf, isOver, restOf, step, type TurnEvent } from "../src/state/answer";
import { press } from "../src/state/keys";
import { HOME, hashOf, placeFrom } from "../src/state/place";

const told: TurnEvent[] = [
  { number: 1, kind: "accepted", turn_id: "t", conversation_id: "c", question_id: "q" },
  { number: 2, kind: "thinking", text: "hm", message_id: "a" },
  { number: 3, kind: "tool_call", id: "1", name: "look", arguments: { a: 1 } },
  { number: 4, kind: "tool_result", id: "1", ok: true, text: "seen" },
  { number: 5, kind: "token", text: "an", message_id: "a" },
  { number: 6, kind: "token", text: "swer", message_id: "a" },
  { number: 7, kind: "done", state: "complete", text: "answer" },
];

describe("an answer that comes in", () => {
  it("grows with its events", () => {
    const answer = told.reduce(step, NO_ANSWER);
    expect(answer).toMatchObject({ turnId: "t", state: "complete", last: 7 });
    const call = { id: "1", name: "look", arguments: '{\n  "a": 1\n}', result: "seen", ok: true };
    expect(answer.steps).toEqual([{ thinking: "hm", text: "", calls: [call] }, { thinking: "", text: "answer", calls: [] }]);
    expect(isOver(answer)).toBe(true);
  });
  it("is the same when a part is told twice", () => {
    const twice = [...told.slice(0, 5), ...told.slice(2)];
    expect(twice.reduce(step, NO_ANSWER)).toEqual(told.reduce(step, NO_ANSWER));
  });
  it("keeps what there was of it when it fails", () => {
    const failed: TurnEvent = { number: 7, kind: "failed", code: "model", message: "no", retryable: true, text: "" };
    const answer = [...told.slice(0, 6), failed].reduce(step, NO_ANSWER);
    expect(answer).toMatchObject({ state: "failed", error: { retryable: true } });
    expect(answer.steps.at(-1)?.text).toBe("answer");
  });
  it("keeps what was said and thought before tools were called", () => {
    const events: TurnEvent[] = [
      { number: 1, kind: "token", text: "Let me look.", message_id: "a" },
      { number: 2, kind: "tool_call", id: "1", name: "look", arguments: {} },
      { number: 3, kind: "tool_call", id: "2", name: "look", arguments: {} },
      { number: 4, kind: "tool_result", id: "2", ok: false, text: "no" },
      { number: 5, kind: "thinking", text: "so", message_id: "b" },
      { number: 6, kind: "token", text: "It is", message_id: "b" },
      { number: 7, kind: "done", state: "complete", text: "It is there." },
    ];
    const { steps } = events.reduce(step, NO_ANSWER);
    expect(steps.map(({ thinking, text, calls }) => [thinking, text, calls.map((call) => call.result)])).toEqual([
      ["", "Let me look.", [null, "no"]],
      ["so", "It is there.", []],
    ]);
  });
  it("is what the server has left of it when its events are gone", () => {
    const steps = step(NO_ANSWER, { number: 9, kind: "snapshot", state: "complete", text: "all of it" }).steps;
    expect(steps).toEqual([{ thinking: "", text: "all of it", calls: [] }]);
  });
  it("is known by its own message where it answers no new question", () => {
    const again: TurnEvent = { number: 1, kind: "accepted", turn_id: "t", conversation_id: "c", question_id: "" };
    const running = [again, ...told.slice(1, 6)].reduce(step, NO_ANSWER);
    expect([isOf(running, "a"), isOf(running, "")]).toEqual([false, false]);
    const complete = step(running, told[6]!);
    expect([isOf(complete, "a"), isOf(complete, "q")]).toEqual([true, false]);
    expect(isOf(told.reduce(step, NO_ANSWER), "q")).toBe(true);
  });
});

describe("what stands below the history of an answer", () => {
  const question = { id: "q", role: "user" };
  const kept = { id: "a", role: "assistant" };
  const stopped = step([...told.slice(0, 6)].reduce(step, NO_ANSWER), { number: 7, kind: "done", state: "cancelled", text: "answer" });
  it("is all of it until the history has it, and then how it ended, if too soon", () => {
    expect(restOf(stopped, [question])).toBe("all");
    expect(restOf(stopped, [question, kept])).toBe("ending");
    expect(restOf(told.reduce(step, NO_ANSWER), [question, kept])).toBeNull();
  });
  it("is nothing where the history was read and ends with another answer, and all where nothing was kept", () => {
    const read = { ...stopped, isRead: true };
    expect(restOf(read, [{ id: "b", role: "assistant" }])).toBeNull();
    expect(restOf(read, [question])).toBe("all");
    expect(restOf(read, [])).toBe("all");
  });
});

describe("the place in the address", () => {
  it.each([
    HOME,
    { conversation: "a/b ü?#", view: "model" as const, turn: "t 1", at: null },
    { conversation: "c", view: "history" as const, turn: null, at: 12 },
  ])("comes back from %j", (place) => {
    expect(placeFrom(hashOf(place))).toEqual(place);
  });
  it("is home for anything else", () => {
    for (const hash of ["", "#", "#/c/", "#/x", "#/c/%E0%A4%A"]) expect(placeFrom(hash).conversation).toBeNull();
  });
});

describe("the keyboard", () => {
  const key = (key: string, more = {}) => ({ key, isTyping: false, isWithControl: false, ...more });
  it("knows single keys and pairs", () => {
    expect(press(key("j"), "").action).toBe("next");
    expect(press(key("g"), "")).toEqual({ action: null, waiting: "g" });
    expect(press(key("m"), "g").action).toBe("model");
    expect(press(key("j"), "g").action).toBeNull();
  });
  it("is silent while a person types, but for Escape and Ctrl-K", () => {
    expect(press(key("j", { isTyping: true }), "").action).toBeNull();
    expect(press(key("Escape", { isTyping: true }), "").action).toBe("close");
    expect(press(key("K", { isTyping: true, isWithControl: true }), "").action).toBe("palette");
  });
});

describe("an answer that was stopped", () => {
  const said = { text: "", thinking: "", calls: [] };
  it("has something to keep only where something was said", () => {
    expect([[], [said], [{ ...said, text: "so" }], [{ ...said, thinking: "hm" }]].map((steps) => hasSaid({ ...NO_ANSWER, steps }))).toEqual([false, false, true, true]);
  });
});
