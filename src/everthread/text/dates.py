"""The times that a question names: `in March`, `last week`, `3 May 2024`, 上周, 5月3日, 去年十二月.

What is relative is counted from the moment of asking; a date without a year may be of this year or an earlier one. A
message fits by when it was said. A person who asks for what happened in May may have told of it in June, so times near
the named one fit a little, and nothing is ever left out for its time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import NamedTuple

from everthread.text.words import simplify

_MONTHS = "january february march april may june july august september october november december".split()
_WEEKDAY_LETTERS = "mon tue wed thu fri sat sun".split()
_NUMBERS = {
    word: value
    for value, word in enumerate("one two three four five six seven eight nine ten eleven twelve".split(), 1)
} | {"a": 1, "an": 1, "couple": 2, "few": 3, "several": 3}
_HAN_DIGITS = {digit: value for value, digit in enumerate("一二三四五六七八九", 1)} | {"两": 2, "几": 3}
_SEASONS = {"spring": 3, "春": 3, "summer": 6, "夏": 6, "autumn": 9, "fall": 9, "秋": 9, "winter": 12, "冬": 12}
"""The first of their three months."""
_HOLIDAYS = {"christmas": (12, 22, 6), "圣诞": (12, 22, 6), "new year": (12, 30, 4), "元旦": (12, 30, 4),
             "国庆": (9, 30, 9), "五一": (4, 29, 8)}  # fmt: skip
"""Month and day on which they begin, and how many days they take."""
_THIRDS = {part: at for at, parts in enumerate((
    ("beginning", "start", "early", "初", "上旬"), ("middle", "mid", "中旬"), ("end", "late", "底", "末", "下旬"),
)) for part in parts}  # fmt: skip
_HAN_WEEKDAYS = {day: at for at, days in enumerate(("一", "二", "三", "四", "五", "六", "日天")) for day in days}
_EARLIER_YEARS = 4
"""A date without a year is looked for in so many years."""
_DAY = timedelta(days=1)
_UNIT_DAYS = {"d": 1, "w": 7, "m": 30, "y": 365, "天": 1, "周": 7, "星": 7, "礼": 7, "月": 30, "年": 365}
"""By the first letter of each unit."""
_YEARLY = timedelta(days=300)
_YEAR_SCORE = 0.3
"""What it says of a message to be of a year that was named: little."""
_NEAR_SCORE = 0.4
"""What it says to be close to a time that was named."""


class TimeRange(NamedTuple):
    """A time that was named: from its start up to, not including, its end."""

    start: datetime
    end: datetime


def find_time_ranges(question: str, asked_at: datetime) -> tuple[TimeRange, ...]:
    """The times that a question names."""
    found: list[TimeRange] = []
    rest = simplify(question)
    for pattern, parse in _FORMS:
        for match in pattern.finditer(rest):
            with suppress(ValueError, OverflowError):  # 31 February names no time
                found += parse(match, asked_at)
        rest = pattern.sub(" ", rest)  # the year of `3 May 2024` is no year of its own
    return tuple(found)


def without_times(text: str) -> str:
    """What is left of a text without the times that it names."""
    rest = simplify(text)
    for pattern, _ in _FORMS:
        rest = pattern.sub(" ", rest)
    return rest


def is_within(said_at: datetime | None, times: Iterable[TimeRange]) -> bool:
    """Whether a message was said in one of the times that were named."""
    return said_at is not None and any(one.start <= said_at < one.end for one in times)


def date_score(said_at: datetime | None, times: Iterable[TimeRange]) -> float:
    """How well the time of a message fits the times that were named, 0 to 1."""
    return max((_range_score(said_at, one) for one in times), default=0.0) if said_at is not None else 0.0


def _range_score(said_at: datetime, one: TimeRange) -> float:
    length = one.end - one.start
    if one.start <= said_at < one.end:
        return 1.0 if length < _YEARLY else _YEAR_SCORE
    slack = min(max(3 * _DAY, length), 31 * _DAY)
    return _NEAR_SCORE if one.start - slack <= said_at < one.end + slack else 0.0


_ParseTime = Callable[[re.Match[str], datetime], Iterator[TimeRange]]


def _date(match: re.Match[str], asked_at: datetime) -> Iterator[TimeRange]:
    """A day or a month, with its year or without."""
    parts = match.groupdict()
    named = match["month"].lower()
    month = _month_number(named) or _count(named)
    for year in _years(parts, asked_at.year):
        if parts.get("day"):
            yield _days(asked_at.replace(year=year, month=month, day=_count(parts["day"])), 1)
        else:
            yield _month(asked_at.replace(year=year, month=month, day=1))


def _part(match: re.Match[str], asked_at: datetime) -> Iterator[TimeRange]:
    """`in mid-March`, `towards the end of last month`, 三月底: a third of it, and a little more."""
    parts = match.groupdict()
    at = _THIRDS[parts["part"].lower()]
    for one in find_time_ranges(parts["whole"], asked_at) if "whole" in parts else _date(match, asked_at):
        third = (one.end - one.start) / 3
        yield TimeRange(one.start + at * third - 2 * _DAY, one.start + (at + 1) * third + 2 * _DAY)


def _season(match: re.Match[str], asked_at: datetime) -> Iterator[TimeRange]:
    """`last summer`, 去年冬天: the newest one that has begun, of the year if one is named."""
    begin = _midnight(asked_at).replace(month=_SEASONS[match["season"].lower()], day=1)
    if year := match.groupdict().get("which_year"):
        begin = begin.replace(year=begin.year - _RELATIVE[year][1])
    elif begin > asked_at:
        begin = begin.replace(year=begin.year - 1)
    yield TimeRange(begin, (begin + timedelta(days=95)).replace(day=1))


def _holiday(match: re.Match[str], asked_at: datetime) -> Iterator[TimeRange]:
    """`over Christmas`, 国庆期间: the newest one."""
    month, day, count = _HOLIDAYS[match["holiday"].lower()]
    begin = _midnight(asked_at).replace(month=month, day=day)
    yield _days(begin if begin <= asked_at else begin.replace(year=begin.year - 1), count)


def _some_ago(match: re.Match[str], asked_at: datetime) -> Iterator[TimeRange]:
    """`the other day`, `a few weeks ago`, 前几天: one to seven of them before."""
    days = _UNIT_DAYS[match["unit"].lower().removeprefix("个")[0]]
    yield TimeRange(_midnight(asked_at) - 7 * days * _DAY, _midnight(asked_at) - (days - 1) * _DAY)


def _a_while_ago(_: re.Match[str], asked_at: datetime) -> Iterator[TimeRange]:
    """前阵子, 前些日子."""
    yield TimeRange(_midnight(asked_at) - 45 * _DAY, _midnight(asked_at) - 4 * _DAY)


def _weekday_of_week(match: re.Match[str], asked_at: datetime) -> Iterator[TimeRange]:
    """`Monday last week`, `Friday before last`."""
    named = _WEEKDAY_LETTERS.index(match["weekday"][:3].lower())
    if which := match.groupdict().get("which"):
        monday = asked_at - timedelta(days=asked_at.weekday() + 7 * (which.lower() == "last"))
        yield _days(monday + named * _DAY, 1)
    else:
        yield _days(asked_at - timedelta(days=7 + ((asked_at.weekday() - named) % 7 or 7)), 1)


def _month_number(named: str) -> int:
    """Of a name or what it begins with; 0 of anything else."""
    return next((at for at, name in enumerate(_MONTHS, 1) if len(named) > 2 and name.startswith(named[:4])), 0)


def _years(parts: Mapping[str, str | None], this: int) -> Sequence[int]:
    if year := parts.get("year"):
        return [int(year)]
    if which := parts.get("which_year"):
        return [this - _RELATIVE[which][1]]
    return range(this - _EARLIER_YEARS, this + 1)


def _year(match: re.Match[str], asked_at: datetime) -> Iterator[TimeRange]:
    begin = _midnight(asked_at).replace(year=int(match["year"]), month=1, day=1)
    yield TimeRange(begin, begin.replace(year=begin.year + 1))


def _ago(match: re.Match[str], asked_at: datetime) -> Iterator[TimeRange]:
    """`two weeks ago`, 三天前: so long before, with a little room to either side for longer times."""
    days = _UNIT_DAYS[match["unit"].lower().removeprefix("个")[0]]
    if match["count"] == "半":
        days //= 2
    room = days // 2
    yield _days(asked_at - timedelta(days=_count(match["count"]) * days + room), 1 + 2 * room)


def _lately(match: re.Match[str], asked_at: datetime) -> Iterator[TimeRange]:
    """`the past two weeks`, 最近三天: so long up to the moment of asking."""
    days = _UNIT_DAYS[match["unit"].lower().removeprefix("个")[0]]
    begin = _midnight(asked_at) - timedelta(days=days * _count(match["count"]))
    yield TimeRange(begin, _midnight(asked_at) + _DAY)


def _weekend(match: re.Match[str], asked_at: datetime) -> Iterator[TimeRange]:
    """`over the weekend`, 上周末: the newest one that has begun."""
    back = (asked_at.weekday() - 5) % 7
    yield _days(asked_at - timedelta(days=back), 2)


def _day_of_month(match: re.Match[str], asked_at: datetime) -> Iterator[TimeRange]:
    """`on the 12th`, 12号: the newest such day."""
    for back in range(62):
        if (begin := asked_at - back * _DAY).day == int(match["day"] or match["han"]):
            yield _days(begin, 1)
            return


def _relative(match: re.Match[str], asked_at: datetime) -> Iterator[TimeRange]:
    """`yesterday`, `last month`, 上周, by how many units before it was."""
    word = re.sub(r"\s+|个", "", match[0].lower())
    unit, before = _RELATIVE[word]
    if unit == "day":
        yield _days(asked_at - timedelta(days=before), 1)
    elif unit == "week":
        yield _days(asked_at - timedelta(days=asked_at.weekday() + 7 * before), 7)
    elif unit == "month":
        months = asked_at.year * 12 + asked_at.month - 1 - before
        yield _month(asked_at.replace(year=months // 12, month=months % 12 + 1, day=1))
    else:
        begin = _midnight(asked_at).replace(year=asked_at.year - before, month=1, day=1)
        yield TimeRange(begin, begin.replace(year=begin.year + 1))


def _weekday(match: re.Match[str], asked_at: datetime) -> Iterator[TimeRange]:
    """`last Friday`, `on Friday`, 上周五: the newest one before the day of asking; 上周 says which week."""
    if named := match.groupdict().get("han"):
        weeks = {"上上": 2, "上": 1}.get(match["which"] or "", 0)
        monday = asked_at - timedelta(days=asked_at.weekday() + 7 * weeks)
        yield _days(monday + timedelta(days=_HAN_WEEKDAYS[named]), 1)
    else:
        back = (asked_at.weekday() - _WEEKDAY_LETTERS.index(match["weekday"][:3].lower())) % 7 or 7
        yield _days(asked_at - timedelta(days=back), 1)


def _count(word: str) -> int:
    """`3`, `three`, 三, 十三, 二十三."""
    if word.isdigit():
        return int(word)
    tens, is_ten, ones = word.partition("十")
    if is_ten:
        return 10 * _HAN_DIGITS.get(tens, 1) + _HAN_DIGITS.get(ones, 0)
    return _NUMBERS.get(word.lower()) or _HAN_DIGITS.get(word) or 1


def _midnight(moment: datetime) -> datetime:
    return moment.replace(hour=0, minute=0, second=0, microsecond=0)


def _days(moment: datetime, count: int) -> TimeRange:
    begin = _midnight(moment)
    return TimeRange(begin, begin + timedelta(days=count))


def _month(moment: datetime) -> TimeRange:
    begin = _midnight(moment)
    return TimeRange(begin, (begin + timedelta(days=32)).replace(day=1))


_RELATIVE = {
    "today": ("day", 0), "thismorning": ("day", 0), "yesterday": ("day", 1), "lastnight": ("day", 1),
    "daybeforeyesterday": ("day", 2), "thisweek": ("week", 0), "lastweek": ("week", 1),
    "weekbeforelast": ("week", 2), "monthbeforelast": ("month", 2), "yearbeforelast": ("year", 2),
    "thismonth": ("month", 0), "lastmonth": ("month", 1), "thisyear": ("year", 0), "lastyear": ("year", 1),
    "今天": ("day", 0), "今早": ("day", 0), "昨天": ("day", 1), "昨晚": ("day", 1), "前天": ("day", 2),
    "大前天": ("day", 3),
    "本周": ("week", 0), "这周": ("week", 0), "上周": ("week", 1), "上上周": ("week", 2),
    "上星期": ("week", 1), "这星期": ("week", 0), "上礼拜": ("week", 1), "这礼拜": ("week", 0),
    "本月": ("month", 0), "这月": ("month", 0), "上月": ("month", 1),
    "上上月": ("month", 2), "今年": ("year", 0), "去年": ("year", 1), "前年": ("year", 2),
}  # fmt: skip
_MONTH_NAMES = "|".join(name for name in _MONTHS if name != "may")
_WEEKDAY_NAMES = r"(?:mon|tues?|wed(?:nes)?|thu(?:rs?)?|fri|sat(?:ur)?|sun)(?:day)?"
_COUNTS = r"\d{1,3}|" + "|".join(_NUMBERS)
_HAN_COUNT = r"\d{1,3}|[一二三四五六七八九]?十[一二三四五六七八九]?|[一二三四五六七八九两几半]"
_HAN_MONTH = r"1[0-2]|0?[1-9]|十[一二]?|[一二三四五六七八九]"
_HAN_DAY = r"\d{1,2}|[二三]?十[一二三四五六七八九]?|[一二三四五六七八九]"
_HAN_RELATIVE = (
    r"大?前天|昨天|昨晚|今天|今早|上上周|[上本这]周|[上这]个?(?:星期|礼拜)|上上个?月|[上这]个?月|本月|[今去前]年"
)
_SHORT_MONTHS = "jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec"
_YEAR_TAIL = r"(?:,?\s+(?P<year>(?:19|20)\d\d))?"
_TH = r"(?:st|nd|rd|th)?"


def _form(pattern: str, parse: _ParseTime, flags: int = re.IGNORECASE) -> tuple[re.Pattern[str], _ParseTime]:
    return re.compile(pattern, flags), parse


_FORMS: tuple[tuple[re.Pattern[str], _ParseTime], ...] = (
    _form(r"(?P<year>(?:19|20)\d\d)[-/.](?P<month>\d{1,2})[-/.](?P<day>\d{1,2})(?!\d)", _date),
    _form(
        r"\b(?P<part>(?:beginning|start|middle|end)(?=\s+of\b)|(?:early|mid|late)\b)[\s-]+(?:(?:in|of)\s+)?"
        rf"(?P<month>{_MONTH_NAMES}|may)\b{_YEAR_TAIL}",
        _part,
    ),
    _form(r"\b(?P<part>beginning|start|middle|end)\s+of\s+(?P<whole>(?:this|last)\s+(?:month|year))\b", _part),
    _form(
        r"(?:(?P<year>(?:19|20)\d\d)年|(?P<which_year>[今去前]年))?(?:的)?"
        rf"(?<!\d)(?P<month>{_HAN_MONTH})月份?(?P<part>[上中下]旬|[初底末])",
        _part,
    ),
    _form(r"(?P<whole>[上这本]个?月|[今去前]年)年?(?P<part>[上中下]旬|[初底末])", _part),
    _form(r"\bthe\s+other\s+(?P<unit>day|week)\b", _some_ago),
    _form(r"\b(?:a\s+)?(?:few|several)\s+(?P<unit>days|weeks|months|years)\s+(?:ago|back)\b", _some_ago),
    _form(r"前[几两](?P<unit>天|周|个?星期|个?礼拜|个月|年)", _some_ago),
    _form(r"(?<![一二三四五六七八九十])几(?P<unit>天|周|个?星期|个?礼拜|个月|年)(?:以|之)?前", _some_ago),
    _form(r"前(?:些|一?阵|一?段)(?:天|日子|子|时间|时候)|前阵", _a_while_ago),
    _form(
        r"\b(?:(?:in|over|during|last|this)\s+(?:the\s+)?(?:last\s+)?(?=[saw])|(?:last|this|in\s+the)\s+)"
        r"(?P<season>spring|summer|autumn|fall|winter)\b",
        _season,
    ),
    _form(r"(?P<which_year>[今去前]年)(?P<season>[春夏秋冬])[天季]", _season),
    _form(r"\b(?:over|at|around|during|last|since)\s+(?:last\s+)?(?P<holiday>christmas|new\ year)\b(?:'s)?", _holiday),
    _form(r"(?P<holiday>圣诞|元旦|国庆|五一)节?(?=期间|长?假|那|的?时候|前后)", _holiday),
    _form(
        r"(?:(?P<year>(?:19|20)\d\d)年|(?P<which_year>[今去前]年))?(?:的)?"
        rf"(?<!\d)(?P<month>{_HAN_MONTH})月份?(?:(?P<day>{_HAN_DAY})[日号])?",
        _date,
    ),
    _form(rf"\b(?P<day>\d{{1,2}}){_TH}(?:\s+of)?\s+(?P<month>{_MONTH_NAMES}|{_SHORT_MONTHS}|may)\b{_YEAR_TAIL}", _date),
    _form(rf"\b(?P<month>{_MONTH_NAMES}|{_SHORT_MONTHS}|may)\.?\s+(?P<day>\d{{1,2}})(?!\d){_TH}{_YEAR_TAIL}", _date),
    _form(rf"\b(?P<month>{_MONTH_NAMES}){_YEAR_TAIL}\b", _date),
    _form(
        rf"\b(?i:(?:in|of|until|during)\s+(?=may)|(?:since|by|last|this)\s+(?-i:(?=M)))(?P<month>[Mm]ay)\b{_YEAR_TAIL}",
        _date,
        0,  # no verb: nothing may stand in May, and this may be so
    ),
    _form(rf"\b(?:last|past)\s+(?P<count>{_COUNTS})\s+(?:of\s+)?(?P<unit>days|weeks|months)\b", _lately),
    _form(r"\bpast\s+(?P<count>)(?P<unit>week|month)\b", _lately),
    _form(rf"(?:最近|过去|近|这)(?P<count>{_HAN_COUNT})(?P<unit>天|周|个?星期|个?礼拜|个月)", _lately),
    _form(r"\b(?:over|on|at|during|this|last|past)\s+(?:the\s+)?(?:last\s+|past\s+)?weekend\b|[上这]个?周末", _weekend),
    _form(rf"\b(?P<count>{_COUNTS})(?:\s+of)?\s+(?P<unit>days?|weeks?|months?|years?)\s+(?:ago|back)\b", _ago),
    _form(rf"(?P<count>{_HAN_COUNT})(?P<unit>天|周|个?星期|个?礼拜|个月|年)(?:以|之)?前", _ago),
    _form(r"(?P<which>上上|上|这|本)?(?:周|星期|礼拜)(?P<han>[一二三四五六日天])", _weekday),
    _form(rf"\b(?P<which>last|this)\s+week\s+(?:on\s+)?(?P<weekday>{_WEEKDAY_NAMES})\b", _weekday_of_week),
    _form(rf"\b(?:on\s+)?(?P<weekday>{_WEEKDAY_NAMES})\s+(?:of\s+)?(?P<which>last|this)\s+week\b", _weekday_of_week),
    _form(rf"\b(?P<weekday>{_WEEKDAY_NAMES})\s+before\s+last\b", _weekday_of_week),
    _form(rf"\b(?:last|on|this|past)\s+(?P<weekday>{_WEEKDAY_NAMES})\b", _weekday),
    _form(r"\b(?:week|month|year)\s+before\s+last\b", _relative),
    _form(r"\bday before yesterday\b|\byesterday\b|\btoday\b|\bthis morning\b|\blast night\b", _relative),
    _form(r"\b(?:this|last)\s+(?:week|month|year)\b", _relative),
    _form(_HAN_RELATIVE, _relative),
    _form(r"\b(?:in|of|since|during|by)\s+(?P<year>(?:19|20)\d\d)\b", _year),
    _form(r"(?P<year>(?:19|20)\d\d)年", _year),
    _form(
        r"\bon\s+the\s+(?P<day>\d{1,2})(?:st|nd|rd|th)\b|(?<![\d月.-])(?P<han>\d{1,2})号(?![\d楼线店门])",
        _day_of_month,
    ),
)  # fmt: skip
