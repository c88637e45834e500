"""Messages that read like real ones, made by a seeded generator: prose, code and tool results, different each turn.

What a turn costs depends on what it says: facts are sought in paths, dates and names, tokens counted in words. So the
words are common English ones, the code is Python, and a tool result is a listing, a log or a source file.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

Message = dict[str, Any]

_NOUNS = (
    "order invoice schedule server database report customer window station contract message budget kitchen garden "
    "release migration test branch table column index queue worker token request answer summary meeting ticket flight "
    "hotel museum river bridge recipe oven lesson chapter budget engine cable battery screen folder archive backup "
    "filter cache handler parser session journey luggage passport platform weather forecast harvest market shelf paint"
).split()
_VERBS = (
    "check move rename open close build ship deliver repair measure compare read write send cancel book plan explain "
    "describe replace remove restore import export filter sort count parse render review approve reject postpone"
).split()
_ADJECTIVES = (
    "small large early late quiet broken empty full recent old cheap expensive careful sudden steady slow quick narrow "
    "wide plain complete partial local remote public private warm cold heavy light bright dark simple strange common"
).split()
_NAMES = "Anna Marta Joon Priya Tomas Elif Kofi Ines Bruno Yuki Lena Omar Clara Victor Nadia Hugo Mei Ravi".split()
_PLACES = "Lisbon Kunming Oslo Turin Lagos Porto Ghent Quito Malmo Leeds Basel Nagoya Gdansk Cork Tartu Bergen".split()
_MONTHS = "January February March April May June July August September October November December".split()
_FOLDERS = "src tests docs api web jobs store core tools billing search".split()

_SENTENCES = (
    "The {a} {n} has to {v} the {n2} before {month} {day}.",
    "{name} said that the {n} in {place} was {a}, and that we should {v} it.",
    "I looked at {path} and the {n} there is still {a}; could you {v} it?",
    "We paid {price} euro for {count} {n}s, which is more than the {a} {n2} costs.",
    "After that, {v} every {n} that is older than {count} days and {v2} the rest.",
    "It is not clear why the {n} fails with {error} when the {n2} is {a}.",
    "Please {v} the {n} at {hour}:{minute:02d} and tell {name} about the {a} {n2}.",
    "On {iso} the {n} moved from {place} to {place2}, and nobody noticed the {a} {n2}.",
    "That would be fine, but the {n} is {a} and the {n2} takes {count} minutes.",
    "So the plan is to {v} first, then {v2} the {n}, and keep the {n2} as it is.",
    "The {n} needs no {n2}, as far as I can see.",
    "Version {major}.{minor}.{day} of the {n} made it {a}.",
)
_ERRORS = ("TimeoutError", "KeyError", "status 503", "exit code 2", "ECONNRESET", "ValueError")


class Talk:
    """A source of messages; equal seeds say the same."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._calls = 0

    def prose(self, size: int) -> str:
        """About so many characters of sentences, in paragraphs."""
        return _filled(size, self._sentence, lambda at: "\n\n" if at % 5 == 4 else " ")

    def code(self, size: int) -> str:
        """About so many characters of Python."""
        return _filled(size, self._function, lambda _: "\n\n\n")

    def tool_result(self, size: int) -> str:
        """About so many characters of what tools answer: a source file, a log, a listing."""
        kinds = (lambda: self.code(1_500), self._log, self._listing)
        return _filled(size, lambda: self._random.choice(kinds)(), lambda _: "\n")

    def turn(self, count: int, size: int, result: int | None = None) -> list[Message]:
        """So many messages of about so many characters; those between question and answer call tools, one of which
        may answer with `result` characters."""
        messages: list[Message] = [{"role": "user", "content": self.prose(size)}]
        while len(messages) < count - 1:
            self._calls += 1
            call = f"call-{self._calls}"
            function = {"name": "read_file", "arguments": f'{{"path": "{self._path()}", "limit": {self._count()}}}'}
            asked = {"id": call, "type": "function", "function": function}
            messages.append({"role": "assistant", "content": self.prose(size), "tool_calls": [asked]})
            if len(messages) < count - 1:
                answered = self.tool_result(result or size)
                messages.append({"role": "tool", "tool_call_id": call, "content": answered})
                result = None
        code = f"\n```python\n{self.code(size // 2)}\n```" if size > 300 else ""
        return [*messages, {"role": "assistant", "content": self.prose(size // 2 if code else size) + code}]

    def _sentence(self) -> str:
        pick = self._random.choice
        return pick(_SENTENCES).format(
            a=pick(_ADJECTIVES), n=pick(_NOUNS), n2=pick(_NOUNS), v=pick(_VERBS), v2=pick(_VERBS), name=pick(_NAMES),
            place=pick(_PLACES), place2=pick(_PLACES), month=pick(_MONTHS), day=self._random.randint(1, 28),
            path=self._path(), price=self._random.randint(10, 9_999) / 10, count=self._count(), error=pick(_ERRORS),
            hour=self._random.randint(7, 22), minute=self._random.randint(0, 59), iso=self._date(),
            major=self._random.randint(0, 9), minor=self._random.randint(0, 30),
        )  # fmt: skip

    def _function(self) -> str:
        pick = self._random.choice
        noun, verb, other = pick(_NOUNS), pick(_VERBS), pick(_NOUNS)
        lines = [
            f"def {verb}_{noun}({other}: list[str], limit: int = {self._count()}) -> dict[str, int]:",
            f'    """{verb.capitalize()} each {noun} of the {other}."""',
            f"    found_{noun}: dict[str, int] = {{}}",
            f"    for index, item in enumerate({other}[:limit]):",
            f"        if item.startswith('{pick(_FOLDERS)}') and index % {self._random.randint(2, 9)}:",
            f"            found_{noun}[item] = self._{pick(_VERBS)}(item, index)  # {pick(_ADJECTIVES)}",
            f"    return found_{noun}",
        ]
        return "\n".join(lines)

    def _log(self) -> str:
        level = self._random.choice(("INFO", "INFO", "WARNING", "DEBUG"))
        return f"{self._date()}T{self._random.randint(10, 23)}:{self._random.randint(10, 59)}:00Z {level} " + (
            f"{self._random.choice(_FOLDERS)}.{self._random.choice(_NOUNS)}: {self._sentence()}"
        )

    def _listing(self) -> str:
        size = self._random.randint(200, 90_000)
        return f"-rw-r--r-- 1 app app {size:>8} {self._date()} {self._path()}"

    def _path(self) -> str:
        pick = self._random.choice
        return f"{pick(_FOLDERS)}/{pick(_NOUNS)}/{pick(_VERBS)}_{pick(_NOUNS)}.py"

    def _date(self) -> str:
        return f"20{self._random.randint(18, 26)}-{self._random.randint(1, 12):02d}-{self._random.randint(1, 28):02d}"

    def _count(self) -> int:
        return self._random.randint(2, 400)


def _filled(size: int, piece: Callable[[], str], gap: Callable[[int], str]) -> str:
    return "".join(_pieces(size, piece, gap))[:size].rstrip()


def _pieces(size: int, piece: Callable[[], str], gap: Callable[[int], str]) -> Iterator[str]:
    made, at = 0, 0
    while made < size:
        text = piece() + gap(at)
        made, at = made + len(text), at + 1
        yield text
