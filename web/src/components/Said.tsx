/** Text as Markdown, made safe: no HTML of its own, no picture or script from elsewhere, links open apart. */

import { useState, type ReactNode } from "react";
import Markdown, { type Components } from "react-markdown";
import rehypeSanitize from "rehype-sanitize";
import remarkGfm from "remark-gfm";

import { useTexts } from "../texts";

const COMPONENTS: Components = {
  a: ({ href, children }) => (
    <a href={href} target="_blank" rel="noreferrer noopener">
      {children}
    </a>
  ),
  img: ({ alt, src }) => <span className="faint">[{alt || String(src)}]</span>,
  pre: ({ children }) => <Code>{children}</Code>,
};

export function Said({ text }: { readonly text: string }) {
  return (
    <div className="said">
      <Markdown remarkPlugins={[remarkGfm]} rehypePlugins={[rehypeSanitize]} components={COMPONENTS}>
        {text}
      </Markdown>
    </div>
  );
}

function Code({ children }: { readonly children?: ReactNode }) {
  return (
    <div className="code">
      <pre tabIndex={0}>{children}</pre>
      <Copy text={() => textOf(children)} />
    </div>
  );
}

function textOf(node: ReactNode): string {
  if (typeof node === "string" || typeof node === "number") return String(node);
  if (Array.isArray(node)) return node.map(textOf).join("");
  if (node !== null && typeof node === "object" && "props" in node) {
    return textOf((node.props as { children?: ReactNode }).children);
  }
  return "";
}

export function Copy({ text, label }: { readonly text: () => string; readonly label?: string }) {
  const { t } = useTexts();
  const [isDone, setDone] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text());
    setDone(true);
    setTimeout(() => setDone(false), 1500);
  };
  return <button onClick={() => void copy()}>{isDone ? t.copied : (label ?? t.copy)}</button>;
}
