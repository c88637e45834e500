"""The chat in a pipe: a message in, an answer out; the answer alone on stdout."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Quick
from tests.cli.shell import Shell

ECHO = {"EVERTHREAD_MODEL": "scripted:echo"}


def test_a_pipe_gets_the_answer_and_nothing_else(quick: Quick) -> None:
    ran = quick("chat", input="hi\n", env=ECHO)
    assert (ran.code, ran.out) == (0, "hi\n")


def test_json_tells_every_event_a_line(quick: Quick) -> None:
    ran = quick("chat", "--json", input="hi there", env=ECHO)
    assert ran.code == 0
    kinds = [event["kind"] for event in ran.lines]
    assert kinds[0] == "accepted"
    assert kinds[-1] == "done"
    assert "".join(event["text"] for event in ran.lines if event["kind"] == "token") == "hi there"
    assert ran.lines[-1]["text"] == "hi there"
    assert ran.lines[0]["conversation_id"]
    numbers = [event["number"] for event in ran.lines]
    assert numbers == sorted(set(numbers)), "pieces of text that come together are one line, by its last number"


def test_a_message_may_be_an_argument_and_a_conversation_goes_on(quick: Quick) -> None:
    first = quick("chat", "--json", "one", env=ECHO).lines[0]["conversation_id"]
    other = quick("chat", "--json", "two", env=ECHO).lines[0]["conversation_id"]
    assert first != other
    again = quick("chat", "--json", "--conversation", first, "three", env=ECHO)
    assert again.lines[0]["conversation_id"] == first
    last = quick("chat", "--json", "-c", "four", env=ECHO)
    assert last.lines[0]["conversation_id"] == first
    assert [one["text"] for one in quick("show", first, "--json").lines if one["role"] == "user"] == [
        "one", "three", "four"
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["", " \n\t\n"])
def test_nothing_said_is_refused_and_leaves_nothing(quick: Quick, shell: Shell, text: str) -> None:
    ran = quick("chat", "--json", input=text, env=ECHO)
    assert ran.code == 2
    assert "empty" in ran.error["message"]
    assert not Path(str(shell.database).removeprefix("sqlite:///")).exists()


def test_a_model_that_fails_is_an_error_and_the_question_is_kept(quick: Quick, tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text(json.dumps([{"text": "half an ", "error": "broken"}]))
    ran = quick("chat", input="hi", env={"EVERTHREAD_MODEL": f"scripted:{tmp_path / 's.json'}"})
    assert ran.code == 1
    assert "failed" in ran.err
    (row,) = quick("ls", "--json").lines
    texts = [one["text"] for one in quick("show", row["id"], "--json").lines]
    assert texts[0] == "hi"
    assert texts[1:] == ["half an "]


@pytest.mark.parametrize(
    ("model", "why"),
    [
        ("nonsense", "is not a model's name"),
        ("scripted:gone.json", "cannot read the script"),
        ("openai:gpt-5-mini", "OPENAI_API_KEY"),
    ],
)
def test_a_model_that_cannot_be_had_is_told_with_what_to_do(quick: Quick, model: str, why: str) -> None:
    ran = quick("chat", "hi", "--model", model)
    assert ran.code != 0
    assert why in ran.err


def test_two_conversations_at_once_are_refused(quick: Quick) -> None:
    ran = quick("chat", "hi", "-c", "--conversation", "x", env=ECHO)
    assert ran.code == 2


def test_there_must_be_one_to_continue(quick: Quick) -> None:
    ran = quick("chat", "hi", "-c", env=ECHO)
    assert (ran.code, "no conversation to continue" in ran.err) == (3, True)
