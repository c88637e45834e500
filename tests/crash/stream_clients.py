"""Clients of servers that die: they begin turns and runs over HTTP, lose their streams, and come back for the rest.

`Servers` are one or two processes of `everthread serve` over one database, each on a port that it keeps. `Clients` talk
to whichever is up, note what came over each connection, and read in the end what a run left behind. Nothing here knows
how a server keeps what it promises; `stream_judge` says whether it did.
"""

from __future__ import annotations

import asyncio
import json
import pkgutil
import random
import signal
import socket
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO
from uuid import UUID

import httpx

from everthread import turn
from tests.crash.stream_judge import Ending, Reading, Run, Violation, judge
from tests.forkserver import ROOT, Child, ForkServer
from tests.http.protocol.rig import CONFIG
from tests.http.served import API, events, starting

PATIENCE_SECONDS = 20.0
"""A client waits no longer than this for the next event, and for its end once its server is back."""
STOP_SECONDS = 3
"""What a server that is told to stop may take."""
MOST_EXAMPLES = 5
"""Of each kind of violation."""
TURN_ENDS = frozenset({"done", "failed"})
RUN_ENDS = frozenset({"end"})
_TURN = tuple(module.name for module in pkgutil.walk_packages(turn.__path__, "everthread.turn."))
"""What a server imports with its first turn: half a second for each one that is started."""
_PORTS = range(20_000, 30_000)
"""Below those that the kernel gives to clients: one of them might get the port of a server that is down."""


def write_script(folder: Path, seed: int) -> str:
    """The name of a model whose answers differ in every piece, slow and fast, with thinking, tools and failures."""
    dice = random.Random(seed)

    def words(count: int) -> str:
        return " ".join(
            f"{dice.choice(('never', 'ends', '忘记', 'keeps'))}{dice.randrange(10**6)}" for _ in range(count)
        )

    todos = [{"content": "keep it", "status": "pending"}]
    steps: list[dict[str, Any]] = [
        {"text": words(40), "pace_seconds": 0.02},
        {"text": words(120)},
        {"text": words(15), "pace_seconds": 0.05},
        {"text": words(50), "pace_seconds": 0.005},
        {"text": words(5), "thinking": words(10), "calls": [{"name": "todo_write", "args": {"todos": todos}}]},
        {"text": words(30), "thinking": words(10), "pace_seconds": 0.02},
        {"text": words(8), "pace_seconds": 0.1},
        {"text": words(20), "pace_seconds": 0.01, "error": "the provider is down"},
        {"text": words(2)},
    ]
    script = folder / "script.json"
    script.write_text(json.dumps({"steps": steps, "repeat": True}))
    return f"scripted:{script}"


class KilledServer:
    """`everthread serve` on one port, killed and started again."""

    def __init__(self, forkserver: ForkServer, database: str, model: str) -> None:
        self._forkserver = forkserver
        self._database = database
        self._environment = {
            "EVERTHREAD_MODEL": model,
            "EVERTHREAD_REQUESTS_PER_MINUTE": "0",
            "EVERTHREAD_STOP_SECONDS": str(STOP_SECONDS),
        }
        self._port = _free_port()
        self._process: tuple[Child, TextIO] | None = None
        self._stack = ExitStack()
        self.address = f"http://127.0.0.1:{self._port}"
        self.is_up = asyncio.Event()

    def spawn(self) -> None:
        """Return while it is still starting."""
        options = ("--port", str(self._port), "--langgraph", str(CONFIG))
        self._process = self._stack.enter_context(
            starting(self._forkserver, self._database, *options, needs=_TURN, **self._environment)
        )

    async def until_it_listens(self) -> None:
        assert self._process is not None
        child, said = self._process
        assert await asyncio.to_thread(said.readline), child.said()
        self.is_up.set()

    def verify(self) -> str | None:
        """What `everthread verify` has to say against the database."""
        command = ("-m", "everthread", "verify", "--database", self._database)
        done = self._forkserver.run_program(*command, folder=ROOT, env={}, needs=())
        return f"{done.code}: {done.out} {done.err}" if done.code else None

    def kill(self) -> None:
        """At once; whatever it was about to do, it does not."""
        assert self._process is not None
        self.is_up.clear()
        self._process[0].send(signal.SIGKILL)
        self._process = None
        self._stack.close()  # waits until the process is gone, so that its port and its locks are free

    async def pause(self, seconds: float) -> None:
        """As a machine does that swaps, or is moved: it stands still, and goes on as if no time had passed."""
        assert self._process is not None
        self.is_up.clear()
        self._process[0].send(signal.SIGSTOP)
        await asyncio.sleep(seconds)
        self._process[0].send(signal.SIGCONT)
        self.is_up.set()

    async def stop(self) -> float:
        """As an operator does, with SIGTERM; how many seconds it took to be gone."""
        assert self._process is not None
        self.is_up.clear()
        child, _ = self._process
        told = time.monotonic()
        child.send(signal.SIGTERM)
        code = await asyncio.to_thread(child.wait)
        seconds = time.monotonic() - told
        assert code in (0, -signal.SIGTERM), child.said()
        self._process = None
        self._stack.close()
        return seconds


