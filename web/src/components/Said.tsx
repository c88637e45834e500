/** What was said: a model's words as Markdown, a person's as they were typed. HTML in either is text: nothing is dropped, and
 * nothing is run; no picture comes from elsewhere, links open apart. What is very long is shown as it is, its beginning first:
 * no message may hold up the page. */

import { lazy, memo, Suspense, useEffect, useMemo, useState, type ReactNode } from "react";
import Markdown, { type Components } from "react-markdown";
import rehypeSanitize from "rehype-sanitize";
import remarkGfm from "remark-gfm";

import { bytes } from "../lib/format";
import { formulaIn, formulasAsCode, type Formula } from "../lib/formula";
import type { Piece } from "../lib/highlight";
import { directed, htmlIsText, linesStay } from "../lib/markdown";
import { typedPieces } from "../lib/typed";
import { useTexts } from "../texts";
import { useToast } from "./Bits";
import { WrittenFormula } from "./WrittenFormula";

/** Beyond this a text is not taken apart as Markdown. */
export const LONG_CHARACTERS = 50_000;
const START_CHARACTERS = 4_000;
const PIECE_CHARACTERS = 20_000;

const COMPONENTS: Components = {
  a: ({ href, children }) => (
    <a href={href} target="_blank" rel="noreferrer noopener">
      {children}
    </a>
  ),
  img: ({ alt, src }) => <span className="faint">[{alt || String(src)}]</span>,
  code: ({ className, children }) => {
    const formula = formulaIn(textOf(children));
    return formula === null ? <code className={className}>{children}</code> : <LazyFormula {...formula} />;
  },
  pre: ({ children }) => <Code code={textOf(children).replace(/\n$/, "")} language={languageOf(children)} />,
};

const PLUGINS = [remarkGfm, htmlIsText, linesStay];
const LAST_PLUGINS = [rehypeSanitize, directed];

interface Props {
  readonly text: string;
  /** Where numbers such as [#12] or [#12–#20] lead, in a text that names messages so. */
  readonly onMessage?: (seq: number) => void;
}

export const Said = memo(function Said({ text, onMessage }: Props) {
  const components = useMemo(() => (onMessage === undefined ? COMPONENTS : { ...COMPONENTS, a: referring(onMessage) }), [onMessage]);
  if (text.length > LONG_CHARACTERS) return <Long text={text} />;
  return (
    <div className="said">
      <Markdown remarkPlugins={PLUGINS} rehypePlugins={LAST_PLUGINS} components={components}>
        {onMessage === undefined ? formulasAsCode(text) : text.replace(REFERENCE, (whole, seq: string) => `[${whole.slice(1, -1)}](#message-${seq})`)}
      </Markdown>
    </div>
  );
});

/** A person's words as they were typed: only links can be clicked, and fenced code stands in its frame. */
export const Typed = memo(function Typed({ text }: { readonly text: string }) {
  const pieces = useMemo(() => (text.length > LONG_CHARACTERS ? [] : typedPieces(text)), [text]);
  if (text.length > LONG_CHARACTERS) return <Long text={text} />;
  return (
    <div className="said typed" dir="auto">
      {pieces.map((piece, at) =>
        piece.kind === "code" ? <Code key={at} code={piece.text} language={piece.language} />
        : piece.kind === "link" ? <a key={at} href={piece.text} target="_blank" rel="noreferrer noopener">{piece.text}</a>
        : piece.text,
      )}
    </div>
  );
});

