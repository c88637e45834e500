"""The words by which sentences are compared and weighed: content words, and pairs of Chinese characters."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable

from everthread.text.words import character_pairs

_TOKEN = re.compile(r"[A-Za-z][A-Za-z0-9_'’-]*|\d+(?:[.,]\d+)*|[\u3400-\u4dbf\u4e00-\u9fff]+")
_ASCII_WORD = re.compile(r"[a-z][a-z0-9_'-]*|\d+(?:[.,]\d+)*")
_STOP = frozenset(
    """
    a about after all also am an and any are as at be because been before being both but by can could did do
    does doing don't down each else even every few for from further get gets getting go going got had has have
    having he her here hers him his how i i'd i'll i'm i've if in into is isn't it it's its itself just know let
    let's like lot made make making many may me might more most much must my need no not now of off ok okay on
    once one only or other our out over own please really s same say she should so some such sure than thank
    thanks that that's the their them then there these they thing things think this those through to too under
    up use used using very want was way we well were what when where which while who why will with would yes you
    you're your yours
    """.split()
)
_STOP_PAIRS = frozenset(
    """
    一下 一个 一些 一样 不是 不会 不用 不要 不过 也是 什么 今天 他们 但是 你们 你的 再说 几个 出来 到了 只是 可以
    可能 吧我 呢我 因为 大概 如果 完了 就是 就行 已经 应该 怎么 怎样 感觉 所以 我们 我的 或者 所有 时候 是不 是的
    最近 有点 有没 没有 然后 现在 的话 的时 直接 知道 确实 第一 自己 觉得 要是 让我 起来 还是 还有 这个 这些 这样
    那个 那么 那些 都是 需要 非常
    """.split()
)


def terms(text: str) -> list[str]:
    """The content terms of a text in order, with repeats."""
    if text.isascii():
        return [word.removesuffix("'s") for word in _ASCII_WORD.findall(text.lower()) if word not in _STOP]
    found: list[str] = []
    for token in _TOKEN.findall(text):
        if token[0] > "\u3400":
            pairs = character_pairs(token) if len(token) > 1 else (token,)
            found.extend(pair for pair in pairs if pair not in _STOP_PAIRS)
        elif (word := token.lower().replace("’", "'")) not in _STOP:
            found.append(word.removesuffix("'s"))
    return found


def tf_idf_weights(documents: Iterable[Iterable[str]]) -> dict[str, float]:
    """Each term's weight in these documents: said often, but not everywhere (tf-idf over the whole)."""
    times: Counter[str] = Counter()
    within: Counter[str] = Counter()
    count = 0
    for document in documents:
        listed = list(document)
        times.update(listed)
        within.update(set(listed))
        count += 1
    return {
        term: (1.0 + math.log(times[term])) * math.log((count + 1.0) / (seen + 0.5)) for term, seen in within.items()
    }


def overlap(one: frozenset[str], other: frozenset[str]) -> float:
    """How far two sets of terms say the same: shared terms over those of the shorter one."""
    if not one or not other:
        return 0.0
    return len(one & other) / min(len(one), len(other))
