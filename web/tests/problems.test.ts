import { readFileSync } from "node:fs";

import { describe, expect, it } from "vitest";

import { Problem } from "../src/api/http";
import { saidOf } from "../src/components/Bits";
import { sentences } from "../src/lib/format";
import { en } from "../src/texts/en";
import { zh } from "../src/texts/zh";

/** Every code that the reference of the HTTP interface has in its table. */
function documentedCodes(): string[] {
  const reference = readFileSync(new URL("../../docs/reference/http.md", import.meta.url), "utf-8");
  const table = reference.slice(reference.indexOf("| status | codes |"), reference.indexOf("Unknown keys in a body"));
  return [...table.matchAll(/`([a-z_]+)`/g)].map((match) => match[1]!);
}

describe("a problem", () => {
  it("is worded for every code that the service has, in both languages", () => {
    const codes = documentedCodes();
    expect(codes.length).toBeGreaterThan(20);
    for (const code of [...codes, "unreachable"]) {
      expect(en.problems[code], code).toMatch(/\.$/);
      expect(zh.problems[code], code).toMatch(/。$/);
    }
    expect(Object.keys(zh.problems)).toEqual(Object.keys(en.problems));
  });
  it("is told in the language of the page, with the service's own words apart", () => {
    const full = new Problem(503, "store_full", "The disk is full. Make room.", true);
    expect(saidOf(full, zh)).toEqual({ words: zh.problems["store_full"], detail: "The disk is full. Make room." });
    expect(saidOf(new Problem(0, "unreachable", "The server cannot be reached.", true), en)).toEqual({ words: "The server cannot be reached.", detail: "" });
    expect(saidOf(new TypeError("x is not a function"), en)).toEqual({ words: en.somethingWrong, detail: "x is not a function" });
  });
  it("names the key that a model misses, without a word of English in Chinese", () => {
    const missing = new Problem(502, "model_key_missing", "the model openai:gpt-5-mini needs a key: set OPENAI_API_KEY, or choose another with EVERTHREAD_MODEL.", false);
    expect(saidOf(missing, zh)).toEqual({ words: "openai:gpt-5-mini 需要密钥：请在启动服务器前设置 OPENAI_API_KEY，或在模型菜单里换一个模型。", detail: "" });
    expect(saidOf(missing, en).words).toContain("openai:gpt-5-mini needs a key: set OPENAI_API_KEY");
    expect(saidOf(new Problem(502, "model_key_missing", "Another word.", false), zh)).toEqual({ words: zh.problems["model_key_missing"], detail: "Another word." });
  });
  it("has a full stop after each sentence, and none of them twice", () => {
    expect(sentences(["`model` is not known", "Name another.", undefined, "", "Name another"])).toBe("`model` is not known. Name another.");
  });
});
