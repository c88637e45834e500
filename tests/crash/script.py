"""What a child works through: a seeded script, in lanes that run at the same time.

A lane is one conversation and what is made from it, worked on step by step. Lanes never meet, so that after a
crash each of them stands where its last acknowledged step left it, or one step further; but their commits do, in
the writer's groups. The same seed gives the same script in the child, in its retry and in the test that judges.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from everthread.core import payloads

FULL_LANES = 3
_SKELETON = (
    "append append append large keyed keyed repeat replace replace edit fork set_active pin unpin delete_message "
    "restore_message update heads heads"
).split()
_EXTRAS = (("copy",), ("spawn", "copy"), ("delete", "restore"))
"""What only one of the full lanes does."""
LARGE_TEXT_BYTES = 70_000
"""Over the size from which a payload has a row of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One call, acknowledged or not."""

    verb: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """Steps that follow each other."""

    name: str
    """Also the id of its conversation."""
    word: str
    """A word that stands in each of its messages."""
    steps: Sequence[Step]
    own_words: Mapping[str, Sequence[str]]
    """Of each message id, the words that stand in this message only, one for each of its revisions."""

    @property
    def is_off_record(self) -> bool:
        return bool(self.steps[0].arguments["off_record"])


def script(seed: int, erases: int) -> list[Lane]:
    """The lanes of a seed: three that do everything, each with so many erases, and one that is off the record."""
    extras = [[*extra, *["erase_message"] * erases] for extra in _EXTRAS]
    lanes = [_Author(seed, number).full_lane(extras[number]) for number in range(FULL_LANES)]
    return [*lanes, _Author(seed, FULL_LANES).lane_off_record()]


@dataclass(slots=True)
class _Author:
    """Writes one lane; remembers which messages there are to speak of."""

    seed: int
    number: int
    name: str = ""
    word: str = ""
    dice: random.Random = field(default_factory=random.Random)
    steps: list[Step] = field(default_factory=list)
    living: list[str] = field(default_factory=list)
    forked: set[str] = field(default_factory=set)
    said: dict[str, dict[str, Any]] = field(default_factory=dict)
    own_words: dict[str, list[str]] = field(default_factory=dict)
    count: int = 0

    def __post_init__(self) -> None:
        self.name = f"lane-{self.seed}-{self.number}"
        self.word = f"lane{self.seed}x{self.number}"
        self.dice.seed(self.name)

    def full_lane(self, extras: Sequence[str]) -> Lane:
        self._add("create", title=f"title of {self.name}", metadata={"seed": self.seed}, off_record=False)
        self._append(at_least=4)  # so that there is always one left to speak of
        verbs = [*_SKELETON, *extras]
        self.dice.shuffle(verbs)
        for verb in verbs:
            getattr(self, f"_{verb}")()
        return self._lane()

    def lane_off_record(self) -> Lane:
        self._add("create", title=None, metadata={}, off_record=True)
        for _ in range(3):
            self._append()
        self._heads()
        return self._lane()

    def _lane(self) -> Lane:
        return Lane(name=self.name, word=self.word, steps=tuple(self.steps), own_words=self.own_words)

    def _add(self, verb: str, **arguments: Any) -> None:
        self.steps.append(Step(verb=verb, arguments=arguments))

    # -- steps ---------------------------------------------------------------------------------------------

    def _append(self, at_least: int = 1) -> None:
        messages = [self._new_message() for _ in range(self.dice.randint(at_least, at_least + 3))]
        self._add("append", messages=messages, key=None)

    def _large(self) -> None:
        self._add("append", messages=[self._new_message("large")], key=None)

    def _keyed(self) -> None:
        """Messages without ids: only the key tells a retry from a second call."""
        messages = [_without_id(self._message(f"unnamed-{self.count}")) for _ in range(self.dice.randint(1, 3))]
        self._add("append", messages=messages, key=f"key-{self.count}")

    def _repeat(self) -> None:
        """A caller that sends again what the log has."""
        self._add("append", messages=[self.said[self._target()]], key=None)

    def _replace(self) -> None:
        """Its words, by whoever said it."""
        target = self._target()
        role = payloads.role(self.said[target])
        shape = self.dice.choice([one for one in _SHAPES if payloads.role(_shaped(one, "", 0)) == role])
        self._add("append", messages=[self._message(target, shape), self._new_message()], key=None)

    def _edit(self) -> None:
        target = self._target()
        self._add("edit", target=target, message=self._new_message())

    def _fork(self) -> None:
        target = self.dice.choice([id for id in self.living if id not in self.forked])
        self.forked.add(target)
        self._add("fork", target=target, activate=self.dice.random() < 0.5)

    def _set_active(self) -> None:
        self._add("set_active", branch="main")

    def _pin(self) -> None:
        self._add("mark", how="pin", target=self._target())

    def _unpin(self) -> None:
        self._add("mark", how="unpin", target=self._target())

    def _delete_message(self) -> None:
        self._add("mark", how="delete_message", target=self._target())

    def _restore_message(self) -> None:
        self._add("mark", how="restore_message", target=self._target())

    def _update(self) -> None:
        self.count += 1
        self._add("update", title=f"title {self.count}", metadata={"count": self.count})

    def _delete(self) -> None:
        self._add("change", how="delete")

    def _restore(self) -> None:
        self._add("change", how="restore")

    def _erase_message(self) -> None:
        """After a search, so that its words are in the index and have to leave it."""
        self._add("search", text=self.word)
        target = self._target()
        self.living.remove(target)
        self._add("erase", target=target)

    def _copy(self) -> None:
        self.count += 1
        self._add("copy", title=f"copy {self.count} of {self.name}")

    def _spawn(self) -> None:
        """What a subagent does first."""
        self._add("spawn", id=f"{self.name}-child")
        self._add("append", messages=[self._message(f"child-{self.count}")], key=None, to=f"{self.name}-child")

    def _heads(self) -> None:
        self._add("heads")

    # -- messages ------------------------------------------------------------------------------------------

    def _target(self) -> str:
        return self.dice.choice(self.living)

    def _new_message(self, shape: str | None = None) -> dict[str, Any]:
        id = f"m{len(self.own_words)}"
        self.living.append(id)
        return self._message(id, shape)

    def _message(self, id: str, shape: str | None = None) -> dict[str, Any]:
        self.count += 1
        own = f"q{self.seed}l{self.number}w{self.count:03d}z"
        self.own_words.setdefault(id, []).append(own)
        text = f"{self.word} {own} {' '.join(self.dice.choices(_VOCABULARY, k=self.dice.randint(3, 30)))}"
        message = self.said[id] = {"id": id, **_shaped(shape or self.dice.choice(_SHAPES), text, self.count)}
        return message


_VOCABULARY = (
    "lisbon tram ticket the a of booked under confirmation terrace sixty five people rain tomorrow 里斯本 电车 票 明天 "
    "naïve café Straße 🚋 e\u0301 don't http://example.org/a?b=c 12,50 € NULL '; DROP -- \\ \" \t"
).split(" ")

_SHAPES = ("user", "blocks", "tool call", "tool result", "LangChain", "not quite text")


def _shaped(shape: str, text: str, number: int) -> dict[str, Any]:
    """One text in the shapes that messages come in."""
    match shape:
        case "blocks":
            thinking = {"type": "thinking", "thinking": "…", "signature": f"sig{number}=="}
            return {"role": "assistant", "content": [thinking, {"type": "text", "text": text}]}
        case "tool call":
            call = {"name": "look_up", "arguments": f'{{"n": {number}}}'}
            calls = [{"id": f"call_{number}", "type": "function", "function": call}]
            return {"role": "assistant", "content": text, "tool_calls": calls, "unknown": {"kept": [1, 2.5, None]}}
        case "tool result":
            return {"role": "tool", "tool_call_id": f"call_{number}", "content": text, "name": "look_up"}
        case "LangChain":
            return {"type": "human", "content": text, "additional_kwargs": {}, "response_metadata": {}, "name": "Ann"}
        case "not quite text":
            return {"role": "user", "content": f"{text} \x00 \ud800"}
        case "large":
            return {"role": "tool", "tool_call_id": "call_0", "content": text + " ballast" * (LARGE_TEXT_BYTES // 8)}
        case _:
            return {"role": "user", "content": text}


def _without_id(message: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in message.items() if key != "id"}
