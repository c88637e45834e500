import { describe, expect, it } from "vitest";

import { dayOf, linesOf, type Listed } from "../src/lib/conversations";
import { barsOf, seqAt } from "../src/lib/map";
import { changesBetween, quotationsIn } from "../src/lib/quotations";
import { attachedIn, withAttached } from "../src/lib/uploads";
import { unsentFrom } from "../src/state/unsent";

const NOW = new Date(2026, 10, 18, 12);
const listed = (id: string, updatedAt: Date, more: Partial<Listed> = {}): Listed => ({
  id, title: id, parentId: null, count: 1, createdAt: updatedAt.toISOString(), updatedAt: updatedAt.toISOString(), isPinned: false, isDeleted: false, isOffRecord: false, isShared: false, metadata: {}, ...more,
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

describe("the map", () => {
  const none: ReadonlySet<number> = new Set();
  it("has no more bars than there is room, and none is lost that is rare", () => {
    const bars = barsOf({ total: 100_000, compactions: [], window: new Set([100_000]), recalled: new Set([9]), pinned: new Set([50_000]) }, 150);
    expect(bars).toHaveLength(150);
    expect([bars[0]?.kind, bars[74]?.kind, bars[149]?.kind]).toEqual(["recalled", "pinned", "window"]);
  });
  it("has one bar per message where there are few", () => {
    expect(barsOf({ total: 3, compactions: [], window: none, recalled: none, pinned: none }, 150)).toHaveLength(3);
  });
  it("leads from its ends to the first and the last message", () => {
    expect([seqAt(-1, 374), seqAt(0, 374), seqAt(1, 374), seqAt(2, 374)]).toEqual([1, 1, 374, 374]);
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
