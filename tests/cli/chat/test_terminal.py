"""The chat as people meet it: in a terminal of its own, with a model that answers by script."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.chat.terminal import Terminal
from tests.cli.conftest import Quick
from tests.cli.shell import Fork

PROMPT = "›"
ECHO = {"EVERTHREAD_MODEL": "scripted:echo"}


def script(folder: Path, *steps: object) -> dict[str, str]:
    """A model that answers so."""
    file = folder / "script.json"
    file.write_text(json.dumps(list(steps)))
    return {"EVERTHREAD_MODEL": f"scripted:{file}"}


def said(quick: Quick) -> list[tuple[str, str]]:
    """All messages of the one conversation there is."""
    (row,) = quick("ls", "--json").lines
    return [(one["role"], one["text"]) for one in quick("show", row["id"], "--json").lines]


def test_an_answer_is_shown_as_markdown_and_kept(fork: Fork, quick: Quick) -> None:
    with Terminal(fork, "chat", env=ECHO) as terminal:
        terminal.expect("/help shows the commands")
        terminal.expect(PROMPT)
        terminal.enter("hello **there**")
        terminal.expect("hello there")
        terminal.expect(PROMPT)
        terminal.enter("/current")
        told = terminal.expect(r"model\s+scripted:echo")
        assert "session " in told
        assert "messages   2/1000" in told
        assert "et.db.workspaces" in told
        terminal.expect(PROMPT)
        terminal.enter("/nonsense")
        terminal.expect("unknown command /nonsense")
        terminal.expect(PROMPT)
        terminal.enter("/exit")
        assert terminal.end() == 0
    assert said(quick) == [("user", "hello **there**"), ("assistant", "hello **there**")]


def test_thinking_and_tool_calls_are_folded_and_can_be_unfolded(fork: Fork, tmp_path: Path) -> None:
    model = script(
        tmp_path,
        {
            "thinking": "a secret plan of six words",
            "calls": [{"name": "write_file", "args": {"path": "a.md", "text": "x" * 200}}],
        },
        "Written \x1b]0;owned\x07 down.",
    )
    with Terminal(fork, "chat", env=model) as terminal:
        terminal.expect(PROMPT)
        terminal.enter("write it")
        told = terminal.expect(r"down\.")
        assert "\x1b]0;owned" not in terminal.raw
        assert "thought for 6 words" in told
        assert "secret plan" not in told
        assert '▸ write_file(path="a.md", text="xxx' in told
        assert "x" * 200 not in told
        assert "ok, " in told
        terminal.expect(PROMPT)
        terminal.enter("/details")
        whole = terminal.expect(r"a\.md: 200 bytes")
        assert "a secret plan of six words" in whole
        terminal.expect(PROMPT)
        terminal.type("\x04")
        assert terminal.end() == 0


def test_ctrl_c_stops_the_answer_and_keeps_the_partial_text(fork: Fork, quick: Quick, tmp_path: Path) -> None:
    long = " ".join(f"word{at}" for at in range(400))
    model = script(tmp_path, {"text": long, "pace_seconds": 0.05}, "second answer")
    with Terminal(fork, "chat", env=model) as terminal:
        terminal.expect(PROMPT)
        terminal.enter("tell me much")
        terminal.expect("word3")
        terminal.type("\x03")
        terminal.expect("what was said so far is kept")
        terminal.expect(PROMPT)
        assert "^C" not in terminal.text  # it would leave a line of the unfinished answer behind
        terminal.enter("go on")
        terminal.expect("second answer")
        terminal.expect(PROMPT)
        terminal.type("\x03")  # throws away the line, not the chat
        terminal.enter("/exit")
        assert terminal.end() == 0
    messages = said(quick)
    assert [role for role, _ in messages] == ["user", "assistant", "user", "assistant"]
    partial = messages[1][1]
    assert partial.startswith("word0 word1")
    assert len(partial) < len(long)
    assert messages[3][1] == "second answer"


def test_without_a_model_one_is_told_that_the_local_one_is_a_toy(fork: Fork, models_dir: str) -> None:
    with Terminal(fork, "chat", env={"EVERTHREAD_MODELS_DIR": models_dir}) as terminal:
        told = terminal.expect(PROMPT)
        assert "toy" in told
        assert "EVERTHREAD_MODEL" in told
        terminal.type("\x04")
        assert terminal.end() == 0


def test_a_continued_conversation_shows_where_it_was_left(fork: Fork, quick: Quick) -> None:
    quick("chat", "the harbour is closed", env=ECHO)
    with Terminal(fork, "chat", "-c", env=ECHO) as terminal:
        terminal.expect("Continuing “.+”, 2 messages")
        terminal.expect("you: the harbour is closed")
        terminal.expect("assistant: the harbour is closed")
        terminal.expect(PROMPT)
        terminal.enter("and the volcano?")
        terminal.expect("thinking …")  # before the first word
        terminal.expect("and the volcano")
        terminal.expect(PROMPT)
        terminal.enter("/exit")
        assert terminal.end() == 0
