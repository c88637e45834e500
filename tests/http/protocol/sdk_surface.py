"""Every public method of LangGraph's Python clients, called as their users call them, with every argument once.

The same program runs through the async and the sync client, against this server and LangGraph's own. What comes back is
reduced to its shape: which members there are and of which type, and what an error is. What differs is a finding.
"""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Generator, Mapping
from contextlib import closing
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any
from uuid import uuid4
from zoneinfo import ZoneInfo

from langgraph_sdk import get_client, get_sync_client

from tests.http.protocol.rig import says

ROOMS = ("assistants", "threads", "runs", "crons", "store")
NOT_CALLED = {("threads", "stream")}
"""The thread-centric streams: tests/http/protocol/test_outside_suites.py runs LangGraph's own tests of them."""
NOT_PASSED = {"headers", "params", "checkpoint_during"}
"""Arguments of any method that need no trying: what is sent beside the request, and what LangGraph has deprecated."""
_ENDLESS_PARTS = 2
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")
_ID = re.compile(r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}")


def shape(value: object) -> Any:
    """What a value is made of; equal shapes of a list's elements are one."""
    if isinstance(value, Mapping):
        return {_ID.sub("id", str(name)): shape(inner) for name, inner in sorted(value.items())}
    if isinstance(value, list | tuple):
        found: list[Any] = []
        for one in map(shape, value):
            if one not in found:
                found.append(one)
        return sorted(found, key=repr)
    if isinstance(value, str):
        return "a time" if _TIME.match(value) else "an id" if _ID.fullmatch(value) else "text"
    return type(value).__name__


