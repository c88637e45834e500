"""The LangGraph server protocol, at the root of the service: what `langgraph_sdk` and its like speak.

graphs.py      which graphs there are: `langgraph.json`, settings
served.py      each opened over the checkpoints and documents of the owner who asks
assistants.py  /assistants: a graph by name, and what people have made of it
threads.py     /threads: a conversation by its other name
states.py      /threads/{id}/state and /history: checkpoints, read and written
projecting.py  the state of a conversation that no graph has run on
runs.py        /threads/{id}/runs and /runs: begin, follow, wait, cancel
events.py      /threads/{id}/commands and /stream/events: the second version of the protocol
store.py       /store: the documents that graphs keep
info.py        /ok, /info
doors.py       what every route takes
asked.py       what a run is asked to do
own.py         the assistant `everthread`: a turn of our own agent
words.py       its events in the protocol's words, of both versions
office.py      the protocol's part of an app
mounting.py    how it comes into one
rows.py        a run's row, the same as a turn's
running.py     the runs of this process: tasks of the server, never of a connection
executing.py   one run: what is asked becomes what the graph says
frames.py      what a graph streams, as the protocol's events
folding.py     events as they are kept: what was said before is not said again
wire.py        what LangGraph holds, as JSON
"""

from __future__ import annotations
