"""The LangGraph server protocol, at the root of the service: what `langgraph_sdk` and its like speak.

graphs.py      which graphs there are: `langgraph.json`, settings; each opened over the log for one owner
frames.py      what a graph streams, as the protocol's events
folding.py     events as they are kept: what was said before is not said again
wire.py        what LangGraph holds, as JSON
"""

from __future__ import annotations
