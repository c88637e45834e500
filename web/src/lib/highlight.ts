/** Code in colours: the tree of a highlighted text, by the languages that talk with a model is likely to hold. Loaded when there is code. */

import { createLowlight } from "lowlight";
import bash from "highlight.js/lib/languages/bash";
import c from "highlight.js/lib/languages/c";
import cpp from "highlight.js/lib/languages/cpp";
import css from "highlight.js/lib/languages/css";
import diff from "highlight.js/lib/languages/diff";
import go from "highlight.js/lib/languages/go";
import ini from "highlight.js/lib/languages/ini";
import java from "highlight.js/lib/languages/java";
import javascript from "highlight.js/lib/languages/javascript";
import json from "highlight.js/lib/languages/json";
import markdown from "highlight.js/lib/languages/markdown";
import python from "highlight.js/lib/languages/python";
import rust from "highlight.js/lib/languages/rust";
import sql from "highlight.js/lib/languages/sql";
import typescript from "highlight.js/lib/languages/typescript";
import xml from "highlight.js/lib/languages/xml";
import yaml from "highlight.js/lib/languages/yaml";

const known = createLowlight({ bash, c, cpp, css, diff, go, ini, java, javascript, json, markdown, python, rust, sql, typescript, xml, yaml });
known.registerAlias({ bash: ["sh", "shell", "zsh", "console"], ini: ["toml"], javascript: ["js", "jsx"], typescript: ["ts", "tsx"], xml: ["html", "svg"], python: ["py"], yaml: ["yml"], rust: ["rs"] });

export interface Piece {
  readonly text: string;
  readonly className: string | null;
}

/** The text in pieces, each with the class of what it is; null where the language is not known. */
export function highlighted(code: string, language: string): readonly Piece[] | null {
  if (!known.registered(language)) return null;
  return pieces(known.highlight(language, code), null);
}

interface Node {
  readonly type: string;
  readonly value?: string;
  readonly properties?: { readonly className?: unknown };
  readonly children?: readonly Node[];
}

function pieces(node: Node, inherited: string | null): Piece[] {
  if (node.type === "text") return [{ text: node.value ?? "", className: inherited }];
  const own = node.properties?.className;
  const className = Array.isArray(own) ? own.join(" ") : inherited;
  return (node.children ?? []).flatMap((child) => pieces(child, className));
}
