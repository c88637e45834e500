import { describe, expect, it } from "vitest";

import { nameIn } from "../src/api/actions";
import { address, placed } from "../src/api/http";

describe("an address", () => {
  it("keeps an id whole, whatever is in it", () => {
    expect(placed("/conversations/{conversation_id}/files", { conversation_id: "a/b?c#d" })).toBe("/conversations/a%2Fb%3Fc%23d/files");
  });
  it("keeps the slashes of a file's path, and nothing else of it", () => {
    expect(placed("/x/{path}", { path: "plots/a b?.png" })).toBe("/x/plots/a%20b%3F.png");
  });
  it("does not name what is not asked", () => {
    expect(address("/search", { q: "a&b", limit: 3, meaning: false, cursor: null })).toBe("/api/v1/search?q=a%26b&limit=3&meaning=false");
  });
});

describe("the name of a download", () => {
  it("is the exact one, which may be Chinese", () => {
    expect(nameIn("attachment; filename=\"--.md\"; filename*=UTF-8''%E6%97%85%E8%A1%8C.md")).toBe("旅行.md");
    expect(nameIn('attachment; filename="a.md"')).toBe("a.md");
    expect(nameIn("")).toBeNull();
  });
});
