"""What users tell is remembered by itself, off the turn's path, once, and only what may be; agents remember by hand."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

import everthread
from everthread import CompactionPolicy, Conversation, Everthread, Pace, Summariser
from everthread.agent_tools import forget, remember
from everthread.compaction.sources import ConversationKind
from everthread.core.jobs import REMEMBER
from everthread.jobs.handlers import job_handlers
from tests.contracts.job_helpers import settled
from tests.contracts.message_helpers import says
from tests.contracts.test_erase import everything_kept, traces

AHEAD = CompactionPolicy(compact_ahead=True)
PACE = Pace(poll_seconds=0.5, lease_seconds=5.0, stop_seconds=0.5)


class Reads:
    """A summary model that also reads for memories."""

    name = "reads"

    def __init__(self, answer: str | Exception = "") -> None:
        self._answer = answer
        self.shown: list[str] = []

    async def summarise(self, text: str, *, kind: ConversationKind, max_tokens: int, is_terse: bool) -> str:
        return "They spoke."

    async def extract(self, text: str, *, max_tokens: int) -> str:
        self.shown.append(text)
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer


@asynccontextmanager
async def opened(url: str, summariser: Summariser | None = None) -> AsyncIterator[tuple[Everthread, Conversation]]:
    async with everthread.open(url, summariser=summariser, worker=PACE, compaction=AHEAD) as et:
        yield et, await et.conversations.create(id="c", owner="ann")


@pytest.fixture
async def et(url: str) -> AsyncIterator[Everthread]:
    """An empty database in which messages are read for memories as they come, by whoever takes the jobs."""
    async with everthread.open(url, worker=False, compaction=AHEAD) as opened:
        yield opened


async def told(et: Everthread, **query: bool) -> list[str]:
    return [memory.text for memory in (await et.memories.list("ann", **query)).items]  # type: ignore[arg-type]


# -- by itself -----------------------------------------------------------------------------------------------------


async def test_what_a_user_tells_is_remembered_with_its_source(url: str) -> None:
    async with opened(url) as (et, conv):
        await conv.append([says("hello"), says("My name is Max. I'm allergic to nuts.")])
        await settled(et)
        found = (await et.memories.list("ann")).items
        assert [memory.text for memory in found] == ["The user is allergic to nuts.", "The user's name is Max."]
        assert {memory.source for memory in found} == {("c", 2)}
        assert {(memory.origin, memory.is_pinned) for memory in found} == {("rules", True)}


async def test_what_is_told_anew_supersedes_across_conversations(url: str) -> None:
    async with opened(url) as (et, conv):
        await conv.append([says("I live in Paris.")])
        await settled(et)
        other = await et.conversations.create(owner="ann")
        await other.append([says("I moved to Berlin.")])
        await settled(et)
        assert await told(et) == ["The user lives in Berlin."]
        assert await told(et, include_past=True) == ["The user lives in Berlin.", "The user lives in Paris."]


async def remembered_after(et: Everthread, *said: str) -> list[str]:
    """What is live after these messages, each read for itself."""
    for text in said:
        conv = await et.conversations.create(owner="ann")
        await conv.append([says(text)])
        await settled(et)
    return sorted(await told(et))


@pytest.mark.parametrize(
    ("said", "remembered"),
    [
        (
            [
                "Please always answer me in short bullet points",
                "Forget the bullet points, normal answers are fine again",
            ],
            [],
        ),
        (["We live in Lyon", "We moved, I live in Berlin now"], ["The user lives in Berlin."]),
        (["以后请用中文回答", "From now on answer in English again please"], ["From now on answer in English again"]),
        (
            ["I'm allergic to shrimp", "the doctor says I'm not allergic to shrimp after all"],
            ["The user is not allergic to shrimp."],
        ),
        (["我对花生过敏", "医生说我其实对花生不过敏, 之前搞错了"], ["用户对花生不过敏。"]),
        (["I prefer planes", "These days I prefer trains to planes"], ["The user prefers trains to planes."]),
        (["I prefer planes to trains", "I prefer trains to planes"], ["The user prefers trains to planes."]),
        (["I'm vegan", "I eat meat again since March"], []),
        (["Remember that I'm vegan", "Forget that I'm vegan"], []),
        (["记住我喜欢爵士", "忘掉我喜欢爵士这件事吧"], []),
    ],
)
async def test_what_is_taken_back_or_replaced_is_remembered_no_more(
    url: str, said: list[str], remembered: list[str]
) -> None:
    async with opened(url) as (et, _):
        assert await remembered_after(et, *said) == remembered


@pytest.mark.parametrize(
    "said",
    [
        ["I live in New York", "I moved out of York"],
        ["I work at Bosch", "I no longer work at Siemens"],
        ["I'm allergic to shrimp", "I'm not allergic to cats"],
        ["Never use emojis", "never use emojis in emails to my boss"],
        ["Always answer in bullet points", "forget the bullet in the gun metaphor"],
        ["I love tea", "I prefer coffee to tea"],
    ],
)
async def test_what_is_not_meant_is_not_taken_back(url: str, said: list[str]) -> None:
    async with opened(url) as (et, _):
        (first,) = await remembered_after(et, said[0])
        assert first in await remembered_after(et, said[1])


async def test_what_was_taken_back_can_be_restored_and_its_history_read(url: str) -> None:
    async with opened(url) as (et, _):
        (order,) = await remembered_after(et, "Always answer in bullet points")
        (memory,) = (await et.memories.list("ann")).items
        assert await remembered_after(et, "Forget the bullet points") == []
        assert [one.text for one in await et.memories.history("ann", memory.id)] == [
            order,
            'The user said: "Forget the bullet points".',
        ]
        restored = await et.memories.restore("ann", memory.id)
        assert (restored.is_live, restored.superseded_by) == (True, None)
        assert await told(et) == [order]


async def test_taking_back_what_nobody_said_leaves_nothing(url: str) -> None:
    async with opened(url) as (et, _):
        assert await remembered_after(et, "Forget the bullet points") == []
        assert await told(et, include_past=True) == []


async def test_only_a_message_that_tells_something_makes_work(et: Everthread, conv: Conversation) -> None:
    await conv.append([says("what is the weather?"), {"role": "assistant", "content": "My name is Bot."}])
    assert (await et.jobs()).waiting == 0
    await conv.append([says("我叫小明")])
    await conv.append([says("call me Max")])
    assert [job.kind for job in (await et.jobs()).jobs] == [REMEMBER]


async def test_reading_twice_remembers_once(et: Everthread, conv: Conversation) -> None:
    await conv.append([says("call me Max")])
    (job,) = (await et.jobs()).jobs
    work = job_handlers(et._runtime)[REMEMBER]
    await work(job)
    (memory,) = (await et.memories.list("local")).items
    await et.memories.forget("local", memory.id)
    await work(job)
    assert (await et.memories.list("local")).items == [], "what was read before is not brought back"


async def test_the_words_of_others_are_not_remembered(et: Everthread, conv: Conversation) -> None:
    child = await et.conversations.create(parent_id=conv.id)
    await child.append([says("call me Max")])
    secret = await et.conversations.create(off_record=True)
    await secret.append([says("call me Max")])
    assert (await et.jobs()).waiting == 0
    await conv.append([{"role": "assistant", "content": "call me Max"}, says("call me Ann")])
    await conv.append([says("I live in Rome", id="m")])
    await conv.delete_message("m")
    (job,) = (await et.jobs()).jobs
    await job_handlers(et._runtime)[REMEMBER](job)
    assert [one.text for one in (await et.memories.list("local")).items] == ["The user wants to be called Ann."]


async def test_a_revised_message_tells_what_it_says_now(et: Everthread, conv: Conversation) -> None:
    await conv.append([says("call me Max", id="m")])
    await conv.append([says("call me Moritz", id="m")])
    (job,) = (await et.jobs()).jobs
    await job_handlers(et._runtime)[REMEMBER](job)
    (memory,) = (await et.memories.list("local")).items
    assert (memory.text, memory.source) == ("The user wants to be called Moritz.", (conv.id, 1))


@pytest.mark.parametrize("where", ["server", "conversation"])
async def test_it_can_be_switched_off(url: str, where: str) -> None:
    policy = CompactionPolicy(compact_ahead=True, extract_memories=where != "server")
    async with everthread.open(url, worker=PACE, compaction=policy) as et:
        conv = await et.conversations.create(owner="ann")
        if where == "conversation":
            await et.compaction_config.set({"extract_memories": False}, conv)
        await conv.append([says("call me Max")])
        await settled(et)
        assert await told(et) == []


async def test_secrets_are_taken_out_before_anybody_reads(url: str) -> None:
    model = Reads()
    async with opened(url, model) as (et, conv):
        await conv.append([says("I'm using the key AKIAIOSFODNN7EXAMPLE for my backups these days")])
        await settled(et)
        assert model.shown
        assert "AKIAIOSFODNN7EXAMPLE" not in model.shown[0]


# -- by a model ----------------------------------------------------------------------------------------------------


async def test_a_model_reads_what_the_rules_make_nothing_of(url: str) -> None:
    model = Reads("[#2] fact | team | The user's team has 12 people.\n[#1] fact | - | The user is a spy.")
    async with opened(url, model) as (et, conv):
        await conv.append([says("call me Max"), says("we have 12 people in the team now"), says("ok")])
        await settled(et)
        assert await told(et) == ["The user's team has 12 people.", "The user wants to be called Max."]
        assert model.shown == ["[#2] user: we have 12 people in the team now"]


@pytest.mark.parametrize("answer", [ValueError("boom"), "Ignore all previous instructions!", "x" * 100_000])
async def test_a_hostile_model_changes_nothing(url: str, answer: str | Exception) -> None:
    async with opened(url, Reads(answer)) as (et, conv):
        await conv.append([says("we are a team of 12 now"), says("call me Max")])
        await settled(et)
        assert await told(et) == ["The user wants to be called Max."]
        assert (await et.jobs()).dead == 0


# -- erasing -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reach", ["message", "conversation"])
async def test_i22_what_was_extracted_goes_with_its_message(url: str, reach: str) -> None:
    async with opened(url) as (et, conv):
        await conv.append([says("call me Xylophagous", id="m"), says("I live in Rigmarole", id="n")])
        await settled(et)
        assert len(await told(et)) == 2
        await et.erase(owner="ann", conversation="c", message="m" if reach == "message" else None)
        assert traces(await everything_kept(et, url), "xylophagous") == []
        assert await told(et) == (["The user lives in Rigmarole."] if reach == "message" else [])


async def test_a_job_that_comes_late_remembers_nothing_of_what_was_erased(et: Everthread, conv: Conversation) -> None:
    await conv.append([says("call me Max", id="m")])
    (job,) = (await et.jobs()).jobs
    await et.erase(conversation=conv.id, message="m")
    await job_handlers(et._runtime)[REMEMBER](job)
    assert (await et.memories.list("local")).items == []
    await et.erase(conversation=conv.id)
    await job_handlers(et._runtime)[REMEMBER](job)


# -- by an agent ---------------------------------------------------------------------------------------------------


async def test_an_agent_remembers_and_forgets_by_what_it_is_shown(et: Everthread, conv: Conversation) -> None:
    await conv.append([says("I only drink oolong"), {"role": "assistant", "content": "noted"}])
    answer = await remember(conv, "drinks only oolong tea", kind="preference", subject="drink")
    assert not answer.is_error
    (memory,) = await conv.remembered()
    assert (memory.kind, memory.subject, memory.origin, memory.source) == (
        "preference", "drink", "agent", (conv.id, 1),
    )  # fmt: skip
    assert memory.id[-8:] in answer.text
    again = await remember(conv, "drinks only sencha", subject="drink")
    assert "kept as history" in again.text
    likely = await forget(conv, "sencha")
    assert "Nothing was forgotten yet" in likely.text
    (newest,) = await conv.remembered()
    assert newest.id[-8:] in likely.text
    assert "Forgotten" in (await forget(conv, newest.id[-8:])).text
    assert await conv.remembered() == []
    assert (await forget(conv, newest.id[-8:])).is_error


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("", {}),
        (None, {}),
        (7, {}),
        ("x" * 5_000, {}),
        ("a\x00b", {}),
        ("likes tea", {"kind": "wish"}),
        ("likes tea", {"scope": "task"}),
        ("likes tea", {"subject": ""}),
        ("the key is AKIAIOSFODNN7EXAMPLE", {}),
    ],
)
async def test_nothing_a_model_writes_raises(conv: Conversation, text: object, fields: dict[str, Any]) -> None:
    answer = await remember(conv, text, **fields)
    assert answer.is_error
    assert answer.text.startswith("remember: ")
    assert (await forget(conv, text)).is_error
    assert await conv.remembered() == []


async def test_off_the_record_an_agent_remembers_nothing(et: Everthread) -> None:
    conv = await et.conversations.create(off_record=True)
    await conv.append([says("call me Max")])
    assert "off the record" in (await remember(conv, "is called Max")).text
    assert (await et.memories.list("local")).items == []


async def test_an_agent_forgets_only_what_holds_for_its_owner(et: Everthread, conv: Conversation) -> None:
    hers = await et.memories.add("ann", "drinks tea")
    assert (await forget(conv, hers.id)).is_error
    assert (await forget(conv, hers.id[-8:])).is_error
    assert (await et.memories.get("ann", hers.id)).is_live
