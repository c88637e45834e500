"""Whether what a model's summary says stands in its sources; what does not is struck, sentence by sentence.

Every number, date, time, id, address and name of a sentence must be in the messages it cites or in those next to them,
in whatever spelling. A clause that shares most of its words with a clause of a message must also name the same person
and say yes or no alike. Only a contradiction or something that nobody said is held against a sentence: it may use any
words for what was said. A number that was calculated, a name at the start of a sentence that does nothing which only
people do (`opening_names.py`), and a synonym that turns the meaning round are beyond these rules.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Literal

from everthread.compaction.opening_names import opening_name
from everthread.compaction.sources import Source, both_ends, language_of
from everthread.text import cues
from everthread.text.dates import find_time_ranges
from everthread.text.fact_rules_names import NOT_NAMES, ORDINARY_WORDS, SURNAMES, find_names
from everthread.text.facts import Fact, find_facts
from everthread.text.language import language_of_text, readable
from everthread.text.normal_forms import MONTHS, normalise, number, vaguer_dates
from everthread.text.sentences import split_sentences
from everthread.text.terms import terms
from everthread.text.words import stem

StruckReason = Literal["citation", "number", "date", "time", "id", "name", "person", "negation"]

# Of the messages next to a cited one: what is said there belongs to the same exchange.
_NEAR_MESSAGES = 2
# From so much of its words on a clause tells what a clause of a message tells.
_SAME_CLAIM = 0.3
_SURELY_SAME = 0.5
# Source clauses this close to the best one may be meant as well.
_AS_GOOD = 0.8
# A clause is about somebody else when it shares so much more with what was said of them.
_OTHERS_LEAD = 0.15
_ONLY_OTHERS = 0.1
"""The same where nothing of it was said of them."""
_PREFIX = 5
"""English words are compared by so many letters: allergy and allergic are about the same."""
_SMALL_COUNT = 10
"""Up to here a number in words may count what was listed; it is held against a sentence only if the same things were
counted otherwise."""

_TAG = re.compile(r"\[#(\d+)(?:(?:–|-|, )#(\d+))?(?:, \d{4}-\d\d-\d\d)?\]")
_BULLET = re.compile(r"^\s*(?:[-*+•]|\d{1,3}[.)])\s+")
_CITES = re.compile(r"\[#\d[^\]\n]{0,200}\]")
_CLAUSE = re.compile(
    r"[;；。（）()]\s*|(?<!\d)[,，:：]\s*|[,，:：](?!\d)\s*|(?<!\s)\s++[–—-]\s+|、(?=[^、，。]{4})"
    r"|\b(?:but|while|whereas|although|though|because|so that)\b"
    r"|\band (?=[A-Z]|(?:is|are|was|were|will|has|have|does|do|takes|can|must|should)\b)"
    r"|但是?|不过|而且?(?=[^且])|因为|所以|因此"
)
_HAN = re.compile(r"[\u4e00-\u9fff]")
_LATIN = re.compile(r"[A-Za-z][A-Za-zÀ-ÿ'’-]*")
_DIGITS = re.compile(r"\d+(?:\.\d+)?")
_WORD_OR_CODE = re.compile(r"[A-Za-z0-9]++(?:[-_.][A-Za-z0-9]++)*+")
_WITH_UNIT = re.compile(r"(\d+(?:\.\d+)?)([A-Za-zµ]{1,4})")
_NUMBER_WORDS = {
    word: value
    for value, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
        "seventeen eighteen nineteen twenty".split()
    )
} | {"thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90}  # fmt: skip
_COMPOUND = re.compile(
    r"\b(twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety)[ -](one|two|three|four|five|six|seven|eight|nine)\b"
)
_COUNT_WORD = re.compile(rf"\b({'|'.join(_NUMBER_WORDS)})\b(?:\s+([a-z]+))?")
_COUNTED = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)\s?([a-z]+)")
_HAN_NUMBER = re.compile(r"[零〇一二两三四五六七八九十百千万亿]+")
_HAN_COUNT = re.compile(r"([零〇一二两三四五六七八九十百千万亿]+|(?<!\d)\d++(?:\.\d++)?+)\s?([\u4e00-\u9fff])")
_SCALE = re.compile(r"\s?(万|亿|千|k\b|million|billion)")
_UNIT = re.compile(r"\s?([A-Za-z]+|[\u4e00-\u9fff])")
_ANY_UNIT = frozenset(
    "个次年月日号点天分两位名人晚 to and of on in at for the a is are per with from until by or".split()
) | set("个次年月日号点天分两位名人晚")
_WEEKDAYS = {
    name: at
    for at, names in enumerate(
        ("monday mon 一", "tuesday tue 二", "wednesday wed 三", "thursday thu 四", "friday fri 五", "saturday sat 六",
         "sunday sun 日 天")
    )
    for name in names.split()
}  # fmt: skip
_WEEKDAY = re.compile(
    r"\b(monday|tuesday|wednesday|thursday|friday|saturday|sunday)s?\b"
    r"|(?:周|星期|礼拜)([一二三四五六日天])(?:([、和与至到及])(?:周|星期|礼拜)?([一二三四五六日天])(?![\u4e00-\u9fff]))?",
    re.IGNORECASE,
)
_MONTH = re.compile(
    r"\b(january|february|march|april|june|july|august|september|october|november|december)\b"
    r"|\b(?:in|of|by|since|until|before|after|late|early|mid|last|next|this) (may)\b",
    re.IGNORECASE,
)
_SOON = {"tomorrow": 1, "明天": 1, "后天": 2, "the day after tomorrow": 2}
_ROLES = frozenset("user users assistant human ai tool system goal decision decisions facts fact open".split())
_NO_TERMS = frozenset(
    "user assis still alway longe take takes took give gives gave gets make makes puts need needs want wants says said "
    "told goes come comes keep keeps will has plan plans going tell tells".split()
)
_REPLIES = frozenset("agreed noted done fine understood moved exactly correct confirmed breakfast dinner lunch".split())
_HAN_ROLES = ("用户", "助手", "助理", "对方", "工具", "系统")

_IDIOMS = re.compile(
    r"\b(?:not only|no problem|no worries|don'?t (?:forget|hesitate|worry)|why not|not sure|no (?:more|later|less)"
    r" than|no fewer than|not (?:more|later) than|no doubt|whether or not|if not|or not|no\.)"
    r"|没问题|不错|不客气|不好意思|差不多|对不起|不管|不仅|不但|不只|不同(?!意)|不少|不久|不断|不得不|是不是|能不能|有没有"
    r"|要不要|好不好|行不行|可不可以|不超过|不晚于|不低于|不用谢|要不|不得已|了不起|不然|不到|不一定|没准|没错"
    r"|分别|特别|区别|个别|级别|性别|识别|别人|别的|告别|无线|无论|未来|停车|无锡|不妨|无所谓",
    re.IGNORECASE,
)
_NEGATIVE = re.compile(
    r"\b(?:not|never|no|none|nobody|nothing|neither|nor|without|cannot|unable|\w+n['’]t|refus\w+|declin\w+|reject\w+"
    r"|cancel\w*|against|dislik\w+|hates?|hated|avoid\w*|forb[ia]d\w*|bann?(?:ed|s)|allerg\w+|intoleran\w+"
    r"|lacks?|lacking|missing|stopp?(?:s|ed)?|vegetarian|vegan|excluded|excluding|off|free of|scrap\w*|dropped"
    r"|abandon\w*|discard\w*|g[ai]ven? up|object(?:s|ed)|forget (?:about )?(?:the|that|my|those))\b"
    r"|[不没无未别勿莫]|非(?!常|洲)|禁止|拒绝|取消|过敏|讨厌|反对|避免|受不了|忌|停|吃素|素食|缺",
    re.IGNORECASE,
)
_CONTRASTS = re.compile(
    r"\b(?:instead of|rather than)\b[^,.;:!?，。；]{1,40}|而不是[^，。；：！？]{1,12}", re.IGNORECASE
)
"""What something else takes the place of: of that something nothing is denied."""
_DENIES = re.compile(r"\b(?:not|never|no|none|nobody|cannot|\w+n['’]t)\b|[不没未别勿莫]", re.IGNORECASE)
"""A no in so many words; the others may be a synonym's."""
_KIN: dict[str, str] = {
    **dict.fromkeys("mother mom mum mama 妈妈 母亲 我妈 他妈 她妈 老妈".split(), "mother"),
    **dict.fromkeys("father dad papa 爸爸 父亲 我爸 老爸".split(), "father"),
    **dict.fromkeys("brother 弟弟 哥哥 兄弟".split(), "brother"),
    **dict.fromkeys("sister 姐姐 妹妹".split(), "sister"),
    **dict.fromkeys("wife 老婆 妻子 太太".split(), "wife"),
    **dict.fromkeys("husband 老公 丈夫".split(), "husband"),
    **dict.fromkeys("son 儿子".split(), "son"),
    **dict.fromkeys("daughter 女儿".split(), "daughter"),
    **dict.fromkeys("grandmother grandma 奶奶 外婆 姥姥".split(), "grandmother"),
    **dict.fromkeys("grandfather grandpa 爷爷 外公 姥爷".split(), "grandfather"),
    **dict.fromkeys("boss 老板 领导".split(), "boss"),
    **dict.fromkeys("colleague coworker 同事".split(), "colleague"),
    **dict.fromkeys("neighbour neighbor 邻居".split(), "neighbour"),
    **dict.fromkeys("friend 朋友".split(), "friend"),
    **dict.fromkeys("aunt 阿姨 姑妈 姨妈".split(), "aunt"),
    **dict.fromkeys("uncle 叔叔 舅舅".split(), "uncle"),
}
_HAN_KIN = re.compile("|".join(sorted((word for word in _KIN if _HAN.match(word)), key=len, reverse=True)))
_FIRST_PERSON = re.compile(
    r"\b(?:i|i'm|i've|i'd|i'll|me|we|we're|us|myself)\b|我(?!妈|爸|弟|哥|姐|妹|老|们家)", re.IGNORECASE
)
_TITLED_NAME = re.compile(r"\b(?:Dr|Mr|Mrs|Ms|Prof)\.? ([A-Z][\w-]+)")
_OPENING_NAME = re.compile(
    r"(?:^|[.!?]\s+)([A-Z][\w-]+)(?:['’]s)?(?=,| (?:and|is|was|has|had|can|can't|cannot|doesn't|didn't|will|won't"
    r"|would|says|said|thinks|thought|wants|needs|likes|loves|hates|offered|told|asked|does|did|gave|takes|pays|sings|writes|drives"
    r"|waters|updated|raised|uses|works|lives|plays|sent|made|built|wrote|found|prefers|owns|runs)\b)"
)
_SAID_BY_USER = re.compile(r"(?:user|human)\b[^:\n]{0,64}:|用户[^:：\n]{0,32}[:：]", re.IGNORECASE)
"""How a line names the user as the one who said it."""
_USER = re.compile(r"^(?:the )?user\b(?!['’]s)|^用户(?!的)", re.IGNORECASE)
# A Chinese name or topic opens a clause or follows one of these; its first two characters hold none of the others.
_HAN_OPENS = re.compile(r"(?:^|(?<=[，。；：、！？,;:\s和与跟由给让请是替在看找晚约（(]))([\u4e00-\u9fff]{2})")
_NOT_IN_TOPIC = frozenset(
    "的了在去到从住是和与跟给把被让叫就也还我你他她它们这那有没不说要想会能很吧呢吗啊来回往于对为以及或个一用可又再先都只"
    "已将请该须每约共各另且而但因所如其此等着过得地后前里上下中时点号月日年最更别无未二三四五六七八九十两几多少行"
)
_HAN_TITLED = re.compile(
    r"[\u4e00-\u9fff](?:师傅|经理|教授|老师|医生|先生|女士|教练|会计|姑妈|阿姨|叔叔|护士|律师|主任)"
)
_HAN_PERSON = re.compile(rf"[{SURNAMES}小老阿大][\u4e00-\u9fff]|([\u4e00-\u9fff])\1|(?:欧阳|司马|上官|诸葛|慕容)")
_NO_TOPIC = re.compile(
    "周[一二三四五六日末]|大[概约家]|小时|用户|助手|目前|现在|今天|昨天|明天|昨晚|今晚|以前|好[的吧]"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StruckSentence:
    """A sentence that was taken out of a model's summary, and what in it nobody said."""

    text: str
    reason: StruckReason
    detail: str

    def __str__(self) -> str:
        return f"{self.reason} {self.detail}: {self.text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedClaims:
    """A summary without what its sources do not say."""

    text: str
    sentences: int
    struck: tuple[StruckSentence, ...]


def check_claims(prose: str, sources: Sequence[Source]) -> CheckedClaims:
    """Strike the sentences that say what the sources do not."""
    said = _Sources(sources, prose)
    kept_lines: list[str] = []
    struck: list[StruckSentence] = []
    count = 0
    for line in prose.splitlines():
        if not line.strip() or line.lstrip().startswith("#"):
            kept_lines.append(line)
            continue
        kept: list[str] = []
        pieces = _sentences_of(line)
        for sentence in pieces:
            count += 1
            found = _problem(sentence, line, said)
            if found is None:
                kept.append(sentence)
            else:
                struck.append(found)
        if len(kept) == len(pieces):
            kept_lines.append(line)
        elif kept:
            kept_lines.append(_joined(line, kept))
    return CheckedClaims(text=_without_empty_heads(kept_lines), sentences=count, struck=tuple(struck))


def _sentences_of(line: str) -> list[str]:
    """The sentences of a line; the mark of its source belongs to the sentence before it."""
    body = _BULLET.sub("", line)
    pieces = [piece.text for piece in split_sentences(body)] or [body.strip()]
    joined: list[str] = []
    for piece in pieces:
        if joined and not _has_words(_CITES.sub("", piece)):
            joined[-1] = f"{joined[-1]} {piece}"
        elif joined and (tag := _CITES.match(piece)):
            joined[-1] = f"{joined[-1]} {tag[0]}"
            joined.append(piece[tag.end() :].strip())
        else:
            joined.append(piece)
    return joined


def _may_be_topic(opening: str) -> bool:
    return not set(opening) & _NOT_IN_TOPIC and not _NO_TOPIC.match(opening) and opening not in ORDINARY_WORDS


def _has_words(text: str) -> bool:
    return any(char.isalnum() for char in text)


def _joined(line: str, kept: Sequence[str]) -> str:
    """What is left of a line, with its bullet and, where its last sentence went, the mark of its source."""
    bullet = _BULLET.match(line)
    text = " ".join(kept)
    tag = re.search(r"\[#\d[^\]\n]{0,200}\]\s*$", line)
    mark = f" {tag[0].strip()}" if tag and not _CITES.search(text) else ""
    return f"{bullet[0] if bullet else ''}{text}{mark}"


def _without_empty_heads(lines: Sequence[str]) -> str:
    kept: list[str] = []
    for line in lines:
        if line.lstrip().startswith("#") and kept and kept[-1].lstrip().startswith("#"):
            kept.pop()
        kept.append(line)
    while kept and (not kept[-1].strip() or kept[-1].lstrip().startswith("#")):
        kept.pop()
    return "\n".join(kept)


@dataclass(frozen=True, kw_only=True)
class _Clause:
    """A clause of a message: its words, whom it names, and whether it says no."""

    message: int
    text: str
    terms: frozenset[str]
    about: frozenset[str]
    negative: bool
    asks: bool
    sentence: str


class _Said:
    """What a text says that can be looked up: numbers, dates, times, months, weekdays."""

    def __init__(self, text: str, said_at: datetime | None = None) -> None:
        self.text = text
        self.plain = normalise(text)
        self.packed = _packed(self.plain)
        self.facts = find_facts(text)
        self._said_at = said_at

    @cached_property
    def dates(self) -> frozenset[str]:
        found = {form for fact in self.facts if fact.kind == "date" for form in vaguer_dates(fact.normal)}
        if self._said_at is not None:
            found.update(form for day in _days_named(self.text, self._said_at) for form in vaguer_dates(day))
            found.update(vaguer_dates(self._said_at.date().isoformat()))
        return frozenset(found)

    @cached_property
    def times(self) -> frozenset[str]:
        return frozenset(fact.normal for fact in self.facts if fact.kind == "time")

    @cached_property
    def weekdays(self) -> frozenset[int]:
        found = set(_weekdays(self.text))
        for day in self.dates:
            if re.fullmatch(r"\d{4}-\d\d-\d\d", day):
                found.add(datetime.fromisoformat(day).weekday())
        return frozenset(found)

    @cached_property
    def months(self) -> frozenset[int]:
        from_dates = (re.fullmatch(r"(?:\d{4}|-)-(\d\d)(?:-\d\d)?", day) for day in self.dates)
        return frozenset([*_months(self.text), *(int(found[1]) for found in from_dates if found)])

    @cached_property
    def values(self) -> frozenset[str]:
        """Every number of it, in digits; the parts of its dates and times too."""
        flat = _flat(self.text)
        found = {number(one) for one in _DIGITS.findall(flat)}
        lower = _COMPOUND.sub(lambda m: str(_NUMBER_WORDS[m[1]] + _NUMBER_WORDS[m[2]]), flat.lower())
        found.update(number(one) for one in _DIGITS.findall(lower))
        found.update(str(_NUMBER_WORDS[one[1]]) for one in _COUNT_WORD.finditer(lower))
        found.update(number(one[0]) for one in _HAN_NUMBER.finditer(flat))
        found.update(found_value for fact in self.facts for found_value in _values_of(fact))
        return frozenset(found)

    @cached_property
    def counts(self) -> dict[str, set[str]]:
        """What was counted, and as how many."""
        found: dict[str, set[str]] = {}
        lower = _flat(self.text).lower()
        for match in _COUNTED.finditer(lower):
            found.setdefault(stem(match[2]), set()).add(number(match[1]))
        for match in _COUNT_WORD.finditer(lower):
            if match[2]:
                found.setdefault(stem(match[2]), set()).add(str(_NUMBER_WORDS[match[1]]))
        for match in _HAN_COUNT.finditer(lower):
            found.setdefault(match[2], set()).add(number(match[1]))
        return found


class _Sources:
    """The messages, looked at once for all sentences of a summary."""

    def __init__(self, sources: Sequence[Source], summary: str) -> None:
        self.summary = _CITES.sub(" ", summary)
        self.language = language_of(sources)
        self.seqs = [source.seq for source in sources]
        self.roles = [source.role for source in sources]
        self.said = [_Said(_text_of(source), source.said_at) for source in sources]
        self.speakers = [normalise(source.name or source.tool_name or "") for source in sources]
        self.whole = " ".join(one.plain for one in self.said)
        self.packed = "\n".join(one.packed for one in self.said)
        self.words = frozenset(stem(word.lower()) for one in self.said for word in _LATIN.findall(one.text))

    def near(self, line: str) -> list[int]:
        """The indexes of the messages that a line cites and of those next to them; all of them if it cites none."""
        cited = list(_cited(line))
        if not cited:
            return list(range(len(self.seqs)))
        inside = [at for at, seq in enumerate(self.seqs) if any(first <= seq <= last for first, last in cited)]
        wide = {near for at in inside for near in range(at - _NEAR_MESSAGES, at + _NEAR_MESSAGES + 1)}
        return [at for at in sorted(wide) if 0 <= at < len(self.seqs)]

    def has_user_in(self, cited: Iterable[tuple[int, int]]) -> bool:
        """Whether a person said one of the messages that are cited."""
        users = [seq for seq, role in zip(self.seqs, self.roles, strict=True) if role in ("user", "human")]
        return any(first <= seq <= last for first, last in cited for seq in users)

    @cached_property
    def latin_names(self) -> frozenset[str]:
        """Words that are always written with a capital, in the messages and in the summary or inside a sentence."""
        capital: set[str] = set()
        small: set[str] = set()
        inside: set[str] = set()
        texts = [self.summary, *(one.text for one in self.said)]
        for text in texts:
            for word in _LATIN.findall(text):
                bare = re.sub(r"['’]s$", "", word)
                (capital if bare[:1].isupper() else small).add(bare.lower())
            inside.update(match[1].lower() for match in _OPENING_NAME.finditer(text))
            inside.update(match[1].lower() for match in _TITLED_NAME.finditer(text))
            for line in text.splitlines():
                inside.update(
                    word.lower() for start, end in find_names(line) for word in _LATIN.findall(line[start:end])
                )
        told = {re.sub(r"['’]s$", "", word).lower() for word in _LATIN.findall(self.summary) if word[:1].isupper()}
        return frozenset(
            word
            for word in (capital - small) & (inside | told)
            if len(word) > 1 and word in self.whole and not _is_ordinary(word)
        )

    @cached_property
    def han_names(self) -> frozenset[str]:
        """People, by the first two characters of what opens a clause here or in the summary, and of the names that the
        rules for facts know."""
        if not _HAN.search(self.summary):
            return frozenset()
        texts = [self.summary, *(one.text for one in self.said)]
        found = {fact.text[:2] for one in self.said for fact in one.facts if fact.kind == "name"}
        found.update(opening[1] for text in texts for opening in _HAN_OPENS.finditer(text))
        people = {one for one in found if _HAN_PERSON.match(one) and _may_be_topic(one)}
        people.update(match[0][:2] for text in texts for match in _HAN_TITLED.finditer(text))
        return frozenset(one for one in people if one in self.whole)

    @cached_property
    def han_topics(self) -> frozenset[str]:
        """What else opens a clause: given names among them, which nothing tells from other words."""
        texts = [self.summary, *(one.text for one in self.said)] if self.han_names or _HAN.search(self.summary) else []
        found = {opening[1] for text in texts for opening in _HAN_OPENS.finditer(text)}
        return frozenset(one for one in found - self.han_names if _may_be_topic(one) and one in self.whole)

    @cached_property
    def clauses(self) -> list[_Clause]:
        return [clause for at, one in enumerate(self.said) for clause in self._clauses_of(at, one)]

    def _clauses_of(self, at: int, one: _Said) -> Iterator[_Clause]:
        """What is said of nobody by name is said of whom was named last."""
        about = frozenset({self.speakers[at]} - {""}) or (self.persons(self.said[at - 1].text) if at else frozenset())
        for piece in split_sentences(one.text):
            asks = cues.ends_in_question(piece.text)
            for text in _split_clauses(piece.text):
                about = self.persons(text) | _kin(text) or about
                yield _Clause(
                    message=at,
                    text=text,
                    terms=self.terms_of(text),
                    about=about,
                    negative=_is_negative(text),
                    asks=asks,
                    sentence=piece.text,
                )

    @cached_property
    def rarity(self) -> dict[str, float]:
        within = Counter(term for clause in self.clauses for term in clause.terms)
        return {term: math.log((len(self.clauses) + 1.0) / (count + 0.5)) for term, count in within.items()}

    def weight(self, words: Iterable[str]) -> float:
        unknown = 0.7 * math.log(len(self.clauses) + 1.0)
        return sum(self.rarity.get(word, unknown) for word in words)

    def terms_of(self, text: str) -> frozenset[str]:
        """The words by which clauses are compared: neither names nor negations."""
        bare = _NEGATIVE.sub(lambda m: m[0] if len(m[0]) > 3 else " ", text)
        for role in _HAN_ROLES:
            bare = bare.replace(role, " ")
        for name in self.persons(text) if language_of_text(text) == "en" else self.persons(text) & self.han_names:
            bare = re.sub(re.escape(name), " ", bare, flags=re.IGNORECASE)
        found = (word[:_PREFIX] if word.isascii() else word for word in terms(_flat(bare)))
        return frozenset(word for word in found if word not in _ROLES and word not in _NO_TERMS)

    def persons(self, text: str) -> frozenset[str]:
        """Whom a text names, as they are written there, in lower case."""
        found = {
            bare
            for word in _LATIN.findall(text)
            if word[:1].isupper() and (bare := re.sub(r"['’]s$", "", word).lower()) in self.latin_names
        }
        if _HAN.search(text):
            names = [name for name in self.han_names if name in text]
            found.update(name for name in names if not any(name != other and name in other for other in names))
        return frozenset(found)


def _problem(sentence: str, line: str, said: _Sources) -> StruckSentence | None:
    """The first thing that a sentence says and its sources do not."""
    cited = list(_cited(sentence)) or list(_cited(line))
    for first, last in cited:
        if not said.seqs or first < said.seqs[0] or last > said.seqs[-1] or first > last:
            shown = f"#{first}" if first == last else f"#{first}–#{last}"
            return StruckSentence(text=sentence, reason="citation", detail=f"{shown} is not among the messages")
    bare = _CITES.sub(" ", sentence).strip().lstrip("-*• ").strip()
    if cited and _SAID_BY_USER.match(bare) and not said.has_user_in(cited):
        return StruckSentence(text=sentence, reason="citation", detail=f"#{cited[0][0]} is not the user's")
    near = said.near(sentence if _CITES.search(sentence) else line)
    # What something was changed from may have been said long before.
    heard = range(near[-1] + 1) if near and cues.revises(bare) else near
    found = _unsaid(bare, [said.said[at] for at in heard], said) or _contradiction(bare, near, said)
    return None if found is None else StruckSentence(text=sentence, reason=found[0], detail=found[1])


def _unsaid(bare: str, near: Sequence[_Said], said: _Sources) -> tuple[StruckReason, str] | None:
    """What of a sentence stands in no message."""
    own = _Said(bare)
    rest = bare
    for fact in own.facts:
        reason = _unsaid_fact(fact, near, said)
        if reason is not None:
            return reason, fact.text
        if fact.kind in ("date", "time") or fact.kind in _IDS:
            rest = rest.replace(fact.text, " ", 1)
    name = opening_name(bare)
    if name is not None and not _is_known(name, said):
        return "name", name
    return _unsaid_number(rest, near) or _unsaid_day(own, rest, near) or _unsaid_word(rest, near)


def _is_known(name: str, said: _Sources) -> bool:
    """Whether a person is called so who speaks or is spoken of."""
    return _name_is_said(name, said) or any(normalise(name) in speaker for speaker in said.speakers)


_IDS = frozenset({"url", "email", "path", "file", "id", "handle", "error", "version"})


def _unsaid_fact(fact: Fact, near: Sequence[_Said], said: _Sources) -> StruckReason | None:
    """What kind of thing nobody said, if nobody did. Numbers are looked at by themselves."""
    if fact.kind == "date":
        return None if _date_is_said(fact.normal, near) else "date"
    if fact.kind == "time":
        return None if any(_time_is_said(fact.normal, one) for one in near) else "time"
    if fact.kind in _IDS:
        # `40GB` is a number with its unit, whatever rule found it.
        return None if _stands(fact.text, near) or _WITH_UNIT.fullmatch(fact.text) else "id"
    if fact.kind == "name":
        return None if _name_is_said(fact.text, said) else "name"
    if fact.kind in ("quote", "title"):
        return None if _stands(fact.text, near) else "name"
    return None


def _unsaid_word(rest: str, near: Sequence[_Said]) -> tuple[StruckReason, str] | None:
    """A code of letters and digits."""
    found = (word for word in _WORD_OR_CODE.findall(rest) if _is_code(word) and not _WITH_UNIT.fullmatch(word))
    return next((("id", code) for code in found if not _stands(code, near)), None)


def _is_code(word: str) -> bool:
    return any(one.isdigit() for one in word) and any(one.isalpha() for one in word)


def _without_codes(text: str) -> str:
    """The text with a blank for each code, and a number parted from the unit that is written with it."""

    def replaced(match: re.Match[str]) -> str:
        if not _is_code(match[0]):
            return match[0]
        measure = _WITH_UNIT.fullmatch(match[0])
        return f" {measure[1]} {measure[2]} " if measure else " "

    return _WORD_OR_CODE.sub(replaced, text)


def _unsaid_number(rest: str, near: Sequence[_Said]) -> tuple[StruckReason, str] | None:
    values = frozenset(value for one in near for value in one.values)
    counted: dict[str, set[str]] = {}
    for one in near:
        for noun, numbers in one.counts.items():
            counted.setdefault(noun, set()).update(numbers)
    blanked = re.sub(r"(\d)(?:st|nd|rd|th)\b", r"\1", _without_codes(_flat(rest)))
    for match in _DIGITS.finditer(blanked):
        scaled = _SCALE.match(blanked, match.end())
        value = number(match[0], scaled[1] if scaled else "")
        if value not in values:
            return "number", match[0]
        unit = _UNIT.match(blanked, match.end())
        noun = stem(unit[1].lower()) if unit else ""
        if noun in counted and value not in counted[noun] and noun not in _ANY_UNIT and _is_of_another(value, near):
            return "number", match[0]
    lower = _COMPOUND.sub(lambda m: str(_NUMBER_WORDS[m[1]] + _NUMBER_WORDS[m[2]]), blanked.lower())
    said = [(match[0], str(_NUMBER_WORDS[match[1]]), stem(match[2] or "")) for match in _COUNT_WORD.finditer(lower)]
    said += [(match[0], number(match[1]), match[2]) for match in _HAN_COUNT.finditer(lower)]
    for text, value, noun in said:
        if value in values or value == "1":
            continue
        if float(value) > _SMALL_COUNT or noun in counted:
            return "number", text
    return None


def _is_of_another(value: str, near: Sequence[_Said]) -> bool:
    """Whether a number stands only where something else is counted."""
    flats = [_flat(one.text) for one in near]
    bare = (
        re.finditer(rf"(?<![\w.]){re.escape(value)}(?![\w.]?\d)\s?(?P<unit>[A-Za-z]+|[\u4e00-\u9fff])?", flat)
        for flat in flats
    )
    return all(match["unit"] and match["unit"].lower() not in _ANY_UNIT for found in bare for match in found)


def _unsaid_day(own: _Said, rest: str, near: Sequence[_Said]) -> tuple[StruckReason, str] | None:
    weekdays = frozenset(day for one in near for day in one.weekdays)
    for day in _weekdays(own.text):
        if day not in weekdays:
            return "date", list(_WEEKDAYS)[[*_WEEKDAYS.values()].index(day)]
    months = frozenset(month for one in near for month in one.months)
    for month in _months(rest):
        if month not in months:
            return "date", MONTHS[month - 1]
    return None


def _date_is_said(day: str, near: Sequence[_Said]) -> bool:
    if any(day in one.dates for one in near):
        return True
    for form in vaguer_dates(day)[1:] if re.fullmatch(r"\d{4}-.*", day) else ():
        # The year may be known from elsewhere.
        if form.startswith("--") and len(form) >= 7 and any(form in one.dates for one in near):
            years = {one[:4] for other in near for one in other.dates if re.match(r"\d{4}", one)}
            return not years or day[:4] in years
    parts = re.fullmatch(r"--(\d\d)-(\d\d)", day)
    if parts is None:
        bare = re.fullmatch(r"---?(\d\d)", day)
        return bool(bare) and any(str(int(bare[1])) in one.values or int(bare[1]) in one.months for one in near if bare)
    # "from 2 to 5 June" names the month once.
    return any(int(parts[1]) in one.months and str(int(parts[2])) in _days_of_ranges(one) for one in near)


def _days_of_ranges(one: _Said) -> frozenset[str]:
    flat = _flat(one.text)
    found = re.findall(r"(\d{1,2})(?:st|nd|rd|th)?[日号]?\s?(?:to|and|until|–|-|至|到|~|、)\s?(?:the )?(\d{1,2})", flat)
    return frozenset(str(int(day)) for pair in found for day in pair)


def _time_is_said(time: str, one: _Said) -> bool:
    """Which half of the day may be left out."""
    hours, minutes = time.split(":")
    other = f"{(int(hours) + 12) % 24:02d}:{minutes}"
    return time in one.times or other in one.times


def _name_is_said(name: str, said: _Sources) -> bool:
    """Whether a name stands in a message. One in the other script may be a translation."""
    if _HAN.match(name):
        is_titled = len(name) > 1 and name[0] in said.whole and name[1:] in _TITLES
        return said.language == "en" or is_titled or _packed(normalise(name)) in said.packed
    return said.language == "zh" or all(_word_is_said(word, said) for word in _LATIN.findall(name))


_TITLES = ("总", "工", "老师", "医生", "经理", "主任", "教授", "律师", "师傅", "先生", "女士")


def _word_is_said(word: str, said: _Sources) -> bool:
    bare = re.sub(r"['’]s$", "", word).lower()
    if _is_ordinary(bare) or bare in _ROLES or stem(bare) in said.words or bare in said.whole:
        return True
    if word.isupper() and len(word) <= 5:  # initials of what was written out
        return True
    return len(bare) > 4 and any(known.startswith(bare[:4]) for known in said.words)


def _is_ordinary(word: str) -> bool:
    return (
        word in NOT_NAMES
        or word in _REPLIES
        or word.removesuffix("s") in NOT_NAMES
        or word in _NUMBER_WORDS
        or not terms(word)
    )


def _contradiction(bare: str, near: Sequence[int], said: _Sources) -> tuple[StruckReason, str] | None:
    """A clause that tells what a message tells, of somebody else or with the opposite sign."""
    at = frozenset(near)
    clauses = [clause for clause in said.clauses if clause.message in at]
    about: frozenset[str] = frozenset()
    for text in _split_clauses(bare):
        own = said.terms_of(text)
        named = said.persons(text)
        is_of_user = bool(_USER.search(text)) and not named
        about = frozenset() if is_of_user else named or about
        scored = _scores(own, clauses, said)
        if text[:2] in said.han_topics and not _is_said_about(text[:2], scored, said):
            return "person", text[:2]
        for person in sorted(about):
            if not _is_said_of(person, scored):
                return "person", person
        best = max((score for score, _ in scored), default=0.0)
        alike = [clause for score, clause in scored if score >= max(_SAME_CLAIM, _AS_GOOD * best) and not clause.asks]
        if not alike:
            continue
        if is_of_user and best >= _SURELY_SAME and all(_is_of_others(clause, said) for clause in alike):
            return "person", "user"
        if _is_negative(text):
            denies = _DENIES.search(_IDIOMS.sub(" ", text))
            if denies and not any(_is_negative(clause.sentence) or _ends(clause, own, said) for clause in alike):
                return "negation", "added"
        elif all(clause.negative for clause in alike):
            return "negation", "dropped"
    return None


def _ends(clause: _Clause, own: frozenset[str], said: _Sources) -> bool:
    """Whether a message takes back what words are about: forget the bullet points."""
    gone = [*cues.taken_back(clause.sentence), *cues.denied(clause.sentence)]
    return bool(gone) and bool(own & said.terms_of(" ".join(gone)))


def _scores(own: frozenset[str], clauses: Sequence[_Clause], said: _Sources) -> list[tuple[float, _Clause]]:
    """How much of the words of a clause each clause of the messages shares."""
    whole = said.weight(own)
    if whole <= 0:
        return []
    return [(said.weight(own & clause.terms) / whole, clause) for clause in clauses if own & clause.terms]


def _is_said_of(person: str, scored: Sequence[tuple[float, _Clause]]) -> bool:
    """Whether no more of it was said of others than of this person."""
    of_them = max(
        (score for score, clause in scored if person in clause.about or _mentions(clause, person)), default=0.0
    )
    others = (score for score, clause in scored if clause.about and person not in clause.about and not clause.asks)
    of_others = max(others, default=0.0)
    return of_others < of_them + (_OTHERS_LEAD if of_them else _ONLY_OTHERS)


def _is_said_about(topic: str, scored: Sequence[tuple[float, _Clause]], said: _Sources) -> bool:
    """The same for what may be a given name: only clauses count that open with another one."""
    if any(topic in clause.text for _, clause in scored):
        return True
    openings = said.han_topics | said.han_names
    return not any(score >= _SAME_CLAIM and clause.text[:2] in openings for score, clause in scored)


def _mentions(clause: _Clause, person: str) -> bool:
    return person in clause.text.lower()


def _is_of_others(clause: _Clause, said: _Sources) -> bool:
    """Whether a user speaks of somebody by name, and does not come into the sentence."""
    if said.roles[clause.message] not in ("user", "human"):
        return False
    opening = " ".join(clause.text.split()[:4]) if clause.text.isascii() else clause.text[:8]
    return bool(said.persons(opening) or _kin(opening)) and not _FIRST_PERSON.search(clause.sentence)


def _kin(text: str) -> frozenset[str]:
    english = {_KIN[word.lower()] for word in _LATIN.findall(text) if word.lower() in _KIN}
    return frozenset(english | {_KIN[match[0]] for match in _HAN_KIN.finditer(text)})


def _split_clauses(text: str) -> list[str]:
    return [part.strip() for part in _CLAUSE.split(text) if part and _has_words(part)]


def _is_negative(text: str) -> bool:
    return bool(_NEGATIVE.search(_IDIOMS.sub(" ", _CONTRASTS.sub(" ", text))))


def _cited(text: str) -> Iterator[tuple[int, int]]:
    for match in _TAG.finditer(text):
        yield int(match[1]), int(match[2] or match[1])


def _text_of(source: Source) -> str:
    parts = [source.text, *(f"{call.name} {call.arguments}" for call in source.calls)]
    named = source.name or source.tool_name
    return both_ends(readable("\n".join([named, *parts] if named else parts)))


def _flat(text: str) -> str:
    """Half width, no thousands separators."""
    return re.sub(r"(?<=\d)[,，](?=\d{3}(?!\d))", "", unicodedata.normalize("NFKC", text))


def _packed(plain: str) -> str:
    return "".join(char for char in plain if char.isalnum())


def _stands(text: str, near: Sequence[_Said]) -> bool:
    packed = _packed(normalise(text))
    return not packed or any(packed in one.packed for one in near)


def _values_of(fact: Fact) -> Iterator[str]:
    if fact.kind in ("money", "number"):
        if found := re.match(r"-?[\d.]+", fact.normal):
            yield number(found[0])
    elif fact.kind == "date":
        yield from (str(int(part)) for part in re.findall(r"\d+", fact.normal))


def _weekdays(text: str) -> Iterator[int]:
    for match in _WEEKDAY.finditer(text):
        if match[1]:
            yield _WEEKDAYS[match[1].lower()]
        else:
            yield _WEEKDAYS[match[2]]
            if match[4]:
                yield _WEEKDAYS[match[4]]


def _months(text: str) -> Iterator[int]:
    for match in _MONTH.finditer(text):
        yield MONTHS.index((match[1] or match[2]).lower()[:3]) + 1


def _days_named(text: str, said_at: datetime) -> Iterator[str]:
    """The days that words such as yesterday name, from the day they were said."""
    for time_range in find_time_ranges(text, said_at):
        if time_range.end - time_range.start == timedelta(days=1):
            yield time_range.start.date().isoformat()
    low = text.lower()
    for word, days in _SOON.items():
        if word in low:
            yield (said_at + timedelta(days=days)).date().isoformat()
    for weekday in _weekdays(text):
        ahead = (weekday - said_at.weekday()) % 7
        for days in (ahead, ahead + 7):
            yield (said_at + timedelta(days=days)).date().isoformat()
