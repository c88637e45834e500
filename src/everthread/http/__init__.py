"""The service: conversations over HTTP, for many users.

serving.py   `everthread serve`: which addresses need a key, uvicorn, and how it stops
app.py       `create_app(et, settings)`: the doors in their order, and the routes behind them
edge.py      the outermost door: request ids, a log line, counts and a span for each request, defects
headers.py   what browsers are told
limits.py    sizes and depths, before anything is parsed
access.py    who asks: keys, tokens, or nobody on this very machine; and how often
addresses.py any id in an address, percent-encoded
answering.py the same Idempotency-Key, the same answer
bodies.py    a body that a door reads whole, and hands on
errors.py    status codes, and problems as RFC 9457 has them
json.py      JSON out, whatever a message holds
asking.py    what every route takes: the caller, pages, and no parameter that nobody knows
streaming.py answers that go out event by event
journal.py   what a run tells: at once to whoever follows it, in batches to the database
talking.py   turns as clients follow them, detached from connections
v1/          /api/v1
langgraph/   the LangGraph server protocol, at the root
full_history.py  everything that was said in a thread; `full_history_router` for other apps
"""

from __future__ import annotations

from everthread.http.full_history import full_history_router

__all__ = ["full_history_router"]
