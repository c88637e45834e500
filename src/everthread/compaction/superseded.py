"""What a later message replaced: the line keeps its words and says by which message.

A later statement replaces an earlier one when it takes something back or changes it (by its wording) and is about the
same thing: by its rarer words, by the very date, amount or name that it takes back, however that is written, by what
can hold only once (how to call the user, in which language to answer), or, where it names nothing ("15:30 then"),
because the earlier one is the nearest that gives another time, day or amount.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from types import MappingProxyType
from typing import NamedTuple

from everthread.compaction.sources import Source, is_user
from everthread.compaction.summary_format import Section, SummaryLine
from everthread.core.recent import forget_on_erase
from everthread.text import cues
from everthread.text.facts import find_facts
from everthread.text.fillers import without_fillers
from everthread.text.language import Language
from everthread.text.normal_forms import vaguer_dates
from everthread.text.sentences import split_sentences
from everthread.text.terms import terms, tf_idf_weights
from everthread.text.words import stem

_MARKS: dict[Language, tuple[str, str]] = {
    "en": (" (replaced by {seqs})", " (changed in part by {seqs})"),
    "zh": ("（已被 {seqs} 取代）", "（部分内容已被 {seqs} 更改）"),
}
"""Of a line that no longer holds, and of one of which something else still does."""
_REPLACED = re.compile(r" \(replaced by \[#(\d+)\]\)$|（已被 \[#(\d+)\] 取代）$")
_SEQS = r"\[#\d+\](?:, \[#\d+\])*"
_CHANGED_IN_PART = re.compile(rf" \(changed in part by ({_SEQS})\)$|（部分内容已被 ({_SEQS}) 更改）$")
_SEQ = re.compile(r"\d+")
# Of the words of the shorter one, weighed by how rare they are, so many must be shared: of what was decided …
_SAME_SUBJECT = 0.3
_BY_ONE_WORD = 0.5
"""… where they share a single word …"""
_SAME_FACT = 0.45
"""… and of what was only told, which a later statement is seldom meant to replace …"""
_SAME_CHINESE_FACT = 0.2
"""… in Chinese, where most pairs of characters belong to no word."""
_ENOUGH = 12
"""Statements from which it can be told how rare a word is."""
_MARKED_SECTIONS = ("goal", "standing", "decisions", "facts", "open", "mentioned")
_DECIDED: tuple[Section, ...] = ("goal", "decisions")
_ONE_THING = 2
"""Lines at most in which a word may stand by which alone something is taken back."""
_BRIEF_WORDS: dict[bool, int] = {True: 2, False: 3}
"""In English and in Chinese."""
_LONG_WORDS = 10
_BRIEF_REACH = 6
"""A statement that names nothing changes what was said at most so many messages before."""


def may_replace(text: str) -> bool:
    """Whether a statement may replace an earlier one; the wording decides, so that few are compared."""
    return _statement(text).may_replace


def said_later(sources: Sequence[Source]) -> list[tuple[int, str]]:
    """What users said that may replace something, with its seq."""
    return [
        (source.seq, piece.text)
        for source in sources
        if is_user(source) and may_replace(source.text)
        for piece in split_sentences(source.text)
    ]


def told_later(lines: Iterable[SummaryLine]) -> list[tuple[int, str]]:
    """What the lines of a summary tell of users that may replace something, with its seq: an assistant's advice and a
    tool's result take nothing back."""
    told = ((line.last_seq, _said_by_user(line)) for line in lines if line.section not in ("mentioned", "tools"))
    return [(seq, text) for seq, text in told if may_replace(without_label(text))]


def told_by_users(lines: Iterable[SummaryLine]) -> dict[int, str]:
    """What the lines tell of what users said, by its seq."""
    told: dict[int, str] = {}
    for line in lines:
        said = without_label(_said_by_user(line)) if line.section != "tools" else ""
        if said:
            told[line.last_seq] = f"{told[line.last_seq]}\n{said}" if line.last_seq in told else said
    return told


def _said_by_user(line: SummaryLine) -> str:
    """A line without what only an assistant says in it; a question that got a yes is the user's too."""
    if not _BY_ASSISTANT.match(line.text):
        return line.text
    asked, _, reply = line.text.rpartition(" → ")
    if not asked or _BY_ASSISTANT.match(reply):
        return ""
    bare = _LABEL.sub("", reply, count=1)
    return line.text if cues.affirms(bare) or cues.gives_leave(bare) else reply


def replaced_by(line: SummaryLine) -> int | None:
    """The seq of the message that replaced what a line tells, where it says so."""
    marked = _REPLACED.search(line.text)
    return int(marked[1] or marked[2]) if marked else None


def changed_by(line: SummaryLine) -> tuple[int, ...]:
    """The seqs of the messages that replaced what a line tells, or each a part of it, where it says so."""
    marked = _REPLACED.search(line.text) or _CHANGED_IN_PART.search(line.text)
    return tuple(map(int, _SEQ.findall(marked[0]))) if marked else ()


