"""A yardstick of everyday talk: conversations and questions whose evidence is known, made from hand-written lines.

There are seven parts with nothing in common but their layout: `open.txt`, which recall is tuned on, `sealed.txt` of the
same kinds, `later.txt`, half of whose kinds the others do not have, and two halves each of `lately` and `typed`. All
but the first were written before the changes that they judge; what recall misses is read in the open ones only. Each
kind is one or two conversations:

- `statements`: one-line notes about unrelated things side by side, without answers; nothing near a note belongs to it;
- `bursts`: a thing said in several short messages in a row, while others talk about something else in between;
- `mixed`: Chinese and English in one line, asked in either;
- `questions`: what somebody asked and another answered, among the same question that stayed without an answer;
- `wishes`: what shall always or never be done, and requests that it governs without sharing a word with it;
- `collecting`: answers that lie in four or five messages far apart;
- `tools`: calls and results for several customers in turn; the results do not say whose they are;
- `threads`: a group's chat in which three topics are always open at once, in short messages without capitals;
- `crosslang`: what was said in one language and is asked for in another;
- `paraphrase`: notes as people say them, asked for in words of which they have none;
- `jots`: what somebody tells an assistant in several short messages, while two other topics of theirs are open;
- `desks`: customers of a desk in turn, some of whom say only later, or only to a tool, who they are;
- `spelled`: names with accents, either Chinese, numbers, ids, code and addresses, written otherwise in the question;
- `names`: a question in another language than what was said, with somebody's name;
- `pasted`: long questions, most of which is about something else;
- `dated`: what was said of the same thing at several times, asked for by one of them.

The same seed gives the same bytes; a test holds the digest of each part.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

HALVES = ("open", "sealed", "later", "lately_open", "lately_sealed", "typed_open", "typed_sealed")
_FOLDER = Path(__file__).parent
_BEGINS = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)
_NOISE = (
    "{who} asked about the {thing} again.",
    "The {thing} can wait until {day}.",
    "{who} says the {thing} was too expensive.",
    "No idea when the {thing} is ready.",
    "Talked to {who} about the {thing} and the {other}.",
    "{who} will be here on {day}.",
    "The {thing} cost {n} last time.",
    "Where did {who} put the {thing}?",
    "{day} is no good for {who}.",
    "{n} people liked the {thing}.",
    "I still need to write to {who}.",
    "How much was the {thing}?",
    "{who} left at {n} past.",
    "Dreamt about the {thing}.",
)
"""Lines that use the questions' words and answer nothing."""
_EXCHANGES = ("bursts", "mixed", "questions", "wishes", "crosslang", "paraphrase")
"""Kinds whose exchanges stand one after the other; those of `bursts` with somebody else's words between them."""
_OPEN_THREADS = 3
_AT_THE_DESK = 16
_CUSTOMERS = 30
"""They share first and last names."""
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


@dataclass(slots=True)
class Message:
    """One message: what a log takes (`payload`), and what a plain search reads (`text`)."""

    id: str
    role: str
    speaker: str
    text: str
    time: datetime | None
    payload: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Question:
    """A question, and the ids of the messages that answer it."""

    id: str
    text: str
    category: str
    evidence: frozenset[str]
    asked_at: datetime | None


@dataclass(slots=True)
class Talk:
    """One conversation with its questions."""

    id: str
    messages: list[Message] = field(default_factory=list)
    questions: list[Question] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Line:
    """A hand-written exchange: who says what, which of it is evidence, and what is asked about it."""

    said: Sequence[tuple[str, str]]
    evidence: Sequence[int]
    asked: str


def load(half: str) -> list[Talk]:
    """The conversations of one half."""
    parts = _read(_FOLDER / f"{half}.txt")
    rng = random.Random(f"everyday {half}")
    makers: Mapping[str, Sequence[tuple[str, Callable[[_Maker], Talk]]]] = {
        "statements": [
            ("statements-0", lambda maker: maker.statements(0)),
            ("statements-1", lambda maker: maker.statements(1)),
        ],
        "jots": [("jots", lambda maker: maker.threads("jots"))],
        **{kind: [(kind, partial(_Maker.threads, kind=kind))] for kind in ("threads", "spelled", "names", "pasted")},
        "dated": [("dated", _Maker.dated)],
        **{kind: [(kind, partial(_Maker.exchanges, kind=kind, woven=kind == "bursts"))] for kind in _EXCHANGES},
        "collecting": [("collecting", _Maker.collecting)],
        "tools": [("tools", _Maker.tools)],
        "desks": [("desks", _Maker.desks)],
    }
    return [
        make(_Maker(f"{half}-{name}", parts, rng))
        for kind, some in makers.items()
        if kind in parts
        for name, make in some
    ]


