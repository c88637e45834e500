"""What is given in a wrong form is refused where it is given, with the right form."""

from __future__ import annotations

import pytest

import everthread
from everthread import Invalid


class Narrow:
    async def summarise(self, text: str) -> str:
        return text


class Wide:
    name = "wide"

    async def summarise(self, text: str, **how: object) -> str:
        return text


async def test_a_summariser_of_another_signature_is_refused_when_it_is_given() -> None:
    with pytest.raises(Invalid, match=r"summarise\(self, text, \*, kind, max_tokens, is_terse\)"):
        everthread.open("memory://", summariser=Narrow())  # type: ignore[arg-type]
    async with everthread.open("memory://", summariser=Wide(), worker=False):
        pass


def test_opening_without_async_says_how() -> None:
    with pytest.raises(TypeError, match=r"async with .*open_sync"), everthread.open("memory://"):
        pass


async def test_a_files_name_is_not_taken_for_its_text() -> None:
    async with everthread.open("memory://", worker=False) as et:
        with pytest.raises(Invalid, match=r"Path\('machine.md'\)"):
            await et.knowledge.add("ann", "manuals", "machine.md")
        await et.knowledge.add("ann", "manuals", "See machine.md for more.")