def only_with_what_replaced(lines: Sequence[SummaryLine], last_seq: int | None = None) -> list[SummaryLine]:
    """The lines without those whose mark points to a message, up to a seq, that none of them tells: alone such a line
    says what no longer holds."""
    kept = list(lines)
    while True:
        told = [
            line
            for line in kept
            if all(
                (last_seq is not None and seq > last_seq) or any(one.first_seq <= seq <= one.last_seq for one in kept)
                for seq in changed_by(line)
            )
        ]
        if len(told) == len(kept):
            return told
        kept = told


def mark_superseded(
    lines: Sequence[SummaryLine],
    later: Sequence[tuple[int, str]],
    language: Language,
    said: Mapping[int, str] = MappingProxyType({}),
) -> list[SummaryLine]:
    """The lines, each that one of the later statements (seq and text) replaced with its mark. What was `said` at each
    seq shows whether a statement is about something that no line tells."""
    told = [(seq, one) for seq, text in later if (one := _told(text)).may_replace and not _only_asks(one.text)]
    changing = [(seq, _statement(cues.without_unchanged(one.text))) for seq, one in told]
    if not changing:
        return list(lines)
    bare = [replace(line, text=_CHANGED_IN_PART.sub("", line.text)) for line in lines]
    by = _replacing(bare, [_told(line.text) for line in bare], changing, said, [changed_by(line) for line in lines])
    return [
        replace(bare[at], text=bare[at].text + _mark(changes, changed_by(line), language))
        if (changes := by.get(at))
        else line
        for at, line in enumerate(lines)
    ]


class _Change(NamedTuple):
    """What replaced a line, and whether only in part."""

    seq: int
    in_part: bool
    statement: _Statement


def _mark(changes: Sequence[_Change], known: Sequence[int], language: Language) -> str:
    """The newest that replaced all of a line, or each that changed a part of it and none changed again."""
    whole = [one.seq for one in changes if not one.in_part]
    parts = {one.seq for one in changes if not any(_changes_again(newer, one) for newer in changes)}
    seqs = [max(whole)] if whole else sorted(parts.union(known))
    return _MARKS[language][not whole].format(seqs=", ".join(f"[#{seq}]" for seq in seqs))


def _changes_again(newer: _Change, older: _Change) -> bool:
    its, former = newer.statement, older.statement
    return newer.seq > older.seq and (
        former.values.keys() <= its.values.keys() and (bool(former.values) or former.words <= its.words)
    )


class _Statement:
    """A statement by what it can be compared with; what is seldom asked for is found when it is."""

    def __init__(self, text: str) -> None:
        self.text = without_fillers(text)

    @cached_property
    def sentences(self) -> Sequence[str]:
        return [piece.text for piece in split_sentences(self.text)]

    @cached_property
    def words(self) -> frozenset[str]:
        return _words(self.text)

    @cached_property
    def topics(self) -> frozenset[str]:
        """What its Chinese clauses begin with."""
        return frozenset() if self.text.isascii() else frozenset(match[1] for match in _TOPIC.finditer(self.text))

    @cached_property
    def slots(self) -> Mapping[str, str]:
        return _slots(self.text)

    @cached_property
    def facts(self) -> frozenset[str]:
        return _facts(self.text)

    @cached_property
    def values(self) -> Mapping[str, frozenset[str]]:
        return _values(self.text)

    @cached_property
    def numbers(self) -> Mapping[str, frozenset[str]]:
        return _numbers(self.text)

    @cached_property
    def ids(self) -> frozenset[str]:
        """The numbers by which it names one of several things: order 7740."""
        return frozenset(match[1] for match in _ID.finditer(self.text))

    @cached_property
    def digits(self) -> frozenset[str]:
        return frozenset(_DIGITS.findall(self.text))

    @cached_property
    def revises(self) -> bool:
        return cues.revises(cues.without_advice(self.text))

    @cached_property
    def allowed(self) -> Sequence[frozenset[str]]:
        """What it allows again, each by its words."""
        return [words for one in cues.allowed(self.text) if (words := _words(one))]

    @cached_property
    def forbids(self) -> bool:
        return _FORBIDS.search(self.text) is not None

    @cached_property
    def settles(self) -> bool:
        return bool(self.values or self.numbers) and cues.settles(self.text)

    @cached_property
    def chosen(self) -> str:
        """The name of what it chooses: mysql of `we go with MySQL 8`."""
        match = _CHOSEN.search(self.text)
        return (match[1] or match[2]).lower() if match is not None else ""

    @cached_property
    def former(self) -> Mapping[str, frozenset[str]]:
        """What it says was before: the 3rd of `moved from the 3rd to the 5th`."""
        return _values(" ".join(cues.moved_from(self.text)))

    @cached_property
    def dropped(self) -> Sequence[frozenset[str]]:
        """What it says no longer holds, each by its words: scrap the seafood place."""
        return [words for one in cues.taken_back(self.text) if (words := _words(one))]

    @cached_property
    def denied(self) -> Sequence[frozenset[str]]:
        """What it says is not so."""
        return [words for one in cues.denied(self.text) if (words := _words(one))]

    @cached_property
    def may_replace(self) -> bool:
        return self.revises or bool(self.slots) or self.settles

    @cached_property
    def is_for_once(self) -> bool:
        return cues.is_for_once(self.text)

    @cached_property
    def is_of_one_time(self) -> bool:
        return cues.is_of_one_time(self.text)

    @cached_property
    def recurs(self) -> bool:
        return cues.recurs(self.text)

    @cached_property
    def corrects(self) -> bool:
        return cues.corrects(self.text)

    @cached_property
    def decides(self) -> bool:
        return cues.decides(self.text)

    @cached_property
    def doubts(self) -> bool:
        return cues.doubts(self.text)

    @cached_property
    def reverts(self) -> bool:
        return cues.reverts(cues.without_others_words(self.text))

    @cached_property
    def dropped_facts(self) -> frozenset[str]:
        """The dates, amounts and names of what it drops or denies: 20号那个作废."""
        gone = [*cues.taken_back(self.text), *cues.denied(self.text)]
        return _facts(" ".join(gone)) if gone else frozenset()


