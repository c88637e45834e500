import { createElement } from "react";
import { renderToStaticMarkup } from "react-dom/server";
import { describe, expect, it } from "vitest";

import { Said, Typed } from "../src/components/Said";
import { typedPieces } from "../src/lib/typed";

const shown = (html: string): string =>
  html.replace(/<br\/?>/g, "").replace(/<[^>]+>/g, "").replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&quot;", '"').replaceAll("&#x27;", "'").replaceAll("&amp;", "&");
const typed = (text: string): string => renderToStaticMarkup(createElement(Typed, { text }));
const said = (text: string): string => renderToStaticMarkup(createElement(Said, { text }));

const HTML = 'Why does Vec<String> differ from List<int>? if a<b and c>d then <div class="x">hello</div>';

describe("what a person typed", () => {
  it.each([HTML, "<script>alert(1)</script>", "line one\nline two\n\n  indented", "C:\\new_folder\\_x_\\*.txt", "a*b*c", "__init__", "1986. A great year", "# no heading", "> no quote", "| a | b |\n|---|---|", "```\nno end", "&amp; &lt;b&gt;"])("is shown as it was typed: %j", (text) => {
    expect(shown(typed(text))).toBe(text);
  });
  it("has links that can be clicked, without the sign that ends the sentence", () => {
    expect(typedPieces("see https://a.example/x_(y)?q=1&r=2, (https://b.example/z). 见 https://c.example/路。好").filter((piece) => piece.kind === "link").map((piece) => piece.text)).toEqual(["https://a.example/x_(y)?q=1&r=2", "https://b.example/z", "https://c.example/路"]);
    expect(typed("javascript:alert(1) ftp://x data:text/html,x")).not.toContain("<a ");
    expect(typed("https://a.example")).toContain('<a href="https://a.example" target="_blank" rel="noreferrer noopener">');
  });
  it("has its fenced code apart, under the name of its language", () => {
    expect(typedPieces("before\n````Python\nprint(1)\n```\n````\nafter")).toEqual([
      { kind: "text", text: "before" },
      { kind: "code", text: "print(1)\n```", language: "python" },
      { kind: "text", text: "after" },
    ]);
    expect(typedPieces("```\na\n~~~\nb")).toEqual([{ kind: "text", text: "```\na\n~~~\nb" }]);
  });
});

describe("what a model said", () => {
  it.each([HTML, "<script>alert(1)</script>", "<div>\n<p>x</p>\n</div>", "<!-- a note -->", "a <br> b", "<?php echo 1 ?>"])("loses nothing that looks like HTML: %j", (text) => {
    expect(shown(said(text)).trim()).toBe(text);
    expect(said(text)).not.toMatch(/<(script|div class="x")/);
  });
  it("is Markdown, also beside HTML", () => {
    expect(said("<b>**strong** and `Vec<T>`</b>")).toContain("&lt;b&gt;<strong>strong</strong> and <code>Vec&lt;T&gt;</code>&lt;/b&gt;");
  });
  it("keeps its lines", () => {
    expect(said("one\ntwo *three\nfour*")).toMatch(/one<br\/>\s*two <em>three<br\/>\s*four<\/em>/);
    expect(said("```\na\nb\n```")).toContain("<code>a\nb</code>");
  });
  it("shows a formula as it was written until it can be drawn", () => {
    expect(said("see $a_1*b_1$")).toContain('<code class="formula">a_1*b_1</code>');
  });
});
