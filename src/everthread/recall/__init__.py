"""Finding the old again: what is asked for, which messages may hold it, and in which order they come.

Pure functions. `asking` reads a question, `dates` the times it names, `nearness` finds by the words' places which
messages are worth reading, `passages` cuts long ones, `ranking` orders what was read. `recalling` (one room up) fetches
what they need from a store.
"""

from __future__ import annotations
