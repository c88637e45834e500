"""One spelling per fact, so that "1,000", "１０００" and "一千" compare as the same number.

Used by the rules that find facts and by the check whether a summary still holds them.
"""

from __future__ import annotations

import re
import unicodedata
from decimal import Decimal, InvalidOperation

_THOUSANDS = re.compile(r"(?<=\d)[,，](?=\d{3}(?!\d))")
_SPACE = re.compile(r"\s+")
_EDGE_MARKS = " \t\n.,;:!?'\"`*()[]{}<>，。；：！？、“”‘’「」『』《》（）【】"

_DIGITS = {c: i for i, c in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2}
_PLACES = {"十": 10, "百": 100, "千": 1_000}
_GROUPS = {"万": 10_000, "亿": 100_000_000}
_WORD_NUMBERS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen twenty"
).split()
_WORD_VALUES = {word: value for value, word in enumerate(_WORD_NUMBERS)} | {
    "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90,
    "hundred": 100, "thousand": 1_000, "dozen": 12,
}  # fmt: skip
_SCALES = {
    "k": 1_000, "w": 10_000, "m": 1_000_000, "million": 1_000_000, "billion": 1_000_000_000,
    "百": 100, "千": 1_000, "万": 10_000, "亿": 100_000_000,
}  # fmt: skip

MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()
NUMBER_WORDS = tuple(sorted(_WORD_VALUES, key=len, reverse=True))


def normalise(text: str) -> str:
    """Half width, lower case, single spaces, no thousands separators, no marks at the edges."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return _SPACE.sub(" ", _THOUSANDS.sub("", folded)).strip(_EDGE_MARKS)


def number(text: str, scale: str = "") -> str:
    """The value of a number written in digits, Chinese numerals or English words, in digits."""
    value = _value(unicodedata.normalize("NFKC", text).casefold().replace(",", "").strip())
    exact = f"{value * _SCALES[scale.casefold()] if scale else value:f}"
    return exact.rstrip("0").rstrip(".") or "0" if "." in exact else exact


def _value(text: str) -> Decimal:
    if text in _WORD_VALUES:
        return Decimal(_WORD_VALUES[text])
    try:
        return Decimal(text)
    except InvalidOperation:
        return _chinese_value(text)


def _chinese_value(text: str) -> Decimal:
    """三万五 is 35,000: a digit after a place counts in the next lower place."""
    total = section = digit = 0
    place = 1
    for char in text:
        if char in _DIGITS:
            digit, place = _DIGITS[char], 1 if char in "零〇" else place
        elif char in _PLACES:
            section += (digit or 1) * _PLACES[char]
            digit, place = 0, _PLACES[char] // 10
        elif char in _GROUPS:
            total += (section + digit or 1) * _GROUPS[char]
            section, digit, place = 0, 0, _GROUPS[char] // 10
    half = Decimal("0.5") if text.endswith("半") else Decimal(0)
    return total + section + digit * place + half


def date(year: str | None, month: str | None, day: str | None) -> str:
    """The parts that were said, as ISO 8601 writes them: `2024-05-03`, `2024-05`, `--05-03`, `--05`, `---03`."""
    month_day = "-".join(f"{int(_month(part)):02d}" for part in (month, day) if part)
    if not year:
        return f"--{month_day}" if month else f"---{month_day}"
    return f"{_year(year)}-{month_day}" if month_day else _year(year)


def vaguer_dates(date: str) -> tuple[str, ...]:
    """The vaguer dates that a date also says: 2024-05-03 holds May 3, May 2024 and 2024."""
    full = re.fullmatch(r"(\d{4})-(\d{2})(?:-(\d{2}))?", date)
    if not full:
        return (date,)
    year, month, day = full.groups()
    return (date, f"{year}-{month}", year, *((f"--{month}-{day}", f"---{day}") if day else ()), f"--{month}")


def _year(year: str) -> str:
    digits = number(year) if year.isdecimal() else "".join(str(_DIGITS.get(c, c)) for c in year)
    return digits if len(digits) == 4 else f"20{digits[-2:]:0>2}"


def _month(text: str) -> str:
    name = text.casefold()[:3]
    return str(MONTHS.index(name) + 1) if name in MONTHS else number(text)


def time_of_day(hour: str, minute: str | None, half: str) -> str:
    """`15:00` for 3pm and 下午3点. `half` is the word or letters that say which half of the day."""
    hours = int(number(hour))
    afternoon = half.casefold().startswith(("p", "下", "傍", "晚")) or (half.startswith("中") and hours < 11)
    if afternoon and hours < 12:
        hours += 12
    elif half.casefold().startswith(("a", "凌")) and hours == 12:
        hours = 0
    named = {None: 0, "": 0, "半": 30, "一刻": 15, "三刻": 45}
    minutes = named[minute] if minute in named else int(number(str(minute)))
    return f"{hours:02d}:{minutes:02d}"
