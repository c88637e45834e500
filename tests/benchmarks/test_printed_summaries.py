"""The summaries that are printed in the docs are those that the code writes."""

from __future__ import annotations

from benchmarks.printed_summaries import FOLDER, PAGE, page


def test_the_printed_summaries_are_what_the_code_writes_today() -> None:
    text = page()
    assert PAGE.read_text("utf-8") == text, "run `python -m benchmarks.printed_summaries`, and read what changed"
    assert all(f"### {path.stem.capitalize()}: " in text for path in FOLDER.glob("*.txt"))