class Caller:
    """Calls methods of a client by their names, and notes what came back."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self.seen: dict[str, Any] = {}
        self.passed: set[tuple[str, str, str]] = set()

    async def __call__(self, title: str, name: str, /, *given: Any, **named: Any) -> Any:
        """The result; None where an error came back."""
        room, method = name.split(".")
        function = getattr(getattr(self._client, room), method)
        bound = inspect.signature(function).bind(*given, **named)
        self.passed |= {(room, method, parameter) for parameter in bound.arguments} | {(room, method, "")}
        try:
            found = await self._result(function, given, named)
        except Exception as problem:  # noqa: BLE001 - any error is a result, to be compared
            status = getattr(getattr(problem, "response", None), "status_code", None)
            self.seen[title] = {"raised": type(problem).__name__, "status": status}
            return None
        self.seen[title] = shape(found)
        return found

    async def _result(self, function: Any, given: Any, named: Any) -> Any:
        """Of a stream its parts; of one that has no end of its own, a few."""
        count = _ENDLESS_PARTS if function.__qualname__.endswith("ThreadsClient.join_stream") else None
        if _is_sync(self._client):
            return await asyncio.to_thread(_all, function, given, named, count)
        found = function(*given, **named)
        if inspect.isawaitable(found):
            return await found
        parts: list[Any] = []
        async for part in found:
            parts.append(_part(part))
            if len(parts) == count:
                break
        return parts


def _is_sync(client: Any) -> bool:
    return type(client).__name__.startswith("Sync")


def _all(function: Any, given: Any, named: Any, count: int | None) -> Any:
    found = function(*given, **named)
    if not isinstance(found, Generator):
        return found
    with closing(found):  # else its connection stays open, and shows when something else is tested
        return [_part(one) for one in islice(found, count)]


def _part(part: Any) -> Any:
    """One event of a stream; its name is part of its shape."""
    return dict(part) if isinstance(part, Mapping) else {_ID.sub("id", part.event): part.data}


def uncalled(callers: list[Caller]) -> list[str]:
    """The methods, and arguments of methods, that the program leaves out."""
    passed = set().union(*(caller.passed for caller in callers))
    client = get_client(url="http://127.0.0.1:1")
    missing = []
    for room in ROOMS:
        for method, function in inspect.getmembers(getattr(client, room), inspect.isroutine):
            if method.startswith("_") or (room, method) in NOT_CALLED:
                continue
            names = ["", *inspect.signature(function).parameters]
            missing += [
                f"{room}.{method} {name}".strip()
                for name in names
                if name not in NOT_PASSED and (room, method, name) not in passed
            ]
    return missing


async def play(address: str, *, sync: bool) -> Caller:
    """The whole program against one server."""
    if sync:
        with get_sync_client(url=address) as client:
            caller = Caller(client)
            await _play(caller)
            return caller
    async with get_client(url=address) as client:
        caller = Caller(client)
        await _play(caller)
        return caller


async def _play(call: Caller) -> None:
    await _assistants(call)
    await _threads(call)
    await _runs(call)
    await _stateless(call)
    await _crons(call)
    await _store(call)


async def _assistants(call: Caller) -> None:
    mark = {"of": f"surface-{uuid4()}"}
    config: Any = {"configurable": {"k": 1}, "tags": ["t"], "recursion_limit": 30}
    id = str(uuid4())
    made = {"context": {"c": 1}, "metadata": mark, "assistant_id": id, "name": "mine", "description": "what it is"}
    await call("create an assistant", "assistants.create", "agent", {}, **{**made, "if_exists": "raise"})
    await call("create it again", "assistants.create", "agent", **made)
    await call("or take it", "assistants.create", "agent", if_exists="do_nothing", **made)
    await call("of a graph that is not", "assistants.create", "no such graph")
    await call("with config and context", "assistants.create", "agent", config, context={"k": 2}, metadata=mark)
    await call("with a config", "assistants.create", "agent", config, metadata=mark)
    await call("get it", "assistants.get", id)
    await call("get it by the graph", "assistants.get", "agent")
    await call("get none", "assistants.get", str(uuid4()))
    await call("its graph", "assistants.get_graph", id)
    nested = (await call("find one", "assistants.search", graph_id="nested"))[0]["assistant_id"]
    await call("its graph with subgraphs", "assistants.get_graph", nested, xray=True)
    await call("to a depth", "assistants.get_graph", nested, xray=1)
    await call("its schemas", "assistants.get_schemas", id)
    await call("its subgraphs", "assistants.get_subgraphs", nested)
    await call("one of them", "assistants.get_subgraphs", nested, "inner", True)
    await call("search", "assistants.search", metadata=mark, limit=5, offset=0)
    await call(
        "search by graph and name", "assistants.search", graph_id="agent", name="min", metadata=mark,
        sort_by="name", sort_order="asc", select=["assistant_id", "name", "metadata"],
    )  # fmt: skip
    await call("search an object", "assistants.search", metadata=mark, limit=1, response_format="object")
    await call("search all", "assistants.search", limit=100, select=["graph_id"])
    await call("count", "assistants.count", metadata=mark)
    await call("count by name", "assistants.count", graph_id="agent", name="mine")
    more = {"metadata": {"more": 1}, "description": "changed"}
    await call("change it", "assistants.update", id, graph_id="nested", config={}, context={"c": 2}, name="x", **more)
    await call("change none", "assistants.update", str(uuid4()), name="ours")
    await call("its versions", "assistants.get_versions", id, {"more": 1}, 5, 0)
    await call("use the first", "assistants.set_latest", id, 1)
    await call("use none", "assistants.set_latest", id, 99)
    await call("delete it", "assistants.delete", id, delete_threads=False)
    await call("delete it again", "assistants.delete", id)
    other = str(uuid4())
    await call("another", "assistants.create", "agent", assistant_id=other)
    thread = await call("a thread of it", "threads.create", metadata={"assistant_id": other})
    await call("run it", "runs.wait", thread["thread_id"], other, input=says("hi"))
    await call("delete it with its threads", "assistants.delete", other, delete_threads=True)
    await call("they are gone", "threads.get", thread["thread_id"])


async def _threads(call: Caller) -> None:
    mark = {"of": f"surface-{uuid4()}"}
    id = str(uuid4())
    await call("create a thread", "threads.create", thread_id=id, metadata=mark, graph_id="agent", if_exists="raise")
    await call("create the thread again", "threads.create", thread_id=id)
    await call("or take the thread", "threads.create", thread_id=id, if_exists="do_nothing")
    await call("that expires", "threads.create", metadata=mark, ttl=60)
    await call("that expires as said", "threads.create", metadata=mark, ttl={"ttl": 60, "strategy": "delete"})
    past = [{"updates": [{"values": {"messages": [{"role": "user", "content": "hi"}]}, "as_node": "__start__"}]}]
    await call("with a past", "threads.create", graph_id="agent", metadata=mark, supersteps=past)
    await call("get the thread", "threads.get", id)
    await call("get the thread with its end", "threads.get", id, include=["ttl"])
    await call("get no thread", "threads.get", str(uuid4()))
    await call("its empty state", "threads.get_state", id)
    await call("its empty history", "threads.get_history", id)
    await call("change the thread", "threads.update", id, metadata={"more": 1}, ttl=30)
    await call("change it quietly", "threads.update", id, metadata={"more": 2}, return_minimal=True)
    await call("change no thread", "threads.update", str(uuid4()), metadata={})
    await call("run on it", "runs.wait", id, "agent", input=says("hi"))
    await call("get the thread after a run", "threads.get", id)
    state = await call("its state", "threads.get_state", id)
    await call("with subgraphs", "threads.get_state", id, subgraphs=True)
    await call("at a checkpoint", "threads.get_state", id, state["checkpoint"])
    await call("at a checkpoint with subgraphs", "threads.get_state", id, state["checkpoint"], subgraphs=True)
    await call("at an id", "threads.get_state", id, checkpoint_id=state["checkpoint"]["checkpoint_id"])
    await call("at no checkpoint", "threads.get_state", id, checkpoint_id=str(uuid4()))
    await call("part of its state", "threads.get_state", id, select=["next", "values.step"])
    await call("a part at a checkpoint", "threads.get_state", id, state["checkpoint"], select=["values"])
    await call("its history", "threads.get_history", id, limit=10)
    await call("its history before", "threads.get_history", id, before=state["checkpoint"], limit=1)
    await call("before an id", "threads.get_history", id, before=state["checkpoint"]["checkpoint_id"])
    await call("by metadata", "threads.get_history", id, metadata={"source": "input"})
    await call("from a checkpoint", "threads.get_history", id, checkpoint=state["checkpoint"])
    await call("part of its history", "threads.get_history", id, select=["values.step", "checkpoint"])
    wrote = await call("write to it", "threads.update_state", id, {"step": 7}, as_node="ask")
    await call("write at one", "threads.update_state", id, {"step": 8}, as_node="ask", checkpoint=state["checkpoint"])
    at = None if wrote is None else wrote["checkpoint"]["checkpoint_id"]
    await call("write at an id", "threads.update_state", id, {"step": 9}, as_node="ask", checkpoint_id=at)
    await call("write as nobody", "threads.update_state", id, {"step": 9}, as_node="nobody")
    await call("write several", "threads.update_state", id, [{"step": 9}], as_node="ask")
    await call("write nothing", "threads.update_state", id, None)
    await call("write to none", "threads.update_state", str(uuid4()), {"step": 1})
    await call("search threads", "threads.search", metadata=mark, limit=2, offset=1)
    await call("by status", "threads.search", metadata=mark, status="idle", sort_by="updated_at", sort_order="asc")
    await call("by ids and values", "threads.search", ids=[id], values={"step": 9})
    await call("a part of them", "threads.search", ids=[id], select=["thread_id", "status"])
    await call("with what is in them", "threads.search", ids=[id], extract={"last": "values.messages[-1].content"})
    await call("count threads", "threads.count", metadata=mark)
    await call("count idle ones", "threads.count", metadata=mark, status="idle", values={"step": 9})
    copied = await call("copy it", "threads.copy", id)
    await call("the copy", "threads.get", copied["thread_id"] if copied else id)
    await call("copy none", "threads.copy", str(uuid4()))
    await call("prune to the newest", "threads.prune", [id], strategy="keep_latest")
    await call("prune", "threads.prune", [copied["thread_id"] if copied else id])
    await call("delete the thread", "threads.delete", id)
    await call("delete it twice", "threads.delete", id)


async def _runs(call: Caller) -> None:
    thread = (await call("a thread to run on", "threads.create"))["thread_id"]
    run: dict[str, Any] = {"input": says("hi")}
    whole: dict[str, Any] = {
        **run, "metadata": {"m": 1}, "config": {"tags": ["t"], "configurable": {"k": 1}, "recursion_limit": 20},
        "multitask_strategy": "enqueue", "if_not_exists": "create", "durability": "sync",
        "interrupt_before": [], "interrupt_after": [], "langsmith_tracing": {"project_name": "p"},
        "strict_resume": False,
    }  # fmt: skip
    created: list[Any] = []
    streamed = {**whole, "stream_subgraphs": True, "stream_resumable": True}
    one = await call("start a run", "runs.create", thread, "agent", **streamed, stream_mode=["values"],
                     on_run_created=created.append)  # fmt: skip
    call.seen["told of it"] = shape(created)
    await call("join it", "runs.join", thread, one["run_id"])
    await call("get the run", "runs.get", thread, one["run_id"])
    await call("join the thread", "threads.join_stream", thread, last_event_id="-1", stream_mode=["run_modes"])
    await call("join its stream", "runs.join_stream", thread, one["run_id"], stream_mode="values", last_event_id="-1")
    await call("list them", "runs.list", thread, limit=5, offset=0, status="success")
    await call("a part of the list", "runs.list", thread, select=["run_id", "status"])
    await call("none of them", "runs.get", thread, str(uuid4()))
    await call("wait for one", "runs.wait", thread, "agent", **whole, on_disconnect="cancel", raise_error=True,
               on_run_created=created.append)  # fmt: skip
    await call("wait for a failure", "runs.wait", thread, "agent", input=says("fail"))
    await call("without raising", "runs.wait", thread, "agent", input=says("fail"), raise_error=False)
    await call("with a context", "runs.wait", thread, "slow", **run, context={"ticks": 1})
    await call("create with a context", "runs.create", thread, "slow", **run, context={"ticks": 1})
    modes = ["values", "updates", "messages-tuple", "custom", "tasks", "checkpoints", "debug", "events"]
    for mode in [*modes, "messages"]:
        await call(f"stream {mode}", "runs.stream", thread, "agent", **run, stream_mode=mode, version="v1")
    await call("stream subgraphs", "runs.stream", thread, "nested", **streamed, stream_mode=["values", "updates"],
               on_disconnect="continue", on_run_created=created.append)  # fmt: skip
    await call("stream parts", "runs.stream", thread, "agent", **run, stream_mode=["values", "updates"], version="v2")
    await call("stream with a context", "runs.stream", thread, "slow", **run, context={"ticks": 1})
    await call("stream with feedback", "runs.stream", thread, "agent", **run, feedback_keys=["score"])
    await call("stream a failure", "runs.stream", thread, "agent", input=says("fail"), stream_mode="updates")
    await call("be asked", "runs.stream", thread, "agent", input=says("stop"), stream_mode=["values", "updates"])
    await call("the asking thread", "threads.get", thread)
    await call("the asking state", "threads.get_state", thread)
    await call("asking threads", "threads.search", ids=[thread], status="interrupted")
    await call("answer", "runs.wait", thread, "agent", command={"resume": "yes"})
    await call("be asked again", "runs.wait", thread, "agent", input=says("stop"))
    await call("answer by stream", "runs.stream", thread, "agent", command={"resume": "no"}, stream_mode="updates")
    await call("and again", "runs.wait", thread, "agent", input=says("stop"))
    answer = await call("answer by run", "runs.create", thread, "agent", command={"resume": "no"})
    await call("join the answer", "runs.join", thread, answer["run_id"])
    await call("stop before", "runs.wait", thread, "agent", **run, interrupt_before=["ask"])
    await call("stop after", "runs.wait", thread, "agent", **run, interrupt_after="*")
    state = await call("a state to fork from", "threads.get_state", thread)
    await call("fork", "runs.wait", thread, "agent", **run, checkpoint=state["checkpoint"])
    at = state["checkpoint"]["checkpoint_id"]
    await call("fork at an id", "runs.wait", thread, "agent", **run, checkpoint_id=at)
    await call("stream a fork", "runs.stream", thread, "agent", **run, checkpoint=state["checkpoint"])
    await call("at an id", "runs.stream", thread, "agent", **run, checkpoint_id=at)
    forked = await call("start a fork", "runs.create", thread, "agent", **run, checkpoint=state["checkpoint"])
    await call("join it then", "runs.join", thread, forked["run_id"])
    forked = await call("start it at an id", "runs.create", thread, "agent", **run, checkpoint_id=at)
    await call("join that", "runs.join", thread, forked["run_id"])
    await call("on no thread", "runs.create", str(uuid4()), "agent", **run)
    await call("of no assistant", "runs.create", thread, str(uuid4()), **run)
    await call("on a thread to be made", "runs.wait", str(uuid4()), "agent", **run, if_not_exists="create")
    await _busy(call, thread)
    later = await call("start later", "runs.create", thread, "agent", **run, after_seconds=1)
    await call("which waits", "runs.get", thread, later["run_id"] if later else str(uuid4()))
    await call("join the later one", "runs.join", thread, later["run_id"] if later else str(uuid4()))
    await call("wait later", "runs.wait", thread, "agent", **run, after_seconds=1)
    await call("stream later", "runs.stream", thread, "agent", **run, after_seconds=1)
    hook = "http://127.0.0.1:9/hook"
    hooked = await call("with a webhook", "runs.create", thread, "agent", **run, webhook=hook)
    await call("wait with a webhook", "runs.wait", thread, "agent", **run, webhook=hook)
    await call("stream with a webhook", "runs.stream", thread, "agent", **run, webhook=hook)
    if hooked is not None:
        await call("join the hooked", "runs.join", thread, hooked["run_id"])
    await call("delete a run", "runs.delete", thread, one["run_id"])
    await call("delete it again", "runs.delete", thread, one["run_id"])


async def _busy(call: Caller, thread: str) -> None:
    slow: dict[str, Any] = {"input": says("hi"), "context": {"ticks": 200}}
    first = await call("a slow run", "runs.create", thread, "slow", **slow)
    await call("the busy thread", "threads.get", thread)
    await call("refused", "runs.create", thread, "slow", **slow, multitask_strategy="reject")
    queued = await call("queued", "runs.create", thread, "slow", **slow)
    await call("the queued run", "runs.get", thread, queued["run_id"])
    await call("cancel one", "runs.cancel", thread, first["run_id"], wait=True, action="interrupt")
    await call("the cancelled run", "runs.get", thread, first["run_id"])
    await call("cancel it again", "runs.cancel", thread, first["run_id"])
    await call("cancel several", "runs.cancel_many", thread_id=thread, run_ids=[queued["run_id"]], action="interrupt")
    await call("cancel none", "runs.cancel_many", thread_id=thread, run_ids=[str(uuid4())])
    await asyncio.sleep(1)
    await call("a slow run to take over", "runs.create", thread, "slow", **slow)
    await call("interrupt it", "runs.wait", thread, "agent", input=says("hi"), multitask_strategy="interrupt")
    await call("a slow run to take back", "runs.create", thread, "slow", **slow)
    await call("roll it back", "runs.stream", thread, "agent", input=says("hi"), multitask_strategy="rollback")
    gone = await call("a slow one to delete", "runs.create", thread, "slow", **slow)
    await call("delete a running one", "runs.delete", thread, gone["run_id"])
    await call("it is gone", "runs.get", thread, gone["run_id"])
    last = await call("a slow one", "runs.create", thread, "slow", **slow)
    await call("cancel all", "runs.cancel_many", status="all")
    await call("join the last", "runs.join_stream", thread, last["run_id"], cancel_on_disconnect=True)


async def _stateless(call: Caller) -> None:
    run: dict[str, Any] = {"input": says("hi")}
    await call("without a thread", "runs.wait", None, "agent", **run, on_completion="delete")
    await call("and stream", "runs.stream", None, "agent", **run, on_completion="delete")
    kept = await call("and keep it", "runs.create", None, "agent", **run, on_completion="keep")
    await call("join what is kept", "runs.join", kept["thread_id"], kept["run_id"])
    await call("its thread", "threads.get", kept["thread_id"])
    await call("several", "runs.create_batch", [{"assistant_id": "agent", **run}, {"assistant_id": "agent", **run}])


async def _crons(call: Caller) -> None:
    thread = (await call("a thread for crons", "threads.create"))["thread_id"]
    mark = {"of": f"surface-{uuid4()}"}
    end = datetime.now(UTC) + timedelta(days=400)
    common: dict[str, Any] = {
        "schedule": "0 0 1 1 *", "input": says("hi"), "metadata": mark, "config": {"tags": ["t"]},
        "context": {"ticks": 1}, "interrupt_before": ["slow"], "interrupt_after": [], "end_time": end, "enabled": True,
        "timezone": ZoneInfo("Europe/Berlin"), "stream_mode": ["values"], "stream_subgraphs": True,
        "stream_resumable": True, "durability": "sync",
    }  # fmt: skip
    hook = "http://127.0.0.1:9/hook"
    one = await call("a cron", "crons.create", "slow", **common, on_run_completed="keep", multitask_strategy="enqueue")
    on = await call("a cron of a thread", "crons.create_for_thread", thread, "slow", **common,
                    multitask_strategy="reject")  # fmt: skip
    few = await call("with little said", "crons.create", "agent", schedule="0 0 1 1 *")
    await call("a cron with a webhook", "crons.create", "agent", schedule="0 0 1 1 *", webhook=hook)
    await call("one of a thread with a webhook", "crons.create_for_thread", thread, "agent", schedule="0 0 1 1 *",
               webhook=hook)  # fmt: skip
    await call("with a wrong schedule", "crons.create", "agent", schedule="odd")
    await call("with a wrong zone", "crons.create", "agent", schedule="0 0 1 1 *", timezone="Nowhere/None")
    await call("of no graph", "crons.create", "no such graph", schedule="0 0 1 1 *")
    await call("of no thread", "crons.create_for_thread", str(uuid4()), "agent", schedule="0 0 1 1 *")
    await call("search crons", "crons.search", metadata=mark, limit=5, offset=0, sort_by="created_at",
               sort_order="asc")  # fmt: skip
    assistant = one["assistant_id"] if one and "assistant_id" in one else None
    await call("search by assistant", "crons.search", assistant_id=assistant, thread_id=thread, enabled=True)
    await call("a part of crons", "crons.search", metadata=mark, select=["cron_id", "schedule"])
    await call("count crons", "crons.count", assistant_id=assistant, thread_id=thread, metadata=mark)
    ids = [found["cron_id"] for found in (one, on, few) if found]
    changes = {**common, "schedule": "0 0 2 1 *", "enabled": False, "on_run_completed": "delete"}
    await call("change a cron", "crons.update", ids[0] if ids else "x", **changes)
    await call("without an end", "crons.update", ids[0] if ids else "x", end_time=None)
    await call("change its webhook", "crons.update", ids[0] if ids else "x", webhook=hook)
    await call("change no cron", "crons.update", str(uuid4()), enabled=False)
    for number, id in enumerate(ids):
        await call(f"delete cron {number}", "crons.delete", id)
    await call("delete no cron", "crons.delete", str(uuid4()))


async def _store(call: Caller) -> None:
    space = ["surface", str(uuid4()).replace("-", "")]
    await call("put", "store.put_item", space, "k", {"v": 1, "text": "a red apple"}, index=["text"], ttl=60)
    await call("put without index", "store.put_item", space, "l", {"v": 2}, index=False)
    await call("get", "store.get_item", space, "k", refresh_ttl=True)
    await call("get no item", "store.get_item", space, "none")
    await call("search items", "store.search_items", space, filter={"v": 1}, limit=5, offset=0, refresh_ttl=False)
    await call("search by words", "store.search_items", space, query="apple")
    await call("search above", "store.search_items", space[:1])
    await call("namespaces", "store.list_namespaces", space[:1], [space[1]], 3, 10, 0)
    await call("delete", "store.delete_item", space, "k")
    await call("delete no item", "store.delete_item", space, "none")
    await call("put at a dot", "store.put_item", ["a.b"], "k", {})
    await call("put at nothing", "store.put_item", [], "k", {})


# -- what one server has and the other has not -----------------------------------------------------------------------


ABSENT = re.compile(
    r"/kwargs/(config|context)|/langsmith_session_name"  # what that server adds to a request
    r"|/(langgraph_(?!checkpoint|node|path|step|triggers)\w+|user_id|__\w+)$"  # and notes about itself
    r"|/metadata/(more|of)$"  # the metadata of a thread in those of its checkpoints
    r"|^\[?\]?/config/(recursion_limit|tags)$"  # the configs of all runs of a thread together
)
"""Members that are not in our answers."""


def missing(theirs: Any, ours: Any, path: str = "") -> list[str]:
    """What the first has and the second has not. Where both have something of another type, either may be null."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        return [
            found
            for name, inner in theirs.items()
            for found in (missing(inner, ours[name], f"{path}/{name}") if name in ours else [f"{path}/{name}"])
            if not ABSENT.search(found)
        ]
    if isinstance(theirs, list) and isinstance(ours, list):
        return [found for one in theirs for found in _missing_in_any(one, ours, path)]
    if theirs == ours or "NoneType" in (theirs, ours) or _are_texts(theirs, ours):
        return []
    return [f"{path} is {ours} here, and {theirs} there"]


def _missing_in_any(one: Any, among: list[Any], path: str) -> list[str]:
    """What is missing in the element that is most alike: first of all the same event, or the same kind of one."""
    alike = [other for other in among if _kind(other) == _kind(one)] or among
    return min((missing(one, other, path) for other in alike), key=len, default=[f"{path}[]"])


def _kind(value: Any) -> Any:
    if not isinstance(value, dict):
        return type(value)
    (name, inner), *others = value.items() or [("", None)]
    return tuple(value) if others or not isinstance(inner, dict) else (name, inner.get("event"), inner.get("type"))


def findings(theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> dict[str, list[str]]:
    """By call: what fails here and not there, and what is missing from the answer here."""
    found: dict[str, list[str]] = {}
    for title, expected in theirs.items():
        seen = ours.get(title)
        if isinstance(expected, dict) and "raised" in expected:  # whoever was refused there may be served here
            continue
        if isinstance(seen, dict) and "raised" in seen:
            found[title] = [f"{seen['raised']} {seen['status']}"]
        elif differing := missing(expected, seen):
            found[title] = differing
    return found


def _are_texts(*shapes: Any) -> bool:
    return all(isinstance(one, str) and one in ("text", "an id", "a time") for one in shapes)
