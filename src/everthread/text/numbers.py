"""Numbers of a search as one term each, whatever their spelling: 40000, 40,000, ¥40,000, 40k and 4万 are one amount,
and 3,124 is never 3,214. Amounts, dates, phone numbers, versions, times and ids, in English and Chinese. Pure.

An index holds the pieces of a number as words (`3`, `124`), and files written long ago do too. So nothing is changed in
the index: a number of the search lists the sets of pieces under which a message may have it, the index finds the
messages with one of these sets, and a pattern says of each text that is read whether the number really stands there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from functools import lru_cache

from everthread.core.queries import Term
from everthread.core.recent import forget_on_erase
from everthread.text.normal_forms import MONTHS, number
from everthread.text.words import character_pairs, fold, split_runs_and_words, stem

_MAX_DIGITS = 24
_MAX_PARTS = 24
"""Of an id or a version; what has more is no id, and every joint of it would be a spelling."""
_LONG_DIGITS = 7
"""So many digits are written in groups of every kind: phone numbers, cards, accounts."""
_MIN_STEM = 3
_JOINT = "\u2060"
"""A word joiner, between the words of an identifier."""
_YEAR = r"(?:19|20)\d\d"
_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
)
_MONTH_NAMES = "january february march april may june july august september october november december".split()
_SCALES = r"(?:thousand|million|billion|bn|mn|k|百万|千万|[千万亿])"
_FACTORS = {
    "k": 1_000, "thousand": 1_000, "千": 1_000, "万": 10_000, "百万": 1_000_000, "million": 1_000_000, "mn": 1_000_000,
    "千万": 10_000_000, "亿": 100_000_000, "billion": 1_000_000_000, "bn": 1_000_000_000,
}  # fmt: skip
_UNITS = (
    r"(?:usd|eur|gbp|rmb|cny|jpy|hkd|yuan|dollars?|euros?|pounds?)(?![a-z0-9])|人民币|美元|欧元|港币|日元|块钱|[元块]"
)
_NO_WORD_BEFORE, _NO_WORD_AFTER = r"(?<![a-z0-9])", r"(?![a-z0-9])"
_NO_DECIMALS_AFTER = r"(?!\.\d+(?!\.?\d))"
"""A dot and digits go on with a number, unless another dot follows them: 2024.05.03 has the number 2024."""
_NO_MORE_AFTER = (
    rf"{_NO_WORD_AFTER}(?![,']\d\d\d(?!\d)){_NO_DECIMALS_AFTER}"
    r"(?! ?(?:thousand|million|billion|bn)(?![a-z]))(?! ?(?:百万|千万|[千万亿]))"
)
_GROUP_MARK = "[,'_ ]"

_Builder = Callable[[re.Match[str]], Term | None]


_LETTERS = re.compile("(?<![A-Za-z0-9_])[A-Za-z]+(?![A-Za-z0-9_])")
_PART_OF_CAMEL = re.compile("[a-z]+|[A-Z]+(?![a-z])|[A-Z][a-z]+")


def fold_search(text: str) -> str:
    """Fold a search, and keep where the words of maxRetryCount begin, which folding would lose."""
    return fold(_LETTERS.sub(lambda found: _JOINT.join(_PART_OF_CAMEL.findall(found[0])), text))


def split_numbers(text: str) -> Iterator[str | Term]:
    """The parts of a folded search in their order: its numbers as terms, what stands between them as it is."""
    at = 0
    for start, end, term in find_numbers(text):
        yield text[at:start]
        yield term
        at = end
    yield text[at:]


def find_numbers(text: str) -> list[tuple[int, int, Term]]:
    """Where a folded search has numbers, and the term of each, in their order."""
    found: list[tuple[int, int, Term]] = []
    if not _MAY_HAVE_NUMBER.search(text):
        return found
    taken = bytearray(len(text))
    for pattern, build in _KINDS:
        for match in pattern.finditer(text):
            start, end = match.span()
            if not any(taken[start:end]) and (term := build(match)) is not None:
                found.append((start, end, term))
                taken[start:end] = b"\1" * (end - start)
    return sorted(found, key=lambda one: one[0])


@lru_cache(1_024)
def number_pattern(term: Term) -> re.Pattern[str]:
    """What finds a number's term in a folded text."""
    return re.compile(term.pattern)


