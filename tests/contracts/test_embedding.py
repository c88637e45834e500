"""Finding by meaning: vectors are made in the background, kept in step with the log, and missed without harm."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest

import everthread
from everthread import Conflict, Conversation, Everthread, ModelError, RecallPolicy, RecallWeights
from everthread.core.jobs import Pace
from everthread.core.nouns import Ref
from everthread.testing import FakeEmbedder
from tests.contracts.test_recall_search import chatter, said

ALIKE = {"film": "movie", "feline": "cat", "ill": "sick"}


@pytest.fixture
def embedder() -> FakeEmbedder:
    return FakeEmbedder(alike=ALIKE)


@pytest.fixture
async def et(url: str, embedder: FakeEmbedder) -> AsyncIterator[Everthread]:
    async with everthread.open(url, embedder=embedder, worker=False) as opened:
        yield opened


@pytest.fixture
async def conv(et: Everthread) -> Conversation:
    return await et.conversations.create()


async def parts(et: Everthread, conv: Conversation, model: str = "fake") -> int:
    found = (await et.vectors.indexed(Ref(conv.owner, conv.id))).get(model)
    return found.parts if found else 0


async def test_other_words_for_the_same_are_found(et: Everthread, conv: Conversation) -> None:
    await conv.append([said("My feline is ill.")])
    await chatter(conv, 30)
    await et.index_ready(conv)
    hits = await conv.recall("sick cat")
    assert (hits[0].text, hits.is_behind, hits.unanswered) == ("My feline is ill.", False, ())
    assert hits.by_meaning
    assert (await et.search("sick cat", meaning=True))[0].seq == 1
    assert (await conv.search("sick cat", meaning=True))[0].seq == 1
    assert len(await et.search("sick cat")) == 0


async def test_a_search_tells_that_meaning_took_part(et: Everthread, conv: Conversation) -> None:
    await conv.append([said("My feline is ill.")])
    await et.index_ready(conv)
    by_meaning, by_words = await et.search("sick cat", meaning=True), await et.search("feline")
    assert (by_meaning.by_meaning, by_meaning.why_words_alone, by_meaning.is_behind) == (True, None, False)
    assert (by_words.by_meaning, by_words.why_words_alone) == (False, None)


async def test_a_search_by_meaning_without_an_embedder_says_that_it_is_by_words(url: str) -> None:
    async with everthread.open(url, embedder=None, worker=False) as et:
        conv = await et.conversations.create()
        await conv.append([said("The cat food is out.")])
        hits = await et.search("sick cat", meaning=True)
        assert (len(hits), hits.by_meaning) == (1, False)
        assert "no embedder" in str(hits.why_words_alone)
        assert not (await conv.recall("sick cat")).by_meaning


async def test_a_search_by_meaning_says_why_words_answer_alone(
    et: Everthread, conv: Conversation, embedder: FakeEmbedder
) -> None:
    await conv.append([said("The cat food is out.")])
    unmade = await et.search("sick cat", conversation=conv.id, meaning=True)
    assert (unmade.by_meaning, unmade.is_behind) == (False, True)
    assert "no vectors are made yet" in str(unmade.why_words_alone)
    assert "fake understands nothing" in str((await et.search(" ", meaning=True)).why_words_alone)
    await et.index_ready(conv)
    embedder.fails = ModelError("no weights")
    assert (await et.search("sick cat", meaning=True)).why_words_alone == "ModelError: no weights"


async def test_a_weight_of_nothing_is_told_as_the_reason(url: str, embedder: FakeEmbedder) -> None:
    policy = RecallPolicy(weights=RecallWeights(meaning=0))
    async with everthread.open(url, embedder=embedder, recall=policy, worker=False) as et:
        assert "no weight" in str((await et.search("sick cat", meaning=True)).why_words_alone)


async def test_an_index_that_is_behind_says_so_and_answers_by_words(et: Everthread, conv: Conversation) -> None:
    await conv.append([said("My feline is ill."), said("The cat food is out.")])
    hits = await conv.recall("sick cat")
    assert hits.is_behind
    assert hits[0].text == "The cat food is out."
    await et.index_ready(conv)
    assert not (await conv.recall("sick cat")).is_behind


async def _until_indexed(conv: Conversation) -> None:
    while (await conv.recall("sick cat")).is_behind:  # noqa: ASYNC110 - the worker has no event to wait for
        await asyncio.sleep(0.01)


async def test_vectors_are_made_in_the_background(url: str, embedder: FakeEmbedder) -> None:
    async with everthread.open(url, embedder=embedder, worker=Pace(poll_seconds=0.05)) as et:
        conv = await et.conversations.create()
        await conv.append([said("My feline is ill.")])
        async with asyncio.timeout(30):
            await _until_indexed(conv)
        assert await parts(et, conv) == 1


async def test_where_vectors_are_made_ahead_one_job_waits_however_much_is_said(
    url: str, embedder: FakeEmbedder
) -> None:
    async with everthread.open(url, embedder=embedder, recall=RecallPolicy(embed_ahead=True), worker=False) as et:
        conv = await et.conversations.create()
        for number in range(5):
            await conv.append([said(f"message {number}")])
        assert [job.kind for job in (await et.jobs()).jobs] == ["embed"]


class Interrupted(FakeEmbedder):
    """While it works, somebody talks on."""

    def __init__(self) -> None:
        super().__init__(alike=ALIKE)
        self.conv: Conversation | None = None

    async def passages(self, texts: Sequence[str]) -> Sequence[bytes]:
        if self.conv is not None:
            await self.conv.append([said("And another thing.")])
        return await super().passages(texts)


async def test_who_talks_on_while_vectors_are_made_is_not_followed(url: str) -> None:
    embedder = Interrupted()
    async with everthread.open(url, embedder=embedder, worker=False) as et:
        conv = embedder.conv = await et.conversations.create()
        await conv.append([said("My feline is ill."), said("The vet comes at six.")])
        async with asyncio.timeout(30):
            await et.index_ready(conv)
        assert await parts(et, conv) == 2
        assert (await conv.recall("sick cat")).is_behind


async def test_what_is_off_the_record_is_never_embedded(et: Everthread, embedder: FakeEmbedder) -> None:
    aside = await et.conversations.create(off_record=True)
    await aside.append([said("My feline is ill.")])
    await et.index_ready(aside)
    assert await et.reindex() == 0
    assert embedder.asked == []


async def test_a_long_message_has_a_vector_for_each_passage(et: Everthread, conv: Conversation) -> None:
    text = "\n\n".join(["Nothing of note here. " * 30, "My feline is ill. " * 10, "More of nothing. " * 40])
    await conv.append([said(text, role="assistant")])
    await et.index_ready(conv)
    assert await parts(et, conv) > 2
    (hit,) = await conv.recall("sick cat")
    assert "feline" in hit.text
    assert len(hit.text) < len(text)


async def test_a_revision_takes_the_place_of_what_it_replaced(et: Everthread, conv: Conversation) -> None:
    await conv.append([said("My feline is ill.", id="a")])
    await et.index_ready(conv)
    await conv.append([said("My dog is ill.", id="a")])
    await et.index_ready(conv)
    assert await parts(et, conv) == 1
    assert [hit.text for hit in await conv.recall("feline cat")] in ([], ["My dog is ill."])


async def test_another_embedder_embeds_anew_and_the_old_vectors_go(durable_url: str) -> None:
    async with everthread.open(durable_url, embedder=FakeEmbedder(alike=ALIKE), worker=False) as et:
        conv = await et.conversations.create(id="c")
        await conv.append([said("My feline is ill.")])
        await et.index_ready(conv)
    async with everthread.open(durable_url, embedder=FakeEmbedder(name="other", alike=ALIKE), worker=False) as et:
        conv = await et.conversations.get("c")
        assert (await conv.recall("sick cat")).is_behind
        assert await et.reindex() == 1
        assert await et.reindex() == 0
        assert await et.reindex(anew=True) == 1
        assert (await parts(et, conv), await parts(et, conv, "other")) == (0, 1)
        assert (await conv.recall("sick cat"))[0].text == "My feline is ill."


async def test_vectors_of_a_wrong_dimension_leave_words_and_say_what_is_wrong(url: str) -> None:
    class Shortened(FakeEmbedder):
        async def query(self, text: str) -> bytes:
            return (await super().query(text))[:8]

    async with everthread.open(url, embedder=Shortened(), worker=False) as et:
        conv = await et.conversations.create()
        await conv.append([said("The cat food is out.")])
        await et.index_ready(conv)
        hits = await conv.recall("cat")
        assert hits[0].text == "The cat food is out."
        assert "a vector of 8 bytes; expected 256 (64 float32)" in hits.unanswered[0]


async def test_memories_and_documents_follow_another_embedder_too(durable_url: str) -> None:
    async with everthread.open(durable_url, embedder=FakeEmbedder(alike=ALIKE), worker=False) as et:
        await et.memories.add("ann", "owns a feline")
        gone = await et.memories.add("ann", "owns a boat")
        await et.memories.forget("ann", gone.id)
        await et.knowledge.add("ann", "pets", "A feline wants to be fed.", id="care")
    other = FakeEmbedder(name="other", alike=ALIKE)
    async with everthread.open(durable_url, embedder=other, worker=False) as et:
        assert await et.memories.search("ann", "cat") == []
        assert await et.reindex(owner="bob") == 0
        assert await et.reindex() == 3
        assert await et.reindex() == 0
        assert await et.reindex(owner="ann", anew=True) == 3
        assert [hit.memory.text for hit in await et.memories.search("ann", "cat")] == ["owns a feline"]
        assert "feline" in (await et.knowledge.search("ann", "pets", "cat"))[0].passage.text
        assert (await et.knowledge.add("ann", "pets", "A feline wants to be fed.", id="care")).outcome == "same"


async def test_an_embedder_that_fails_leaves_words_and_a_word_about_it(
    et: Everthread, conv: Conversation, embedder: FakeEmbedder
) -> None:
    await conv.append([said("The cat food is out.")])
    await et.index_ready(conv)
    embedder.fails = ModelError("no weights")
    hits = await conv.recall("sick cat")
    assert hits[0].text == "The cat food is out."
    assert [one.partition(": ")[0] for one in hits.unanswered] == ["meaning"]
    assert hits.unanswered[0].startswith("meaning: ModelError: ")
    assert "cat food" in str((await conv.context(query="sick cat")).messages)


class SlowEmbedder(FakeEmbedder):
    """Answers too late."""

    async def query(self, text: str) -> bytes:
        await asyncio.sleep(60)
        return await super().query(text)


async def test_an_embedder_that_hangs_costs_the_time_limit(url: str) -> None:
    policy = RecallPolicy(time_limit_seconds=0.05)
    async with everthread.open(url, embedder=SlowEmbedder(), recall=policy, worker=False) as et:
        conv = await et.conversations.create()
        await conv.append([said("The cat food is out.")])
        async with asyncio.timeout(10):
            hits = await conv.recall("sick cat")
        assert (hits[0].text, hits.unanswered) == ("The cat food is out.", ("meaning: no answer within 0.05 s",))


async def test_i20_meaning_never_crosses_owners(et: Everthread, conv: Conversation) -> None:
    theirs = await et.conversations.create(owner="ann", id=conv.id)
    await theirs.append([said("My feline is ill.")])
    await conv.append([said("Hello.")])
    await et.index_ready(theirs)
    await et.index_ready(conv)
    for scope in ("conversation", "owner"):
        assert all(hit.text == "Hello." for hit in await conv.recall("sick cat", scope=scope))


async def test_i22_an_erase_reaches_the_vectors(et: Everthread, conv: Conversation) -> None:
    await conv.append([said("My feline is ill.", id="a"), said("Right.", id="b")])
    await et.index_ready(conv)
    await et.erase(conversation=conv.id, message="a")
    assert await parts(et, conv) == 1
    assert all(hit.text == "Right." for hit in await conv.recall("sick cat"))
    await et.erase(conversation=conv.id)
    assert await et.vectors.models() in ({}, {"fake": 0})


async def test_without_an_embedder_there_is_nothing_to_make(url: str) -> None:
    async with everthread.open(url, embedder=None, worker=False) as et:
        conv = await et.conversations.create()
        await conv.append([said("The cat food is out.")])
        await et.index_ready(conv)
        hits = await conv.recall("cat")
        assert (len(hits), hits.is_behind, hits.unanswered) == (1, False, ())
        assert (await et.jobs()).waiting == 0
        with pytest.raises(Conflict):
            await et.reindex()