const REFERENCE = /\[#(\d+)(?:[–-]#?\d+)?\](?!\()/g;

function referring(onMessage: (seq: number) => void): NonNullable<Components["a"]> {
  return function Reference({ href, children }) {
    const seq = Number(/^#message-(\d+)$/.exec(href ?? "")?.[1]);
    return seq > 0 ? <button className="link number" onClick={() => onMessage(seq)}>{children}</button> : <>{children}</>;
  };
}

/** Text as it is, in a frame; its beginning first where it is long. */
export function Verbatim({ text }: { readonly text: string }) {
  return text.length > LONG_CHARACTERS ? <Long text={text} /> : <pre className="plain" tabIndex={0}>{text}</pre>;
}

function Long({ text }: { readonly text: string }) {
  const { t, language } = useTexts();
  const [isWhole, setWhole] = useState(false);
  const size = bytes(text.length, language);
  return (
    <div className="said long">
      {isWhole ? <Pieces text={text} /> : <div className="start">{text.slice(0, START_CHARACTERS)}</div>}
      <p className="row">
        <button onClick={() => setWhole(!isWhole)}>{isWhole ? t.showLess : t.showAllOf(size)}</button>
        <Copy text={() => text} />
      </p>
    </div>
  );
}

/** In pieces of which the browser lays out only those in sight. */
function Pieces({ text }: { readonly text: string }) {
  const starts = Array.from({ length: Math.ceil(text.length / PIECE_CHARACTERS) }, (_, index) => index * PIECE_CHARACTERS);
  return <>{starts.map((start) => <div key={start} className="piece">{text.slice(start, start + PIECE_CHARACTERS)}</div>)}</>;
}

function Code({ code, language }: { readonly code: string; readonly language: string }) {
  const pieces = useHighlighted(code, language);
  return (
    <div className="code">
      <div className="named">
        <span>{language}</span>
        <Copy text={() => code} />
      </div>
      <pre tabIndex={0}>
        <code>{pieces?.map((piece, at) => (piece.className === null ? piece.text : <span key={at} className={piece.className}>{piece.text}</span>)) ?? code}</code>
      </pre>
    </div>
  );
}

const DrawnFormula = lazy(() => import("./DrawnFormula").catch(() => ({ default: WrittenFormula })));

/** As it was written until what draws it is there. */
function LazyFormula(formula: Formula) {
  return (
    <Suspense fallback={<WrittenFormula {...formula} />}>
      <DrawnFormula {...formula} />
    </Suspense>
  );
}

function useHighlighted(code: string, language: string): readonly Piece[] | null {
  const [found, setFound] = useState<{ readonly code: string; readonly pieces: readonly Piece[] | null } | null>(null);
  useEffect(() => {
    let isWanted = language !== "";
    if (isWanted) void import("../lib/highlight").then(({ highlighted }) => isWanted && setFound({ code, pieces: highlighted(code, language) }));
    return () => {
      isWanted = false;
    };
  }, [code, language]);
  return found?.code === code ? found.pieces : null;
}

function languageOf(node: ReactNode): string {
  const given = node !== null && typeof node === "object" && "props" in node ? (node.props as { className?: unknown }).className : undefined;
  return /language-([\w+#-]+)/.exec(typeof given === "string" ? given : "")?.[1]?.toLowerCase() ?? "";
}

function textOf(node: ReactNode): string {
  if (typeof node === "string" || typeof node === "number") return String(node);
  if (Array.isArray(node)) return node.map(textOf).join("");
  if (node !== null && typeof node === "object" && "props" in node) {
    return textOf((node.props as { children?: ReactNode }).children);
  }
  return "";
}

/** Into the clipboard; false where the browser does not let us. */
export async function copied(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copiedByHand(text); // a page over plain HTTP from another machine has no clipboard
  }
}

function copiedByHand(text: string): boolean {
  const area = document.createElement("textarea");
  area.value = text;
  document.body.append(area);
  area.select();
  const isDone = document.execCommand("copy");
  area.remove();
  return isDone;
}

export function Copy({ text, label }: { readonly text: () => string; readonly label?: string }) {
  const { t } = useTexts();
  const toast = useToast();
  const [isDone, setDone] = useState(false);
  const copy = async () => {
    if (!(await copied(text()))) return toast({ text: t.notCopied });
    setDone(true);
    setTimeout(() => setDone(false), 1500);
  };
  return <button type="button" onClick={() => void copy()}>{isDone ? t.copied : (label ?? t.copy)}</button>;
}