@dataclass(slots=True, kw_only=True, eq=False)
class Servers:
    """Those that share a database."""

    all: Sequence[KilledServer]
    dice: random.Random
    back_at: float = 0.0
    """When the last one that died listened again."""
    kills: int = 0
    _awaited: tuple[str, asyncio.Event] | None = None

    async def start(self) -> None:
        for server in self.all:
            server.spawn()
        for server in self.all:
            await server.until_it_listens()
        self.back_at = time.monotonic()

    async def one(self) -> KilledServer:
        """One to ask: one that is up, or, as often, a certain one once it is back."""
        up = [server for server in self.all if server.is_up.is_set()]
        chosen = self.dice.choice(up if up and self.dice.random() < 0.5 else self.all)
        await chosen.is_up.wait()
        return chosen

    def saw(self, what: str) -> None:
        """A client tells what just happened to it, for whoever waits for that to kill its server."""
        if self._awaited is not None and self._awaited[0] == what:
            self._awaited[1].set()

    async def until_a_client_sees(self, what: str, seconds: float) -> None:
        happened = asyncio.Event()
        self._awaited = what, happened
        try:
            async with asyncio.timeout(seconds):
                await happened.wait()
        except TimeoutError:
            pass  # then it is killed at this moment, as good as any
        finally:
            self._awaited = None

    async def kill(self, server: KilledServer, *, again_within: float | None) -> None:
        """Kill one, some of them once more while it starts or has just begun to listen, and start it again."""
        server.kill()
        self.kills += 1
        server.spawn()
        if again_within is not None:
            listens = asyncio.create_task(server.until_it_listens())
            await asyncio.wait([listens], timeout=again_within)
            is_listening = listens.done()
            server.kill()
            self.kills += 1
            if is_listening:
                await listens
            else:
                await asyncio.gather(listens, return_exceptions=True)  # it says nothing any more, as it should
            server.is_up.clear()
            server.spawn()
        await server.until_it_listens()
        self.back_at = time.monotonic()

    async def restart(self, server: KilledServer) -> float:
        """Stop one as an operator does, and start it again; how many seconds it took to be gone."""
        seconds = await server.stop()
        server.spawn()
        await server.until_it_listens()
        self.back_at = time.monotonic()
        return seconds

    def kill_for_good(self, server: KilledServer) -> None:
        """Kill one that never comes back; the others are all there is."""
        server.kill()
        self.kills += 1
        self.all = [other for other in self.all if other is not server]
        self.back_at = time.monotonic()

    def end(self) -> None:
        for server in self.all:
            if server.is_up.is_set():
                server.kill()


