"""German names as they are typed: Müller and Mueller are one word of a search, whichever a message has. Pure.

An index has words without accents, so that `Muller` finds `Müller`. Two letters for an umlaut stay two letters there:
which words they are looked for in is decided by what is asked.
"""

from __future__ import annotations

import re

from everthread.core.queries import Term
from everthread.text.related_words import related_words
from everthread.text.words import stem

_WRITTEN_OUT = re.compile(r"(?<![qaeiou])([aou])e(?=[a-z]{2})")
_UMLAUT = re.compile("[äöü]")
_LETTERS = {"a": "ä", "o": "ö", "u": "ü"}
_BARE = str.maketrans("äöü", "aou")


def umlaut_term(word: str) -> Term | None:
    """The term of a folded word that has umlauts, or seems to have them written out; None of any other word."""
    word = word.replace("ß", "ss")
    if _UMLAUT.search(word):
        bare = word.translate(_BARE)
        written_out = _UMLAUT.sub(lambda found: found[0].translate(_BARE) + "e", word)
    elif _WRITTEN_OUT.search(word):
        bare, written_out = _WRITTEN_OUT.sub(r"\1", word), word
    else:
        return None
    token, other = stem(bare), stem(written_out)
    if not written_out.isascii() or related_words(other):  # a common English word: guest is no gust
        return None
    root = other if written_out.startswith(other) else other[:-1]
    body = _WRITTEN_OUT.sub(lambda found: f"(?:{found[1]}e?|{_LETTERS[found[1]]})", root).replace("ss", "(?:ss|ß)")
    return Term(
        token=token, spellings=((Term(token=token),), (Term(token=other),)), pattern=rf"(?<![^\W\d_]){body}[^\W\d_]*"
    )