forget_on_erase(number_pattern.cache_clear)


def _term(token: str, spellings: Iterable[str], pattern: str) -> Term:
    sets = dict.fromkeys(tuple(_pieces(spelling)) for spelling in spellings)
    return Term(token=token, spellings=tuple(one for one in sets if one), pattern=pattern)


def _pieces(spelling: str) -> Iterator[Term]:
    """The tokens of a spelling that an index has, whatever follows it in the text."""
    for run, word in split_runs_and_words(spelling):
        if word:
            yield Term(token=stem(word))
        elif len(run) == 1:
            yield Term(token=run, is_prefix=True)
        else:
            yield from (Term(token=pair) for pair in character_pairs(run))


# -- amounts -------------------------------------------------------------------------------------------------------


def _amount(match: re.Match[str]) -> Term | None:
    digits = re.sub(r"[,']", "", match["digits"])
    whole, _, decimals = digits.partition(".")
    if len(digits) > _MAX_DIGITS or (len(whole) > 1 and whole[0] == "0"):
        return None
    if scale := match["scale"]:
        return _value_term(_scaled(digits, scale))
    if decimals.strip("0"):
        return _decimal_term(whole, decimals, is_money=bool(match["sign"] or match["unit"]))
    return _digits_term(whole) if len(whole) >= _LONG_DIGITS else _value_term(Decimal(whole))


def _scaled(digits: str, scale: str) -> Decimal:
    return Decimal(digits) * _FACTORS[scale]


def _chinese_amount(match: re.Match[str]) -> Term | None:
    value = Decimal(number(match[0]))
    return _value_term(value) if value >= 100 else None


def _value_term(value: Decimal) -> Term:
    """An amount by its value."""
    if value != value.to_integral_value():
        before, _, decimals = f"{value.normalize():f}".partition(".")
        return _decimal_term(before, decimals, is_money=False)
    whole = int(value)
    spellings, forms = [str(whole), f"{whole:,}"], [_grouped(str(whole)) + r"(?:\.0+)?" + _NO_MORE_AFTER]
    for least, unit, names in (
        (1_000, 1_000, ("k", "thousand", "千")),
        (10_000, 10_000, ("万", "w")),
        (100_000, 1_000_000, ("million", "百万", "mn", "m")),
        (10_000_000, 10_000_000, ("千万",)),
        (100_000_000, 100_000_000, ("亿",)),
        (100_000_000, 1_000_000_000, ("billion", "bn")),
    ):
        share = f"{(value / unit).normalize():f}"
        if whole >= least and len(share.partition(".")[2]) <= 2:
            spellings += [f"{share}{name}" if len(name) == 1 else f"{share} {name}" for name in names]
            spellings += [f"{share}{name}" for name in names if name.isascii() and len(name) > 1]
            forms.append(rf"{re.escape(share)}0? ?(?:{'|'.join(names)}){_NO_WORD_AFTER}")
    if whole >= 100 and (chinese := _in_chinese(whole)):
        chinese += [short for one in chinese if (short := _said_short(one))]
        spellings += chinese
        forms += [rf"(?<![{_NUMERALS}]){one}(?![{_NUMERALS}])" for one in chinese]
    # Three digits after a comma are the end of a greater number.
    start = _NO_WORD_BEFORE + (r"(?<!\d[.,'])" if 100 <= whole <= 999 else r"(?<!\d\.)")
    return _term(str(whole), spellings, f"{start}(?:{'|'.join(forms)})")


