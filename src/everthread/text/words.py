"""The one tokeniser: turn text into search tokens, for what is logged and for what is asked, on every store.

Both databases are fed ready-made tokens, so the same question finds the same messages on each. A text is
read as NFKC in lower case, and then

- traditional Chinese characters count as the simplified ones (`simplify`);
- scripts written with spaces give words of letters, digits and combining marks, without accents (café is cafe,
  Łódź is lodz, Nguyễn is nguyen) and stemmed as English. All else separates: `snake_case`, `file.py`, `v1.2.3`, paths
  and addresses are found by their parts and have no token of their own (`history.search` lifts the messages where the
  parts stand together); a possessive `'s` is dropped;
- scripts written without spaces (Chinese, Japanese, Korean, Thai, Lao, Khmer, Burmese) give each run's pairs
  of neighbouring characters and its last character, so that any two characters that stood together are one
  token, and a single character is the beginning of one.

A token has at most `MAX_TOKEN_CHARS` characters, and holds no white space, no ASCII punctuation, no NUL and
no lone surrogate: FTS5's `ascii` tokenizer and a PostgreSQL lexeme take it as it is. The index of one text
holds at most `MAX_INDEX_BYTES` of distinct tokens, those that come first, because a tsvector ends at 1 MiB:
100,000 distinct words fit. What is beyond is kept in the log but not found by search.

Erasing from a contentless FTS5 table takes the very tokens that were put in. They are derived again from the
text, so any change of the result needs a new `WORDS_VERSION` and a migration that brings the indexes of older
databases up to date (`renew_token`); a newer PyStemmer or Python's newer Unicode tables are such a change too (a test
holds a digest of this version).
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from itertools import groupby
from operator import add

import Stemmer

from everthread.core.recent import forget_on_erase

WORDS_VERSION = 2
MAX_TOKEN_CHARS = 64
MAX_INDEX_BYTES = 1_000_000

SCOPE_MARK = "\ue000"
"""First character of a scope token. It is for private use, so no word of a text begins with it."""

_PIECE_CHARS = 262_144
"""Long texts are read in pieces, so that 10 MB never become millions of strings at once."""

_SURELY_WITHIN_CHARS = 16_384
"""Texts up to here cannot reach `MAX_INDEX_BYTES`, though NFKC makes 18 characters of one."""

_HEAP_CHARS = 2_048
"""From this length on what NFKC makes too much of is cut.

Heaps of combining marks, of which it takes the number squared (16,000: 0.4 s), and U+FDFA, a ligature that
becomes 18 characters.
"""

_may_hold_heap = re.compile("[\u0300-\u30ff\ua600-\uabff\ufb00-\ufe2f\U00010000-\U0001e94f]{31}").search
"""Whether so many characters stand in a row of the scripts that have combining marks: takes a twentieth of the time of
looking for the marks themselves."""

_CACHED_STEMS = 65_536

_UNSPACED = (
    r"\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ece"  # Thai, Lao
    r"\u1000-\u1049\u1050-\u109d\u1780-\u17d3"  # Burmese, Khmer
    r"\u1100-\u11ff\ua960-\ua97c\uac00-\ud7a3\ud7b0-\ud7fb"  # Hangul
    r"\u3041-\u3096\u3099\u309a\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"  # kana
    r"\u3005-\u3007\u3031-\u3035\u303b\u303c\u3105-\u312f\u31a0-\u31bf"  # iteration marks, zero, bopomofo
    r"\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U0001b000-\U0001b16f\U00020000-\U0003fffd"  # Han, old kana
)
_unspaced_char = re.compile(f"[{_UNSPACED}]").match
_BOUNDARY = re.compile(r"\s")
_without_possessives = re.compile(r"'s\b(?<=[a-z0-9]'s)('s)?").sub
"""After a word; of two in a row the second is a word itself. It begins with the apostrophe, which is found quickly."""
_ACCENTED = "\u00df-\u024f\u0300-\u03ff\u0451\u1e00-\u1fff"
_may_have_accents = re.compile(f"[{_ACCENTED}]").search
"""Latin and Greek letters beyond ASCII, combining accents, and the Russian ё."""
_accents = re.compile("[\u0300-\u036f]+")
_OTHER_LETTERS = str.maketrans(
    {"ß": "ss", "æ": "ae", "œ": "oe", "ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "ħ": "h", "ı": "i", "ё": "е"}
)
"""Letters that Unicode does not take apart; the last pair is Cyrillic, whose й is a letter of its own."""
_ASCII_SPACES = "".join(char if char.isalnum() else " " for char in map(chr, range(128)))
"""All that separates words, as a space: splitting is three times as fast as matching."""


class _OwnStemmer(threading.local):
    """A stemmer for each thread: Snowball's objects have state and must not be called concurrently."""

    def __init__(self) -> None:
        self.stem = Stemmer.Stemmer("english", 0).stemWord


