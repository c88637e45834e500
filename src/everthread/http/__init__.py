"""The service: conversations over HTTP, for many users.

serving.py   `everthread serve`: which addresses need a key, uvicorn, and how it stops
app.py       `create_app(et, settings)`: the doors in their order, and the routes behind them
edge.py      the outermost door: request ids, a log line, counts and a span for each request, defects
headers.py   what browsers are told
limits.py    sizes and depths, before anything is parsed
access.py    who asks: keys, tokens, or nobody on this very machine; and how often
answering.py the same Idempotency-Key, the same answer
errors.py    status codes, and problems as RFC 9457 has them
json.py      JSON out, whatever a message holds
asking.py    what every route takes: the caller, pages, and no parameter that nobody knows
v1/          /api/v1
"""

from __future__ import annotations