@lru_cache(maxsize=4_096)
def _statement(text: str) -> _Statement:
    """Remembered, because each request quotes nearly the same lines as the one before."""
    return _Statement(text)


@lru_cache(maxsize=4_096)
def _told(line: str) -> _Statement:
    """What a line tells, without who said it."""
    return _statement(without_label(line))


forget_on_erase(_statement.cache_clear)
forget_on_erase(_told.cache_clear)


def _replacing(
    lines: Sequence[SummaryLine],
    told: Sequence[_Statement],
    changing: Sequence[tuple[int, _Statement]],
    texts: Mapping[int, str],
    known: Sequence[Sequence[int]],
) -> dict[int, list[_Change]]:
    """Which lines are replaced by which messages, beside those that are `known` to have changed a part of them."""
    often = _often(told)
    able: defaultdict[int, list[int]] = defaultdict(list)
    surely: defaultdict[int, list[int]] = defaultdict(list)
    newest = max(seq for seq, _ in changing)
    open_to = [
        at
        for at, line in enumerate(lines)
        if max(line.last_seq, *known[at], 0) < newest and line.section in _MARKED_SECTIONS and "[#" not in line.text
    ]
    named = [told[at].text for at in open_to] if any(told[at].ids for at in open_to) else []
    numbered = {match[1] for text in (*named, *(texts.values() if named else ())) for match in _ID.finditer(text)}
    for at, index, share in _shared(told, open_to, [change for _, change in changing]):
        (seq, change), line, own = changing[index], lines[at], told[at]
        if seq <= max(line.last_seq, *known[at], 0) or _is_exception(change, own) or _says_so_itself(own, change):
            continue
        if own.ids and own.ids.isdisjoint(change.digits) and not numbered.isdisjoint(change.digits):
            continue  # it names another one
        if _takes_back(change, own, line.section, often):
            surely[index].append(at)
        elif _takes_value_back(change, own) or _changes(change, own, line.section, share):
            able[index].append(at)
    found: defaultdict[int, list[_Change]] = defaultdict(list)
    said = [(lines[at].last_seq, at, told[at]) for at in open_to]
    earlier = _SaidEarlier(texts)
    for index, (seq, change) in enumerate(changing):
        meant = [*surely[index], *_likeliest(change, [(lines[at], at, told[at]) for at in able[index]], seq, earlier)]
        if not surely[index] and not able[index] and (nearest := _nearest(change, seq, said)) is not None:
            meant = [nearest]
        for at in meant:
            leaves = _leaves_clause if at in surely[index] else _leaves_something
            in_part = leaves(change, told[at])
            found[at].append(_Change(seq, in_part, change))
    return found


def _shared(
    told: Sequence[_Statement], open_to: Sequence[int], changes: Sequence[_Statement]
) -> Iterator[tuple[int, int, float]]:
    """Which line may be replaced by which change, and what share of their words both have."""
    weights = _weights([one.words for one in (*changes, *told)])
    totals = [_total(one.words, weights) for one in changes]
    by_word = _by_word(changes)
    dropping = [
        at for at, change in enumerate(changes) if change.dropped_facts or len(change.values.get("day", ())) > 1
    ]
    by_name = _by_name(changes)
    for at in open_to:
        own = told[at]
        shared: dict[int, float] = dict.fromkeys(dropping, 0.0)
        for name in (*own.slots, *own.numbers):
            shared.update(dict.fromkeys(by_name.get(name, ()), 0.0))
        for word in own.words & by_word.keys():
            for index in by_word[word]:
                shared[index] = shared.get(index, 0.0) + weights[word]
        whole = _total(own.words, weights)
        for index, weight in shared.items():
            yield at, index, weight / min(whole, totals[index]) if weight > 0 else 0.0


