"""Identifiers that lead from a name to results of tools which do not have it."""

from __future__ import annotations

from typing import Any

import everthread
from everthread.recall.links import identifiers


def test_an_identifier_has_a_digit_and_is_no_year() -> None:
    assert identifiers('{"id": "C8234", "mail": "c.sorel95@mail.example", "since": 2019, "plan": "basic"}') == [
        "c8234",
        "sorel95",
    ]
    assert identifiers("Order 12 of 2026, thanks") == []


def call(number: int, name: str, arguments: str, result: str) -> list[dict[str, Any]]:
    made = {"id": f"call{number}", "type": "function", "function": {"name": name, "arguments": arguments}}
    return [
        {"role": "assistant", "content": "", "tool_calls": [made]},
        {"role": "tool", "tool_call_id": f"call{number}", "content": result},
    ]


async def test_a_result_that_names_nobody_is_found_by_the_customer_it_belongs_to() -> None:
    first = [{"role": "user", "content": f"Hi, this is {name}, {mail}."} for name, mail in CUSTOMERS]
    lookups = [
        one
        for at, (_, mail) in enumerate(CUSTOMERS)
        for one in call(at, "lookup", f'{{"email": "{mail}"}}', f'{{"customer": "C80{at:02}", "since": "May"}}')
    ]
    orders = [
        one
        for at in reversed(range(len(CUSTOMERS)))
        for one in call(
            100 + at, "list_orders", f'{{"customer": "C80{at:02}"}}', f'{{"orders": [{{"item": "lamp {at}"}}]}}'
        )
    ]
    async with everthread.open("memory://", worker=False) as et:
        desk = await et.conversations.create()
        await desk.append([*first, *lookups, *orders])
        hits = await desk.recall("Which item did Carl Sorel order?", limit=3)
    assert '{"orders": [{"item": "lamp 7"}]}' in [hit.text for hit in hits]


CUSTOMERS = [
    *((f"Nadia Person{at}", f"n.person{at}77@mail.example") for at in range(7)),
    ("Carl Sorel", "c.sorel95@mail.example"),
    *((f"Grant Other{at}", f"g.other{at}88@mail.example") for at in range(7)),
]
