"""The words of a question as a message has them, for people who want to know why it was found. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from everthread.core.queries import Term
from everthread.text.irregular_verbs import other_forms
from everthread.text.numbers import number_pattern
from everthread.text.words import fold, is_unspaced, part_spans, stem


def words_as_written(text: str, terms: Iterable[Term]) -> tuple[str, ...]:
    """These terms, which a text has, as they stand in it where they stand first: `allergies` for `allergi`, 花生 for
    花 and 生."""
    known = list(terms)
    folded = fold(text)
    source = text if len(folded) == len(text) else folded
    written: dict[str, str] = {}
    for start, end, is_run in part_spans(text):
        if not is_run:
            written.setdefault(stem(fold(text[start:end])), text[start:end])
    unspaced = [term.token for term in known if not term.pattern and is_unspaced(term.token)]
    found = dict.fromkeys(_runs(folded, source, unspaced))
    for term in known:
        if term.pattern:
            place = number_pattern(term).search(folded)
            found[source[place.start() : place.end()] if place else term.token] = None
        elif not is_unspaced(term.token):
            forms = (one.token for one in (term, *other_forms(term)))
            found[next((written[form] for form in forms if form in written), term.token)] = None
    return tuple(found)


def _runs(folded: str, source: str, tokens: list[str]) -> Iterator[str]:
    """What these characters make where most of them stand together, until each was seen."""
    if not tokens:
        return
    places = re.finditer(f"(?:{'|'.join(sorted(map(re.escape, tokens), key=len, reverse=True))})+", folded)
    left = set("".join(tokens))
    for place in sorted(places, key=lambda one: (one.start() - one.end(), one.start())):
        if not left.isdisjoint(place[0]):
            left.difference_update(place[0])
            yield source[place.start() : place.end()]
