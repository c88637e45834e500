import { describe, expect, it } from "vitest";

import { arrangedIn, dayOf, linesOf, namesIn, type Listed } from "../src/lib/conversations";
import { barsOf, seqAt } from "../src/lib/map";
import { changesBetween, quotationsIn } from "../src/lib/quotations";
import { attachedIn, withAttached } from "../src/lib/uploads";
import { unsentFrom } from "../src/state/unsent";

const NOW = new Date(2026, 10, 18, 12);
const listed = (id: string, saidAt: Date, more: Partial<Listed> = {}): Listed => ({
  id, title: id, parentId: null, messages: 1, createdAt: saidAt.toISOString(), saidAt: saidAt.toISOString(), isPinned: false, isDeleted: false, isOffRecord: false, isShared: false, folder: "", tags: [], feedback: {}, metadata: {}, ...more,
});

describe("the list of conversations", () => {
  it("is by day, pinned ones first, children under their parent", () => {
    const all = [
      listed("old", new Date(2026, 8, 1)),
      listed("now", new Date(2026, 10, 18, 9)),
      listed("child", new Date(2026, 10, 17), { parentId: "old" }),
      listed("kept", new Date(2025, 0, 1), { isPinned: true }),
      listed("orphan", new Date(2026, 10, 17, 9), { parentId: "gone" }),
    ];
    expect(linesOf(all, NOW).map((line) => line.key)).toEqual(["day-pinned", "kept", "day-today", "now", "day-yesterday", "orphan", "day-2026-09", "old", "child"]);
  });
  it("counts days by midnight, not by hours", () => {
    expect(dayOf(new Date(2026, 10, 18, 0, 1).toISOString(), NOW)).toBe("today");
    expect(dayOf(new Date(2026, 10, 17, 23, 59).toISOString(), NOW)).toBe("yesterday");
  });
});

describe("folders and tags", () => {
  const all = [
    listed("plan", new Date(2026, 10, 18, 9), { folder: "Work", tags: ["q4", "draft"] }),
    listed("kept", new Date(2026, 10, 18, 8), { folder: "Work", isPinned: true }),
    listed("trip", new Date(2026, 10, 18, 7), { folder: "家", tags: ["q4"] }),
    listed("free", new Date(2026, 10, 18, 6)),
  ];
  it("stand between the pinned ones and the days, and what is in a shut one is not drawn", () => {
    expect(linesOf(all, NOW).map((line) => line.key)).toEqual(["day-pinned", "kept", "day-folder Work", "plan", "day-folder 家", "trip", "day-today", "free"]);
    expect(linesOf(all, NOW, new Set(["Work"])).map((line) => line.key)).not.toContain("plan");
  });
  it("are named once each", () => {
    expect(namesIn(all, "tags")).toEqual(["draft", "q4"]);
    expect(namesIn(all, "folder")).toHaveLength(2);
  });
  it.each([[{}], [{ folder: 3, tags: "x", feedback: [] }], [{ tags: [null, " "], feedback: { a: null, b: { rating: "superb" } } }]])("stand %j", (metadata) => {
    expect(arrangedIn(metadata)).toEqual({ isPinned: false, folder: "", tags: [], feedback: {} });
  });
  it("are read, and feedback with them", () => {
    const feedback = { m1: { rating: "bad", reason: "too long", turn_id: "t1", given_at: "" } };
    expect(arrangedIn({ pinned: true, folder: " Work ", tags: ["q4"], feedback })).toEqual({ isPinned: true, folder: "Work", tags: ["q4"], feedback: { m1: { rating: "bad", reason: "too long" } } });
  });
});

describe("the map", () => {
  const none: ReadonlySet<number> = new Set();
  const gap = { after: 0, length: 0 };
  it("has no more bars than there is room, and none is lost that is rare", () => {
    const bars = barsOf({ total: 100_000, gap, compactions: [], window: new Set([100_000]), recalled: new Set([9]), pinned: new Set([50_000]) }, 150);
    expect(bars).toHaveLength(150);
    expect([bars[0]?.kind, bars[74]?.kind, bars[149]?.kind]).toEqual(["recalled", "pinned", "window"]);
  });
  it("has one bar per message where there are few", () => {
    expect(barsOf({ total: 3, gap, compactions: [], window: none, recalled: none, pinned: none }, 150)).toHaveLength(3);
  });
  it("leads from its ends to the first and the last message", () => {
    expect([seqAt(-1, 374, gap), seqAt(0, 374, gap), seqAt(1, 374, gap), seqAt(2, 374, gap)]).toEqual([1, 1, 374, 374]);
  });
  it("has no place for what was said on another branch", () => {
    const forked = { after: 46, length: 320 };
    const bars = barsOf({ total: 368, gap: forked, compactions: [], window: new Set([46, 367]), recalled: new Set([200]), pinned: none }, 150);
    expect(bars).toHaveLength(48);
    expect(bars.slice(-3).map((bar) => [bar.firstSeq, bar.kind])).toEqual([[46, "window"], [367, "window"], [368, "none"]]);
    expect([seqAt(0, 368, forked), seqAt(45 / 47, 368, forked), seqAt(46 / 47, 368, forked), seqAt(1, 368, forked)]).toEqual([1, 46, 367, 368]);
  });
});

describe("what a request quotes", () => {
  it("is taken apart by its tags, with the messages it stands for", () => {
    const record = 'What follows between the tags is a record.\n<record>\n<summary messages="1-113">\nFour travellers\n</summary>\n<pinned message="5" speaker="user">\ntrains only\n</pinned>\n</record>';
    expect(quotationsIn(record)).toEqual([
      { kind: "summary", firstSeq: 1, lastSeq: 113, speaker: null, text: "Four travellers" },
      { kind: "pinned", firstSeq: 5, lastSeq: 5, speaker: "user", text: "trains only" },
    ]);
  });
  it("is nothing where somebody only writes such tags", () => {
    expect(quotationsIn('<summary messages="1-2">\nme\n</summary>')).toEqual([]);
  });
  it("is told by what came in and went out", () => {
    const before = { window: new Set([1, 2, 3]), recalled: new Set<number>() };
    expect(changesBetween(before, { window: new Set([3, 4]), recalled: new Set([1]) })).toEqual({ added: 1, left: 2, recalled: [1] });
  });
});

describe("files of a message", () => {
  it("come back from its first lines", () => {
    const files = [{ path: "uploads/a, b.pdf", mime: "application/pdf", bytes: 12_345 }];
    expect(attachedIn(withAttached("read it", files))).toEqual({ text: "read it", files });
    expect(attachedIn("[uploaded: nothing")).toEqual({ text: "[uploaded: nothing", files: [] });
  });
});

describe("a question that was not confirmed", () => {
  it("is only what is whole, whatever stands there", () => {
    expect(unsentFrom('{"key":"k","message":"m"}')).toEqual({ key: "k", message: "m", conversation: null, files: [], choices: {} });
    for (const kept of [null, "", "no", "{}", '{"key":1,"message":"m"}', '{"key":"k","message":""}']) expect(unsentFrom(kept)).toBeNull();
  });
});
