"""An answer on a page that is read: code stands as code, and nothing that was said becomes a tag."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest

from everthread.history.message_html import message_html


def test_fenced_code_is_a_block_and_the_rest_are_paragraphs() -> None:
    shown = message_html("Try this:\n\n```python\nif a < b:\n    go()\n```\nDone.", is_markdown=True)
    assert shown == "<p>Try this:</p>\n<pre>if a &lt; b:\n    go()</pre>\n<p>Done.</p>\n"


def test_code_that_is_never_closed_goes_to_the_end() -> None:
    assert message_html("```\na\nb", is_markdown=False) == "<pre>a\nb</pre>\n"


def test_a_fence_inside_a_longer_one_is_code() -> None:
    assert message_html("````md\n```\nx\n```\n````", is_markdown=True) == "<pre>```\nx\n```</pre>\n"


def test_bold_words_and_code_in_a_line_are_marked_in_answers_alone() -> None:
    text = "only **transient** failures of `make test`, 2 ** 3 ** 4"
    assert message_html(text, is_markdown=False) == f"<p>{text}</p>\n"
    marked = "<p>only <strong>transient</strong> failures of <code>make test</code>, 2 ** 3 ** 4</p>\n"
    assert message_html(text, is_markdown=True) == marked


@pytest.mark.parametrize(
    "text", ["`<b>`", "**<i>x</i>**", "```<u>\n<s>\n```<em>", "<p>`**<a href=x>**`", "~~~\n</pre><b>"]
)
def test_no_tag_comes_out_of_what_was_said(text: str) -> None:
    found: list[str] = []
    parser = HTMLParser()
    parser.handle_starttag = lambda tag, attrs: found.append(tag)  # type: ignore[method-assign]
    parser.feed(message_html(text, is_markdown=True))
    assert set(found) <= {"p", "pre", "code", "strong"}


def test_a_megabyte_of_marks_is_no_trouble() -> None:
    for piece in ("```\n", "`", "**a", "~~~x\n", "**a** "):
        assert message_html(piece * (1_000_000 // len(piece)), is_markdown=True)
