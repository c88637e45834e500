"""The statements of a stretch: who said each, in answer to what, under which head it belongs, and what it is worth.

A statement alone is often not understood ("yes, the second one"); what it answers is found here, once, so that scoring
and writing need not look at the messages again. Scores are plain sums and factors, so that a line's presence can be
explained: who said it, how rare its words are in this conversation, what it does, where it stands. The facts it holds
are valued apart, because a fact is worth keeping once.
"""

from __future__ import annotations

import heapq
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from everthread.compaction.fact_ranking import fact_weight, is_askable
from everthread.compaction.sources import Source, is_user
from everthread.compaction.standing import is_standing
from everthread.compaction.summary_format import Section
from everthread.compaction.superseded import may_replace
from everthread.text import cues
from everthread.text.facts import Fact
from everthread.text.fillers import without_fillers
from everthread.text.sentences import TextPiece, split_sentences
from everthread.text.terms import terms, tf_idf_weights

# A reply of so few content words says nothing without the question before it.
SHORT_TERMS = 6
# Below this share of the messages users only set the task.
_RARE_SHARE = 0.2
# Of fewer content words nothing is told that is worth a line.
_LEAST_TERMS = 2
_LAUGHS = re.compile(
    r"(?i:\b(?:lol|lmao|rofl|(?:ha){2,}h?|(?:he){2,}|xd)\b)|哈{2,}|嘿{2,}|[\U0001f600-\U0001f64f\U0001f923\U0001f929]"
)
_SIGNATURE = re.compile(r"[A-Z][\w'’-]+(?: (?:de|der|van|von|di|el|bin|la|[A-Z][\w'’-]*\.?)){1,3}[.!]?")
"""A name alone, as it stands below a letter."""
_NAMED = r"[A-Z][\w'’-]+(?: [A-Z][\w'’-]+){0,2}"
_INTRODUCES_SPEAKER = re.compile(
    r"(?:(?i:hi|hello|hey|good (?:morning|evening|day|afternoon))[\s,!.]+)?"
    rf"(?:(?i:this is|it'?s|i'?m) {_NAMED}(?: (?i:here|again))?|{_NAMED} (?i:here|again))(?:, [^.!?]{{1,40}})?[.!:]"
)
_CORRECTS = re.compile(
    r"(?i:(?:oh |ah |ok |hm+ )?(?:no,? wait|wait,? no|scratch that|sorry,|correction\b|i mean(?:t)?\b|or rather\b))"
    "|不对|说错了|哦不|等等，不"
)
_JOINED_CHARS = 300
# What confirms a choice says so in a sentence.
_CONFIRMING_TERMS = 14
# Someone who asks does so at the end of what they say.
_LAST_PIECES = 2
# Among so many of the first pieces of the users the goal of a span is looked for.
_OPENING_PIECES = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """A piece where it stands in the span."""

    source: Source
    piece: TextPiece
    index: int
    """Its index among the pieces of its message."""
    progress: float
    """How far through the span its message is, up to 1."""
    terms: tuple[str, ...]
    question: Statement | None
    """What it answers, when it is too short to be understood alone."""
    answered: bool
    """Whether someone else spoke after it."""
    among_people: bool
    """Whether only people talk: their questions to each other are talk, not tasks."""
    works_alone: bool
    """Whether users are rare in the span: the one who works says what is decided."""
    after_choice: bool
    """Whether it is the first that is said after a user chose something in a few words."""


def statements_of(sources: Sequence[Source]) -> Iterator[Statement]:
    """Every piece that someone said, in order; what tools answered is no one's words."""
    answered = _answered(sources)
    speaking = [is_user(source) for source in sources if source.text.strip() and not source.is_tool_result]
    among_people, works_alone = all(speaking), sum(speaking) < _RARE_SHARE * len(speaking)
    before: list[Statement] = []
    passed_by: tuple[str, str | None] | None = None
    earlier: list[Statement] = []
    chose = False
    for at, source in enumerate(sources):
        speaker = (source.role, source.name)
        if passed_by is not None and said_something(source):
            before = earlier if passed_by == speaker else before
            passed_by = None
        pieces = [] if source.is_tool_result else _join_pieces(split_sentences(source.text))
        said: list[Statement] = []
        for index, piece in enumerate(pieces):
            words = () if piece.kind == "code" else tuple(terms(piece.text))
            alone = index == 0 and len(pieces) <= _LAST_PIECES
            said.append(
                Statement(
                    source=source,
                    piece=piece,
                    index=index,
                    progress=(at + 1) / len(sources),
                    terms=words,
                    question=_question(before, source, words) if alone and _is_short(words, piece.text) else None,
                    answered=answered[at],
                    among_people=among_people,
                    works_alone=works_alone,
                    after_choice=chose and index == 0 and not is_user(source),
                )
            )
        yield from said
        if not said:
            continue  # Tool calls and their results between a question and its answer change nothing.
        is_offered = any(cues.proposes(one.piece.text) for one in before)
        chose = is_user(source) and cues.chooses(source.text, is_offered=is_offered)
        if cues.stalls(source.text):
            passed_by, earlier = speaker, before  # "sec" and "ok wait" of who will answer neither
        before = said[-_LAST_PIECES:]


