import { describe, expect, it } from "vitest";

import { formulaIn, formulasAsCode } from "../src/lib/formula";

describe("formulas in Markdown", () => {
  const found = (text: string) => [...formulasAsCode(text).matchAll(/(`+)([\uE000\uE001][^`]*)\1/g)].map((one) => formulaIn(one[2]!)!.tex);

  it("stand between dollars, brackets and parentheses", () => {
    expect(found("For $a^2$ and \\(b_1\\):\n\n$$c = \\frac{1}{2}$$\n\n\\[\n d\n\\]\n")).toEqual(["a^2", "b_1", "c = \\frac{1}{2}", "d"]);
  });

  it("are no prices, variables of a shell or escaped brackets", () => {
    for (const text of ["It costs $5 and then $10.", "$5-$10", "US$5, US$6", "$HOME/bin:$PATH", "see \\[1\\] there", "\\$x\\$"]) expect(formulasAsCode(text)).toBe(text);
  });

  it("are not looked for in code", () => {
    for (const text of ["`$x$`", "``a ` $x$``", "```sh\necho $x $y$\n```\n", "- ~~~\n  $a$\n  ~~~\n", "```\nunfinished $x$"]) expect(formulasAsCode(text)).toBe(text);
  });

  it("keep their bars in a table", () => {
    expect(formulasAsCode("| a | $|x|$ |")).not.toContain("$");
    expect(found("| a | $|x|$ |")).toEqual(["|x|"]);
  });

  it("are bounded in number", () => {
    expect(found("$x$ ".repeat(3_000))).toHaveLength(2_000);
  });
});
