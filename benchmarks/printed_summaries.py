"""Summaries to be read: what the summariser without a model makes of thirteen conversations today.

    python -m benchmarks.printed_summaries      # writes docs/benchmarks/summaries.md

A conversation is a file of `benchmarks/printed_summaries`, one message a line; `\\n` in it is a line break. A test
holds the page against what the code writes, so whoever changes a summary sees what it does to these.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from everthread.compaction.extract import extract
from everthread.compaction.sources import Source, SourceCall
from everthread.context.tokens import count_tokens

FOLDER = Path(__file__).parent / "printed_summaries"
PAGE = Path(__file__).resolve().parents[1] / "docs/benchmarks/summaries.md"
MAX_TOKENS = 420
_KINDS = {
    "Chat": ("flat", "yunnan", "app"),
    "Plans that change": ("japan", "kitchen", "wedding"),
    "Work with tools": ("export-job", "dashboard", "incident"),
    "Customers": ("bikes",),
    "Lessons, groups, long texts": ("statistics", "birthday", "novel"),
}
_OPENING = f"""# Summaries, to be read

What the extractive summariser (no model) writes today of thirteen conversations, in at most {MAX_TOKENS} tokens each.
Made by `python -m benchmarks.printed_summaries`; a test holds this page against the code. The conversations were
written to judge summaries by: ten were read while the rules were changed, three (kitchen, wedding, dashboard) were
written before and read at the end. `[#12]` is the line of the
conversation's file in `benchmarks/printed_summaries` that a line was made of.
"""


def sources_of(path: Path) -> Iterator[Source]:
    """The messages of a conversation, one for each line of its file."""
    waiting = ""
    for seq, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        role, _, said = line.partition(": ")
        text = said.replace("\\n", "\n")
        if role == "call":
            waiting, _, arguments = text.partition(" ")
            call = SourceCall(name=waiting, arguments=arguments, call_id=f"call-{seq}")
            yield Source(seq=seq, role="assistant", calls=(call,))
        elif role == "result":
            yield Source(
                seq=seq, role="tool", text=text, is_tool_result=True, tool_name=waiting, call_id=f"call-{seq - 1}"
            )
        else:
            yield Source(seq=seq, role=role, text=text)


def page() -> str:
    """The page with every summary."""
    parts = [_OPENING]
    for kind, names in _KINDS.items():
        parts.append(f"## {kind}\n")
        for name in names:
            sources = list(sources_of(FOLDER / f"{name}.txt"))
            told = extract(sources, max_tokens=MAX_TOKENS, count_tokens=count_tokens)
            said = sum(count_tokens(one.text) for one in sources)
            title = f"### {name.capitalize()}: {len(sources)} messages of {said:,} tokens, in {count_tokens(told):,}\n"
            parts.append(f"{title}\n```text\n{told}\n```\n")
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
    print(f"wrote {PAGE}")
