/** Finds the TeX formulas of an answer. They are drawn by components/DrawnFormula, which is loaded when there is one. */

export interface Formula {
  readonly tex: string;
  readonly isBlock: boolean;
}

/** Before the code that stands for a formula in the Markdown: in the line, or on lines of its own. */
const INLINE = "\uE000";
const DISPLAY = "\uE001";
const CODE = /^[ \t>]*(?:(?:[*+-]|\d+[.)])[ \t]+)?(`{3,}|~{3,})[^\n]*\n[\s\S]*?(?:^[ \t>]*\1[`~]*[ \t]*$|(?![\s\S]))|(?<!`)(`+)(?!`)[\s\S]*?[^`]\2(?!`)/;
/** A dollar may be money: what it opens begins and ends without a space, and no letter or digit follows. */
const FORMULA = /\$\$([\s\S]+?)\$\$|^[ \t>]*\\\[([\s\S]+?)\\\][ \t]*$|\\\(([\s\S]+?)\\\)|(?<![\\$\w])\$(?![\s$])((?:\\[^\n]|[^$\\\n])*?(?:\\[^\n]|[^\s\\$]))\$(?![\w$])/;
/** So many are drawn of one answer; what follows stays as it was written. */
const MOST_FORMULAS = 2_000;
const EITHER = new RegExp(`${CODE.source}|${FORMULA.source}`, "gm");

/** Markdown in which each formula is a piece of code with a mark before it: so nothing in it is read as Markdown. */
export function formulasAsCode(text: string): string {
  if (!/[$\\]/.test(text)) return text;
  let found = 0;
  return text.replace(EITHER, (whole, _fence, _ticks, dollars?: string, brackets?: string, parentheses?: string, dollar?: string) => {
    const block = dollars ?? brackets;
    const tex = (block ?? parentheses ?? dollar)?.replace(/^[ \t]*>/gm, "").replace(/\s+/g, " ").trim();
    if (tex === undefined || tex === "" || ++found > MOST_FORMULAS) return whole;
    const fence = "`".repeat(1 + Math.max(0, ...(tex.match(/`+/g) ?? []).map((one) => one.length)));
    const quoted = /^[ \t>]*/.exec(whole)![0];
    return `${quoted}${fence}${block === undefined ? INLINE : DISPLAY}${tex.replaceAll("\\|", "\\Vert ").replaceAll("|", "\\vert ")}${fence}`;
  });
}

/** The formula that a piece of code stands for; null for any other code. */
export function formulaIn(code: string): Formula | null {
  if (!code.startsWith(INLINE) && !code.startsWith(DISPLAY)) return null;
  return { tex: code.slice(1).replaceAll("\\vert ", "|").replaceAll("\\Vert ", "\\|"), isBlock: code.startsWith(DISPLAY) };
}
