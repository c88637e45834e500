"""What a model sees, from the shell: context, compact, compactions, diff, show --level, replay."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len

from everthread.cli.context import ASCII, BLOCKS, chars_for, gauge
from tests.cli.conftest import Quick
from tests.cli.shell import Ran, Shell, user
from tests.contracts.views import turn

TURNS = 30


@pytest.fixture
def talk(quick: Quick) -> Quick:
    """A conversation far longer than its window."""
    said = [message for number in range(TURNS) for message in turn(number)]
    assert quick("append", "c", input=said).code == 0
    return quick


@pytest.fixture
def compacted(talk: Quick) -> Quick:
    assert talk("compact", "c").code == 0
    return talk


def listed(ran: Quick) -> list[Any]:
    return ran("compactions", "c", "--json").lines


# -- context -------------------------------------------------------------------------------------------------------


def test_context_names_every_part_and_whatever_is_left_out(talk: Quick) -> None:
    counted = {"MAX_MESSAGE_HISTORY": "40"}
    seen = talk("context", "c", "--json", env=counted).json
    (window,) = seen["parts"]
    assert (window["kind"], window["tokens"]) == ("window", seen["tokens"])
    (gap,) = seen["omitted"]
    assert (gap["reason"], gap["seq"], gap["last_seq"] + 1) == ("passed_over", 1, window["seqs"][0])
    assert (seen["due"], seen["uncovered"], seen["exact"]) == ("messages", 4 * TURNS, True)
    shown = talk("context", "c", env=counted).out
    assert f"1–{gap['last_seq']}" in shown
    assert "passed over" in shown
    assert "one is due" in shown


def test_looking_at_a_context_writes_nothing_even_over_the_hard_mark(talk: Quick) -> None:
    seen = talk("context", "c", "--window", "700", "--reserve", "100", "--json").json
    assert seen["due"] == "hard_limit"
    assert seen["tokens"] <= seen["limit"] == 600 < seen["wanted_tokens"]
    assert listed(talk) == []


def test_the_gauge_shows_summaries_beside_the_window(compacted: Quick) -> None:
    seen = compacted("context", "c", "--json").json
    assert [part["kind"] for part in seen["parts"]] == ["summary", "window"]
    assert (seen["omitted"], seen["due"]) == ([], None)
    bar = compacted("context", "c", "--window", "6000").out.splitlines()[1]
    assert len(bar) == 61
    assert bar.startswith("█")
    assert set(bar) == {"█", "▓", "·", "│"}


def test_a_count_for_another_vocabulary_is_called_an_estimate(talk: Quick) -> None:
    assert ", exact" in talk("context", "c").out
    assert ", estimated" in talk("context", "c", "--factor", "1.3").out
    assert talk("context", "c", "--factor", "1.3", "--json").json["exact"] is False


@pytest.mark.parametrize("options", [["--window", "10", "--reserve", "10"], ["--factor", "9"], ["--window", "0"]])
def test_a_budget_that_leaves_nothing_is_refused(talk: Quick, options: list[str]) -> None:
    assert talk("context", "c", *options).code == 2


def test_a_small_window_keeps_less_free_for_the_answer(talk: Quick) -> None:
    assert talk("context", "c", "--window", "4000", "--json").json["limit"] == 3000
    assert talk("context", "c", "--json").json["limit"] == 128_000 - 4_096


def test_a_context_of_a_branch_is_its_own(talk: Quick) -> None:
    assert talk("context", "c", "--branch", "4", "--json").json["uncovered"] == 4


def test_an_empty_conversation_has_an_empty_context(quick: Quick) -> None:
    quick("append", "c", input=[user("x")])
    quick("delete", "c", "1")
    assert quick("context", "c", "--json").json["tokens"] == 0
    assert quick("context", "c").code == 0


def test_a_context_printed_whole_is_the_request_with_memories_and_recall(compacted: Quick) -> None:
    compacted("memories", "add", "The user is called Max.", "--kind", "profile")
    asked = ("context", "c", "--question", "What became of order A-300?")
    seen = compacted(*asked, "--whole", "--json").json
    printed = compacted(*asked, "--whole").out
    for number, message in enumerate(seen["request"], start=1):
        assert f"[{number}] {message['role']}\n{message['content'] or ''}" in printed
    kinds = [piece["kind"] for piece in seen["pieces"]]
    assert {"memory", "summary", "recalled", "window"} <= set(kinds)
    assert seen["request"][-1] == {"role": "user", "content": "What became of order A-300?"}
    (memory,) = (piece for piece in seen["pieces"] if piece["kind"] == "memory")
    assert memory["text"] in seen["request"][memory["message"]]["content"]
    folded = compacted(*asked).out
    assert f"memory {memory['memory_id']}" in folded
    assert "The user is called Max." in folded


def test_summaries_that_are_merged_for_a_small_window_are_named(compacted: Quick) -> None:
    asked = ("context", "c", "--window", "900")
    seen = compacted(*asked, "--json").json
    (merged,) = (piece for piece in seen["pieces"] if piece["form"] == "merged")
    assert len(merged["summary_ids"]) > 1
    named = {(one["seq"], one["last_seq"]) for one in seen["omitted"] if one["reason"] == "summaries_merged"}
    assert named == {tuple(merged["seqs"])}
    assert "shortened into one text" in compacted(*asked).out
    assert not any(piece["form"] == "merged" for piece in compacted("context", "c", "--json").json["pieces"])


def test_what_the_question_recalls_is_named_where_there_is_no_room(compacted: Quick) -> None:
    compacted("memories", "add", "The user is called Max.", "--kind", "profile")
    seen = compacted("context", "c", "--window", "700", "--question", "What became of order A-300?", "--json").json
    reasons = {one["reason"] for one in seen["omitted"]}
    assert "recalled" not in [piece["kind"] for piece in seen["pieces"]]
    assert "recall_over_budget" in reasons


@pytest.mark.parametrize(
    ("tokens", "mark"), [([1], 0.8), ([0, 5, 1], 0.05), ([50, 50], 1.0), ([40, 1, 60], 0.5), ([], 0.5)]
)
def test_a_gauge_is_as_wide_as_it_should_be_and_every_part_is_seen(tokens: list[int], mark: float) -> None:
    parts = [(f"p{at}", size) for at, size in enumerate(tokens)]
    drawn = "".join(signs for signs, _ in gauge(parts, 100, mark, width=10, signs=ASCII))
    assert len(drawn) == 11
    assert drawn.index("|") == round(mark * 10)
    assert {ASCII.shades[at] for at, size in enumerate(tokens) if size} <= set(drawn)


def test_a_terminal_without_blocks_gets_plain_signs(shell: Shell, quick: Quick) -> None:
    assert (chars_for("utf-8"), chars_for("ascii"), chars_for("no such thing")) == (BLOCKS, ASCII, ASCII)
    quick("append", "c", input=[user("x")])
    ran = shell("context", "c", env={"PYTHONIOENCODING": "ascii"})
    assert "#" in ran.out
    assert "\\u2588" not in ran.out


# -- compact, compactions, diff ------------------------------------------------------------------------------------


def test_a_dry_run_says_what_would_be_summarised_and_does_nothing(talk: Quick) -> None:
    assert "messages 1 to " in talk("compact", "c", "--dry-run").out
    assert talk("compact", "c", "--dry-run", "--json").json["compacted"] is False
    assert listed(talk) == []


def test_compacting_changes_the_view_and_not_the_history(talk: Quick) -> None:
    before = talk("show", "c", "--json").out
    done = talk("compact", "c", "--json").json
    assert done["compacted"]
    assert done["new_count"] < done["original_count"] == 4 * TURNS
    assert talk("show", "c", "--json").out == before
    assert len(listed(talk)) > 1


def test_compacting_again_is_no_failure(compacted: Quick) -> None:
    again = compacted("compact", "c")
    assert again.code == 0
    assert "messages are" not in again.out


def test_an_undone_compaction_gives_the_former_view_back(compacted: Quick) -> None:
    *_, newest = listed(compacted)
    assert compacted("compact", "c", "--undo", listed(compacted)[0]["id"]).code == 4
    said = compacted("compact", "c", "--undo", newest["id"]).out
    assert f"view has messages {newest['first_seq']} to {newest['last_seq']} again" in said
    undone = compacted("compact", "c", "--undo", newest["id"], "--json").json
    assert undone["undone_at"] is not None
    assert [one["state"] for one in listed(compacted)][-1] == "undone"
    assert "undone" in compacted("compactions", "c").out


def test_undo_stands_alone(compacted: Quick) -> None:
    assert compacted("compact", "c", "--undo", "x", "--dry-run").code == 2


def test_a_compaction_is_found_by_the_beginning_of_its_id(compacted: Quick) -> None:
    first, second, *_ = [one["id"] for one in listed(compacted)]
    shared = next(at for at in range(len(first)) if first[at] != second[at])
    assert compacted("diff", "c", first[: shared + 1], "--json").json["compaction"]["id"] == first
    assert compacted("diff", "c", first[:shared]).code == 2
    assert compacted("diff", "c", "nothing").code == 3
    assert compacted("diff", "c", "").code == 3


def test_a_compaction_is_found_by_its_number_in_the_list(compacted: Quick) -> None:
    every = listed(compacted)
    assert [one["number"] for one in every] == list(range(1, len(every) + 1))
    head, first, *_ = compacted("compactions", "c").out.splitlines()
    assert (head.split()[:2], first.split()[:2]) == (["nr", "id"], ["1", every[0]["id"]])
    assert compacted("diff", "c", "2", "--json").json["compaction"]["id"] == every[1]["id"]
    newest = str(len(every))
    assert compacted("compact", "c", "--undo", newest, "--json").json["id"] == every[-1]["id"]
    assert compacted("diff", "c", str(len(every) + 1)).code == 3


def test_a_diff_shows_tool_calls(compacted: Quick) -> None:
    lines = compacted("diff", "c", "1", "--full").out.splitlines()
    originals = lines[: next(at for at, line in enumerate(lines) if line.startswith("their summary"))]
    said = [below for line, below in pairwise(originals) if line.endswith(" assistant")]
    assert len(said) > 2
    assert all(below.strip() for below in said)


def test_a_diff_shows_originals_summary_and_facts(compacted: Quick) -> None:
    first = listed(compacted)[0]
    compared = compacted("diff", "c", first["id"], "--json").json
    assert [one["seq"] for one in compared["originals"]] == list(range(first["first_seq"], first["last_seq"] + 1))
    assert compared["summary"] == first["summary"]
    assert "2024-05-02" in compared["facts_kept"]
    assert not set(compared["facts_kept"]) & set(compared["facts_only_in_originals"])
    shown = compacted("diff", "c", first["id"]).out
    assert "- 1 user" in shown
    assert "+ ## " in shown
    assert "more (--full shows them)" in shown
    assert "more (--full" not in compacted("diff", "c", first["id"], "--full").out


def test_conversations_of_others_are_unknown(compacted: Quick) -> None:
    for command in (["context", "c"], ["compact", "c"], ["compactions", "c"], ["diff", "c", "0"]):
        assert compacted(*command, "--owner", "eve").code == 3, command


# -- show --level --------------------------------------------------------------------------------------------------


def test_a_level_puts_summaries_in_place_of_what_they_stand_for(compacted: Quick) -> None:
    lines = compacted("show", "c", "--level", "1", "--json").lines
    summaries = [line for line in lines if line.get("kind") == "summary"]
    assert [one["first_seq"] for one in summaries[1:]] == [one["last_seq"] + 1 for one in summaries[:-1]]
    assert [line["seq"] for line in lines[len(summaries) :]] == list(
        range(summaries[-1]["last_seq"] + 1, 4 * TURNS + 1)
    )
    assert "summarised  level 1" in compacted("show", "c", "--level", "1").out


def test_without_summaries_a_level_is_the_history(talk: Quick) -> None:
    assert talk("show", "c", "--level", "3").out == talk("show", "c").out
    assert talk("show", "c", "--level", "1", "--tail", "3").code == 2


def test_a_higher_level_tells_the_same_in_fewer_summaries(quick: Quick) -> None:
    said = [message for number in range(160) for message in turn(number)]
    quick("append", "c", input=said)
    quick("compact", "c")
    low, high = (
        [line for line in quick("show", "c", "--level", level, "--json").lines if line.get("kind") == "summary"]
        for level in ("1", "2")
    )
    assert {one["level"] for one in low} == {1}
    assert {one["level"] for one in high} == {1, 2}
    assert len(high) < len(low)
    assert (high[0]["first_seq"], high[-1]["last_seq"]) == (low[0]["first_seq"], low[-1]["last_seq"])
    assert {one["state"] for one in listed(quick)} == {"in use", "condensed"}


# -- replay --------------------------------------------------------------------------------------------------------


def replayed(quick: Quick, file: Path, *more: str) -> Ran:
    return quick("replay", "c", "--policy", str(file), *more)


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    file = tmp_path / "small.toml"
    file.write_text("max_message_history = 20\nkeep_recent = 5\n")
    return file


def test_replay_compares_four_ways_and_writes_nothing(talk: Quick, policy: Path) -> None:
    ran = replayed(talk, policy, "--window", "16000", "--json").json
    ways = {way["way"]: way for way in ran["ways"]}
    assert list(ways) == ["small.toml", "present policy", "newest 40 messages", "full history"]
    assert ways["small.toml"]["policy"]["max_message_history"] == 20
    assert ways["present policy"]["policy"]["max_message_history"] is None
    assert ways["small.toml"]["compactions"] > 0
    assert ways["present policy"]["compactions"] == 0  # all of it fits
    assert ways["full history"]["facts_kept"] == ways["full history"]["facts_total"]
    assert ways["newest 40 messages"]["stability"] < ways["present policy"]["stability"]
    assert listed(talk) == []


def test_replay_counts_money_at_given_prices(talk: Quick, policy: Path) -> None:
    (first, *_) = replayed(talk, policy, "--price-in", "2", "--price-cached", "0.5", "--price-out", "8", "--json").json[
        "ways"
    ]
    fresh = first["tokens"] - first["cached_tokens"]
    assert first["cost"] == pytest.approx((fresh * 2 + first["cached_tokens"] * 0.5 + first["answer_tokens"] * 8) / 1e6)
    priced, unpriced = replayed(talk, policy, "--price-in", "2").out, replayed(talk, policy).out
    assert "cost/turn" in priced
    assert "cost" not in unpriced
    assert replayed(talk, policy, "--price-out", "2").code == 2


@pytest.mark.parametrize(
    ("name", "text", "code"),
    [
        ("p.json", json.dumps({"threshold": 0.5}), 0),
        ("everthread.toml", "[compaction]\nthreshold = 0.5\n", 0),
        ("p.toml", "threshold = 7.0\n", 2),
        ("p.toml", "treshold = 0.5\n", 2),
        ("p.toml", "threshold = \n", 2),
        ("p.toml", "", 2),
        ("p.json", "[1]", 2),
        ("p.json", "{", 2),
    ],
)
def test_a_policy_file_is_taken_or_refused_by_its_field(
    quick: Quick, tmp_path: Path, name: str, text: str, code: int
) -> None:
    quick("append", "c", input=[user("x"), {"role": "assistant", "content": "y"}])
    file = tmp_path / name
    file.write_text(text)
    ran = replayed(quick, file, "--json")
    assert (ran.code, ran.out == "") == (code, code != 0)


def test_a_policy_file_that_is_not_there_is_an_error(talk: Quick, tmp_path: Path) -> None:
    assert replayed(talk, tmp_path / "gone.toml").code == 2


# -- wide characters -----------------------------------------------------------------------------------------------


def test_columns_stand_below_each_other_whatever_the_width_of_characters(quick: Quick) -> None:
    quick("append", "c1", "--title", "旅行计划：昆明慢车", input=[user("x")])
    quick("append", "c2", "--title", "plain", input=[user("x")])
    head, *rows = quick("ls").out.splitlines()
    place = cell_len(head[: head.index("messages")]) + len("messages")
    for row in rows:
        before_time = row[: row.index("202")].rstrip()
        assert cell_len(before_time) == place, row
