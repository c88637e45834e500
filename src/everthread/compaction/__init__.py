"""Summaries that stand for a span of the log: when, which span, what they must hold, how they are made.

Pure so far: `extract` writes a summary without a model, `gate` judges any summary, `condense` makes one of
several. `sources` says what they are given, `sections` how a summary is written.
"""

from __future__ import annotations

from everthread.compaction.condense import condense, facts_of_summaries, sources_of
from everthread.compaction.extract import extract, terse
from everthread.compaction.facts import Fact, facts_of, find_facts, kept, rank_facts
from everthread.compaction.gate import Accepted, Rejected, accept
from everthread.compaction.kinds import Kind, kind_of
from everthread.compaction.sources import CallSketch, Leaf, Source, TokenCounter
from everthread.text.sentences import Piece, split_sentences

__all__ = [
    "Accepted",
    "CallSketch",
    "Fact",
    "Kind",
    "Leaf",
    "Piece",
    "Rejected",
    "Source",
    "TokenCounter",
    "accept",
    "condense",
    "extract",
    "facts_of",
    "facts_of_summaries",
    "find_facts",
    "kept",
    "kind_of",
    "rank_facts",
    "sources_of",
    "split_sentences",
    "terse",
]
