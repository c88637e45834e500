"""Summaries that stand for a stretch of the log: when one is due, which stretch, what it must hold, how it is written.

policy, due        the settings, and the decision that a compaction is due; `fullness` shows how near it is
driver             acts: makes the compactions that are due, that are asked for, and that a request needs to fit
compactor          acts: one compaction; reads, summarises, writes by `intents`
summary_chain      which summaries a path shows, and which are condensed next
plan, sources      which stretch is next, and its messages as a summariser reads them
summarise          a summary by escalation: the model, then the extractive summariser
extract            the summary without a model: `scored_sentences` and `tool_calls` give the candidates and their
                   worth, `selection` chooses among them, `summary_format` writes them down
superseded         marks the lines that a later message replaced; `standing` keeps those that hold for all times
gate               what any summary must pass: `fact_ranking` says which facts it should hold, `claims` which of its
                   sentences no message says
condense           one summary made of several, and the summaries that fit into a request
mend               acts: summaries made whole again after a message in them was hidden or restored
events             what is reported of it
"""
