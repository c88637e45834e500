/** TeX formulas of an answer as MathML, which browsers draw themselves. Of TeX it knows what answers hold; where there is more in
 * a formula it says so, and the formula is shown as it was written. */

export interface MathNode {
  readonly tag: string;
  readonly attributes?: Readonly<Record<string, string>>;
  readonly children: readonly MathNode[] | string;
}

/** Before the code that stands for a formula in the Markdown: in the line, or on lines of its own. */
const INLINE = "\uE000";
const DISPLAY = "\uE001";
const CODE = /^[ \t>]*(?:(?:[*+-]|\d+[.)])[ \t]+)?(`{3,}|~{3,})[^\n]*\n[\s\S]*?(?:^[ \t>]*\1[`~]*[ \t]*$|(?![\s\S]))|(?<!`)(`+)(?!`)[\s\S]*?[^`]\2(?!`)/;
/** A dollar may be money: what it opens begins and ends without a space, and no letter or digit follows. */
const FORMULA = /\$\$([\s\S]+?)\$\$|^[ \t>]*\\\[([\s\S]+?)\\\][ \t]*$|\\\(([\s\S]+?)\\\)|(?<![\\$\w])\$(?![\s$])((?:\\[^\n]|[^$\\\n])*?(?:\\[^\n]|[^\s\\$]))\$(?![\w$])/;
const EITHER = new RegExp(`${CODE.source}|${FORMULA.source}`, "gm");

/** Markdown in which each formula is a piece of code with a mark before it: so nothing in it is read as Markdown. */
export function formulasAsCode(text: string): string {
  if (!/[$\\]/.test(text)) return text;
  return text.replace(EITHER, (whole, _fence, _ticks, dollars?: string, brackets?: string, parentheses?: string, dollar?: string) => {
    const block = dollars ?? brackets;
    const tex = (block ?? parentheses ?? dollar)?.replace(/^[ \t]*>/gm, "").replace(/\s+/g, " ").trim();
    if (tex === undefined || tex === "") return whole;
    const fence = "`".repeat(1 + Math.max(0, ...(tex.match(/`+/g) ?? []).map((one) => one.length)));
    const quoted = /^[ \t>]*/.exec(whole)![0];
    return `${quoted}${fence}${block === undefined ? INLINE : DISPLAY}${tex.replaceAll("\\|", "\\Vert ").replaceAll("|", "\\vert ")}${fence}`;
  });
}

/** The formula that a piece of code stands for; null for any other code. */
export function formulaIn(code: string): { readonly tex: string; readonly isBlock: boolean } | null {
  if (!code.startsWith(INLINE) && !code.startsWith(DISPLAY)) return null;
  return { tex: code.slice(1).replaceAll("\\vert ", "|").replaceAll("\\Vert ", "\\|"), isBlock: code.startsWith(DISPLAY) };
}

/** Null where something in it is not known. */
export function typeset(tex: string, isBlock: boolean): MathNode | null {
  const parser = new Parser(tex.match(TOKEN) ?? []);
  try {
    const rows = parser.rows(null);
    return node("math", rows.length === 1 && rows[0]!.length === 1 ? [rows[0]![0]!] : [table(rows, "aligned")], isBlock ? { display: "block" } : {});
  } catch (problem) {
    if (problem instanceof Unknown) return null;
    throw problem;
  }
}

class Unknown extends Error {}

const TOKEN = /\\[a-zA-Z]+\*?|\\[\s\S]|\d+(?:[.,]\d+)*|\s+|[\s\S]/gu;
const MOST_DEPTH = 60;

const node = (tag: string, children: readonly MathNode[] | string, attributes?: Readonly<Record<string, string>>): MathNode => ({ tag, children, ...(attributes ? { attributes } : {}) });
const row = (children: readonly MathNode[]): MathNode => (children.length === 1 ? children[0]! : node("mrow", children));
const fence = (text: string): MathNode => node("mo", text, { stretchy: "true", fence: "true" });
const space = (em: string): MathNode => node("mspace", [], { width: em });