def said_something(source: Source) -> bool:
    """Whether a message has words that somebody said."""
    return bool(source.text.strip()) and not source.is_tool_result


def confirms_choice(one: Statement, *, holds_facts: bool) -> bool:
    """Whether it says with its facts what a user just chose in a few words ("book that one")."""
    text = one.piece.text
    if not one.after_choice or not holds_facts or one.piece.kind != "prose" or cues.asks(text):
        return False
    return len(one.terms) <= _CONFIRMING_TERMS * (1 if text.isascii() else 2)


def is_small_talk(one: Statement, facts: dict[str, float]) -> bool:
    """Whether nobody would miss it: no fact, nothing decided, wanted or left to do, and hardly a word of content."""
    text = one.piece.text
    if one.index > 0 and one.question is None and _SIGNATURE.fullmatch(text):
        return True
    if facts or one.piece.kind != "prose":
        return False
    said = without_fillers(text)
    if len(one.terms) <= SHORT_TERMS and _LAUGHS.search(text) and not (is_standing(said) or may_replace(said)):
        return True
    if one.question is not None:
        return not one.terms and (len(one.question.terms) < _LEAST_TERMS or not _answers(one))
    if len(one.terms) >= _least_terms(text):
        return False
    if cues.decides(said) or cues.is_standing(said) or cues.is_pending(said) or cues.revises(said):
        return not one.terms
    return not one.terms or one.answered or not cues.asks(text)


def _answers(one: Statement) -> bool:
    """A yes or a no to a proposal says something, thanks and laughter do not."""
    text = one.piece.text
    return cues.gives_leave(text) or (
        cues.affirms(text) and one.question is not None and cues.proposes(one.question.piece.text)
    )


def _least_terms(text: str) -> int:
    """Chinese is counted in pairs of characters, which overlap."""
    return _LEAST_TERMS + 1 if text.isascii() else 2 * _LEAST_TERMS


def _join_pieces(pieces: list[TextPiece]) -> list[TextPiece]:
    """Sentences that say nothing without each other are one: who speaks with what they want, a slip of the tongue with
    its correction, and a question with the answer that its speaker gives."""
    joined: list[TextPiece] = []
    for piece in _join_reply(pieces):
        before = joined[-1] if joined else None
        if (
            before is not None
            and before.kind == piece.kind == "prose"
            and _belongs(before.text, piece.text, len(joined))
        ):
            joined[-1] = TextPiece(kind="prose", text=f"{before.text} {piece.text}")
        else:
            joined.append(piece)
    return joined


def _belongs(before: str, text: str, index: int) -> bool:
    if len(before) + len(text) > _JOINED_CHARS:
        return False
    if cues.ends_in_question(before) and cues.settles(text):
        return True  # who answers their own question
    return bool(_CORRECTS.match(text)) or (index == 1 and bool(_INTRODUCES_SPEAKER.fullmatch(before)))


def _join_reply(pieces: list[TextPiece]) -> list[TextPiece]:
    """A yes and what follows it are one reply."""
    if len(pieces) != _LAST_PIECES or {piece.kind for piece in pieces} != {"prose"}:
        return pieces
    first, second = pieces
    if not cues.affirms(first.text) or len(terms(first.text)) > 1:
        return pieces
    return [TextPiece(kind="prose", text=f"{first.text} {second.text}")]


def opening_request(said: Sequence[Statement]) -> Statement | None:
    """What a user came with: the first thing they want or ask for; at a conversation's start, their first words."""
    able = list(islice((one for one in said if _may_be_request(one)), _OPENING_PIECES))
    if able and said[0].source.seq == 1:
        return able[0]
    if said and said[0].among_people:
        return None  # people who talk among themselves have decisions, not one task
    return next((one for one in able if cues.aims(one.piece.text) and len(one.terms) >= SHORT_TERMS), None)