class _Stems(dict[str, str]):
    """Words seen lately and their stems; four times as fast as Snowball's own cache and batch call."""

    def __init__(self) -> None:
        self._own = _OwnStemmer()

    def __missing__(self, word: str) -> str:
        stem: str = self._own.stem(without_accents(word[:MAX_TOKEN_CHARS])[:MAX_TOKEN_CHARS])[:MAX_TOKEN_CHARS]
        if len(word) <= MAX_TOKEN_CHARS:
            if len(self) >= _CACHED_STEMS:
                self.clear()
            self[word] = stem
        return stem


_stems = _Stems()
_stem_of = _stems.__getitem__
forget_on_erase(_stems.clear)


def tokenize(text: str) -> list[str]:
    """The tokens of a text in their order, repeats included."""
    if len(text) <= _PIECE_CHARS:
        return _tokens_of_piece(text)
    return [token for piece in _pieces(text) for token in _tokens_of_piece(piece)]


def index_tokens(text: str, scope: Sequence[str] = ()) -> list[str]:
    """What an index stores of a text: its scope tokens, then its distinct tokens within the cap."""
    if len(text) <= _SURELY_WITHIN_CHARS:
        return [*map(scope_token, scope), *_distinct_tokens(text)]
    distinct: dict[str, None] = {}
    for piece in _pieces(text):
        distinct.update(_distinct_tokens(piece))
        if len(distinct) * MAX_TOKEN_CHARS * 4 > MAX_INDEX_BYTES and len("".join(distinct).encode()) > MAX_INDEX_BYTES:
            return [*map(scope_token, scope), *_first_bytes(distinct, MAX_INDEX_BYTES)]
    return [*map(scope_token, scope), *distinct]


def index_text(text: str, scope: Sequence[str] = ()) -> str:
    """`index_tokens` as one text, for the one column of an FTS5 table that is tokenised as `ascii`."""
    return " ".join(index_tokens(text, scope))


@lru_cache(1_024)
def scope_token(name: str) -> str:
    """The token that stands for an owner or a bucket of the index, such as `o17`."""
    if not (name.isascii() and name.isalnum()):
        raise ValueError(f"A scope is named by ASCII letters and digits, not by {name!r}.")
    return SCOPE_MARK + name.lower()


def fold(text: str) -> str:
    """Fold a text into the form in which texts are compared: NFKC, lower case, straight apostrophes, simplified
    characters. Accents stay: only tokens are without them.
    """
    if text.isascii():
        return text.lower()
    if len(text) > _HEAP_CHARS:
        text = text.replace("\ufdfa", " ")
        if _may_hold_heap(text):
            text = _mark_heap().sub(r"\1", text)
    return simplify(unicodedata.normalize("NFKC", text).lower().replace("’", "'"))


def without_accents(folded: str) -> str:
    """The words of a folded text as they are typed where a keyboard has no accents."""
    if folded.isascii() or not _may_have_accents(folded):
        return folded
    plain = folded.translate(_OTHER_LETTERS)
    taken_apart = "".join(
        _accents.sub("", unicodedata.normalize("NFD", char)) if _may_have_accents(char) else char for char in plain
    )
    return unicodedata.normalize("NFC", taken_apart)


def renew_token(token: str) -> set[str]:
    """What a token of version 1 is in this version: an index that holds single tokens is brought up to date by it.

    Of a word with accents, which was stemmed with them, both tokens that it may be now.
    """
    if token.isascii() or token.startswith(SCOPE_MARK):
        return {token}
    if is_unspaced(token):
        return {simplify(token)}
    plain = without_accents(token)[:MAX_TOKEN_CHARS]
    return {token} if plain == token else {plain, stem(plain)}


def renewable_letters() -> str:
    """The letters that tokens of version 1 may have and those of this version have not, as between brackets in a
    pattern; and a few more."""
    return _ACCENTED + "".join(map(chr, _simplified_han()[1]))


def split_runs_and_words(normal_text: str) -> list[tuple[str, str]]:
    """Split a text in folded form into its parts, in order: each is an unspaced run or a spaced word."""
    found: list[tuple[str, str]] = _part_pattern().findall(normal_text)
    return found


