"""What people put around what they say: emojis, laughter, "ok so", 嗯, thanks, a tilde. None of it says anything.

Rules that read a statement by how it begins or ends read it without them; what is shown stays as it was typed.
"""

from __future__ import annotations

import re

_PICTURE = "[\u2190-\u21ff\u2300-\u27bf\u2900-\u2bff\ufe0e\ufe0f\u200d\U0001f000-\U0001faff]"
_SMILEY = r"(?<![\w(])[:;=]-?['’]?[()DPpoO/|*]++(?![\w(])|<3+|\^_*\^|[tT]_[tT]|-_+-"
_LAUGHTER = (
    r"(?<![A-Za-z0-9])(?i:lol+|lmao+|rofl|haha(?:ha)*h?|hehe(?:he)*|hihi|jaja(?:ja)*|xd+)(?![A-Za-z0-9'’-])"
    r"|[哈嘿呵嘻]{2,30}"
)
_BEFORE = (
    r"(?i:ok(?:ay)?|so(?! far| that| long)|hm+|mhm+|uh+m*|um+|erm*|oh+|ah+|aw+|yo|hey|well|btw|alright|yeah|yep|nvm)"
    r"(?![A-Za-z0-9'’-])|(?:嗯+|哦+|噢+|啊+|呃+|额+|哎呀?|唉|诶|那个|对了|好的?)(?=[，,。.！!、~～\s…])|嗯+"
)
_AFTER = (
    r"(?<![A-Za-z0-9])(?i:thx|thanks(?: a lot)?|thank you|ty|tysm|cheers|btw)[.!~]{0,3}"
    r"|(?i:(?<=, )(?:ok(?:ay)?|k)[?？.!~]{0,3}|(?<=\w )(?<!is )(?<!are )ok(?:ay)?[?？]{1,3})"
    r"|(?<=[\s，,。！!~～])(?:谢谢(?:你|您|啦|了)?|多谢|嗯+|哦+|噢+)"
)
_STARTS = re.compile(rf"(?:(?:{_PICTURE}|{_SMILEY}|{_LAUGHTER}|{_BEFORE})[\s,，、.。!！~～…:：]{{0,8}}){{1,12}}")
_ENDS = re.compile(
    rf"(?:{_PICTURE}|{_SMILEY}|(?:{_LAUGHTER})[.!！。]{{0,3}}|{_AFTER}|[~～…]|(?<=[!！?？.。])[!！.。]|[\s,，](?=$))$"
)
_SOFTENED = re.compile("[啦咯喽]$")
"""了 in a softer voice."""
_LONGEST = 400
"""A longer text is no statement that somebody chats."""


def without_fillers(statement: str) -> str:
    """The statement without what says nothing before and after it; of nothing else, itself."""
    if len(statement) > _LONGEST:
        return statement
    said = statement.strip()
    opening = _STARTS.match(said)
    if opening is not None:
        said = said[opening.end() :]
    while ending := _ENDS.search(said, max(0, len(said) - 40)):
        said = said[: ending.start()]
    if not any(map(str.isalnum, said)):
        return statement
    return _SOFTENED.sub("了", said)
