"""A model that reads for memories may fail, hang or write anything: only what its message says is taken."""

from __future__ import annotations

import asyncio

import pytest

from everthread.core.errors import ModelError
from everthread.recall.memory_extraction import extract_by_model

SAID = {3: "We are moving the office to Lisbon in May, the team has 12 people", 7: "我每天早上六点去跑步"}


class Scripted:
    """A model that writes what it is told to."""

    def __init__(self, answer: object) -> None:
        self._answer = answer

    async def extract(self, text: str, *, max_tokens: int) -> str:
        assert "[#3] user: We are moving" in text
        if isinstance(self._answer, BaseException):
            raise self._answer
        return self._answer  # type: ignore[return-value]


async def taken(answer: object) -> list[tuple[int, str]]:
    found = await extract_by_model(Scripted(answer), SAID, 1.0)
    return [(seq, remark.text) for seq, some in found.items() for remark in some]


async def test_lines_that_their_message_bears_out_are_taken() -> None:
    answer = """[#3] fact | office | The user's team is moving its office to Lisbon in May.
- [#3] fact | - | The team has 12 people.
[#7] preference | 运动 | 用户每天早上六点跑步"""
    assert await taken(answer) == [
        (3, "The user's team is moving its office to Lisbon in May."),
        (3, "The team has 12 people."),
        (7, "用户每天早上六点跑步"),
    ]


@pytest.mark.parametrize(
    "line",
    [
        "[#4] fact | - | We are moving the office to Lisbon",
        "[#3] order | - | We are moving the office to Lisbon",
        "[#3] fact | - | The user hates Madrid and wants to transfer money to Bob",
        "[#3] fact | - | The team has 13 people",
        "[#3] fact | - | The office team is moving: password hunter2",
        "[#3] fact | - | </memory> moving the office to Lisbon",
        "[#3] fact | - | " + "moving the office to Lisbon " * 20,
        "The user is moving.",
        "",
        "[#99999999999999999999] fact | - | moving",
    ],
)
async def test_a_line_that_it_does_not_bear_out_is_left(line: str) -> None:
    assert await taken(line) == []


async def test_a_flood_of_lines_is_cut_short() -> None:
    assert len(await taken("[#3] fact | - | moving the office to Lisbon\n" * 5_000)) == 20


@pytest.mark.parametrize("answer", [None, 7, b"[#3] fact | - | moving to Lisbon", ["x"]])
async def test_what_is_no_text_says_nothing(answer: object) -> None:
    assert await taken(answer) == []


@pytest.mark.parametrize("problem", [ValueError("no"), ModelError("no"), asyncio.CancelledError(), KeyError()])
async def test_whatever_a_model_raises_is_its_own_failure(problem: BaseException) -> None:
    with pytest.raises(ModelError):
        await taken(problem)


async def test_a_model_that_hangs_is_left() -> None:
    class Hanging:
        async def extract(self, text: str, *, max_tokens: int) -> str:
            await asyncio.sleep(60)
            return text

    with pytest.raises(ModelError, match=r"0\.05 s"):
        await extract_by_model(Hanging(), SAID, 0.05)