def _decimal_term(whole: str, decimals: str, *, is_money: bool) -> Term:
    """A number with decimals: of money 12.5 is 12.50, but version 3.1 is not 3.10."""
    short = decimals.rstrip("0") if is_money else decimals
    written = re.escape(short) + ("0?" if is_money and len(short) == 1 else "")
    spellings = [f"{int(whole):,}.{short}", f"{whole}.{short}"]
    if is_money and len(short) == 1:
        spellings += [f"{one}0" for one in spellings]
    value = Decimal(f"{whole}.{decimals}")
    forms = [rf"{_grouped(whole)}\.{written}(?!\d)(?! ?{_SCALES}(?![a-z]))"]
    for unit, name in ((1_000, "k"), (10_000, "万"), (1_000_000, "million")):
        share = f"{(value / unit).normalize():f}"
        if value >= unit and len(share.partition(".")[2]) <= 2:
            spellings.append(f"{share}{name}")
            forms.append(rf"{re.escape(share)} ?{name}")
    return _term(f"{whole}.{short}", spellings, rf"(?<![a-z0-9])(?<!\d\.)(?:{'|'.join(forms)})")


def _grouped(digits: str) -> str:
    """A pattern of a whole number, in groups of three or not."""
    groups = f"{int(digits):,}".split(",")
    return f"(?:{digits}|{_GROUP_MARK.join(groups)})" if len(groups) > 1 else digits


_NUMERALS = "零〇一二两三四五六七八九十百千万亿"


def _in_chinese(value: int) -> list[str]:
    """A round number in Chinese numerals, its twos in both ways; none where nobody would write it so."""
    if value >= 10**12 or len(str(value).rstrip("0")) > 2:
        return []
    parts: list[str] = []
    for unit, name in ((10**8, "亿"), (10**4, "万"), (1, "")):
        if section := value // unit % 10_000:
            parts.append(_section(section, is_first=not parts) + name)
    written = "".join(parts)
    return [written, written.replace("二", "两")] if re.search("二(?=[百千万亿])", written) else [written]


def _said_short(numeral: str) -> str:
    """A numeral without its last place, where it is said so: 一千二 of 一千二百, 三万五 of 三万五千."""
    places = "十百千万"
    short = re.fullmatch(rf"(.*)([百千万])([{_NUMERALS}])([十百千])", numeral)
    is_next = short is not None and places.index(short[2]) == places.index(short[4]) + 1
    return f"{short[1]}{short[2]}{short[3]}" if short and is_next else ""


