"""The rules for what is counted: dates, times, money, numbers with their units, in digits and in words."""

from __future__ import annotations

import re

from everthread.text import normal_forms as forms
from everthread.text.fact_rule import FactRule, Match, fact_rule
from everthread.text.terms import terms

MONTH = (
    r"(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sept?(?:ember)?"
    r"|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)\.?"
)
_SMALL_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|march|apr(?:il)?|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?"
    r"|dec(?:ember)?)"
)
"""As chat writes them; "may" and "mar" are words."""
_NUM = r"\d{1,3}(?:[,，]\d{3}){1,4}(?:\.\d{1,8})?|\d{1,15}(?:\.\d{1,8})?"
_REST = r"\d{0,2}(?:[,，]\d{3}){1,4}(?:\.\d{1,8})?|\d{0,14}(?:\.\d{1,8})?"
"""A number after its first digit. A pattern that begins with the digit, and looks back from it, is tried at digits only
and not at each character."""
_CN = r"[零〇一二两三四五六七八九十百千万亿]{1,9}"
_CN_MONTH = r"\d{1,2}|十[一二]|[一二三四五六七八九十]"
_CN_DAY = r"\d{1,2}|[一二三四五六七八九十]{1,3}"
_CN_HOUR = r"[01]?\d|2[0-4]|十?[一二两三四五六七八九]|十"
_CN_HALF = r"凌晨|清晨|早上|上午|中午|下午|傍晚|晚上|夜里|晚"
# What stands before a number that is not its own: letters and digits of a longer word, a currency sign.
_ALONE = r"(?<![A-Za-z0-9_.$€£¥￥-])"
_FIRST_ALONE = r"\d(?<![A-Za-z0-9_.$€£¥￥-]\d)"
_CN_UNITS = (
    r"(?:个(?:半)?(?:小时|月|人|星期|钟头)?|分钟|秒钟?|小时|公里|千米|厘米|毫米|平方米|平米|公斤|毫秒|英寸|号线|人|天|晚|夜"
    r"|年|月|周|岁|次|单|米|平|斤|克|度|层|楼|页|章|本|杯|张|题|分|节|课|站|折|倍|行|条|件|台|套|间|户|名|位|门|份|只|辆"
    r"|遍|集|组|步|级|班|字|篇|道|盒|瓶|片|支|棵|刻|期|轮|场|顿|趟|口|双|对|瓦|升|伏|寸|室|厅|卫|号|路)"
)
_COUNTED = (
    r"years?|months?|weeks?|days?|hours?|minutes?|seconds?|nights?|kids|children|sons|daughters|dogs|cats|people"
    r"|times|percent|dollars|miles|kilometers|bags|passengers|tickets|books|pages|chapters|sessions|rooms|siblings"
    r"|friends"
)
# After a number these words do not say what was counted.
_NOT_UNITS = (
    r"(?:and|or|of|to|in|is|are|was|were|be|the|a|an|for|by|at|on|from|with|as|that|which|will|but|if|so|it|we|i|you"
    r"|they|he|she|not|no|when|then|than|also|has|have|had|can|should|would|could|just|into|out|up|down|over|only"
    r"|because|per|more|less|other|others|instead|while|after|before|since|until|between|during|shows?|st|nd|rd|th)\b"
)
_CURRENCIES = {
    "$": "$", "us$": "$", "usd": "$", "dollar": "$", "buck": "$", "美元": "$", "美金": "$", "€": "€", "euro": "€",
    "eur": "€", "欧元": "€", "£": "£", "gbp": "£", "pound": "£", "日元": "jpy", "hk$": "hkd", "港币": "hkd",
}  # fmt: skip
# 一次, 万一, 十分 are turns of speech, not counts.
_IDIOM_NUMBERS = ("一", "万", "千万", "百", "万一")
_IDIOMS = ("十分", "百分", "千万次", "两口", "三级")


def _date(match: Match) -> str:
    parts = match.groupdict()
    return forms.date(parts.get("y"), parts.get("m"), parts.get("d"))


def _time(match: Match) -> str:
    parts = match.groupdict()
    return forms.time_of_day(match["h"], parts.get("min"), parts.get("half") or "")


def _money(match: Match) -> str:
    currency = forms.normalise(match["cur"]).rstrip("s")
    return f"{forms.number(match['n'], match.groupdict().get('scale') or '')}{_CURRENCIES.get(currency, '¥')}"


def _percent(match: Match) -> str:
    return f"{forms.number(match['n'])}%"


def _ordinal(match: Match) -> str:
    return f"{forms.number(match['n'])}th"


def _number(match: Match) -> str:
    return forms.number(match[0])


