"""How many planted lies the gate finds in summaries, and how much of what is true it strikes.

    python -m benchmarks summary_truth [--lie-seed 26] [--show-misses]

`true_summaries/` holds short conversations in English and Chinese and, for each, what a summary may say of it in other
words. Each of these sentences is made into lies by rules of this module, which know nothing of those of the gate:
another digit, another person of the same conversation, another person's allergy, another day, a negation dropped, a
message that is not there. Each lie stands in a summary of true sentences and passes the gate as a model's summary does;
it is caught when it is struck or the summary is refused. Conversations with an even number were looked at while the
rules were written; the others were not. Sentences are tried with the mark of their source and without.
"""

from __future__ import annotations

import argparse
import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.report import Row
from everthread.compaction.fact_ranking import facts_of_sources
from everthread.compaction.gate import Accepted, check_summary
from everthread.compaction.sources import Source
from everthread.context.tokens import count_tokens

FOLDER = Path(__file__).parent / "true_summaries"
_ROLES = {"u": "user", "a": "assistant"}
_TAG = re.compile(r"\s*\[#(\d+)(?:–#(\d+))?\]$")
_PLENTY_TOKENS = 4_000


@dataclass(kw_only=True)
class Talk:
    """A conversation with true sentences about it."""

    name: str
    language: str
    number: int
    people: list[str] = field(default_factory=list)
    sources: list[Source] = field(default_factory=list)
    true: list[str] = field(default_factory=list)


def load(language: str) -> list[Talk]:
    """The conversations of a language."""
    talks: list[Talk] = []
    for line in (FOLDER / f"{language}.txt").read_text("utf-8").splitlines():
        mark, _, rest = line.partition(" ")
        if mark == "==":
            talks.append(Talk(name=rest, language=language, number=len(talks)))
        elif mark == "people:":
            talks[-1].people = rest.split(", ")
        elif mark in ("u:", "a:"):
            sources = talks[-1].sources
            sources.append(Source(seq=len(sources) + 1, role=_ROLES[mark[0]], text=rest))
        elif mark == "=":
            talks[-1].true.append(rest)
    return talks


Change = Callable[[str, Talk, random.Random], str | None]


def change_digit(text: str, talk: Talk, dice: random.Random) -> str | None:
    """Another digit in a number, such that the number is nowhere in the conversation."""
    said = " ".join(source.text for source in talk.sources)
    spots = [
        m
        for m in re.finditer(r"\d", text)
        if not re.search(
            r"月|日|号|May|June|July|August|March|January|October|"
            r"November|September|April",
            text[max(0, m.start() - 10) : m.end() + 10],
        )
    ]
    dice.shuffle(spots)
    for spot in spots:
        for digit in dice.sample("123456789", 9):
            lie = text[: spot.start()] + digit + text[spot.end() :]
            found = next(m[0] for m in re.finditer(r"[\d.,:]*\d", lie) if m.start() <= spot.start() < m.end())
            if digit != spot[0] and not re.search(rf"(?<!\d){re.escape(found)}(?!\d)", said):
                return lie
    return None


def swap_person(text: str, talk: Talk, dice: random.Random) -> str | None:
    """Another person of the same conversation."""
    if re.search(r"allerg|过敏", text):
        return None
    return _other_person(text, talk, dice)


def swap_allergy(text: str, talk: Talk, dice: random.Random) -> str | None:
    """Somebody else has the allergy."""
    return _other_person(text, talk, dice) if re.search(r"allerg|过敏", text) else None


def _other_person(text: str, talk: Talk, dice: random.Random) -> str | None:
    named = [person for person in talk.people if person in text]
    others = [person for person in talk.people if person not in text]
    if len(named) == 2 and not others:
        first, second = named
        return text.replace(first, "\0").replace(second, first).replace("\0", second)
    if not named or not others:
        return None
    return text.replace(dice.choice(named), dice.choice(others))


_DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
_MONTHS = "January February March April May June July August September October November December".split()


def move_date(text: str, talk: Talk, dice: random.Random) -> str | None:
    """Another day of the week, of the month, or another month."""
    said = " ".join(source.text for source in talk.sources)
    moves: list[str] = []
    for day in _DAYS:
        if day in text:
            moves += [text.replace(day, other) for other in _DAYS if other not in said]
    months = "|".join(_MONTHS)
    for match in re.finditer(
        rf"(?<!\d)(\d{{1,2}})(?= (?:{months}))|(?<=月)(\d{{1,2}})(?=日)|(?:{months}) (\d{{1,2}})", text
    ):
        old = next(group for group in match.groups() if group)
        start = match.start() + match[0].index(old)
        later = [str(day) for day in range(1, 29) if not re.search(rf"(?<!\d){day}(?!\d)", said)]
        moves.append(text[:start] + dice.choice(later) + text[start + len(old) :])
    for month in _MONTHS:
        if re.search(rf"\b{month}\b", text) and month != "May":
            moves += [text.replace(month, other) for other in _MONTHS if other not in said and other != "May"]
    if day_said := re.search(r"周([一二三四五六日])", text):
        moves += [text.replace(day_said[0], f"周{other}") for other in "一二三四五六日" if f"周{other}" not in said]
    return dice.choice(moves) if moves else None


