"""The recall benchmark runs in any clone on the project's own conversations, and says where to get the others."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import everyday
from benchmarks.recall_scores import FoundText, PlainBM25, paired_interval, score

ROOT = Path(__file__).parents[2]
DIGESTS = {
    "open": "c8f9b21e4b645fbeea013f7111743e81fc302f960e26bc8c68edb8120aa05670",
    "sealed": "ef354d6ee3060dd17f7b4be1b33a766dde481560e6b1a2d1cfc8ff702b930404",
    "later": "491797d4e396f301e2ed368cc32cc697f757776c3d616d296b7c9b33b9b9fd60",
    "lately_open": "fa6ee31ded213e3542c312b1477949aa24b191f95d89807f3e24a26f290c9708",
    "lately_sealed": "6925a0140340ef4c21a5cc5da62be9b04e33ec0ecace9dad08b47814021c0e94",
    "typed_sealed": "26a014af155ebad610e616467c2e21c1cfb58d720d72503c6b955f365d5d1887",
    "typed_open": "16e4cdde77010b03e558fe24cd0761b6e29f27cdc2d81c1128f668a43face53a",
}


def run(shared: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "benchmarks.recall", *arguments],
        cwd=ROOT,
        env={**os.environ, "EVERTHREAD_SHARED": str(shared)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_without_files_from_outside_it_names_each_and_its_origin(tmp_path: Path) -> None:
    done = run(tmp_path, "--sets", "locomo,beam,zh,tools")
    assert done.returncode == 1
    for path in ("locomo/dev.json", "beam", "recall/zh-dev.json", "recall/tools-dev.json"):
        assert str(tmp_path / "data" / path) in done.stderr
    assert "github.com/snap-research/locomo" in done.stderr
    assert "EVERTHREAD_SHARED" in done.stderr
    assert "Traceback" not in done.stderr


def test_conversations_of_your_own_are_measured_and_compared_with_an_earlier_run(tmp_path: Path) -> None:
    folder = tmp_path / "data" / "recall"
    folder.mkdir(parents=True)
    messages = [{"id": "m1", "role": "user", "text": "The dog is called Bruno."}, {"id": "m2", "text": "Fine."}]
    asked = [{"id": "q1", "text": "What is the dog called?", "evidence": ["m1"]}]
    (folder / "zh-dev.json").write_text(json.dumps([{"id": "t", "messages": messages, "questions": asked}]))
    first, again = tmp_path / "first.json", tmp_path / "again.json"
    assert run(tmp_path, "--sets", "zh", "--out", str(first)).returncode == 0
    assert run(tmp_path, "--sets", "zh", "--out", str(again), "--against", str(first)).returncode == 0
    row = json.loads(again.read_text())["results"]["recall"][-1]
    assert row["system"] == "everthread, words"
    assert row["all@10"] == 100.0
    assert row["all@10 over bm25"] == row["all@10 over earlier"] == "+0.0 [+0.0, +0.0]"


@pytest.mark.parametrize("half", everyday.HALVES)
def test_the_everyday_conversations_are_the_same_on_every_machine(half: str) -> None:
    assert everyday.digest(half) == DIGESTS[half]


@pytest.mark.parametrize("half", everyday.HALVES)
def test_every_question_names_messages_that_exist(half: str) -> None:
    talks = everyday.load(half)
    for talk in talks:
        known = {one.id for one in talk.messages}
        assert len(known) == len(talk.messages)
        assert all(one.evidence and one.evidence <= known for one in talk.questions)
    assert sum(len(talk.questions) for talk in talks) >= {"lately": 96, "typed": 65}.get(half.partition("_")[0], 150)


def test_no_question_of_one_part_is_in_another() -> None:
    asked = [{one.text for talk in everyday.load(half) for one in talk.questions} for half in everyday.HALVES]
    assert len(set().union(*asked)) == sum(map(len, asked))


def test_a_text_that_does_not_fit_the_budget_ends_the_list() -> None:
    found = [FoundText(["a"], "x" * 400), FoundText(["b"], "x" * 8_000), FoundText(["c"], "x")]
    scores = score(found, frozenset({"a", "c"}))
    assert (scores["all@10"], scores["all@2000t"], scores["frac@2000t"]) == (1.0, 0.0, 0.5)


def test_an_interval_of_equal_differences_is_that_difference() -> None:
    assert paired_interval([2.0] * 20) == (2.0, 2.0)


def test_plain_bm25_ranks_the_rarer_word_first() -> None:
    talk = everyday.Talk("t")
    for at, text in enumerate(["the boat is blue", "a boat", "boat trip", "the anchor of the boat"]):
        talk.messages.append(everyday.Message(str(at), "user", "user", text, None, {}))
    plain = PlainBM25()
    plain.index(talk)
    assert plain.search("Where is the anchor of the boat?", 1)[0].ids == ["3"]