const words = (text: string): Record<string, string> => Object.fromEntries(text.trim().split(/\s+/).map((pair) => pair.split(":") as [string, string]));

const LETTERS = words(`alpha:α beta:β gamma:γ delta:δ epsilon:ϵ varepsilon:ε zeta:ζ eta:η theta:θ vartheta:ϑ iota:ι kappa:κ lambda:λ mu:μ nu:ν xi:ξ pi:π varpi:ϖ rho:ρ
  varrho:ϱ sigma:σ varsigma:ς tau:τ upsilon:υ phi:ϕ varphi:φ chi:χ psi:ψ omega:ω Gamma:Γ Delta:Δ Theta:Θ Lambda:Λ Xi:Ξ Pi:Π Sigma:Σ Upsilon:Υ Phi:Φ Psi:Ψ Omega:Ω
  infty:∞ partial:∂ nabla:∇ emptyset:∅ varnothing:∅ ell:ℓ hbar:ℏ Re:ℜ Im:ℑ aleph:ℵ top:⊤ bot:⊥ angle:∠ ldots:… dots:… cdots:⋯ vdots:⋮ ddots:⋱ degree:° prime:′ checkmark:✓ square:□ triangle:△`);
const SIGNS = words(`pm:± mp:∓ times:× div:÷ cdot:⋅ ast:∗ star:⋆ circ:∘ bullet:∙ oplus:⊕ otimes:⊗ odot:⊙ cap:∩ cup:∪ setminus:∖ land:∧ wedge:∧ lor:∨ vee:∨ neg:¬ lnot:¬
  leq:≤ le:≤ leqslant:≤ geq:≥ ge:≥ geqslant:≥ neq:≠ ne:≠ equiv:≡ approx:≈ sim:∼ simeq:≃ cong:≅ propto:∝ ll:≪ gg:≫ prec:≺ succ:≻ in:∈ notin:∉ ni:∋ subset:⊂ supset:⊃ subseteq:⊆
  supseteq:⊇ forall:∀ exists:∃ nexists:∄ to:→ rightarrow:→ leftarrow:← leftrightarrow:↔ Rightarrow:⇒ implies:⟹ Leftarrow:⇐ Leftrightarrow:⇔ iff:⟺ mapsto:↦ longrightarrow:⟶
  uparrow:↑ downarrow:↓ mid:∣ nmid:∤ parallel:∥ perp:⊥ vdash:⊢ models:⊨ therefore:∴ because:∵ colon:: vert:| lvert:| rvert:| Vert:‖ lVert:‖ rVert:‖ lbrace:{ rbrace:} langle:⟨ rangle:⟩
  lfloor:⌊ rfloor:⌋ lceil:⌈ rceil:⌉ backslash:\\ triangleq:≜`);