def _scaled(match: Match) -> str:
    return forms.number(match["n"], match["scale"])


def _quantity(match: Match) -> str:
    value = forms.number(match["n"], match.groupdict().get("scale") or "")
    unit = forms.normalise(match["unit"])
    return f"{value}%" if unit in ("%", "percent") else f"{value} {_singular(unit)}"


def _singular(unit: str) -> str:
    plural = len(unit) > 3 and unit.isascii() and unit.endswith("s") and not unit.endswith("ss")
    return unit[:-1] if plural else unit


def _says_a_year(match: Match) -> bool:
    return bool(match["m"]) or len(match["y"]) == 4


def _says_a_month(match: Match) -> bool:
    """一月 alone may be "one month"."""
    return bool(match["d"]) or match["m"] != "一" or match[0].endswith("份")


def _says_an_hour(match: Match) -> bool:
    """三点 may be three points; 一点 is "a little"."""
    return match["h"].isdecimal() or match[0][-1] in "半刻分钟整"


def _names_a_unit(match: Match) -> bool:
    """Not `2 now`, `49.90 this`: words that say nothing by themselves count nothing."""
    return bool(terms(match["unit"]))


def _is_counted(match: Match) -> bool:
    if match.groupdict().get("unit", "").startswith("周") and match.string[match.start() - 1 : match.start()] == "周":
        return False  # 周三周四 are days
    return match["n"] not in _IDIOM_NUMBERS and match[0] not in _IDIOMS


def _is_amount(match: Match) -> bool:
    return len(match[0]) >= 2 and match[0][0] not in "百千万亿零〇" and bool(re.search("[十百千万亿]", match[0]))


def _is_more_than_one(match: Match) -> bool:
    return match["n"].lower() != "one"


def _is_no_index(match: Match) -> bool:
    """A bare number says something with three digits or a fraction, and not as the number of a line."""
    is_line_number = match.start() == 0 and match.string[match.end() : match.end() + 1] == ":"
    return len(match[0]) >= 3 and not is_line_number


DATES: tuple[FactRule, ...] = (
    fact_rule("date", "dashed digits", r"(?<![\d-])(?P<y>\d{4})-(?P<m>\d{2})-(?P<d>\d{2})(?!\d)(?!-\d)", normal=_date),
    fact_rule(
        "date",
        "slashed or dotted digits",
        r"(?<![\d/])(?P<y>(?:19|20)\d\d)[/.](?P<m>\d{1,2})[/.](?P<d>\d{1,2})(?![\d/])",
        normal=_date,
    ),
    fact_rule("date", "slashed digits", r"(?<![\d/.])\d{1,2}/\d{1,2}/(?:\d{4}|\d{2})(?![\d/])"),
    fact_rule(
        "date",
        "month",
        rf"\b(?P<d>\d{{1,2}})(?:st|nd|rd|th)?(?: of)?[ -](?P<m>{MONTH})\b(?:,?[ -](?P<y>\d{{4}})\b)?",
        normal=_date,
    ),
    fact_rule(
        "date",
        "month",
        rf"\b(?P<m>{MONTH})[ -](?P<d>\d{{1,2}})(?:st|nd|rd|th)?\b(?:,? ?-?(?P<y>\d{{4}})\b)?",
        normal=_date,
    ),
    fact_rule("date", "month", rf"\b(?P<m>{MONTH}),?[ -](?P<y>(?:19|20)\d\d)\b", normal=_date),
    fact_rule(
        "date",
        "small month",
        rf"\b(?P<d>\d{{1,2}})(?:st|nd|rd|th)?(?: of)? (?P<m>{_SMALL_MONTH}|may)\b(?: (?P<y>(?:19|20)\d\d)\b)?",
        normal=_date,
    ),
    fact_rule(
        "date",
        "small month",
        rf"\b(?P<m>{_SMALL_MONTH}) (?P<d>\d{{1,2}})(?:st|nd|rd|th)?\b(?![.:]?\d)(?:,? (?P<y>(?:19|20)\d\d)\b)?",
        normal=_date,
    ),
    fact_rule(
        "date",
        "chinese year",
        r"(?P<y>\d{4}|\d{2}|[一二][〇零一二三四五六七八九]{3})年"
        rf"(?:(?P<m>{_CN_MONTH})月(?:份|(?P<d>{_CN_DAY})[日号]?)?)?",
        normal=_date,
        guard=_says_a_year,
    ),
    fact_rule(
        "date",
        "chinese month",
        rf"(?<!\d)(?P<m>{_CN_MONTH})月(?![亮饼子经薪租供])(?:份|(?P<d>{_CN_DAY})[日号]?)?",
        normal=_date,
        guard=_says_a_month,
    ),
    fact_rule("date", "chinese day", r"(?<!\d)(?P<d>[12]?\d|3[01])[日号](?![线楼门院机位店桌床本子码])", normal=_date),
)

