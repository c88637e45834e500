"""The signs by which a line shows that a rule need not be tried: none of them hides a fact."""

from __future__ import annotations

from pathlib import Path

import pytest

from everthread.text import facts
from everthread.text.fact_rule import SIGNS, FactRule, needs_met
from everthread.text.facts import RULES, find_facts

ROOT = Path(__file__).parents[2]
LINES = tuple(
    dict.fromkeys(
        line
        for path in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "tests" / "text").glob("*.py"))
        for line in path.read_text("utf-8").split("\n")
    )
)


PART_OF_THE_RULE = ("chinese line", "single quote")
"""Signs that say more than the pattern does: without them the rule would be another."""


@pytest.mark.parametrize(
    "rule", [rule for rule in RULES if rule.sign not in PART_OF_THE_RULE], ids=lambda rule: f"{rule.kind}: {rule.sign}"
)
def test_every_fact_of_a_rule_has_its_sign(rule: FactRule) -> None:
    sign = SIGNS[rule.sign]
    for line in LINES:
        if not any(rule.guard is None or rule.guard(match) for match in rule.pattern.finditer(line)):
            continue
        assert sign.needs & ~needs_met(line) == 0, line
        assert sign.test is None or sign.test(line), line


def test_no_sign_is_left_that_no_rule_has() -> None:
    assert SIGNS.keys() == {rule.sign for rule in RULES}


def test_a_line_that_was_looked_at_before_gives_the_same_facts_where_it_stands_now() -> None:
    line = "Order A-4711 left Porto on 2024-05-03 for 12.50 euro."
    first, again = find_facts(line, seq=1), find_facts(f"Well.\n{line}", seq=2)
    assert [(fact.kind, fact.text, fact.normal) for fact in first] == [
        (fact.kind, fact.text, fact.normal) for fact in again
    ]
    assert [fact.start + 6 for fact in first] == [fact.start for fact in again]
    assert {fact.seq for fact in again} == {2}


def test_long_lines_are_not_kept() -> None:
    before = facts._cached_line.cache_info().currsize
    find_facts("Porto is far. " * 200)
    assert facts._cached_line.cache_info().currsize == before