const BIG = words("sum:∑ prod:∏ coprod:∐ bigcup:⋃ bigcap:⋂ bigoplus:⨁ bigotimes:⨂ bigvee:⋁ bigwedge:⋀");
const INTEGRALS = words("int:∫ iint:∬ iiint:∭ oint:∮");
const LIMITS = new Set("lim max min sup inf limsup liminf argmax argmin det gcd Pr".split(" "));
const FUNCTIONS = new Set("sin cos tan cot sec csc arcsin arccos arctan sinh cosh tanh log ln lg exp dim ker deg arg hom mod".split(" "));
const ACCENTS = words("hat:^ widehat:^ bar:¯ overline:¯ vec:→ overrightarrow:→ tilde:~ widetilde:~ dot:˙ ddot:¨ overbrace:⏞");
const BELOW = words("underline:_ underbrace:⏟");
const SPACES: Readonly<Record<string, string>> = { "\\,": "0.167em", "\\:": "0.222em", "\\;": "0.278em", "\\ ": "0.333em", "\\!": "-0.167em", "~": "0.333em", quad: "1em", qquad: "2em" };
/** What only changes how large or tight something is set. */
const IGNORED = new Set("displaystyle textstyle scriptstyle limits nolimits big Big bigg Bigg bigl bigr Bigl Bigr biggl biggr nonumber notag left. middle".split(" "));
const ENVIRONMENTS: Readonly<Record<string, readonly [string, string]>> = {
  matrix: ["", ""], pmatrix: ["(", ")"], bmatrix: ["[", "]"], Bmatrix: ["{", "}"], vmatrix: ["|", "|"], Vmatrix: ["‖", "‖"], smallmatrix: ["", ""], array: ["", ""], cases: ["{", ""],
  aligned: ["", ""], align: ["", ""], "align*": ["", ""], gathered: ["", ""], gather: ["", ""], "gather*": ["", ""], split: ["", ""], equation: ["", ""], "equation*": ["", ""],
};
/** Where the capitals, small letters and digits of an alphabet begin, and its letters that stood in Unicode before. */
const ALPHABETS: Readonly<Record<string, readonly [number, number, number, Readonly<Record<string, string>>]>> = {
  mathbf: [0x1d400, 0x1d41a, 0x1d7ce, {}], boldsymbol: [0x1d400, 0x1d41a, 0x1d7ce, {}], mathcal: [0x1d49c, 0, 0, words("B:ℬ E:ℰ F:ℱ H:ℋ I:ℐ L:ℒ M:ℳ R:ℛ")],
  mathbb: [0x1d538, 0x1d552, 0x1d7d8, words("C:ℂ H:ℍ N:ℕ P:ℙ Q:ℚ R:ℝ Z:ℤ")], mathfrak: [0x1d504, 0x1d51e, 0, words("C:ℭ H:ℌ I:ℑ R:ℜ Z:ℨ")],
};

function table(rows: readonly (readonly MathNode[])[], environment: string): MathNode {
  const isAligned = /^(align|split)/.test(environment);
  const side = (at: number) => (isAligned ? (at % 2 === 0 ? "right" : "left") : environment === "cases" ? "left" : "center");
  const cells = rows.map((cellsOf) => node("mtr", cellsOf.map((cell, at) => node("mtd", [cell], { style: side(at) }))));
  return node("mtable", cells, isAligned ? { displaystyle: "true", class: "aligned" } : {});
}

class Parser {
  private at = 0;
  private depth = 0;

  constructor(private readonly tokens: readonly string[]) {}

  /** Rows of cells up to the end of an environment, or of all. */
  rows(environment: string | null): MathNode[][] {
    const rows: MathNode[][] = [[]];
    for (;;) {
      rows.at(-1)!.push(row(this.list(["&", "\\\\", "\\end"])));
      const stop = this.take();
      if (stop === "\\\\") rows.push([]);
      else if (stop === "\\end" && environment !== null && this.name() === environment) break;
      else if (stop === undefined && environment === null) break;
      else if (stop !== "&") throw new Unknown(stop);
    }
    const last = rows.at(-1)!;
    if (rows.length > 1 && last.length === 1 && last[0]!.tag === "mrow" && last[0]!.children.length === 0) rows.pop();
    return rows;
  }

  private take(): string | undefined {
    return this.tokens[this.at++];
  }

  private peek(): string | undefined {
    while (/^\s+$/.test(this.tokens[this.at] ?? "")) this.at += 1;
    return this.tokens[this.at];
  }

  private list(stops: readonly string[]): MathNode[] {
    if (++this.depth > MOST_DEPTH) throw new Unknown("depth");
    const found: MathNode[] = [];
    for (let token = this.peek(); token !== undefined && !stops.includes(token); token = this.peek()) {
      const one = this.scripted();
      if (one !== null) found.push(one);
    }
    this.depth -= 1;
    return found;
  }