def _likeliest(
    change: _Statement, able: Sequence[tuple[SummaryLine, int, _Statement]], seq: int, said: _SaidEarlier
) -> Iterator[int]:
    """Of what a statement may change, without what something else is nearer to: a football lesson that moves from
    Thursday is not the piano lesson on Thursday. Of two that are equally near, and not the same, neither."""
    if not able:
        return
    untold = said.near(change, seq)
    in_common = [own.words & change.words for _, _, own in able]
    nearest = [words for words in set(in_common) if not any(words < more for more in set(in_common))]
    for (line, at, own), words in zip(able, in_common, strict=True):
        if words not in nearest or any(
            other_words == words and place != at and not _is_same(other, own)
            for (_, place, other), other_words in zip(able, in_common, strict=True)
        ):
            continue
        if not any(
            words < other.words & change.words
            for place, other in untold
            if place > line.last_seq or (place < line.first_seq and not (own.revises or own.decides))
        ):
            yield at


class _SaidEarlier:
    """What was said, by the words of the sentences that tell when or how much: each is looked at once, not once for
    each change."""

    def __init__(self, texts: Mapping[int, str]) -> None:
        self._texts = texts

    @cached_property
    def _by_word(self) -> Mapping[str, Sequence[tuple[int, _Statement]]]:
        found: defaultdict[str, list[tuple[int, _Statement]]] = defaultdict(list)
        for seq, text in self._texts.items():
            for one in _sentences_with_values(text):
                for word in one.words:
                    found[word].append((seq, one))
        return found

    def near(self, change: _Statement, before: int) -> Sequence[tuple[int, _Statement]]:
        """The earlier sentences that give another value of what a statement changes, in words that it has."""
        if not change.values:
            return ()
        found = {
            (seq, other.text): other
            for word in change.words
            for seq, other in self._by_word.get(word, ())
            if seq < before
        }
        return [
            (seq, other) for (seq, _), other in found.items() if _differ(other, change) or _names_both(other, change)
        ]


@lru_cache(maxsize=2_048)
def _sentences_with_values(text: str) -> Sequence[_Statement]:
    return tuple(one for piece in split_sentences(text) if (one := _Statement(piece.text)).values)


forget_on_erase(_sentences_with_values.cache_clear)


def _is_same(other: _Statement, own: _Statement) -> bool:
    both = other.words & own.words
    return 2 * len(both) >= min(len(other.words), len(own.words)) and not _differ(other, own)


def _by_word(changing: Sequence[_Statement]) -> Mapping[str, list[int]]:
    """Which of them hold a word, so that only those are compared that share one."""
    found: defaultdict[str, list[int]] = defaultdict(list)
    for at, change in enumerate(changing):
        for word in change.words:
            found[word].append(at)
    return found


def _by_name(changing: Sequence[_Statement]) -> Mapping[str, list[int]]:
    """Which of them say one of the things that hold only once, or have a number of a kind: without a common word, they
    change only what says or has it too."""
    found: defaultdict[str, list[int]] = defaultdict(list)
    for at, change in enumerate(changing):
        for name in (*change.slots, *change.numbers):
            found[name].append(at)
    return found


def _weights(statements: Sequence[frozenset[str]]) -> Mapping[str, float]:
    """How rare each word is; among a few statements, what two share seems common and is not."""
    if len(statements) >= _ENOUGH:
        return tf_idf_weights(statements)
    return dict.fromkeys(frozenset[str]().union(*statements), 1.0)


def _total(words: frozenset[str], weights: Mapping[str, float]) -> float:
    return sum(weights[word] for word in words)


def _often(told: Sequence[_Statement]) -> frozenset[str]:
    """Words by which no single thing can be meant: three lines or more are about an "order"."""
    counts = Counter(word for one in told for word in one.words)
    return frozenset(word for word, count in counts.items() if count > _ONE_THING)


def _is_exception(later: _Statement, own: _Statement) -> bool:
    """Whether what it changes is changed for once: what was told for all times still holds."""
    return later.is_for_once or (later.is_of_one_time and own.recurs)


def _takes_back(later: _Statement, own: _Statement, section: Section, often: frozenset[str]) -> bool:
    """By what it says in so many words no longer holds, and by what can hold only once."""
    if later.slots and any(own.slots.get(slot, value) != value for slot, value in later.slots.items()):
        return True
    if later.dropped and any(
        words <= own.words and (section != "facts" or not words <= often) for words in later.dropped
    ):
        return True
    if later.denied:
        is_enough = section in _DECIDED or (section == "standing" and later.corrects)
        if any(words <= own.words and (is_enough or len(words) > 1) for words in later.denied):
            return True
    return own.forbids and any(words <= own.words for words in later.allowed)


def _takes_value_back(later: _Statement, own: _Statement) -> bool:
    """By a day, an amount or a name that it says no longer holds, or that it puts right."""
    puts_right = (later.revises and later.corrects) or (later.settles and own.doubts)
    if puts_right and later.numbers and own.numbers and _is_misspelt(own, later):
        return True
    return bool(later.dropped_facts) and not later.dropped_facts.isdisjoint(own.facts)