def digest(half: str) -> str:
    """The SHA-256 of all conversations and questions of a half."""
    plain = [
        {
            "id": talk.id,
            "messages": [[one.id, one.role, one.text, one.payload] for one in talk.messages],
            "questions": [[one.id, one.text, one.category, sorted(one.evidence)] for one in talk.questions],
        }
        for talk in load(half)
    ]
    return hashlib.sha256(json.dumps(plain, ensure_ascii=False, sort_keys=True).encode()).hexdigest()


def _read(path: Path) -> Mapping[str, list[str]]:
    parts: dict[str, list[str]] = {}
    name = ""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            name = line[3:]
        elif line and not line.startswith("#"):
            parts.setdefault(name, []).append(line)
    return parts


def _parse(line: str) -> _Line:
    said, _, asked = line.partition(" => ")
    messages: list[tuple[str, str]] = []
    evidence: list[int] = []
    for text in said.split(" / "):
        named = re.match(r"(a|[A-Z][a-z]+): (.*)", text)
        speaker, words = (named[1], named[2]) if named else ("", text)
        if words.endswith("*"):
            evidence.append(len(messages))
        messages.append((speaker, words.removesuffix("*")))
    return _Line(messages, evidence or [0], asked)


class _Maker:
    """A conversation that is being made, in the order in which it is said."""

    def __init__(self, name: str, parts: Mapping[str, list[str]], rng: random.Random) -> None:
        self._talk = Talk(name)
        self._parts = parts
        self._rng = rng
        self._now = _BEGINS
        self._people = parts["people"][0].split()
        self._things = parts["things"][0].split(" | ")
        self._filler = parts["filler"][0].split(" | ")

    def statements(self, half: int) -> Talk:
        """Every other line, among notes of the same kind; one conversation in a hurry, one over weeks."""
        lines = [_parse(line) for line in self._parts["statements"][half::2]]
        self._rng.shuffle(lines)
        for line in lines:
            self._noise(self._rng.randint(12, 27), 40 if half else 40_000)
            self._say(*line.said[0], 40 if half else 40_000)
            self._ask(line.asked, "statements", [self._talk.messages[-1].id])
        self._noise(120, 40_000)
        return self._end()

    def exchanges(self, kind: str, *, woven: bool) -> Talk:
        """Each line whole, or `woven`: its messages with those of somebody else's topic between them."""
        lines = [_parse(line) for line in self._parts[kind]]
        self._rng.shuffle(lines)
        for line in lines:
            self._noise(self._rng.randint(6, 15), 9_000)
            if kind == "questions" and self._rng.random() < 0.7:
                self._say("", line.said[0][1], 9_000)  # asked before, and nobody knew
                self._noise(2, 60)
            ids: list[str] = []
            for speaker, text in line.said:
                self._say(speaker, text, 20)
                ids.append(self._talk.messages[-1].id)
                if woven and self._rng.random() < 0.4:
                    self._noise(1, 15)
            if kind == "wishes":
                self._say("a", self._rng.choice(["Understood.", "Got it.", "Will do.", "好的。"]), 20)
            self._ask(line.asked, kind, [ids[at] for at in line.evidence])
        self._noise(120, 9_000)
        return self._end()

    def threads(self, kind: str) -> Talk:
        """The next message is of any of the topics that are open, and a new one begins when one has ended."""
        lines = [_parse(line) for line in self._parts[kind]]
        self._rng.shuffle(lines)
        waiting = [(line, list(line.said)) for line in lines]
        ids: dict[str, list[str]] = {line.asked: [] for line in lines}
        while waiting:
            line, said = self._rng.choice(waiting[:_OPEN_THREADS])
            self._noise(self._rng.randint(0, 4), 200)
            self._say(*said.pop(0), 60)
            ids[line.asked].append(self._talk.messages[-1].id)
            waiting = [one for one in waiting if one[1]]
        for line in lines:
            self._ask(line.asked, kind, [ids[line.asked][at] for at in line.evidence])
        self._noise(120, 9_000)
        return self._end()

    def collecting(self) -> Talk:
        """The parts of all lines in turn, so that those of one line lie far apart and in their order."""
        lines = [line.partition(" => ") for line in self._parts["collecting"]]
        waiting = [(at, said.split(" | ")) for at, (said, _, _) in enumerate(lines)]
        found: list[list[str]] = [[] for _ in lines]
        while waiting:
            at, said = self._rng.choice(waiting)
            self._noise(self._rng.randint(6, 15), 30_000)
            self._say("", said.pop(0), 30_000)
            found[at].append(self._talk.messages[-1].id)
            waiting = [one for one in waiting if one[1]]
        for (_, _, asked), ids in zip(lines, found, strict=True):
            self._ask(asked, "collecting", ids)
        self._noise(120, 30_000)
        return self._end()

    def dated(self) -> Talk:
        """The first parts of all lines, then the second ones: weeks lie between those of a line."""
        lines = [line.partition(" => ") for line in self._parts["dated"]]
        said: list[tuple[str, str, datetime]] = []
        for parts in zip(*(parts.split(" | ") for parts, _, _ in lines), strict=True):
            for (_, _, asked), part in self._rng.sample(list(zip(lines, parts, strict=True)), len(lines)):
                self._noise(self._rng.randint(8, 16), 60_000)
                self._say("", part, 60_000)
                said.append((asked, self._talk.messages[-1].id, self._now))
        self._noise(20, 60_000)
        for asked, id, time in said:
            when = self._rng.choice(_whens(time, self._now + timedelta(days=1), is_chinese=asked[0] == "{"))
            self._ask(asked.replace("{when}", when), "dated", [id])
        return self._end()

    def tools(self) -> Talk:
        """Customers in turn, two at a time now and then, each with calls whose results name nobody."""
        lines = self._parts["tools"]
        values = {name: _choices(rest) for name, _, rest in (one.partition(": ") for one in lines) if name[0] == "$"}
        said = {name: rest.split(" | ") for name, _, rest in (one.partition(": ") for one in lines) if name[0] != "$"}
        calls = [one for one in lines if " -> " in one]
        pool = {name: self._rng.sample(some, len(some)) for name, some in values.items()}
        firsts, lasts, domain = self._parts["customers"]
        names = self._rng.sample([(one, other) for one in firsts.split() for other in lasts.split()], _CUSTOMERS)
        runs = [
            list(self._run(name, domain, calls, {name: some[at % len(some)] for name, some in pool.items()}, said))
            for at, name in enumerate(names)
        ]
        self._in_turn(runs)
        return self._end()

    def desks(self) -> Talk:
        """Runs after scripts of their own, in which a customer says the name sooner or later."""
        lines = [one.partition(": ") for one in self._parts["desks"] if not one.startswith("> ")]
        values = {name: _choices(rest) for name, _, rest in lines}
        scripts = [one[2:].split(" / ") for one in self._parts["desks"] if one.startswith("> ")]
        firsts, lasts = values.pop("firsts"), values.pop("lasts")
        names = self._rng.sample([(one, other) for one in firsts for other in lasts], _AT_THE_DESK)
        runs = []
        for at, name in enumerate(names):
            chosen = {key: self._rng.choice(some) for key, some in values.items()}
            runs.append(list(self._steps(scripts[at % len(scripts)], self._known(name, "", chosen))))
        self._in_turn(runs)
        return self._end()

    def _steps(self, script: Sequence[str], known: Mapping[str, str]) -> Iterator[Callable[[], None]]:
        asked_of = self._rng.sample([step for step in script if " => " in step], 2)
        for step in script:
            if " -> " in step:
                yield partial(self._call, _fill(step, known), "desks" if step in asked_of else None)
            else:
                speaker, text = _parse(_fill(step, known)).said[0]
                yield partial(self._say, speaker, text, 90)

    def _in_turn(self, runs: list[list[Callable[[], None]]]) -> None:
        """The next step of one of the first three that have not ended, until all have."""
        while any(runs):
            run = self._rng.choice([one for one in runs[:3] if one] or [one for one in runs if one])
            run.pop(0)()
            runs = [one for one in runs if one]

    def _run(
        self,
        customer: tuple[str, str],
        domain: str,
        calls: Sequence[str],
        chosen: Mapping[str, str],
        said: Mapping[str, Sequence[str]],
    ) -> Iterator[Callable[[], None]]:
        email = f"{customer[0][0]}.{customer[1]}{self._rng.randint(2, 99)}@{domain}".lower()
        asked_of = self._rng.sample(calls, 2)
        known = self._known(customer, email, chosen)
        opening = f"Hi, this is {known['$name']}, {email}. {self._rng.choice(said['ask'])}"
        yield partial(self._say, "", opening, 600)
        for line in calls:
            yield partial(self._call, _fill(line, known), "tools" if line in asked_of else None)
            yield partial(self._say, "a", self._rng.choice(said["reply"]), 30)

    def _known(self, customer: tuple[str, str], email: str, chosen: Mapping[str, str]) -> Mapping[str, str]:
        """What stands for the `$names` in a customer's run."""
        number = self._rng.randint(1000, 9999)
        return {
            **chosen,
            "$email": email,
            "$name": " ".join(customer),
            "$id": f"C{number}",
            "$ref": f"R{number * 7 % 10_000:04}X",
            "$date": f"20{self._rng.randint(15, 25)}-{self._rng.randint(1, 12):02}-{self._rng.randint(1, 28):02}",
            "$amount": str(self._rng.randint(20, 400)),
            "$small": str(self._rng.randint(2, 19)),
            "$n": str(self._rng.randint(2, 14)),
        }

    def _call(self, line: str, asked_as: str | None) -> None:
        """A call with its result, about which one of its questions is asked, if it is of a kind."""
        call, _, rest = line.partition(" -> ")
        result, _, asked = rest.partition(" => ")
        tool, _, arguments = call.partition(" ")
        call_id = f"call_{len(self._talk.messages)}"
        request = {"id": call_id, "type": "function", "function": {"name": tool, "arguments": arguments}}
        self._add("assistant", "assistant", f"{tool} {arguments}", 5, content="", tool_calls=[request])
        self._add("tool", "tool", result, 5, content=result, tool_call_id=call_id)
        if asked_as:
            self._ask(self._rng.choice(asked.split("; ")), asked_as, [self._talk.messages[-1].id])

    def _noise(self, count: int, gap_seconds: int) -> None:
        for _ in range(count):
            if self._rng.random() < 0.3:
                self._say("", self._rng.choice(self._filler), gap_seconds)
                continue
            thing, other = self._rng.sample(self._things, 2)
            text = self._rng.choice(_NOISE).format(
                who=self._rng.choice(self._people),
                thing=thing,
                other=other,
                day=self._rng.choice(_DAYS),
                n=self._rng.randint(3, 40),
            )
            self._say("", text, gap_seconds)

    def _say(self, speaker: str, text: str, gap_seconds: int) -> None:
        role = "assistant" if speaker == "a" else "user"
        named = {"name": speaker} if speaker not in ("", "a") else {}
        self._add(role, named.get("name", role), text, gap_seconds, content=text, **named)

    def _add(self, role: str, speaker: str, text: str, gap_seconds: int, **payload: Any) -> None:
        self._now += timedelta(seconds=self._rng.randint(1, gap_seconds))
        name = f"{self._talk.id}-{len(self._talk.messages):04}"
        whole = {"id": name, "role": role, **payload, "created_at": self._now.isoformat()}
        self._talk.messages.append(Message(name, role, speaker, text, self._now, whole))

    def _ask(self, text: str, category: str, evidence: Sequence[str]) -> None:
        name = f"{self._talk.id}-q{len(self._talk.questions):02}"
        self._talk.questions.append(Question(name, text, category, frozenset(evidence), self._now))

    def _end(self) -> Talk:
        """All questions are asked afterwards."""
        later = self._now + timedelta(days=1)
        asked = [Question(one.id, one.text, one.category, one.evidence, later) for one in self._talk.questions]
        self._talk.questions = asked
        return self._talk


