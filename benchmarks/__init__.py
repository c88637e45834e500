"""Figures, not tests: what a thing costs beside the bare database and beside the peers, in one run.

    make bench                       # everything that takes minutes, beside the peers
    python -m benchmarks append      # one durable turn against the length of its conversation
    python -m benchmarks writers     # 16 callers at once
    python -m benchmarks storage     # bytes on disk against bytes of payload
    python -m benchmarks turn_storage   # what a turn adds to the file of an old conversation, by table
    python -m benchmarks reading     # the newest page, and everything
    python -m benchmarks search      # ranked search over many messages (--messages 1000000 --store postgres)
    python -m benchmarks context     # what a model sees, all of these:
      tokens             tokens, money and warm caches on recorded conversations
      context_cost       building a context, from 200 to 100,000 messages
      background         a model call beside a compaction
      answers_in_view    whether answers about the past are in the request, beside LangChain's summaries
      facts_kept         what the extractive summary keeps
      invalid_requests   requests that a provider would refuse
      memory_sentences   what the rules remember of what users say
      summary_truth      planted lies that are caught in a model's summaries
      changed_minds      whether summaries tell what was taken back or changed
    python -m benchmarks front       # with defaults, until all background work is done:
      front_door         four turns, archived only and in use
      front_door_lag     how late the event loop is while the worker is at full work

Each prints a table and, with --out, writes JSON with commit, versions and load. The machines are noisy: systems
take turns inside one process, and ratios are compared, never times. Peers and the bare databases come from the
harness in `bench/perf` of SHARED and are left out, with a line that says so, where it is absent.
"""

from __future__ import annotations

import os
from pathlib import Path

SHARED = Path(os.environ.get("EVERTHREAD_SHARED", Path(__file__).resolve().parents[2] / "shared"))
"""Recorded conversations and harnesses that are no part of the project (see tests/README.md)."""