def part_spans(text: str) -> Iterator[tuple[int, int, bool]]:
    """Where the parts of a text stand, as it was written, and whether each is an unspaced run."""
    for match in _part_pattern().finditer(text):
        run, word = match.span(1), match.span(2)
        yield (*run, True) if run[0] >= 0 else (*word, False)


def character_pairs(run: str) -> Iterator[str]:
    """The pairs of neighbouring characters of an unspaced run."""
    return map(add, run, run[1:])


def stem(word: str) -> str:
    """The token of a spaced word in folded form."""
    return _stem_of(word)


def is_unspaced(token: str) -> bool:
    """Whether a token is of characters that are written without spaces."""
    return _unspaced_char(token[0]) is not None


def simplify(text: str) -> str:
    """A text with simplified Chinese characters in the place of traditional ones."""
    is_traditional, simplified = _simplified_han()
    return text.translate(simplified) if is_traditional.search(text) else text


def _tokens_of_piece(text: str) -> list[str]:
    lower = fold(text)
    return list(map(_stem_of, _ascii_words(lower))) if lower.isascii() else _mixed_tokens(lower)


def _distinct_tokens(text: str) -> dict[str, None]:
    """The tokens of a piece without its repeats, in order. A word that comes again is not looked at again: most words
    of a text do, and of a text that is not ASCII most words are."""
    lower = fold(text)
    if lower.isascii():
        return dict.fromkeys(map(_stem_of, dict.fromkeys(_ascii_words(lower))))
    found: dict[str, None] = {}
    for is_ascii, chunks in groupby(dict.fromkeys(lower.split()), str.isascii):
        some = " ".join(chunks)
        found.update(dict.fromkeys(map(_stem_of, _ascii_words(some)) if is_ascii else _mixed_tokens(some)))
    return found


def _ascii_words(lower: str) -> list[str]:
    if "'" in lower:
        lower = _without_possessives(r" \1", lower)
    return lower.translate(_ASCII_SPACES).split()


def _mixed_tokens(lower: str) -> list[str]:
    found: list[str] = []
    for run, word in split_runs_and_words(lower):
        if word:
            found.append(_stem_of(word))
        else:
            found += character_pairs(run)
            found.append(run[-1])
    return found


@cache
def _part_pattern() -> re.Pattern[str]:
    """Compile the pattern of unspaced runs and spaced words, once a text beyond ASCII is met.

    Python's `\\w` leaves out combining marks, without which words of Hindi, Tamil or pointed Hebrew fall
    apart. Variation selectors are marks too, but belong to emoji.
    """
    marks = "".join(
        char
        for char in map(chr, (*range(0x300, 0xFE00), *range(0xFE10, 0x10000)))
        if unicodedata.category(char) in ("Mn", "Mc")
    )
    letters = rf"[^\W_{_UNSPACED}]"
    return re.compile(rf"([{_UNSPACED}]+)|({letters}+(?:[{marks}]+{letters}*)*)(?:'s\b)?")


@cache
def _simplified_han() -> tuple[re.Pattern[str], dict[int, int]]:
    """What finds a traditional character, and the simplified one of each; read once a text beyond ASCII is met.

    Where a character has several simplified forms it is the commonest, and one that is itself in use with another
    meaning (著) stays. From OpenCC's `TSCharacters.txt` (Apache-2.0).
    """
    traditional, simplified = (files(__package__) / "simplified_han.txt").read_text("utf-8").split()
    return re.compile(f"[{traditional}]"), str.maketrans(traditional, simplified)


@cache
def _mark_heap() -> re.Pattern[str]:
    """Compile the pattern of more combining marks in a row than the 30 of Unicode's stream-safe form."""
    marks = "".join(char for char in map(chr, range(0x300, 0x1E950)) if unicodedata.combining(char))
    return re.compile(rf"([{marks}]{{30}})[{marks}]+")


def _pieces(text: str) -> Iterator[str]:
    """Cut a long text at white space, or, in a stretch without any, so that no pair of characters is lost."""
    start = 0
    while len(text) - start > _PIECE_CHARS:
        end = start + _PIECE_CHARS
        space = _BOUNDARY.search(text, end, end + _PIECE_CHARS)
        yield text[start : space.start() if space else end]
        start = space.end() if space else end - 1
    yield text[start:]


def _first_bytes(tokens: Iterable[str], limit: int) -> Iterator[str]:
    for token in tokens:
        limit -= len(token.encode())
        if limit < 0:
            return
        yield token
