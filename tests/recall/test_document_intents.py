"""Documents are cut along their structure, in any script, and nothing of their text is lost."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from everthread.core.documents import ReadDocument
from everthread.recall.document_intents import NewPassage, split_document
from everthread.text.passages import WHOLE_TOKENS, estimate_tokens

MARKDOWN = """Before any heading.

# Machines

Some words.

## Coffee machine ##

Press the button.

```sh
# not a heading
descale --now
```

### Descaling

Once a month.

# Cars
Drive slowly.
"""


def text(body: str, media_type: str = "text/markdown") -> list[NewPassage]:
    return split_document(ReadDocument(media_type=media_type, pages=[body]))


def test_each_section_carries_the_headings_above_it() -> None:
    found = text(MARKDOWN)
    assert [one.heading for one in found] == [
        "", "Machines", "Machines › Coffee machine", "Machines › Coffee machine › Descaling", "Cars",
    ]  # fmt: skip
    assert "# not a heading" in found[2].text
    assert found[-1] == NewPassage("Cars", "Drive slowly.")


def test_a_long_section_is_several_passages_and_a_short_one_is_whole() -> None:
    found = text("# Tea\n\n" + "\n\n".join(f"Paragraph {n}. " + "Leaves and water. " * 20 for n in range(12)))
    assert len(found) > 5
    assert {one.heading for one in found} == {"Tea"}
    assert all(estimate_tokens(one.text) <= WHOLE_TOKENS for one in found)
    assert [one.text for one in text("short")] == ["short"]


def test_chinese_is_cut_at_its_chapters_and_sentences() -> None:
    body = "第一章 总则\n" + "本法适用于所有用户。" * 60 + "\n第二章 附则\n自发布之日起施行。"
    found = text(body, "text/plain")
    assert {one.heading for one in found} == {"第一章 总则", "第二章 附则"}
    assert all(one.text.endswith("。") for one in found)
    assert all(estimate_tokens(one.text) <= WHOLE_TOKENS for one in found)


def test_a_page_of_a_pdf_is_its_heading() -> None:
    found = split_document(ReadDocument(media_type="application/pdf", pages=["one", "", "# three"]))
    assert found == [NewPassage("page 1", "one"), NewPassage("page 3", "# three")]


def test_what_says_nothing_has_no_passages() -> None:
    for nothing in ("", " \n\n ", "# Heading alone\n\n## And another"):
        assert text(nothing) == []


@given(st.text(max_size=2_000))
def test_no_character_of_a_plain_text_is_lost(body: str) -> None:
    found = "".join(one.heading + one.text for one in text(body, "text/plain"))
    assert sorted("".join(found.split()).replace("›", "").replace("#", "")) == sorted(
        "".join(body.split()).replace("›", "").replace("#", "")
    ) or any(line.lstrip().startswith(("#", "第")) for line in body.splitlines())