  /** An atom with what stands above and below it. */
  private scripted(): MathNode | null {
    const isLimits = this.hasLimits(this.peek());
    const base = this.peek() === "^" || this.peek() === "_" ? node("mrow", []) : this.atom();
    let below: MathNode | null = null;
    const above: MathNode[] = [];
    for (let token = this.peek(); ; token = this.peek()) {
      if (token === "\\limits" || token === "\\nolimits") this.at += 1;
      else if (token === "'") {
        this.at += 1;
        above.push(node("mo", "′"));
      } else if (token === "^" || token === "_") {
        this.at += 1;
        const script = this.argument();
        if (token === "^") above.push(script);
        else if (below === null) below = script;
        else throw new Unknown("_");
      } else break;
    }
    if (base === null) return above.length > 0 || below !== null ? row([...above, ...(below === null ? [] : [below])]) : null;
    const over = above.length === 0 ? null : row(above);
    if (over !== null && below !== null) return node(isLimits ? "munderover" : "msubsup", [base, below, over]);
    if (over !== null) return node(isLimits ? "mover" : "msup", [base, over]);
    return below === null ? base : node(isLimits ? "munder" : "msub", [base, below]);
  }

  private hasLimits(token: string | undefined): boolean {
    const name = token?.slice(1) ?? "";
    return name in BIG || LIMITS.has(name) || name === "underbrace" || name === "overbrace";
  }

  /** What a command is given: a group, or the next thing. */
  private argument(): MathNode {
    const token = this.peek();
    if (token === undefined) throw new Unknown("end");
    if (/^\d\d/.test(token)) throw new Unknown(token); // `x^12` raises the 1 alone: nobody means that
    return this.atom() ?? node("mrow", []);
  }

  private atom(): MathNode | null {
    const token = this.peek();
    this.at += 1;
    if (token === undefined || token === "}" || token === "&" || token === "^" || token === "_" || token === "#" || token === "%") throw new Unknown(token);
    if (token === "{") return this.group();
    if (token in SPACES) return space(SPACES[token]!);
    if (token.startsWith("\\")) return this.command(token.slice(1));
    if (/^\d/.test(token)) return node("mn", token);
    if (/^\p{L}$/u.test(token)) return /^[a-zA-Z\p{Script=Greek}]$/u.test(token) ? node("mi", token) : node("mtext", token);
    return node("mo", token === "-" ? "−" : token === "*" ? "∗" : token, /[()[\]|]/.test(token) ? { stretchy: "false" } : undefined);
  }

  private group(): MathNode {
    const inner = row(this.list(["}"]));
    if (this.take() !== "}") throw new Unknown("{");
    return inner;
  }