def _changes(later: _Statement, own: _Statement, section: Section, share: float) -> bool:
    """By being about the same thing, for which `share` of the words speaks."""
    if not later.revises or _is_of_another(own, later):
        return False
    if section != "standing" and _names_both(own, later):
        return True
    if share == 0.0:
        return False
    if section == "standing" and not later.reverts:
        return False
    if later.words <= own.words and not (later.dropped or later.denied or _differ(own, later)):
        return False  # says the same again
    if section != "standing" and not own.topics.isdisjoint(later.topics & later.words):
        return not (own.values or later.values) or _differ(own, later)
    is_one = len(own.words & later.words) < 2
    if section in _DECIDED:
        if _differ(own, later):
            return share >= (_BY_ONE_WORD if is_one else _SAME_SUBJECT)
        return not is_one and share >= _SAME_SUBJECT and not _agree(own, later)
    return _changes_what_was_told(later, own, section, share, is_one=is_one)


def _changes_what_was_told(later: _Statement, own: _Statement, section: Section, share: float, *, is_one: bool) -> bool:
    """What was only told, or ordered for good, is seldom meant; one word is enough where it says it was wrong."""
    if is_one and (section == "standing" or not cues.corrects(later.text)):
        return False
    is_same = share >= (_SAME_FACT if own.text.isascii() else _SAME_CHINESE_FACT)
    return is_same and (section == "standing" or _differ(own, later))


def _leaves_something(later: _Statement, own: _Statement) -> bool:
    """Whether more is told than what it changes: of a van on the 27th for 240 quid another day leaves the price."""
    untouched = own.values.keys() - later.values.keys() or own.numbers.keys() - later.numbers.keys()
    return (
        bool(untouched)
        or _leaves_some(own.sentences, later)
        or any(
            len(_distinct(kind, values)) > max(1, len(_distinct(kind, later.values[kind])))
            for kind, values in own.values.items()
        )
    )


def _leaves_clause(later: _Statement, own: _Statement) -> bool:
    """Whether of what it puts something else in the place of another clause is left: of a trip to Dali, no flights,
    another town leaves that nobody flies. What is scrapped goes with all that was said of it."""
    if not (later.slots or _IN_ITS_PLACE.search(later.text)):
        return False
    return _leaves_some([clause for one in own.sentences for clause in _CLAUSES.split(one)], later)


def _leaves_some(parts: Sequence[str], later: _Statement) -> bool:
    """Whether it is about some of the parts and not about others that say something."""
    others = [part for part in parts if _words(part).isdisjoint(later.words) and not _slots(part)]
    return len(others) < len(parts) and any(
        len(_words(part)) >= (1 if part.isascii() else 2) and not _DEPENDS.match(part.lstrip()) for part in others
    )


_IN_ITS_PLACE = re.compile(r"\b(?i:instead|rather|mov(?:e|es|ed|ing)|switch\w*|now)\b|[改换]")
_CLAUSES = re.compile(r"[,;] |[，；]")
_DEPENDS = re.compile(
    r"(?i:(?:even|if|because|since|as|when\w*|unless|so|which|who|that|it\w?|it's|this|they|please|ok|okay|not)\b)"
    r"|因为|如果|即使|所以|除非|而不|不是|当|它|这"
)
"""How a clause begins that says nothing apart from the one before it."""


def _distinct(kind: str, values: frozenset[str]) -> set[str]:
    return {value[-2:] for value in values} if kind == "day" else set(values)


def _is_misspelt(own: _Statement, later: _Statement) -> bool:
    """Whether both give a number that is nearly the same: LH 1234 and LH 1243."""
    return any(
        _is_nearly(former, now)
        for kind in own.numbers.keys() & later.numbers.keys()
        for former in own.numbers[kind] - later.numbers[kind]
        for now in later.numbers[kind]
    )


