"""The LangGraph server protocol, at the root of the service: what `langgraph_sdk` and its like speak.

Routes, one module per resource (a new one gets a `router` and a place in `ROUTERS`):

    assistants         /assistants: a graph by name, and the configurations people made of it
    threads            /threads: conversations under LangGraph's name
    thread_state       /threads/{id}/state and /history: checkpoints, read and written
    runs               /threads/{id}/runs and /runs: start, follow, wait, cancel
    crons              /runs/crons and /threads/{id}/runs/crons: runs that are started again and again
    thread_streams     /threads/{id}/stream: the runs of a thread, one after the other
    thread_events      /threads/{id}/commands and /stream/events: the protocol's second version
    store_items        /store: documents that graphs keep

What they are made of:

    dependencies       what every route takes: the owner, the graphs, the runs, a thread or run by its id
    owned_documents    what the routes keep for an owner: assistants and crons, as JSON documents
    server_state       what an app holds for the protocol
    graphs             which graphs there are, each opened over the checkpoints and documents of one owner
    builtin_assistant  the assistant `everthread`: a turn of our own agent, encoded as the protocol's events
    cron_schedule      when a cron is due
    cron_runner        starts the runs of crons when they are due
    run_request        the body that starts a run, validated
    run_rows           a run as the protocol shows it: a turn's row in the database
    graph_runs         starts, follows and stops runs, by the engine that also runs turns (`runs/engine.py`)
    graph_stream       one run: what the graph streams, as the protocol's events
    run_events         the events of a run, and how they are stored
    serialization      LangGraph's objects as JSON
"""

from __future__ import annotations

from fastapi import APIRouter

from everthread.http.dependencies import COMMON_DEPENDENCIES
from everthread.http.errors import COMMON_PROBLEMS
from everthread.http.protocol import (
    assistants,
    crons,
    runs,
    store_items,
    thread_events,
    thread_state,
    thread_streams,
    threads,
)

ROUTERS = (
    assistants.router,
    threads.router,
    thread_state.router,
    runs.router,
    crons.router,
    thread_streams.router,
    thread_events.router,
    store_items.router,
)

router = APIRouter(dependencies=COMMON_DEPENDENCIES, responses=COMMON_PROBLEMS)
for one in ROUTERS:
    router.include_router(one)