  private command(name: string): MathNode | null {
    if (name in LETTERS) return node("mi", LETTERS[name]!, { mathvariant: "normal" });
    if (name in SIGNS) return node("mo", SIGNS[name]!, "lr".includes(name[0]!) || /vert/i.test(name) ? { stretchy: "false" } : undefined);
    if (name in BIG) return node("mo", BIG[name]!, { movablelimits: "true", largeop: "true" });
    if (name in INTEGRALS) return node("mo", INTEGRALS[name]!, { largeop: "true" });
    if (LIMITS.has(name)) return node("mo", name === "argmax" ? "arg max" : name === "argmin" ? "arg min" : name, { movablelimits: "true", lspace: "0.1em", rspace: "0.15em" });
    if (FUNCTIONS.has(name)) return node("mrow", [node("mi", name), ...(this.peek() === "(" || this.peek() === "^" || this.peek() === "_" ? [] : [space("0.167em")])]);
    if (name in SPACES) return space(SPACES[name]!);
    if (`\\${name}` in SPACES) return space(SPACES[`\\${name}`]!);
    if (name in ACCENTS) return node("mover", [this.argument(), node("mo", ACCENTS[name]!, { stretchy: /^(wide|over)/.test(name) ? "true" : "false" })], { accent: "true" });
    if (name in BELOW) return node("munder", [this.argument(), node("mo", BELOW[name]!, { stretchy: "true" })]);
    if (name in ALPHABETS) return this.inAlphabet(name);
    if (IGNORED.has(name)) return null;
    if (/^[{}$%&#_|]$/.test(name)) return node("mo", name === "|" ? "‖" : name, { stretchy: "false" });
    switch (name) {
      case "frac": case "dfrac": case "tfrac": case "cfrac":
        return node("mfrac", [this.argument(), this.argument()]);
      case "binom":
        return node("mrow", [fence("("), node("mfrac", [this.argument(), this.argument()], { linethickness: "0" }), fence(")")]);
      case "sqrt":
        return this.root();
      case "text": case "textbf": case "textit": case "textrm": case "mbox":
        return node("mtext", this.words());
      case "mathrm": case "operatorname": case "operatorname*": case "mathsf": case "mathit": case "mathtt":
        return node("mi", this.words().trim(), { mathvariant: "normal" });
      case "boxed": case "mathstrut":
        return node("mrow", [this.argument()], { class: "boxed" });
      case "overset": case "stackrel": {
        const above = this.argument();
        return node("mover", [this.argument(), above]);
      }
      case "underset": {
        const below = this.argument();
        return node("munder", [this.argument(), below]);
      }
      case "pmod":
        return node("mrow", [space("0.6em"), node("mo", "("), node("mi", "mod"), space("0.2em"), this.argument(), node("mo", ")")]);
      case "bmod":
        return node("mo", "mod");
      case "tag":
        return node("mtext", `\u2003(${this.words()})`);
      case "left":
        return this.fenced();
      case "begin":
        return this.environment();
      default:
        throw new Unknown(name);
    }
  }

  private root(): MathNode {
    if (this.peek() !== "[") return node("msqrt", [this.argument()]);
    this.at += 1;
    const degree = row(this.list(["]"]));
    this.at += 1;
    return node("mroot", [this.argument(), degree]);
  }

  private delimiter(): string {
    const token = this.peek() ?? "";
    this.at += 1;
    if (token === ".") return "";
    const name = token.slice(1);
    return token.startsWith("\\") ? (name === "|" ? "‖" : (SIGNS[name] ?? name)) : token;
  }

  private fenced(): MathNode {
    const open = this.delimiter();
    const inner = this.list(["\\right"]);
    if (this.take() !== "\\right") throw new Unknown("left");
    const close = this.delimiter();
    return node("mrow", [...(open === "" ? [] : [fence(open)]), ...inner, ...(close === "" ? [] : [fence(close)])]);
  }

  private environment(): MathNode {
    const name = this.name();
    const around = ENVIRONMENTS[name];
    if (around === undefined) throw new Unknown(name);
    if (name === "array") this.name(); // how its columns stand
    const inner = table(this.rows(name), name);
    const [open, close] = around;
    return node("mrow", [...(open === "" ? [] : [fence(open)]), inner, ...(close === "" ? [] : [fence(close)])]);
  }

  /** A group that holds a word, not a formula. */
  private name(): string {
    this.peek();
    return this.words().trim();
  }

  private words(): string {
    if (this.peek() !== "{") throw new Unknown("{");
    let text = "";
    for (let open = 0; ; ) {
      const token = this.take();
      if (token === undefined) throw new Unknown("}");
      if (token === "{") open += 1;
      else if (token === "}") open -= 1;
      else text += token.length === 2 && token.startsWith("\\") ? token.slice(1) : token.startsWith("\\") ? "" : token;
      if (open === 0) return text;
    }
  }

  private inAlphabet(name: string): MathNode {
    const [capital, small, digit, known] = ALPHABETS[name]!;
    const inner = this.argument();
    const text = typeof inner.children === "string" ? inner.children : inner.children.map((one) => (typeof one.children === "string" ? one.children : "")).join("");
    const shift = (letter: string) => {
      const code = letter.codePointAt(0)!;
      if (letter in known) return known[letter]!;
      if (/[A-Z]/.test(letter)) return String.fromCodePoint(capital + code - 65);
      if (/[a-z]/.test(letter) && small > 0) return String.fromCodePoint(small + code - 97);
      if (/\d/.test(letter) && digit > 0) return String.fromCodePoint(digit + code - 48);
      return letter;
    };
    return node("mi", [...text].map(shift).join(""), { mathvariant: "normal" });
  }
}