def _is_nearly(former: str, now: str) -> bool:
    changed = sum(one != other for one, other in zip(former, now, strict=False))
    return (
        len(former) == len(now) and changed > 0 and (changed <= max(1, len(now) // 2) or sorted(former) == sorted(now))
    )


def _says_so_itself(own: _Statement, later: _Statement) -> bool:
    """Whether it takes back the same."""
    return bool(later.dropped) and any(not gone.isdisjoint(one) for gone in own.dropped for one in later.dropped)


def _is_of_another(own: _Statement, later: _Statement) -> bool:
    """Whether what it changes was another day or amount than is told here."""
    if not later.former:
        return False
    both = own.values.keys() & later.former.keys()
    return bool(both) and all(own.values[kind].isdisjoint(later.former[kind]) for kind in both)


def _names_both(own: _Statement, later: _Statement) -> bool:
    """Whether it names the very day or amount that is told here and what comes in its place, of the same thing: the
    Thursday viewing is on Saturday now. A day of a month is enough to know the thing by."""
    if not later.values:
        return False
    is_of_same = not own.words.isdisjoint(later.words)
    return any(
        own.values[kind] & later.values[kind] and later.values[kind] - own.values[kind]
        for kind in own.values.keys() & later.values.keys()
        if (is_of_same or kind == "day")
        and all(value in later.values[kind] or _is_named(value, later.values[kind]) for value in own.values[kind])
    )


def _is_named(day: str, days: frozenset[str]) -> bool:
    """Whether a day of a month is among them by its number alone."""
    return day.startswith("--") and f"---{day[-2:]}" in days


def _agree(own: _Statement, later: _Statement) -> bool:
    """Whether both say when, or how much, and the same: then one confirms the other."""
    if not later.values:
        return False
    both = own.values.keys() & later.values.keys()
    return bool(both) and not _differ(own, later)


def _differ(own: _Statement, later: _Statement) -> bool:
    """Whether both say when, or how much, and not the same."""
    if not later.values:
        return False
    both = own.values.keys() & later.values.keys()
    return any(own.values[kind].isdisjoint(later.values[kind]) for kind in both)


def _nearest(later: _Statement, seq: int, said: Sequence[tuple[int, int, _Statement]]) -> int | None:
    """What a statement changes that shares too few words with anything: the nearest that gives another value. `said`
    are the earlier ones with their seqs and places."""
    if later.revises and later.chosen:
        chosen = (
            (own_seq, at) for own_seq, at, own in said if own_seq < seq and own.chosen and own.chosen != later.chosen
        )
        return max(chosen, default=(0, None))[1] if _ANAPHORIC.search(later.text) else None
    if not (later.revises or later.settles) or not later.values:
        return None
    names_nothing = later.text.isascii() or _CHANGES_ALONE.match(later.text) is not None
    is_brief = names_nothing and len(later.words) <= _BRIEF_WORDS[later.text.isascii()]
    if len(later.words) > _LONG_WORDS:
        return None  # a long one says itself what it changes
    able = (
        (own_seq, at)
        for own_seq, at, own in said
        if own_seq < seq
        and ((is_brief and seq - own_seq <= _BRIEF_REACH) or not own.words.isdisjoint(later.words))
        and _differ(own, later)
        and not _is_of_another(own, later)
        and (later.revises or own.doubts)
        and not _is_exception(later, own)
    )
    return max(able, default=(0, None))[1]


_FORBIDS = re.compile(
    r"(?:^|[,.;!:] )(?i:(?:please|pls|and|but|ok|always|answer|write) ){0,3}"
    r"(?i:never|no|don'?t|do not|avoid|stop|without)\b|[不别勿禁]"
)
_ANAPHORIC = re.compile(
    r"\b(?i:(?:scrap|forget|ignore|scratch|drop|cancel) (?:that|it|this)|on second thoughts?|chang(?:e|ed|ing) my mind"
    r"|no,? wait|wait,? no)\b|算了|改主意|还是"
)
_CHOSEN = re.compile(
    r"\b(?:(?i:use|using|go(?:ing)? with|went with|switch(?:ed)? to|stick with|take|choose|chose|pick)) "
    r"([A-Z][\w+#.-]*[\w+#]|[A-Z])|(?:就用|决定用|选|换成|改用|采用) ?([A-Z][\w+#.-]*)"
)
_CHANGES_ALONE = re.compile(
    r"(?:那么?|就|还是|算了|嗯+|好的?|行|不|再|请|帮我|把?它|这个|时间|日期|都|要|也|想|先|对不起|抱歉|不好意思|其实|等等"
    r"|[，,。！!、\s\d月号日点:：]){0,12}"
    "(?:改|换|挪|移|推迟|提前|延|调|加|减|涨|降)"
)
"""A Chinese statement that does not say what it changes."""
_BY_ASSISTANT = re.compile(r"(?:assistant|ai|instruction|system|tool): |(?:助手|指示|系统|工具)：")
_LABEL = re.compile(r"^(?:user|assistant|human|ai|instruction|system|tool): |^(?:用户|助手|指示|系统|工具)：")
_REPLY = re.compile(r" → (?:user: |assistant: |human: |ai: |用户：|助手：)?")


def without_label(text: str) -> str:
    """A line without who said it."""
    bare = _LABEL.sub("", text, count=1)
    return _REPLY.sub("; ", bare) if "→" in bare else bare


_ASKING_ENDS = ("吗", "呢", "没有")
"""By these a Chinese question is told from a statement where its mark is left out, as it is in chats."""


def _only_asks(text: str) -> bool:
    return (cues.ends_in_question(text) or text.endswith(_ASKING_ENDS)) and not _statement(text).dropped


def _facts(text: str) -> frozenset[str]:
    """Dates, times, amounts and names; a date in every vagueness: 12月20号 is also the 20th."""
    facts = [fact for fact in find_facts(text) if fact.kind not in ("quote", "number", "code")]
    found = {form for fact in facts for form in (_days(fact.normal) if fact.kind == "date" else (fact.normal,))}
    return frozenset(found.union(_days_of_month(text)))


_DAY_OF_MONTH = re.compile(
    r"\b(?P<day>[12]\d|3[01]|[1-9])(?:st|nd|rd|th)\b"
    r"(?! (?:\w+ )?(?i:time|floor|grade|birthday|anniversary|century|edition|street|avenue|row|place|attempt|chapter))"
)


def _days_of_month(text: str) -> Iterator[str]:
    """Days that are told without their month: the 27th."""
    return (f"---{int(found['day']):02}" for found in _DAY_OF_MONTH.finditer(text))


def _days(date: str) -> tuple[str, ...]:
    """Of a date the day in the month, with the month and without; the month or year alone is too vague."""
    if date.startswith("--") and date.count("-") == 3 and date[2] != "-":
        return (date, f"---{date[-2:]}")
    return tuple(form for form in vaguer_dates(date) if len(form) >= 5 and not form[:4].isdigit())


_WEEKDAY = re.compile(
    r"\b(mon|tues?|wednes|thurs?|fri|satur|sun)day\b|(?:周|星期|礼拜)([一二三四五六日天])", re.IGNORECASE
)
_MEASURES = "公斤|公里|小时|分钟|[晚天个人次份张间台位斤升岁层件套把片瓶盒杯本条辆只箱袋支颗桶棵盏双]"
_MONTHS = frozenset(
    stem(month)
    for month in "january february march april may june july august september october november december".split()
)
_NO_UNIT = r"(?!(?:for|and|with|the|from|until|till|are|was|were|per|plus|not|now|then|but|instead|each)\b)"
_COUNT = re.compile(
    rf"(?<![\d.,:/-])(\d{{1,3}}(?:,\d{{3}}){{1,2}}|\d{{1,6}})\s?(?:{_NO_UNIT}([a-z]{{3,20}})\b|({_MEASURES}))"
)

_NUMBERED = re.compile(
    r"\b(?i:(week|room|gate|platform|seat|terminal|floor|port|version|lane|track|table)s?) (\d[\d.]{0,5})\b"
)

_CLOCK = re.compile(r"\b(?i:at|from|until|till) (\d{1,2})\.([0-5]\d)\b(?!\.?\d)")
_SUM = re.compile(r"(?<![\d.,])\d{1,6}\.\d\d(?![\d.%])")
"""An amount as bills give it, without its currency."""
_WAN = re.compile(r"(?<![\d.])(\d{1,4}(?:\.\d+)?)万")


def _values(text: str) -> Mapping[str, frozenset[str]]:
    """When, and how much of what, a statement says; the clock of a pasted chat is none of it."""
    text = _STAMP.sub("", text)
    found: defaultdict[str, set[str]] = defaultdict(set)
    for fact in find_facts(text):
        if fact.kind == "date":
            found["day"].update(_days(fact.normal))
        elif fact.kind in ("time", "money"):
            found[fact.kind].add(fact.normal)
    for kind, value in _amounts(text):
        found[kind].add(value)
    return {kind: frozenset(values) for kind, values in found.items()}


def _amounts(text: str) -> Iterator[tuple[str, str]]:
    """Days, hours and amounts that are no facts as people write them in chats, by what they are of."""
    yield from (("day", day) for day in _days_of_month(text))
    yield from (("weekday", (match[1] or match[2]).lower()) for match in _WEEKDAY.finditer(text))
    yield from (("time", f"{int(match[1]):02}:{match[2]}") for match in _CLOCK.finditer(text))
    yield from (("sum", match[0]) for match in _SUM.finditer(text))
    yield from (("万", match[1]) for match in _WAN.finditer(text))
    yield from ((match[1].lower(), match[2]) for match in _NUMBERED.finditer(text))
    counted = ((stem(match[2] or match[3]), match[1].replace(",", "")) for match in _COUNT.finditer(text))
    yield from ((unit, count) for unit, count in counted if unit not in _MONTHS)


_CODE = re.compile(r"(?<![\w-])([A-Z]{1,5})[ -]?(\d{2,6})(?![\w.,:]?\d)")
_LONG_NUMBER = re.compile(r"(?<![\d\w.,-])\+?\d(?:[ /-]?\d){6,17}(?!\d)")
_READING = re.compile(r"\b([A-Za-z]{3,15})(?: is|:|=)? (\d{4,6})\b(?![.:,]?\d)")
_PHONE_DIGITS = 7


def _numbers(text: str) -> Mapping[str, frozenset[str]]:
    """Numbers that name something, by the letters before them: flights, tickets, telephones. Another number is another
    thing, unless it is nearly the same."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for match in _CODE.finditer(text):
        found[match[1].lower()].add(match[2])
    for match in _READING.finditer(text):
        found[match[1].lower()].add(match[2])
    for match in _LONG_NUMBER.finditer(text):
        digits = "".join(filter(str.isdigit, match[0]))
        if len(digits) >= _PHONE_DIGITS:
            found["phone"].add(digits)
    return {kind: frozenset(values) for kind, values in found.items()}


_STAMP = re.compile(r"\[\d{1,2}:\d\d(?::\d\d)?\]")
_ID = re.compile(
    r"(?:\b(?i:order|ticket|invoice|booking|case|flat|number|no\.?)|#|订单|单号|工单|编号|合同|房间) ?#?(\d{3,})(?!\d)"
)
_DIGITS = re.compile(r"\d{3,}")
_TOPIC = re.compile(r"(?:^|(?<=[，。；：！？,;:\s]))([\u4e00-\u9fff]{2})")
_ADDRESS = re.compile(
    r"\b(?<!not )(?<!n't )(?<!dont )(?i:call me|address me as)"
    r" (?!back|when|if|at |in |on |later|before|after|tomorrow|today)([^,.;!?，。；！？]{1,40}?)"
    r"(?=[,.;!?，。；！？]| (?:please|pls|from|and|not|instead|everyone)\b|$)"
    r"|(?:叫我|称呼我为?)([^，。；！？,.;!?\s]{1,10}?)(?=就行|就好|吧|[，。；！？,.;!?\s]|$)"
)
_REPLY_LANGUAGE = re.compile(
    r"\b(?i:answer|reply|respond|write|speak|talk)(?: (?:to|me|only|again|back|always)){0,3} in ([A-Z][a-z]{2,20})"
    r"|(?:用|改回|换回|换成|说)(中文|英文|英语|日语|德语|法语|繁体|简体|汉语)"
)
_LANGUAGE_NAMES = (
    "english|german|french|spanish|italian|portuguese|dutch|chinese|japanese|russian|polish|turkish|korean"
)
_LANGUAGE_AGAIN = re.compile(
    r"(?:^|[,.;!]\s)(?i:(?:ok|okay|so|and|now|please|pls|nvm|let's|can|could|we|you|go|switch|ab|jetzt"
    r"|bitte|auf) ){0,6}"
    rf"(?i:(?:back to|switch to|wieder(?: auf)?) ({_LANGUAGE_NAMES})|(?:in )?({_LANGUAGE_NAMES}) again)"
    r"(?i: (?:now|please|pls|bitte|thanks|again)){0,2}(?=[,.;!]|$)"
)
_DIET = re.compile(
    r"\b(?i:i(?:'m| am|m)(?: (?:now|also|a|strictly|btw))* (?P<no>vegetarian|vegan)"
    r"|i (?:now )?eat (?P<yes>meat|fish))\b"
    r"|我(?!妈|爸|弟|哥|姐|妹|老)[^，。；！？,.;!?吃]{0,4}(?:(?P<zh_no>吃素|素食)|(?P<zh_yes>吃肉|吃荤))"
)
_UNITS = re.compile(
    r"\b(?i:(?:use|using|in|to|back to) (metric|imperial)|(metric|imperial)"
    r" (?:units?|system|measure\w*|again|please|pls|instead|from now on))\b|(公制|英制)"
)
_SLOT_SIGNS = re.compile(
    "metric|mperial|[公英]制|again|back to|switch to|wieder|call me|address me| in [A-Z]|vegetarian|vegan|eat "
    "|叫我|称呼我|[文语体吃素]"
)


def _slots(text: str) -> dict[str, str]:
    """What can hold only once: how to address the user, in which language and units to answer, what they eat."""
    if not _SLOT_SIGNS.search(text):
        return {}
    text = cues.without_others_words(text)
    found: dict[str, str] = {}
    if address := _ADDRESS.search(text):
        found["address"] = (address[1] or address[2]).lower()
    if (
        (language := _REPLY_LANGUAGE.search(text)) and "不用" not in text[max(0, language.start() - 2) : language.end()]
    ) or (language := _LANGUAGE_AGAIN.search(text)):
        found["language"] = (language[1] or language[2]).lower()
    if diet := _DIET.search(text):
        found["diet"] = "meat" if diet["yes"] or diet["zh_yes"] else "none"
    if units := _UNITS.search(text):
        found["units"] = next(filter(None, units.groups())).lower()
    return found


def _words(text: str) -> frozenset[str]:
    found = (stem(word) if word.isascii() else word for word in terms(text))
    return frozenset(word for word in found if not word[0].isdigit() and word not in _NO_SUBJECT)


_NO_SUBJECT = frozenset(
    stem(word) if word.isascii() else word
    for word in (
        "user assistant human ai instruction system tool correct corrected correction update typo sorry wrong"
        " mistake misread meant instead rather change cancel cancelled switch move moved"
        " actual actually decide decided decision let let's raise raised lower always please euro euros eur usd dollars"
        " th st nd rd k pm monday tuesday wednesday thursday friday saturday sunday january february march april june"
        " july august september october november december jan feb mar apr jun jul aug sept sep oct nov dec "
        "用户 助手 指示 系统 工具 更新 更正 其实 改成 改为 取消 换成 还是 改到 提高 "
        "年 月 号 日 天 点 分 半 周 元 块 万 千 百 到 上午 下午 晚上 早上 中午 今天 明天 后天 昨天 日期 时间 期改 间改"
    ).split()
)
"""What says who speaks, that something changes, or when, and not what."""