_DROPS = (
    (r"\b(do|does|did|is|was|are|will|must|may|can)(?: not|n't)\b", r"\1"),
    (r"\bcannot\b", "can"),
    (r"\bno longer\b", "still"),
    (r"\bnever\b", "always"),
    (r"\bnot\b ?", ""),
    (r"^No one\b", "Everyone"),
    (r"^There is no\b", "There is"),
    (r"\b[Nn]o\b ", ""),
    (r"没有", "有"),
    (r"从来不", "总是"),
    (r"不(?=[\u4e00-\u9fff])", ""),
    (r"没(?=[\u4e00-\u9fff])", ""),
)


def drop_negation(text: str, talk: Talk, dice: random.Random) -> str | None:
    """No becomes yes."""
    if re.search(r"不超过|no more than|不必|不耐", text):
        return None
    return next((lie for pattern, put in _DROPS if (lie := re.sub(pattern, put, text, count=1)) != text), None)


CHANGES: dict[str, Change] = {
    "digit": change_digit,
    "person": swap_person,
    "allergy": swap_allergy,
    "date": move_date,
    "negation": drop_negation,
}


def lies_of(talk: Talk, dice: random.Random) -> Iterator[tuple[str, int, str]]:
    """Kind, index of the sentence that it replaces, and the lie with its mark."""
    for index, sentence in enumerate(talk.true):
        mark = _TAG.search(sentence)
        text, tag = (sentence[: mark.start()], mark[0]) if mark else (sentence, "")
        for kind, change in CHANGES.items():
            lie = change(text, talk, dice)
            if lie is not None and lie != text:
                yield kind, index, f"{lie}{tag}"
        if mark:
            yield "citation", index, f"{text} [#{int(mark[1]) + dice.randint(30, 300)}]"


def judge(talk: Talk, sentences: Sequence[str]) -> str:
    """What is left of a summary of these sentences; nothing where it is refused."""
    return passed("\n".join(["## Facts", *(f"- {sentence}" for sentence in sentences)]), talk.sources, _PLENTY_TOKENS)


def passed(summary: str, sources: Sequence[Source], room: int) -> str:
    """What the gate makes of a model's summary in so many tokens; nothing where it refuses it."""
    verdict = check_summary(
        summary,
        sources,
        facts_of_sources(sources),
        count_tokens=count_tokens,
        source_tokens=room,
        max_tokens=room,
        by_model=True,
    )
    return verdict.text if isinstance(verdict, Accepted) else ""


def _bare(sentence: str) -> str:
    return _TAG.sub("", sentence)


@dataclass(kw_only=True)
class Count:
    """Of how many, how many."""

    total: int = 0
    hit: int = 0

    def note(self, *, hit: bool) -> None:
        self.total += 1
        self.hit += hit

    @property
    def percent(self) -> float | None:
        return 100 * self.hit / self.total if self.total else None


def measure(language: str, *, seed: int, tagged: bool, held_back: bool, show: bool) -> Row:
    """One row: lies caught by kind, true sentences struck, true summaries touched."""
    dice = random.Random(seed)
    caught = {kind: Count() for kind in (*CHANGES, "citation")}
    struck, touched = Count(), Count()
    for talk in load(language):
        lies = list(lies_of(talk, dice))
        if talk.number % 2 != held_back:
            continue
        form = (lambda sentence: sentence) if tagged else _bare
        left = judge(talk, [form(one) for one in talk.true]).splitlines()
        lost = [one for one in talk.true if f"- {form(one)}" not in left]
        for one in talk.true:
            struck.note(hit=one in lost)
        touched.note(hit=bool(lost))
        if show and lost:
            print(*(f"  true, struck: {one}" for one in lost), sep="\n")
        for kind, index, lie in lies:
            if kind == "citation" and not tagged:
                continue
            told = form(lie)
            others = [form(one) for at, one in enumerate(talk.true) if at != index]
            is_caught = f"- {told}" not in judge(talk, [*others[:index], told, *others[index:]]).splitlines()
            caught[kind].note(hit=is_caught)
            if show and not is_caught:
                print(f"  {kind}, missed: {told}")
    everything = Count(total=sum(one.total for one in caught.values()), hit=sum(one.hit for one in caught.values()))
    return {
        "system": f"{language}, {'cited' if tagged else 'uncited'}, {'held back' if held_back else 'seen'}",
        "lies": everything.total,
        "caught %": everything.percent,
        **{f"{kind} %": count.percent for kind, count in caught.items()},
        "true": struck.total,
        "struck %": struck.percent,
        "summaries": touched.total,
        "touched": touched.hit,
    }


def add_options(parser: argparse.ArgumentParser) -> None:
    """What can be chosen."""
    parser.add_argument("--lie-seed", type=int, default=26, help="summary_truth: of the lies")
    parser.add_argument("--show-misses", action="store_true", help="summary_truth: print each miss")


def run(options: argparse.Namespace) -> Sequence[Row]:
    """Both languages, with the marks of sources and without."""
    return [
        measure(
            language,
            seed=options.lie_seed,
            tagged=tagged,
            held_back=held_back,
            show=options.show_misses and not held_back,
        )
        for held_back in (False, True)
        for language in ("en", "zh")
        for tagged in (True, False)
    ]
