import { describe, expect, it } from "vitest";

import { formulaIn, formulasAsCode, typeset, type MathNode } from "../src/lib/formula";

/** A formula in brief: the elements as a tree of words. */
function brief(node: MathNode | null): string {
  if (node === null) return "as written";
  const inner = typeof node.children === "string" ? node.children : node.children.map(brief).join(" ");
  return node.tag === "mi" || node.tag === "mn" || node.tag === "mo" || node.tag === "mtext" ? inner : `${node.tag}(${inner})`;
}

const shown = (tex: string) => brief(typeset(tex, false));

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
});

describe("a formula", () => {
  it("is set as MathML", () => {
    expect(shown("\\frac{-b \\pm \\sqrt{b^2-4ac}}{2a}")).toBe("math(mfrac(mrow(− b ± msqrt(mrow(msup(b 2) − 4 a c))) mrow(2 a)))");
    expect(shown("\\sum_{i=1}^{n} i")).toBe("math(mrow(munderover(∑ mrow(i = 1) n) i))");
    expect(shown("x_i^2 \\leq f'(x)")).toBe("math(mrow(msubsup(x i 2) ≤ msup(f ′) ( x )))");
    expect(shown("\\mathbb{R}^n \\text{ if } x")).toBe("math(mrow(msup(ℝ n)  if  x))");
    expect(shown("\\left( \\frac{a}{b} \\right)")).toBe("math(mrow(( mfrac(a b) )))");
    expect(shown("\\begin{pmatrix} 1 & 0 \\\\ 0 & 1 \\end{pmatrix}")).toBe("math(mrow(( mtable(mtr(mtd(1) mtd(0)) mtr(mtd(0) mtd(1))) )))");
    expect(shown("a &= b \\\\ c &= d \\\\")).toBe("math(mtable(mtr(mtd(a) mtd(mrow(= b))) mtr(mtd(c) mtd(mrow(= d)))))");
    expect(shown("\\sqrt[3]{x}")).toBe("math(mroot(x 3))");
  });

  it("is left as it was written where something in it is not known, or not whole", () => {
    for (const tex of ["\\unknown{x}", "\\frac{1}", "{x", "x}", "\\left( x", "\\begin{tikzpicture}x\\end{tikzpicture}", "\\begin{matrix} 1", "x^", `${"{".repeat(5000)}`]) expect(shown(tex)).toBe("as written");
  });
});
