"""Trying a compaction policy on an existing conversation, without writing anything.

The history is replayed request by request. `transcript` reads it once; `trial` builds the requests that a policy would
have built; `figures` is what each way came to, with two baselines without summaries; `grade` is which of the rare facts
that were used again the requests had.

A request goes out before every message of the assistant (in a conversation without any, after every message).
"""

from __future__ import annotations

from everthread.replay.figures import Figures, Prices, fixed_window, full_history
from everthread.replay.grade import FactUse, Grade
from everthread.replay.transcript import Transcript, TranscriptMessage, read_transcript
from everthread.replay.trial import Trial

__all__ = [
    "FactUse",
    "Figures",
    "Grade",
    "Prices",
    "Transcript",
    "TranscriptMessage",
    "Trial",
    "fixed_window",
    "full_history",
    "read_transcript",
]