@dataclass(slots=True, kw_only=True)
class Tally:
    """What was counted, for people."""

    runs: int = 0
    in_flight: set[str] = field(default_factory=set)
    """The paths of runs that were not over when their server was killed."""
    connections: int = 0
    resumed: int = 0
    longest_wait_seconds: float = 0.0
    """For the end of a stream that broke, since its servers were back."""
    violations: Counter[str] = field(default_factory=Counter)
    """Runs with a violation of each kind."""
    bad_runs: int = 0
    examples: defaultdict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    def add(self, run: Run) -> None:
        """Judge a run and count it."""
        self.runs += 1
        self.connections += len(run.readings)
        found = judge(run)
        self.bad_runs += bool(found)
        for kind, what in found:
            self.violations[kind] += 1
            if len(self.examples[kind]) < MOST_EXAMPLES:
                self.examples[kind].append(f"{what[:1000]} in {run}")

    def report(self, servers: Servers) -> str:
        lines = [
            f"{servers.kills} kills, {len(self.in_flight)} distinct runs in flight at one; {self.runs} runs judged, "
            f"{self.connections} connections, {self.resumed} resumed; a broken stream ended at most "
            f"{self.longest_wait_seconds:.1f} s after its server was back",
            f"{self.bad_runs} runs with violations: {dict(self.violations.most_common())}",
            *(f"  {kind}: {what}" for kind, examples in self.examples.items() for what in examples),
        ]
        return "\n".join(lines)