def _section(value: int, *, is_first: bool) -> str:
    digits = "零一二三四五六七八九"
    places = [(value // 1_000, "千"), (value // 100 % 10, "百"), (value // 10 % 10, "十"), (value % 10, "")]
    written = "".join(f"{digits[digit]}{place}" for digit, place in places if digit)
    return written.removeprefix("一") if is_first and written.startswith("一十") else written


# -- digits in groups of any kind ------------------------------------------------------------------------------------


def _phone(match: re.Match[str]) -> Term | None:
    digits = re.sub(r"\D", "", match["number"])
    is_long = _LONG_DIGITS <= len(digits) <= _MAX_DIGITS
    return _digits_term(digits, match["number"]) if is_long else None


def _digits_term(digits: str, written: str = "") -> Term:
    """Seven digits or more, however they are grouped: the last group has two, three or four of them."""
    spellings = [digits, f"86{digits}", f"1{digits}", f"{int(digits):,}", written]
    spellings += [digits[-3:], digits[-4:], " ".join(re.findall("..?", digits[::-1]))[::-1]]
    if digits[-4:] == "0000":
        amount = _value_term(Decimal(digits))
        return Term(
            token=digits,
            spellings=(*_term(digits, spellings, "").spellings, *amount.spellings),
            pattern=f"{_digits_pattern(digits)}|{amount.pattern}",
        )
    return _term(digits, spellings, _digits_pattern(digits))


def _digits_pattern(digits: str) -> str:
    body = r"[-. ()/,'_]{0,2}".join(digits)
    return rf"(?<![a-z0-9])(?<!\d[.,])(?:\+?(?:86|1)|\+\d{{1,3}}[-. ]?)?{body}(?!\d)(?!\.\d)"


# -- dates ---------------------------------------------------------------------------------------------------------


def _date(match: re.Match[str]) -> Term | None:
    parts = {name: found for name, found in match.groupdict().items() if found}
    named = parts.get("name")
    month = MONTHS.index(named[:3]) + 1 if named else int(parts["month"])
    day, year = int(parts["day"]), parts.get("year", "")
    return _date_term(year, month, day) if 1 <= month <= 12 and 1 <= day <= 31 else None


def _slashed_date(match: re.Match[str]) -> Term | None:
    """5/3/2024 is May 3, unless the month would be above twelve."""
    month, day = int(match["month"]), int(match["day"])
    if month > 12:
        month, day = day, month
    return _date_term(match["year"], month, day) if 1 <= month <= 12 and 1 <= day <= 31 else None


def _date_term(year: str, month: int, day: int) -> Term:
    """A day: where the year was asked for, also what has no year, but none of another year."""
    m, d = f"0?{month}", f"0?{day}"
    name = _MONTH_NAMES[month - 1]
    short = name[:3]
    months = rf"(?:{name}|{short}{'t?' if month == 9 else ''}\.?)"
    ordinal = rf"{d}(?:st|nd|rd|th)?"
    other = rf"(?!,? {_YEAR}(?!\d))"
    after = rf"(?:,? {year}(?!\d)|{other})" if year else ""
    iso_year = year or r"(?:19|20)\d\d"
    forms = [
        rf"{iso_year}(?:[-/.]{m}[-/.]{d}|年 ?{m} ?月 ?{d})(?!\d)",
        rf"{months} (?:the )?{ordinal}(?![\da-z]){after}",
        rf"{ordinal} (?:of )?{months}(?![a-z]){after}",
        rf"(?<![\d年])(?<!\d年)(?<!年 ){m} ?月 ?{d}(?: ?[日号]|(?!\d))",
        rf"{m}/{d}(?:/{iso_year}|(?![/\d]))",
        rf"{d}[./]{m}[./]{iso_year}(?!\d)",
    ]
    padded = [(str(month), str(day)), (f"{month:02}", f"{day:02}"), (str(month), f"{day:02}")]
    spellings = [f"{one} {other}" for one, other in padded]
    suffix = "th" if 4 <= day <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")
    month_names = [name, short, *(("sept",) if month == 9 else ())]
    spellings += [f"{one} {other}" for one in month_names for other in (str(day), f"{day}{suffix}", f"{day:02}")]
    token = f"{year or '-'}-{month:02}-{day:02}"
    return _term(token, spellings, rf"(?<![a-z0-9])(?:{'|'.join(forms)})")


# -- ids, versions, times --------------------------------------------------------------------------------------------


def _compound(match: re.Match[str]) -> Term | None:
    """Letters and digits that belong together, however they are joined: ORD-10045, ord_10045, ORD 10045."""
    written = match[0]
    parts = re.findall(r"[a-z0-9]+", written)
    lettered = re.fullmatch(r"([a-z]+)(\d+)", written)
    if lettered and len(lettered[2]) >= 2:
        parts = list(lettered.groups())
    if not 2 <= len(parts) <= _MAX_PARTS or not any(map(str.isdigit, written)):
        return None
    if set(re.findall(r"[^a-z0-9]", written)) == {"."} and not re.fullmatch(r"v\d+(\.\w+)+|\d+(\.\d+){2,}", written):
        return None  # a file's name, a decimal number
    if parts[0] in ("v", "version", "ver"):
        parts = parts[1:]
    elif versioned := re.fullmatch(r"v(\d+)", parts[0]):
        parts = [versioned[1], *parts[1:]]
    if len(parts) < 2:
        return None
    is_digits = all(part.isdigit() for part in parts)
    joint = r"[\W_]{1,3}" if is_digits else r"[\W_]{0,3}"
    if is_digits and len(parts) > 2 and "." in written:
        joint = r"\."
    body = joint.join(map(_part_pattern, parts))
    joined = "".join(parts)
    spellings = [" ".join(parts), *([f"v{parts[0]} " + " ".join(parts[1:])] if is_digits else [joined])]
    if not is_digits and len(parts) > 2:  # one of the joints is often left out: gpt-4o-mini, gpt4o-mini
        spellings += [
            " ".join([*parts[:at], parts[at] + parts[at + 1], *parts[at + 2 :]]) for at in range(len(parts) - 1)
        ]
    before = r"(?<![a-uw-z0-9])(?<!\d[.])" if is_digits else _NO_WORD_BEFORE
    return _term("-".join(parts), spellings, rf"{before}{body}{_NO_WORD_AFTER}")


def _camel(match: re.Match[str]) -> Term:
    """Words in one: maxRetryCount is max_retry_count, max-retry-count and MaxRetryCount."""
    parts = match[0].split(_JOINT)
    body = r"[\W_]?".join(parts)
    return _term("-".join(parts), (" ".join(parts), "".join(parts)), rf"(?<![a-z0-9]){body}(?![a-z0-9])")


def _part_pattern(part: str) -> str:
    """A part as it is, or a longer word by what its forms have in common."""
    root = stem(part)
    if not part.isalpha() or len(root) <= _MIN_STEM:
        return re.escape(part)
    common = root if part.startswith(root) else root[:-1]
    return re.escape(common) + "[a-z]*"


_MAY_HAVE_NUMBER = re.compile(rf"[\d{_JOINT}]|[{_NUMERALS}][百千万亿]")
_SIGN = r"(?:(?:us|hk|nt|cn)?[$€£¥₩₽₹]|(?:usd|eur|gbp|rmb|cny))[ ]?"
_DAY, _ORDINAL = r"(?P<day>\d\d?)", r"(?:st|nd|rd|th)?"
_OPTIONAL_YEAR = rf"(?:,?[ ](?P<year>{_YEAR})(?!\d))?"
_KINDS: tuple[tuple[re.Pattern[str], _Builder], ...] = tuple(
    (re.compile(pattern, re.VERBOSE), build)
    for pattern, build in (
        (rf"{_NO_WORD_BEFORE}[a-z]+(?:{_JOINT}[a-z]+)+", _camel),
        (rf"(?<![a-z0-9.])(?P<year>{_YEAR})(?P<sep>[-/.])(?P<month>\d\d?)(?P=sep){_DAY}(?![\d.])", _date),
        (rf"(?<![a-z0-9./])(?P<month>\d\d?)/{_DAY}/(?P<year>{_YEAR})(?!\d)", _slashed_date),
        (rf"(?:(?P<year>{_YEAR})[ ]?年[ ]?)?(?<!\d)(?P<month>\d\d?)[ ]?月[ ]?{_DAY}(?!\d)[ ]?[日号]?", _date),
        (rf"{_NO_WORD_BEFORE}(?P<name>{_MONTH})\.?[ ]{_DAY}{_ORDINAL}(?![a-z\d]){_OPTIONAL_YEAR}", _date),
        (rf"{_NO_WORD_BEFORE}{_DAY}{_ORDINAL}[ ](?:of[ ])?(?P<name>{_MONTH})(?![a-z]){_OPTIONAL_YEAR}", _date),
        (
            rf"""{_NO_WORD_BEFORE}(?<!\d[.,-])(?:\+\d{{1,3}}[ -]?)?
            (?P<number>\(?\d{{2,5}}\)?(?:[-.\ ]{{1,2}}\d{{2,5}}){{1,5}}|\d{{7,24}}){_NO_WORD_AFTER}(?![-.]\w)""",
            _phone,
        ),
        (rf"{_NO_WORD_BEFORE}[a-z0-9]+(?:[-_.:\#][a-z0-9]+)+", _compound),
        (rf"{_NO_WORD_BEFORE}[a-z]+\d+{_NO_WORD_AFTER}", _compound),
        (
            rf"""(?P<sign>{_SIGN})?{_NO_WORD_BEFORE}(?<!\d[.,])
            (?P<digits>(?:\d{{1,3}}(?:[,']\d{{3}})+(?!\d)|\d+)(?:\.\d+)?)
            (?:[ ]?(?P<scale>{_SCALES}){_NO_WORD_AFTER})?{_NO_WORD_AFTER}(?:[ ]?(?P<unit>{_UNITS}))?""",
            _amount,
        ),
        (
            rf"(?:十|[一二两三四五六七八九][百千万亿十])[{_NUMERALS}]*"
            r"(?:(?<=[百千万亿])|(?<=[百千万][一二三四五六七八九])(?![个十百千万亿]))(?:块钱|[元块])?",
            _chinese_amount,
        ),
    )
)
"""In this order: what one kind has taken is not looked at by the next."""