def _question(before: Sequence[Statement], source: Source, words: Sequence[str]) -> Statement | None:
    """What a reply answers; a word with a question mark explains no reply that says something itself."""
    if not before or (before[0].source.role, before[0].source.name) == (source.role, source.name):
        return None
    if cues.asks_back(source.text):
        return None
    asking = (one for one in reversed(before) if cues.proposes(one.piece.text) or cues.asks(one.piece.text))
    asked = next(asking, before[-1] if cues.gives_leave(source.text) else None)
    if asked is None or not asked.terms:
        return None
    return asked if len(asked.terms) >= _LEAST_TERMS or len(words) <= _LEAST_TERMS else None


def _is_short(words: Sequence[str], text: str) -> bool:
    return len(words) <= SHORT_TERMS or (len(words) <= 2 * SHORT_TERMS and cues.affirms(text))


def _may_be_request(one: Statement) -> bool:
    text = cues.without_opening(one.piece.text)
    if not is_user(one.source) or one.piece.kind != "prose" or cues.is_polite(text) or cues.affirms(text):
        return False
    least = _LEAST_TERMS if cues.aims(text) else _LEAST_TERMS + 1
    return len(one.terms) >= least and not is_standing(text) and not _tells_of_person(one)


def _answered(sources: Sequence[Source]) -> list[bool]:
    """For each message, whether anyone but its speaker says something later in the span."""
    answered = [False] * len(sources)
    later: set[tuple[str, str | None]] = set()
    for at in range(len(sources) - 1, -1, -1):
        speaker = (sources[at].role, sources[at].name)
        answered[at] = bool(later - {speaker})
        if sources[at].text.strip() and not sources[at].is_tool_result:
            later.add(speaker)
    return answered


# A system message is sent with every request anyway.
_SYSTEM_WEIGHT = 0.2
_USER_WEIGHT, _OTHER_WEIGHT, _LONE_WORKER_WEIGHT = 1.0, 0.45, 0.8
# What the words of an aside matter, beside those of what is taken up again.
_APART = 0.5
# What keeping a fact is worth, by who said it; a tool's output is full of them.
_FACT_VALUES = {"user": 0.5, "other": 0.2, "tool": 0.1}
# So many of its weightiest terms speak for a piece; a longer one is not better for more.
_TOP_TERMS = 6
_FORM_FACTORS = {"prose": 1.0, "item": 0.8, "heading": 0.3, "code": 0.6}
# Politeness, filling, an introduction to what follows; cheering, and questions among people.
_IDLE, _WARM = 0.25, 0.4
_REPORTED = 0.7
# What a user was asked for was needed.
_ASKED_FOR = 0.3


class FactValues:
    """What keeping each fact is worth, and which facts a text said at a seq holds."""

    def __init__(self, sources: Sequence[Source], facts: Sequence[Fact]) -> None:
        sides = {
            source.seq: "user" if is_user(source) else "tool" if source.is_tool_result else "other"
            for source in sources
        }
        self._at_seq: defaultdict[int, list[Fact]] = defaultdict(list)
        self._values: dict[str, float] = {}
        for fact in filter(is_askable, facts):
            self._at_seq[fact.seq].append(fact)
            value = fact_weight(fact) * _FACT_VALUES[sides.get(fact.seq, "other")]
            self._values[fact.normal] = max(value, self._values.get(fact.normal, 0.0))

    def facts_in(self, text: str, *seqs: int) -> dict[str, float]:
        """The normal form of each fact in the text, with its value; a user's fact is worth it wherever it stands."""
        near = [fact for seq in dict.fromkeys(seqs) for fact in self._at_seq.get(seq, ())]
        return {fact.normal: self._values[fact.normal] for fact in near if fact.text in text}


def saliences(said: Sequence[Statement]) -> list[float]:
    """How much the words of each piece matter in this conversation: about 1 for the best tenth."""
    by_message: defaultdict[int, list[str]] = defaultdict(list)
    for one in said:
        by_message[one.source.seq].extend(one.terms)
    weights = tf_idf_weights(by_message.values())
    raw = [sum(heapq.nlargest(_TOP_TERMS, [weights[term] for term in set(one.terms)])) for one in said]
    top = sorted(raw)[int(len(raw) * 0.9)] if raw else 0.0
    connected = _connections(said)
    return [
        min(1.5, value / top) * (_APART + (1.0 - _APART) * near) if top > 0 else 0.0
        for value, near in zip(raw, connected, strict=True)
    ]


def _connections(said: Sequence[Statement]) -> list[float]:
    """How many of the words of each piece others say too, in another message: what nobody takes up is an aside."""
    first: dict[str, int] = {}
    own = [set(one.terms) for one in said]
    shared: set[str] = set()
    for one, words in zip(said, own, strict=True):
        seq = one.source.seq
        shared.update(word for word in words if first.setdefault(word, seq) != seq)
    return [min(1.0, 2.0 * len(words & shared) / max(1, len(words))) for words in own]