def _whens(time: datetime, asked_at: datetime, *, is_chinese: bool) -> Sequence[str]:
    """How people say this time later; by the calendar each is right."""
    days = (asked_at.date() - time.date()).days
    weeks = (asked_at.date() - timedelta(asked_at.weekday()) - time.date() + timedelta(time.weekday())).days // 7
    third = min((time.day - 1) // 10, 2)
    if is_chinese:
        day = "一二三四五六日"[time.weekday()]
        month = f"{time.month}月{('初', '中旬', '底')[third]}"
        near = ["前几天", f"这周{day}"] if weeks == 0 else ["前些天", "前阵子"]
        return near if days < 5 else [f"上周{day}", "上礼拜"] if weeks == 1 else [month, f"{round(days / 7)}周前"]
    day = _DAYS[time.weekday()]
    month = time.strftime(f"{('at the beginning of', 'in mid-', 'towards the end of')[third]} %B").replace("- ", "-")
    if days < 7:
        return [f"last {day}", "the other day", "a few days ago", f"on {day[:3]}"]
    if weeks == 1:
        return [f"last week {day}", f"on {day} last week", "last week"]
    return [month, f"back in {time:%B}", f"about {round(days / 7)} weeks ago", f"{round(days / 7)} weeks back"]


def _choices(rest: str) -> list[str]:
    return rest.split("|") if "|" in rest else rest.split()


def _fill(line: str, values: Mapping[str, str]) -> str:
    """The line with its `$names` replaced, the longest first."""
    for name in sorted(values, key=len, reverse=True):
        line = line.replace(name, values[name])
    return line