@dataclass(slots=True, kw_only=True, eq=False)
class Clients:
    """Those who talk to the servers, and what they have seen of each run since the last judgement."""

    servers: Servers
    http: httpx.AsyncClient
    dice: random.Random
    patience_seconds: float
    tally: Tally = field(default_factory=Tally)
    runs: list[Run] = field(default_factory=list)
    kept: list[Run] = field(default_factory=list)
    """A few that are over and judged, to be read once more at the very end."""
    begun: defaultdict[str, asyncio.Event] = field(default_factory=lambda: defaultdict(asyncio.Event))
    """Set once a conversation has a run."""
    _at: dict[str, KilledServer] = field(default_factory=dict)
    """Where each run was begun."""

    # -- what one client does ------------------------------------------------------------------------------------

    async def chat(self, conversation: str, *, leaves: Sequence[int] = (), **options: Any) -> Run | None:
        """Ask, and read to the end; leave after so many events of a connection, and come back, as often as said."""
        question = self._question()
        body = {"message": question, "conversation_id": conversation, **options}
        return await self._ask(f"{API}/chat/stream", body, conversation, question, leaves, self._key())

    async def regenerate(self, conversation: str) -> Run | None:
        place = f"{API}/conversations/{conversation}/regenerate"
        return await self._ask(place, {"stream": True}, conversation, None, (), {})

    async def run(self, thread: str, assistant: str, **options: Any) -> Run | None:
        """Run an assistant or a graph over LangGraph's protocol."""
        question = self._question()
        body = {
            "assistant_id": assistant,
            "if_not_exists": "create",
            "input": {"messages": [{"role": "user", "content": question}]},
            "stream_mode": ["messages-tuple", "values", "custom"],
            "context": {"ticks": 40, "seconds": 0.03} if assistant == "slow" else {},
            **options,
        }
        return await self._ask(f"/threads/{thread}/runs/stream", body, thread, question, (), {})

    async def cancel(self, run: Run) -> None:
        """Stop a run; whether it came to that is seen in its stream."""
        server = await self.servers.one()
        try:
            await self.http.post(server.address + run.path.removesuffix("/stream") + "/cancel", json={})
        except httpx.TimeoutException as late:
            run.found.append(Violation("waited", f"a cancel was not answered: {late!r}"))
            return
        except httpx.TransportError:
            return
        self.servers.saw("cancelled")

    async def wait_for_answer(self, conversation: str) -> None:
        """Ask without a stream; whoever gets no answer does not ask again."""
        question = self._question()
        server = await self.servers.one()
        body = {"message": question, "conversation_id": conversation}
        try:
            answer = await self.http.post(f"{server.address}{API}/chat", json=body)
        except httpx.TimeoutException as late:
            self._complain(conversation, Violation("waited", f"no answer to {body}: {late!r}"))
            return
        except httpx.TransportError:
            return
        turn = answer.headers.get("content-location", "").rpartition("/")[2]  # of a problem
        turn = turn or (answer.json()["turn_id"] if answer.status_code == 200 else "")
        if turn:
            self._begin(f"{API}/conversations/{conversation}/turns/{turn}/stream", conversation, question, server)
        else:
            self._complain(conversation, Violation("refused", f"{answer.status_code} {answer.text}"))

    async def follow(self, run: Run, after: int = 0, leaves: Sequence[int] = ()) -> None:
        """Read a run from a number on until its end, over as many connections as it takes."""
        leave_after = list(leaves)
        begun = time.monotonic()
        while self._has_patience(begun):
            server = await self.servers.one()
            reading = await self._read_at(server, run, after, leave_after.pop() if leave_after else None)
            if reading is None:
                return
            if reading.ending is Ending.ENDED or any(map(run.is_end, reading.events)):
                waited = time.monotonic() - max(begun, self.servers.back_at)
                self.tally.longest_wait_seconds = max(self.tally.longest_wait_seconds, waited)
                return
            after = reading.last
            self.tally.resumed += 1
        run.found.append(Violation("waited", f"no end of {run.path} after {after} in {self.patience_seconds} s"))

    # -- one connection ------------------------------------------------------------------------------------------

    async def _ask(
        self,
        path: str,
        body: Mapping[str, Any],
        conversation: str,
        question: str | None,
        leaves: Sequence[int],
        key: Mapping[str, str],
    ) -> Run | None:
        """Begin a run and read it to its end. None if no answer came and it must not be asked again."""
        begun = time.monotonic()
        while True:
            server = await self.servers.one()
            run, refusal, reading = None, None, Reading()
            try:
                async with (
                    asyncio.timeout(self.patience_seconds) as patience,
                    self.http.stream("POST", server.address + path, json=body, headers=key) as answer,
                ):
                    if answer.status_code == 200:
                        place = answer.headers.get("location") or answer.headers["content-location"]
                        run = self._begin(place, conversation, question, server)
                        await self._read(run, reading, answer, patience, leaves[0] if leaves else None)
                    else:
                        await answer.aread()
                        refusal = answer
            except httpx.TransportError:
                pass  # the reading says so
            except TimeoutError:
                what = Violation(
                    "waited", f"{path} said nothing for {self.patience_seconds} s; {body}; {reading.events[-2:]}"
                )
                if run is None:
                    self._complain(conversation, what)
                else:
                    run.found.append(what)
                return run
            if run is not None:
                if reading.ending is not Ending.ENDED and not any(map(run.is_end, reading.events)):
                    self.tally.resumed += 1
                    await self.follow(run, reading.last, leaves[1:])
                return run
            if not await self._may_ask_again(refusal, key, begun, conversation):
                return None

    async def _may_ask_again(
        self, refusal: httpx.Response | None, key: Mapping[str, str], begun: float, conversation: str
    ) -> bool:
        """After no answer at all, or an error, only whoever has a key for the request can send it once more; after
        being told to come later, everybody."""
        problem = {} if refusal is None else refusal.json()
        if refusal is not None and not problem.get("retryable"):
            self._complain(conversation, Violation("refused", f"{refusal.status_code} {refusal.text}"))
            return False
        if not key and problem.get("code") != "too_busy":
            return False
        if not self._has_patience(begun):
            said = "no answer" if refusal is None else f"{refusal.status_code} {problem}"
            self._complain(conversation, Violation("waited", f"a question sent again gets {said}"))
            return False
        await asyncio.sleep(0.05)
        return True

    async def _read_at(
        self, server: KilledServer, run: Run, after: int, leave_after: int | None = None
    ) -> Reading | None:
        """One connection to the stream of a run. None when there is no use in another."""
        reading = Reading(after=after)
        headers = {"Last-Event-ID": str(after)} if after else {}
        try:
            async with (
                asyncio.timeout(self.patience_seconds) as patience,
                self.http.stream("GET", server.address + run.path, headers=headers) as answer,
            ):
                if answer.status_code == 503:
                    await asyncio.sleep(0.05)
                    return reading
                if answer.status_code not in (200, 204):
                    said = (await answer.aread())[:500]
                    run.found.append(Violation("refused", f"{answer.status_code} {said!r} after {after}"))
                    return None
                await self._read(run, reading, answer, patience, leave_after)
        except httpx.TransportError:
            pass  # the reading says so
        except TimeoutError:
            what = f"a stream after {after} said nothing for {self.patience_seconds} s, last {reading.last}"
            run.found.append(Violation("waited", what))
            return None
        return reading

    async def _read(
        self, run: Run, reading: Reading, answer: httpx.Response, patience: asyncio.Timeout, leave_after: int | None
    ) -> None:
        run.readings.append(reading)
        async for event in events(answer):
            patience.reschedule(asyncio.get_running_loop().time() + self.patience_seconds)
            reading.events.append(event)
            run.is_over = run.is_over or run.is_end(event)
            self.servers.saw("end" if run.is_end(event) else event.kind)
            if len(reading.events) == leave_after:
                reading.ending = Ending.LEFT
                return
        reading.ending = Ending.ENDED

    def _begin(self, path: str, conversation: str, question: str | None, server: KilledServer) -> Run:
        """A run that a server has said exists."""
        ends = TURN_ENDS if path.startswith(API) else RUN_ENDS
        run = Run(path=path, conversation=conversation, ends=ends, question=question, is_graph="graph" in conversation)
        self.runs.append(run)
        self._at[path] = server
        self.begun[conversation].set()
        self.servers.saw("begun")
        return run

    def _complain(self, conversation: str, violation: Violation) -> None:
        """Of a request that began no run."""
        self.runs.append(Run(path="", conversation=conversation, ends=TURN_ENDS, is_over=True, found=[violation]))

    def _has_patience(self, begun: float) -> bool:
        return time.monotonic() < max(begun, self.servers.back_at) + self.patience_seconds

    def _question(self) -> str:
        return f"Question {self._unique()}?"

    def _key(self) -> Mapping[str, str]:
        """Every other client can send its question again."""
        return {"Idempotency-Key": self._unique()} if self.dice.random() < 0.5 else {}

    def _unique(self) -> str:
        return str(UUID(int=self.dice.getrandbits(128)))

    # -- what is left of the runs --------------------------------------------------------------------------------

    async def until_in_flight(self, count: int) -> None:
        """Return when so many runs are not over: how long that takes depends on the machine."""
        for _ in range(count * 3):
            if sum(not run.is_over for run in self.runs) >= count:
                break
            await self.servers.until_a_client_sees("begun", 0.5)

    def count_in_flight(self, server: KilledServer) -> None:
        """Of a server that is about to be killed."""
        self.tally.in_flight |= {run.path for run in self.runs if not run.is_over and self._at[run.path] is server}

    async def judge_all(self) -> None:
        """Read what all runs left behind, while no server dies, and judge them."""
        await asyncio.gather(*(self._read_again(run) for run in self.runs if run.path))
        found = await asyncio.gather(*map(self._messages, {run.conversation for run in self.runs if run.path}))
        messages = dict(found)
        for run in self.runs:
            if run.path:
                run.texts = {message["id"]: message["text"] for message in messages[run.conversation]}
                asked = [one for one in messages[run.conversation] if one["role"] == "user"]
                run.questions = [one["text"] for one in asked]
                run.question_ids = [f"{one['id']} at {one.get('seq')}" for one in asked]
            self.tally.add(run)
            if run.whole is not None and self.dice.random() < 0.1:
                run.readings = [run.whole]
                run.found.clear()
                self.kept.append(run)
        self.runs.clear()
        self._at.clear()

    async def _read_again(self, run: Run) -> None:
        """From the beginning, from somewhere, and after the end."""
        if any(one.kind in ("waited", "refused") for one in run.found):
            return
        run.whole = await self._read_whole(run)
        if run.whole is None or not run.whole.events:
            return
        for after in (self.dice.choice(run.whole.events).number, run.whole.last):
            await self._read_at(await self.servers.one(), run, after)
        stands = await self._get(run.path.removesuffix("/stream"))
        run.state = stands.get("state") or stands.get("status")

    async def _get(self, path: str, params: Mapping[str, Any] | None = None) -> Any:
        """What is there; asked again where a connection gives no answer, such as one that was just closed as idle."""
        begun = time.monotonic()
        while True:
            server = await self.servers.one()
            try:
                answer = await self.http.get(server.address + path, params=params)
                if answer.status_code != 503 or not self._has_patience(begun):
                    return answer.json()
            except httpx.TransportError:
                if not self._has_patience(begun):
                    raise
            await asyncio.sleep(0.05)

    async def _read_whole(self, run: Run) -> Reading | None:
        """A server that is busy or a connection that it had just closed as idle gives no answer: ask again."""
        begun = time.monotonic()
        while self._has_patience(begun):
            connections = len(run.readings)
            reading = await self._read_at(await self.servers.one(), run, 0)
            if reading is None or len(run.readings) > connections:
                return reading
            await asyncio.sleep(0.05)
        run.found.append(Violation("waited", f"{run.path} could not be read in {self.patience_seconds} s"))
        return None

    async def _messages(self, conversation: str) -> tuple[str, list[dict[str, Any]]]:
        """Of all branches, each once; of a graph's thread also those that only a checkpoint holds."""
        place = f"{API}/conversations/{conversation}"
        messages: dict[str, dict[str, Any]] = {}
        for branch in (await self._get(f"{place}/branches"))["items"]:
            after = 0
            while True:
                asked = {"branch": branch["id"], "limit": 1000, "after": after}
                page = await self._get(f"{place}/messages", asked)
                messages |= {message["id"]: message for message in page["items"]}
                if not page["has_newer"]:
                    break
                after = page["items"][-1]["seq"]
        if "graph" in conversation:
            everything = await self._get(f"/threads/{conversation}/full-history")
            for message in everything["values"]["messages"]:
                id = message.get("id") or str(message["content"])  # what a graph was given may have none yet
                is_user = "human" in message.values() or message.get("role") == "user"
                role = "user" if is_user else "assistant"
                messages.setdefault(id, {"id": id, "role": role, "text": message["content"]})
        return conversation, list(messages.values())

    async def conclude(self) -> str:
        """Read those that were kept once more, after all that has happened since; end the servers; verify what is left.
        What was counted, for people."""
        for run in self.kept:
            await self._read_at(await self.servers.one(), run, 0)
            self.tally.add(run)
        self.servers.end()
        if problem := self.servers.all[0].verify():
            self.tally.violations["verify"] += 1
            self.tally.examples["verify"].append(problem)
        return self.tally.report(self.servers)


@asynccontextmanager
async def clients_of(
    forkserver: ForkServer,
    database: str,
    folder: Path,
    *,
    servers: int,
    seed: int,
    patience_seconds: float = PATIENCE_SECONDS,
) -> AsyncIterator[Clients]:
    """Servers over a database, and clients for them."""
    dice = random.Random(seed)
    model = write_script(folder, seed)
    group = Servers(all=[KilledServer(forkserver, database, model) for _ in range(servers)], dice=dice)
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=20)
    try:
        await group.start()
        async with httpx.AsyncClient(timeout=patience_seconds + 10, limits=limits, verify=False) as http:
            yield Clients(servers=group, http=http, dice=dice, patience_seconds=patience_seconds)
    finally:
        group.end()


def _free_port() -> int:
    for port in random.Random().sample(_PORTS, 100):
        with socket.socket() as tried:
            try:
                tried.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise RuntimeError(f"no free port in {_PORTS}")