TIMES: tuple[FactRule, ...] = (
    fact_rule(
        "time",
        "am or pm",
        r"(?<![A-Za-z0-9_.:])(?P<h>1[0-2]|0?\d)(?::(?P<min>[0-5]\d))? ?(?P<half>[aApP](?:\.[mM]\.|[mM]\b))",
        normal=_time,
    ),
    fact_rule(
        "time",
        "clock",
        rf"(?<![\d.:：])(?P<half>{_CN_HALF})?(?P<h>[01]?\d|2[0-4])[:：](?P<min>[0-5]\d)(?::[0-5]\d)?(?![\d:：])",
        normal=_time,
    ),
    fact_rule(
        "time",
        "chinese hour",
        rf"(?P<half>{_CN_HALF})(?P<h>{_CN_HOUR})点(?P<min>半|一刻|三刻|[0-5]?\d(?!\d|%))?分?",
        normal=_time,
    ),
    fact_rule(
        "time",
        "chinese hour",
        rf"(?<![\d.])(?P<h>{_CN_HOUR})点(?P<min>半|一刻|三刻|[0-5]\d)?(?:分|钟|整)?",
        normal=_time,
        guard=_says_an_hour,
    ),
)

MONEY: tuple[FactRule, ...] = (
    fact_rule(
        "money",
        "currency",
        rf"(?P<cur>US\$|HK\$|[$€£¥￥])\s?(?P<n>{_NUM})(?:\s?(?P<scale>[kKMwW](?!\w)|million|billion|万|亿|千))?",
        normal=_money,
    ),
    fact_rule(
        "money",
        "currency word",
        rf"(?<![\d.])(?P<n>{_NUM})\s?(?P<scale>[kKMwW]|million|billion|万|亿|千|百)?\s?"
        r"(?P<cur>块钱|块|元|人民币|美元|美金|日元|欧元|港币|(?:USD|CNY|RMB|EUR|GBP|dollars?|euros?|yuan|bucks|pounds)\b)",
        normal=_money,
    ),
    fact_rule(
        "money", "chinese money", rf"(?P<n>{_CN})(?P<cur>块钱|块|元|美元|日元|欧元)", normal=_money, guard=_is_counted
    ),
)

NUMBERS: tuple[FactRule, ...] = (
    fact_rule("number", "chinese percent", rf"百分之(?P<n>{_CN}|{_NUM})", normal=_percent),
    fact_rule(
        "number",
        "counter",
        rf"{_ALONE}(?P<n>{_NUM})(?P<scale>[kKwW]|万|亿|千)?\s?(?P<unit>{_CN_UNITS}|[%％℃°])",
        normal=_quantity,
    ),
    fact_rule("number", "chinese amount", rf"{_ALONE}(?P<n>{_NUM})(?P<scale>[万亿])", normal=_scaled),
    fact_rule(
        "number",
        "number and unit",
        rf"(?P<n>{_FIRST_ALONE}(?:{_REST}))(?:(?P<scale>[kKM])(?!\w))?[ -]?"
        rf"(?!(?i:{_NOT_UNITS}))(?P<unit>[A-Za-zµ]{{1,16}})(?![\w(.]\w)",
        normal=_quantity,
        guard=_names_a_unit,
    ),
    fact_rule("number", "ordinal", rf"(?<![\w.])(?P<n>{_NUM})(?:st|nd|rd|th)\b", normal=_ordinal),
    fact_rule(
        "number",
        "counted",
        rf"(?i:\b(?P<n>{'|'.join(forms.NUMBER_WORDS)})) (?P<unit>{_COUNTED})\b",
        normal=_quantity,
        guard=_is_more_than_one,
    ),
    fact_rule(
        "number",
        "chinese number",
        rf"(?<![第每某那这哪零〇一二两三四五六七八九十百千万亿几])(?P<n>{_CN})(?P<unit>{_CN_UNITS}半?)",
        normal=_quantity,
        guard=_is_counted,
    ),
    fact_rule("number", "chinese number", _CN, normal=_number, guard=_is_amount),
    fact_rule(
        "number",
        "digit",
        rf"[-\d](?<![A-Za-z0-9_.][-\d])(?:(?<=\d)(?:{_REST})|(?<=-)(?:{_NUM}))(?![A-Za-z_]|\.\d)",
        normal=_number,
        guard=_is_no_index,
    ),
)
