"""Summaries that stand for a stretch of the log: when one is due, which stretch, what it must hold, how it is written.

policy, due        the settings, and the decision that a compaction is due
plan, sources      which stretch is next, and its messages as a summariser reads them
summarise          a summary by escalation: the model, then the extractive summariser
extract            the summary without a model: `scored_sentences` and `tool_calls` give the candidates and their
                   worth, `selection` chooses among them, `summary_format` writes them down
gate               what any summary must pass; `fact_ranking` says which facts it should hold
condense           one summary made of several
compactor          acts: reads, summarises, writes by `intents`; `summary_chain` says which summaries a path shows
mend               acts: summaries made whole again after a message in them was hidden or restored
events             what is reported of it
"""

from __future__ import annotations

from everthread.compaction.condense import condense, facts_of_summaries, sources_of_summaries
from everthread.compaction.extract import extract, extract_openings
from everthread.compaction.fact_ranking import facts_of_sources, rank_facts, split_kept
from everthread.compaction.gate import Accepted, Rejected, check_summary
from everthread.compaction.sources import (
    ChildSummary,
    ConversationKind,
    Source,
    SourceCall,
    TokenCounter,
    conversation_kind,
)
from everthread.text.facts import Fact, find_facts
from everthread.text.sentences import TextPiece, split_sentences

__all__ = [
    "Accepted",
    "ChildSummary",
    "ConversationKind",
    "Fact",
    "Rejected",
    "Source",
    "SourceCall",
    "TextPiece",
    "TokenCounter",
    "check_summary",
    "condense",
    "conversation_kind",
    "extract",
    "extract_openings",
    "facts_of_sources",
    "facts_of_summaries",
    "find_facts",
    "rank_facts",
    "sources_of_summaries",
    "split_kept",
    "split_sentences",
]
