"""Why a model knew or did not know something: from the manifests of its requests."""

from __future__ import annotations

import asyncio
from pathlib import Path

import everthread
from tests.cli.conftest import Quick

ECHO = {"EVERTHREAD_MODEL": "scripted:echo"}


def asked(quick: Quick, text: str) -> str:
    """Say something in the one conversation there is; the turn's id."""
    ran = quick("chat", "--json", "--conversation", "trip", text, env=ECHO)
    assert ran.code == 0, ran.err
    return str(ran.lines[0]["turn_id"])


async def begun(url: str) -> None:
    """A conversation with a passport at its beginning, which is summarised."""
    async with everthread.open(url, worker=False) as et:
        conv = await et.conversations.create(id="trip")
        for at in range(20):
            what = "my passport is L01X00T47" if at == 0 else f"and of the temples, number {at} "
            await conv.append([{"role": "user", "content": what + " is what I saw on the long way" * 20}])
            await conv.append([{"role": "assistant", "content": "I see." + " Go on and tell me more." * 20}])
        await conv.compact()


def test_it_is_told_where_a_text_was(quick: Quick, tmp_path: Path) -> None:
    asyncio.run(begun(f"sqlite:///{tmp_path / 'et.db'}"))
    turn = asked(quick, "what about the harbour?")
    found = quick("why", turn, "harbour", "--json").json
    assert found["requests"] == 1
    assert [(one["where"], one["role"]) for one in found["places"]] == [("window", "user"), ("later", "assistant")]
    passport = quick("why", turn, "PASSPORT", "--json").json
    assert [one["where"] for one in passport["places"]] == ["summary"]
    later = asked(quick, "and the volcano")
    assert [one["where"] for one in quick("why", turn, "volcano", "--json").json["places"]] == ["later", "later"]
    assert quick("why", later, "volcano", "--json").json["places"][0]["where"] == "window"
    recalled = asked(quick, "which passport did I mention, L01X00T47?")
    told = quick("why", recalled, "my passport", "--conversation", "trip")
    assert told.code == 0
    assert "recalled" in told.out or "summary" in told.out
    assert "no message of the conversation contains these words" in quick("why", turn, "aardvark").out
    newest = quick("why", "L01X00T47", "--json").json
    assert newest["turn_id"] == recalled
    assert quick("why", turn[:-1], "harbour", "--json").json["turn_id"] == turn


def test_an_unknown_turn_and_an_empty_text_are_told(quick: Quick, tmp_path: Path) -> None:
    asyncio.run(begun(f"sqlite:///{tmp_path / 'et.db'}"))
    assert quick("why", "nobody", "x").code == 3
    assert quick("why", "nobody", "x", "--conversation", "trip").code == 3
    assert quick("why", "nobody", " ").code == 2
    assert quick("why", "my", "passport", "number").code == 2
    nothing = quick("why", "passport")
    assert (nothing.code, "no turns yet" in nothing.err) == (3, True)
