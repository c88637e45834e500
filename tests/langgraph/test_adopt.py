"""`everthread adopt`: what a saver of LangGraph's has kept so far is archived, once; then it may be pruned."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypedDict

import psycopg
import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import START, StateGraph
from langgraph.graph.message import _messages_delta_reducer

import everthread
from benchmarks.scenarios import SCENES, Rig, Truth, texts_in_state
from everthread import Invalid
from everthread.langgraph import ArchivingSaver, EverthreadSaver
from everthread.langgraph.foreign_savers import MessagesOnlySerializer
from tests.cli.conftest import Quick, quick, shell
from tests.langgraph.captures import children_of, paths_of, texts_in
from tests.langgraph.test_archiving_saver import NEED_MIDDLEWARE, THREAD, echo

__all__ = ["quick", "shell"]

WHOLE = [name for name in SCENES if name not in NEED_MIDDLEWARE]
SUMMARIES = "LangChain summaries over many turns"


@asynccontextmanager
async def saver_at(url: str) -> AsyncIterator[BaseCheckpointSaver[Any]]:
    if url.startswith("sqlite"):
        async with AsyncSqliteSaver.from_conn_string(url.removeprefix("sqlite:///")) as sqlite:
            yield sqlite
    else:
        async with AsyncPostgresSaver.from_conn_string(url) as postgres:
            await postgres.setup()
            yield postgres


class DeltaState(TypedDict):
    messages: Annotated[list[AnyMessage], DeltaChannel(_messages_delta_reducer, snapshot_frequency=4)]


def deltas(saver: BaseCheckpointSaver[Any]) -> Any:
    """A graph that answers, its messages in a delta channel."""
    builder = StateGraph(DeltaState)
    builder.add_node("answer", lambda state: {"messages": [AIMessage(f"re: {state['messages'][-1].id}")]})
    builder.add_edge(START, "answer")
    return builder.compile(checkpointer=saver)


@pytest.fixture
def source(durable_url: str) -> str:
    """The database of a saver, SQLite or PostgreSQL; not the archive's, and with tables in a schema of its own."""
    if durable_url.startswith("sqlite"):
        return durable_url.replace("et.db", "checkpoints.db")
    with psycopg.connect(durable_url, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA savers")
    return f"{durable_url}{'&' if '?' in durable_url else '?'}options=-csearch_path%3Dsavers"


async def played(source: str, scene: str) -> Truth:
    async with saver_at(source) as saver:
        return await SCENES[scene](Rig(saver))


async def state_of(source: str, scene_thread: str = "scene") -> list[str]:
    async with saver_at(source) as saver:
        rig = Rig(saver, agent=echo(saver))
        return await texts_in_state(rig)


async def archive(shell_url: str, look: Callable[[everthread.Conversation], Any], thread: str = "scene") -> Any:
    async with everthread.open(shell_url) as et:
        assert (await et.verify()).problems == ()
        return await look(await et.conversations.get(thread))


@pytest.mark.parametrize("scene", WHOLE)
def test_a_thread_is_adopted_from_all_its_checkpoints(source: str, scene: str, quick: Quick, shell: Any) -> None:
    truth = asyncio.run(played(source, scene))
    ran = quick("adopt", "--saver", source, "--json")
    assert ran.code == 0, ran.err
    assert asyncio.run(archive(shell.database, texts_in)) == truth.paths[-1]
    paths = asyncio.run(archive(shell.database, paths_of))
    assert [path for path in truth.paths if path not in paths] == []
    assert asyncio.run(archive(shell.database, children_of)) == truth.subagents
    again = quick("adopt", "--saver", source, "--json").json["threads"]
    assert [thread["entries"] for thread in again] == [0]
    assert asyncio.run(archive(shell.database, paths_of)) == paths


def test_a_dry_run_says_what_there_is_and_writes_nothing(source: str, quick: Quick, shell: Any, tmp_path: Path) -> None:
    truth = asyncio.run(played(source, SUMMARIES))
    left = len(asyncio.run(state_of(source)))
    file = Path(source.removeprefix("sqlite:///"))
    files = (file, Path(shell.database.removeprefix("sqlite:///")))
    before = [sha256(one.read_bytes()).digest() if one.is_file() else b"" for one in files]
    ran = quick("adopt", "--saver", source, "--dry-run", "--json")
    (thread,) = ran.json["threads"]
    assert (thread["messages"], thread["lost"]) == (len(truth.paths[0]), len(truth.paths[0]) - left)
    assert 0 < thread["prunable_bytes"] < thread["size_bytes"]
    assert before == [sha256(one.read_bytes()).digest() if one.is_file() else b"" for one in files]
    shown = quick("adopt", "--saver", source, "--dry-run").out
    assert f"{thread['lost']} are no longer in the newest states" in shown


def test_a_prune_frees_the_space_and_nothing_is_lost(source: str, quick: Quick, shell: Any) -> None:
    truth = asyncio.run(played(source, SUMMARIES))
    state = asyncio.run(state_of(source))
    told = quick("adopt", "--saver", source, "--dry-run", "--json").json["threads"][0]
    ran = quick("adopt", "--saver", source, "--prune", "--json")
    assert ran.json["pruned"]["freed_bytes"] >= 0.9 * told["prunable_bytes"] > 0
    assert ran.json["pruned"]["not_pruned"] == []
    assert asyncio.run(state_of(source)) == state
    assert asyncio.run(archive(shell.database, texts_in)) == truth.paths[0]
    assert [thread["entries"] for thread in quick("adopt", "--saver", source, "--json").json["threads"]] == [0]


def test_a_thread_with_a_delta_channel_is_pruned_to_what_its_state_is_rebuilt_from(
    source: str, quick: Quick, shell: Any
) -> None:
    async def play() -> Any:
        async with saver_at(source) as saver:
            graph = deltas(saver)
            for number in range(9):
                await graph.ainvoke({"messages": [HumanMessage(f"{number}: {'long ' * 200}", id=str(number))]}, THREAD)
            await graph.aupdate_state(THREAD, {"messages": [HumanMessage("edited", id="4")]}, as_node="answer")
            return (await graph.aget_state(THREAD)).values

    async def state() -> Any:
        async with saver_at(source) as saver:
            return (await deltas(saver).aget_state(THREAD)).values

    before = asyncio.run(play())
    told = quick("adopt", "--saver", source, "--dry-run", "--json").json["threads"][0]
    ran = quick("adopt", "--saver", source, "--prune", "--json")
    assert ran.json["pruned"]["not_pruned"] == []
    assert ran.json["pruned"]["freed_bytes"] >= 0.9 * told["prunable_bytes"] > 1_000
    assert asyncio.run(state()) == before
    assert len(asyncio.run(archive(shell.database, texts_in, "t"))) == len(before["messages"])


def test_a_deep_agent_s_thread_is_pruned_and_its_state_stays(source: str, quick: Quick, shell: Any) -> None:
    truth = asyncio.run(played(source, "deepagents with summaries"))
    state = asyncio.run(state_of(source))
    ran = quick("adopt", "--saver", source, "--prune", "--json")
    assert ran.json["pruned"]["not_pruned"] == []
    assert asyncio.run(state_of(source)) == state
    assert asyncio.run(archive(shell.database, texts_in)) == truth.paths[0]


def test_an_archive_that_began_late_is_completed(source: str, quick: Quick, shell: Any) -> None:
    async def play() -> None:
        async with saver_at(source) as saver:
            await echo(saver).ainvoke({"messages": ["one"]}, THREAD)
            async with everthread.open(shell.database) as et:
                await echo(ArchivingSaver(saver, et)).ainvoke({"messages": ["two"]}, THREAD)
                assert not (await et.full_history("t", saver=saver))["complete"]

    async def history() -> Any:
        async with saver_at(source) as saver, everthread.open(shell.database) as et:
            return await et.full_history("t", saver=saver)

    asyncio.run(play())
    assert quick("adopt", "--saver", source).code == 0
    told = asyncio.run(history())
    assert [message["content"] for message in told["values"]["messages"]] == ["one", "re: one", "two", "re: two"]
    assert told["complete"]


def test_both_savers_live_in_one_database_and_the_other_is_adopted_there(durable_url: str, quick: Quick) -> None:
    async def play() -> list[str]:
        async with saver_at(durable_url) as theirs:
            await echo(theirs).ainvoke({"messages": ["one"]}, THREAD)
        async with everthread.open(durable_url, worker=False) as et:
            await echo(EverthreadSaver(et, owner="ada")).ainvoke({"messages": ["two"]}, THREAD)
        async with saver_at(durable_url) as theirs:
            await echo(theirs).ainvoke({"messages": ["three"]}, THREAD)
            return [str(message.content) for message in (await echo(theirs).aget_state(THREAD)).values["messages"]]

    async def archived(owner: str) -> list[str]:
        async with everthread.open(durable_url, worker=False) as et:
            return await texts_in(await et.conversations.get("t", owner))

    state = asyncio.run(play())
    assert state == ["one", "re: one", "three", "re: three"]
    ran = quick("adopt", "--saver", durable_url, "--database", durable_url)
    assert ran.code == 0, ran.err
    assert asyncio.run(archived("local")) == state
    assert asyncio.run(archived("ada")) == ["two", "re: two"]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--saver", "mysql://x"], 2),
        (["--saver", "sqlite:///missing.db"], 3),
        (["--saver", "sqlite:///here.db", "--dry-run", "--prune"], 2),
        (["--saver", "sqlite:///here.db"], 2),
    ],
)
def test_what_is_no_saver_is_refused(arguments: list[str], code: int, quick: Quick, shell: Any) -> None:
    (shell.folder / "here.db").write_bytes(b"")
    assert quick("adopt", *arguments).code == code


@dataclass
class Trap:
    """Tells when it is built."""

    built: ClassVar[int] = 0
    word: str = ""

    def __post_init__(self) -> None:
        Trap.built += 1


def test_i25_reading_a_foreign_checkpoint_builds_nothing_that_it_names() -> None:
    dumped = JsonPlusSerializer().dumps_typed({"messages": [HumanMessage("hi")], "trap": [Trap("x")]})
    assert b"Trap" in dumped[1]
    Trap.built = 0
    loaded = MessagesOnlySerializer().loads_typed(dumped)
    assert loaded == {"messages": [HumanMessage("hi")], "trap": [None]}
    assert Trap.built == 0
    with pytest.raises(Invalid, match="pickle"):
        MessagesOnlySerializer().loads_typed(("pickle", b"cos\nsystem\n(S'true'\ntR."))