def quick_score(one: Statement, salience: float, facts: dict[str, float]) -> float:
    """A first guess at what a piece is worth, before its wording is looked at."""
    return _by_speaker(one) * _by_position(one, salience) + sum(facts.values())


def section_of(one: Statement, *, holds_facts: bool) -> Section:
    """Where a piece belongs. Users set goals and decide; an answer gives facts."""
    text = one.piece.text
    if (
        is_user(one.source)
        and one.piece.kind != "code"
        and (is_standing(without_fillers(text)) or _tells_of_person(one))
    ):
        return "standing"
    if not is_user(one.source):
        return "decisions" if one.works_alone and one.piece.kind == "prose" and cues.decides(text) else "facts"
    if one.piece.kind == "code":
        return "facts"
    if one.question is not None:
        agreed = cues.affirms(text) or cues.decides(text) or cues.gives_leave(text)
        return "decisions" if agreed else "facts"
    if cues.asks(text):
        if holds_facts or one.among_people or cues.is_polite(text):
            return "facts"
        if not one.answered:
            return "open"
        return "goal" if len(one.terms) >= (SHORT_TERMS if text.isascii() else 2 * SHORT_TERMS) else "facts"
    return _section_of_statement(text, among_people=one.among_people)


def _tells_of_person(one: Statement) -> bool:
    """Whether it answers what others have to heed of its speaker."""
    return (
        one.question is not None and bool(one.terms) and cues.answers_of_person(one.question.piece.text, one.piece.text)
    )


def _section_of_statement(text: str, *, among_people: bool) -> Section:
    text = cues.without_advice(without_fillers(text))
    if cues.decides(text) or cues.revises(text):
        return "decisions"
    if cues.is_pending(text):
        return "open"
    wants = not among_people and cues.aims(text) and len(terms(text)) >= _LEAST_TERMS + 1 and "?" not in text
    return "goal" if wants and not cues.is_polite(text) else "facts"


def score(one: Statement, section: Section, salience: float) -> float:
    """The worth of a piece without its facts."""
    if is_user(one.source) or one.works_alone:
        act = _by_act(one, section)
    else:
        act = _REPORTED if section == "decisions" else _by_report(one)
    asked_only = section == "facts" and one.answered and one.question is None and is_user(one.source)
    told = _IDLE if asked_only and cues.asks(one.piece.text) else 1.0  # what was answered tells more than its question
    return _by_speaker(one) * (_by_position(one, salience) + act) * _by_form(one) * told


def _by_speaker(one: Statement) -> float:
    if is_user(one.source):
        return _USER_WEIGHT
    if one.source.role == "system":
        return _SYSTEM_WEIGHT
    return _LONE_WORKER_WEIGHT if one.works_alone else _OTHER_WEIGHT


def _by_position(one: Statement, salience: float) -> float:
    """The start of a message and the end of the span tell more."""
    return 0.2 + 0.6 * salience + (0.15 if one.index == 0 else 0.0) + 0.2 * one.progress


def _by_report(one: Statement) -> float:
    """An assistant's report of what it did says in a line what its tools say in many."""
    return _REPORTED if one.index == 0 and cues.reports_done(one.piece.text) else 0.0


def _by_act(one: Statement, section: Section) -> float:
    text = one.piece.text
    own = {"decisions": 0.8, "standing": 0.8, "open": 0.2 + 0.2 * one.progress, "goal": 0.1}.get(section, 0.0)
    signs = (
        (cues.is_lasting, 0.3),
        (cues.revises, 0.4),
        (cues.reports_event, 0.3),
        (cues.is_relative_in_time, 0.2),
    )
    asked = one.question is not None and not is_user(one.question.source) and cues.asks(one.question.piece.text)
    return own + (_ASKED_FOR if asked else 0.0) + sum(worth for sign, worth in signs if sign(text))


def _is_idle(one: Statement) -> bool:
    text = one.piece.text
    said = without_fillers(text)
    laughs_and_revises = cues.revises(said) and not cues.is_polite(said)
    polite = cues.is_polite(text) and not (cues.decides(text) or laughs_and_revises)
    if one.question is not None:
        return polite and not cues.affirms(text)
    return len(one.terms) < 2 or polite or text.endswith((":", "："))


def _by_form(one: Statement) -> float:
    """What is said for politeness or around an answer, and what is no sentence, counts little."""
    text = one.piece.text
    factor = _FORM_FACTORS[one.piece.kind]
    if _is_idle(one):
        factor *= _IDLE
    if is_user(one.source):
        return factor * (_WARM if cues.praises(text) or (one.among_people and cues.asks(text)) else 1.0)
    return factor * (_IDLE if cues.is_boilerplate(text) or cues.ends_in_question(text) else 1.0)
