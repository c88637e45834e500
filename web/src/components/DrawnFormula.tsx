/** A formula as MathML, which browsers draw themselves; loaded when there is one. Nobody vouches for what a model says: a formula
 * beyond these bounds, or that would be more than a formula, stays as it was written. */

import { useLayoutEffect, useMemo, useRef } from "react";
import temml from "temml";
import "temml/dist/Temml-Local.css";

import type { Formula } from "../lib/formula";
import { WrittenFormula } from "./WrittenFormula";

const MOST_CHARACTERS = 4_000;
const MOST_EXPANSIONS = 1_000;
const MOST_DEPTH = 60;
const MOST_SIZE: [number, number] = [50, 500]; // em, pt
/** Definitions, and commands within the library's own, by which a few characters could become millions; and links. */
const REFUSED = /\\(?:[gex]?def|(?:future)?let|(?:re)?newcommand|providecommand|(?:eq)?ref)(?![a-zA-Z])|\\[a-zA-Z]*@/;
const MATHML = "http://www.w3.org/1998/Math/MathML";

export default function DrawnFormula(formula: Formula) {
  const { tex, isBlock } = formula;
  const place = useRef<HTMLSpanElement>(null);
  const drawn = useMemo(() => mathOf(tex, isBlock), [tex, isBlock]);
  useLayoutEffect(() => place.current?.replaceChildren(drawn ?? ""), [drawn]);
  return drawn === null ? <WrittenFormula {...formula} /> : <span ref={place} className="formula" data-block={isBlock} title={tex} />;
}

/** Null where something in it is not known, or not allowed. */
function mathOf(tex: string, isBlock: boolean): Element | null {
  if (tex.length > MOST_CHARACTERS || REFUSED.test(tex)) return null;
  const around = document.createElement("span");
  try {
    temml.render(tex, around, { displayMode: isBlock, wrap: "tex", throwOnError: true, trust: false, maxExpand: MOST_EXPANSIONS, maxSize: MOST_SIZE });
  } catch {
    return null; // also where it nests too deep for the parser
  }
  const math = around.firstElementChild;
  if (math === null || !isOnlyMath(math)) return null;
  for (const one of math.querySelectorAll("[id]")) one.removeAttribute("id"); // a label's: the page has ids of its own
  return math;
}

function isOnlyMath(math: Element): boolean {
  for (let level = [math], depth = 0; level.length > 0; level = level.flatMap((one) => [...one.children]), depth += 1) {
    if (depth > MOST_DEPTH || level.some((one) => one.namespaceURI !== MATHML && one.localName !== "span")) return false; // a span holds an equation's number
  }
  return true;
}
