"""The tokens that agents report: each answer counts once, however often and wherever it is written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from everthread import Everthread
from everthread.imports.usage import Spent, spent_by_agents, tokens_in
from tests.imports.agent_files import (
    SESSION,
    as_lines,
    at,
    claude_answer,
    claude_file,
    claude_line,
    codex_event,
    codex_file,
    codex_session,
)
from tests.imports.test_follow import follower
from tests.imports.test_newer_agents import opencode, sweep, whole

OTHER = "99999999-2222-4333-8444-555555555555"


async def spent(et: Everthread, id: str | None = None) -> dict[tuple[str, str | None], tuple[int, int, int, int, int]]:
    """By session and model: answers, and the four kinds of tokens."""
    found: list[Spent] = [one async for one in spent_by_agents(et, "local", id)]
    return {
        (one.conversation.id, one.model): (
            one.answers,
            one.tokens["input_tokens"],
            one.tokens["cache_read_tokens"],
            one.tokens["cache_write_tokens"],
            one.tokens["output_tokens"],
        )
        for one in found
    }


async def test_an_answer_of_claude_in_several_lines_and_several_files_counts_once(
    et: Everthread, tmp_path: Path
) -> None:
    lines = [
        claude_line("u1", None, "user", "Why?", 1),
        claude_answer("a1", "msg_1", 2, 1),
        claude_answer("a2", "msg_1", 3, 40),
        claude_answer("a3", "msg_2", 4, 5),
        claude_line("a4", None, "assistant", "Not asked.", 5),
    ]
    lines[-1]["message"] |= {"model": "<synthetic>", "usage": {"input_tokens": 0, "output_tokens": 0}}
    path = claude_file(tmp_path, lines)
    again = path.with_name(f"{OTHER}.jsonl")
    again.write_bytes(as_lines([*lines, claude_answer("a9", "msg_9", 9, 2)]).replace(SESSION.encode(), OTHER.encode()))
    one = follower(et)
    await one.catch_up(path, "claude-code")
    await one.catch_up(again, "claude-code")
    claude_file(tmp_path, [*lines[:1], *lines[2:]])  # a rewritten file says it once more
    await one.catch_up(path, "claude-code")
    assert await spent(et) == {
        (f"claude-code:{SESSION}", "claude-test-1"): (2, 18, 200, 14, 45),
        (f"claude-code:{OTHER}", "claude-test-1"): (1, 9, 100, 7, 2),
    }
    assert (await spent(et, f"claude-code:{OTHER}"))[f"claude-code:{OTHER}", "claude-test-1"][0] == 3  # by itself


def count(second: int, total: int, cached: int, output: int, last: tuple[int, int, int] | None) -> dict[str, Any]:
    def usage(input: int, cached: int, output: int) -> dict[str, int]:
        return {"input_tokens": input, "cached_input_tokens": cached, "output_tokens": output,
                "reasoning_output_tokens": 1, "total_tokens": input + output}  # fmt: skip

    told: dict[str, Any] = {"total_token_usage": usage(total, cached, output)}
    return codex_event(second, type="token_count", info=told | ({"last_token_usage": usage(*last)} if last else {}))


async def test_running_totals_of_codex_are_counted_once_and_not_again_in_a_fork(et: Everthread, tmp_path: Path) -> None:
    counts = [
        codex_event(6, type="token_count", info=None),
        count(7, 1000, 800, 50, (1000, 800, 50)),
        count(8, 1000, 800, 50, (1000, 800, 50)),  # again, with other rate limits
        {"timestamp": at(8), "type": "turn_context", "payload": {"model": "gpt-other"}},
        count(9, 2500, 2000, 70, (1500, 1200, 20)),
    ]
    path = codex_file(tmp_path, [*codex_session(), *counts])
    fork = path.with_name("rollout-2026-03-01T11-00-00-codex-2.jsonl")
    head = {"id": "codex-2", "cwd": "/srv/ada/project", "forked_from_id": "codex-1"}
    copied = [{**line, "timestamp": at(30)} for line in [*codex_session(), *counts]]
    more = count(40, 2600, 2000, 80, (100, 0, 10))
    fork.write_bytes(as_lines([{"timestamp": at(30), "type": "session_meta", "payload": head}, *copied, more]))
    one = follower(et)
    for file in (path, fork):
        await one.catch_up(file, "codex")
    assert await spent(et) == {
        ("codex:codex-1", "gpt-test"): (1, 200, 800, 0, 50),
        ("codex:codex-1", "gpt-other"): (1, 300, 1200, 0, 20),
        ("codex:codex-2", "gpt-other"): (1, 100, 0, 0, 10),
    }


@pytest.mark.parametrize(
    ("usage", "counts"),
    [
        ({"input": 5, "output": 10, "cacheRead": 3, "cacheWrite": 2}, (5, 3, 2, 10)),
        ({"input": 50, "output": 10, "cached": 30, "thoughts": 4, "tool": 0, "total": 64}, (20, 30, 0, 14)),
        ({"input": 5, "output": 10, "reasoning": 1, "cache": {"read": 3, "write": 2}}, (5, 3, 2, 10)),
        ({"inputOther": 5, "output": 10, "inputCacheRead": 3, "inputCacheCreation": 2}, (5, 3, 2, 10)),
        ({"promptTokenCount": 8, "candidatesTokenCount": 9, "cachedContentTokenCount": 3}, (5, 3, 0, 9)),
        ({"prompt_tokens": 8, "completion_tokens": 9, "prompt_tokens_details": {"cached_tokens": 3}}, (5, 3, 0, 9)),
        ({"inputTokens": 8, "outputTokens": 9, "cachedInputTokens": 3}, (5, 3, 0, 9)),
        ({"input_tokens": "8", "output_tokens": True, "cache": None}, (0, 0, 0, 0)),
        ([1], (0, 0, 0, 0)),
    ],
)
def test_tokens_are_read_in_every_spelling(usage: object, counts: tuple[int, ...]) -> None:
    found = tokens_in(usage)
    names = ("input_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens")
    assert tuple(found[name] for name in names) == counts


async def test_what_opencode_says_an_answer_cost_is_added_up_by_its_newest_revision(
    et: Everthread, tmp_path: Path
) -> None:
    path = tmp_path / ".local" / "share" / "opencode" / "opencode.db"
    said: dict[str, Any] = {"content": [{"type": "text", "text": "Yes."}], "model": {"id": "gpt-test"}}
    tokens = {"input": 5, "output": 10, "reasoning": 0, "cache": {"read": 3, "write": 2}}
    opencode(path, lambda connection: whole(connection, 1, "assistant", **said, tokens={**tokens, "output": 1}))
    await sweep(et, tmp_path)
    opencode(path, lambda connection: connection.execute(
        "UPDATE session_message SET time_updated = time_updated + 1, data = ?",
        (json.dumps({**said, "tokens": tokens, "cost": 0.25}),)
    ))  # fmt: skip
    await sweep(et, tmp_path)
    (found,) = [one async for one in spent_by_agents(et, "local")]
    assert (found.answers, found.model, found.cost, found.tokens["output_tokens"]) == (1, "gpt-test", 0.25, 10)
