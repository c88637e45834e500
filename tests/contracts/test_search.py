"""Search: each owner finds the newest revision of what was said, by any word, and nothing that is gone."""

from __future__ import annotations

import random

import pytest

import everthread
from everthread import Conversation, Everthread, NotFound
from everthread.history import ingest
from tests.contracts.message_helpers import appended, says


async def found(et: Everthread, text: str, **options: object) -> list[str]:
    return [hit.id for hit in await et.search(text, **options)]  # type: ignore[arg-type]


async def test_a_hit_says_where_the_message_stands(et: Everthread, conv: Conversation) -> None:
    await appended(conv, "nothing here", "nor here")
    await conv.append([says("The quick brown fox jumps over the lazy dog", id="fox")])
    hits = await et.search("brown fox")
    assert len(hits) == 1
    assert hits.truncated is False
    (hit,) = hits
    assert (hit.conversation_id, hit.seq, hit.id) == (conv.id, 3, "fox")
    assert "quick" in hit.snippet
    assert isinstance(hit.score, float)
    assert hits[0] == hit
    assert list(hits[:1]) == [hit]


async def test_a_credential_is_masked_though_its_kind_was_not_known_when_it_was_written(
    et: Everthread, conv: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = "ghp_" + "a1B2" * 9
    with monkeypatch.context() as at_that_time:
        at_that_time.setattr(ingest, "find_secrets", lambda _: ())
        await conv.append(says(f"the zebra's key is {key}", id="m"))
    assert not (await conv.message("m")).has_secret
    for meaning in (False, True):
        (masked,) = await et.search("zebra's key", meaning=meaning)
        assert key not in masked.snippet
        (shown,) = await et.search("zebra's key", meaning=meaning, show_secrets=True)
        assert key in shown.snippet
    (recalled,) = await conv.recall("What is the zebra's key?")
    assert key not in recalled.text
    (recalled,) = await conv.recall("What is the zebra's key?", show_secrets=True)
    assert key in recalled.text


async def test_a_recalled_passage_is_masked_with_what_stands_around_it(et: Everthread, conv: Conversation) -> None:
    key = "ghp_" + "a1B2" * 9
    filler = " ".join(f"Sentence {number} is about the harbour and its boats." for number in range(200))
    await conv.append(says(f"{filler} The zebra's key is {key} and the password: hunter2-Pr0d! {filler}"))
    for question in ("What is the zebra's key?", "Which are all of the zebra's keys?"):
        hits = await conv.recall(question, max_tokens=200)
        assert hits[0].is_passage
        assert "zebra" in hits[0].text
        assert "[redacted: github]" in hits[0].text
        assert key not in hits[0].text
        assert "hunter2" not in hits[0].text
        assert key in (await conv.recall(question, max_tokens=200, show_secrets=True))[0].text


@pytest.mark.parametrize(
    "question",
    [
        "fox",
        "FOX",
        "foxes",
        "jumping",
        "fox dog",
        '"lazy dog"',
        "jump lazy",
        "狐狸",
        "狐",
        "狸",
        "棕色的狐狸",
        "ｆｏｘ",
    ],
)
async def test_words_are_found_in_any_form(et: Everthread, conv: Conversation, question: str) -> None:
    await conv.append([says("The fox jumps over the lazy dog. 敏捷的棕色的狐狸", id="fox"), says("nobody", id="no")])
    assert await found(et, question) == ["fox"]


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("3,124", ["right"]),
        ("3214", ["wrong"]),
        ("40000", ["money"]),
        ("四万", ["money"]),
        ("13800138000", ["phone"]),
        ("2024-05-03", ["date"]),
        ("v1.2.3", ["version"]),
        ("ord_10045", ["order"]),
    ],
)
async def test_numbers_are_found_in_any_spelling_and_no_others(
    et: Everthread, conv: Conversation, question: str, expected: list[str]
) -> None:
    texts = {
        "right": "There were 3124 rows",
        "wrong": "There were 3,214 rows",
        "money": "预算 ¥40,000，别超",
        "more": "预算 ¥140,000",
        "phone": "call +86 138 0013 8000",
        "date": "5月3日出发",
        "version": "upgrade to 1.2.3",
        "later version": "not to 1.2.4",
        "order": "where is ORD-10045?",
    }
    await conv.append([says(text, id=id) for id, text in texts.items()])
    assert await found(et, question) == expected
    hits = await conv.recall(question)
    assert hits[0].ids == tuple(expected)
    assert all(hit.ids == tuple(expected) or "words" not in hit.why for hit in hits)


@pytest.mark.parametrize(
    "question", ["", " ", "!?", '"', '""', "zebra", "狗", "\0", "\ud800", "NEAR(", "*", "AND", "-fox"]
)
async def test_odd_questions_find_nothing_and_break_nothing(et: Everthread, conv: Conversation, question: str) -> None:
    await appended(conv, "something else")
    assert list(await et.search(question)) == []


@pytest.mark.parametrize("operator", ["fox AND", "fox OR zebra", "NOT fox", "fox*", '"fox', "fox:", "(fox", "fox'--"])
async def test_nothing_in_a_question_is_an_operator(et: Everthread, conv: Conversation, operator: str) -> None:
    await conv.append([says("the fox", id="fox")])
    assert await found(et, operator) == ["fox"]


async def test_tool_calls_are_found_by_name_and_argument(et: Everthread, conv: Conversation) -> None:
    openai = {"name": "book_flight", "arguments": '{"city": "Reykjavik"}'}
    await conv.append(
        [
            {"role": "assistant", "content": None, "id": "openai", "tool_calls": [{"id": "1", "function": openai}]},
            {"type": "ai", "content": "", "id": "lc", "tool_calls": [{"name": "weather", "args": {"at": "Nuuk"}}]},
            {
                "role": "assistant",
                "id": "blocks",
                "content": [{"type": "tool_use", "name": "lookup", "input": {"q": "Tromsø"}}],
            },
        ]
    )
    assert await found(et, "reykjavik") == ["openai"]
    assert await found(et, "flight") == ["openai"]
    assert await found(et, "Nuuk") == ["lc"]
    assert await found(et, "Tromsø lookup") == ["blocks"]


async def test_hidden_thinking_is_not_found(et: Everthread, conv: Conversation) -> None:
    await conv.append(
        [
            {
                "role": "assistant",
                "id": "m",
                "content": [{"type": "thinking", "thinking": "okapi"}, {"type": "text", "text": "tapir"}],
            }
        ]
    )
    assert await found(et, "tapir") == ["m"]
    assert await found(et, "okapi") == []


async def test_messages_with_all_words_come_before_those_with_some(et: Everthread, conv: Conversation) -> None:
    await conv.append([says("red apple", id="both"), says("red", id="red"), says("apple", id="apple")])
    hits = await found(et, "red apple")
    assert hits[0] == "both"
    assert sorted(hits) == ["apple", "both", "red"]


async def test_only_the_newest_revision_is_found(et: Everthread, conv: Conversation) -> None:
    await conv.append([says("first draft", id="m1"), says("other", id="m2")])
    await conv.append([says("second version", id="m1")])
    await conv.append([says("third version", id="m1")])
    assert await found(et, "draft") == []
    assert await found(et, "second") == []
    (hit,) = await et.search("third")
    assert (hit.id, hit.seq) == ("m1", 1)


async def test_an_edit_is_found_at_its_own_place_and_so_is_the_original(et: Everthread, conv: Conversation) -> None:
    await conv.append([says("to Lisbon", id="m1"), says("then", id="m2")])
    edit = await conv.edit("m1", says("to Porto"))
    (hit,) = await et.search("Porto")
    assert (hit.id, hit.seq) == (edit.id, edit.seq)
    assert [(hit.id, hit.seq) for hit in await et.search("Lisbon")] == [("m1", 1)]
    await conv.append([says("to Coimbra", id=edit.id)])
    (hit,) = await et.search("Coimbra")
    assert (hit.id, hit.seq) == (edit.id, edit.seq)


async def test_deleted_messages_are_found_again_when_restored(et: Everthread, conv: Conversation) -> None:
    await conv.append([says("needle", id="m1")])
    await conv.delete_message("m1")
    assert await found(et, "needle") == []
    await conv.restore_message("m1")
    assert await found(et, "needle") == ["m1"]
    await conv.append([says("sharp needle", id="m1")])
    await conv.delete_message("m1")
    assert await found(et, "needle") == []
    await conv.restore_message("m1")
    assert await found(et, "sharp") == ["m1"]


async def test_deleted_conversations_are_found_again_when_restored(et: Everthread, conv: Conversation) -> None:
    await conv.append([says("needle", id="m1")])
    await conv.delete()
    assert await found(et, "needle") == []
    assert await found(et, "needle", conversation=conv.id) == []
    await conv.restore()
    assert await found(et, "needle") == ["m1"]


async def test_erased_messages_are_never_found(et: Everthread, conv: Conversation) -> None:
    await conv.append([says("needle", id="m1"), says("needle", id="m2")])
    assert sorted(await found(et, "needle")) == ["m1", "m2"]
    await et.erase(conversation=conv.id, message="m1")
    assert await found(et, "needle") == ["m2"]
    await et.erase(conversation=conv.id)
    assert await found(et, "needle") == []


async def test_a_framework_s_summary_is_not_found(et: Everthread, conv: Conversation) -> None:
    await conv.append([says("needle", id="s", additional_kwargs={"lc_source": "summarization"})])
    assert await found(et, "needle") == []


async def test_a_search_may_keep_to_one_conversation(et: Everthread) -> None:
    for name in ("one", "two"):
        await (await et.conversations.create(id=name)).append([says("needle", id=name)])
    assert sorted(await found(et, "needle")) == ["one", "two"]
    assert await found(et, "needle", conversation="two") == ["two"]
    with pytest.raises(NotFound):
        await et.search("needle", conversation="three")


async def test_an_owner_finds_only_what_is_their_own(et: Everthread) -> None:
    for owner in ("ann", "bob"):
        await (await et.conversations.create(id="same", owner=owner)).append([says("needle", id=owner)])
    assert await found(et, "needle", owner="ann") == ["ann"]
    assert await found(et, "needle", owner="bob", conversation="same") == ["bob"]
    assert await found(et, "needle") == []


async def test_many_messages_of_others_do_not_push_mine_out(et: Everthread) -> None:
    await (await et.conversations.create(owner="ann")).append([says("needle", id="mine")])
    other = await et.conversations.create(owner="bob")
    await other.append([says("needle") for _ in range(700)])
    hits = await et.search("needle", owner="ann")
    assert [hit.id for hit in hits] == ["mine"]
    assert not hits.truncated


async def test_a_limit_cuts_the_hits_and_a_cap_is_told(et: Everthread, conv: Conversation) -> None:
    await conv.append([says("common") for _ in range(30)])
    assert len(await et.search("common")) == 20
    assert len(await et.search("common", limit=3)) == 3
    assert len(await et.search("common", limit=0)) == 0
    assert len(await et.search("common", limit=100)) == 30
    assert not (await et.search("common", limit=100)).truncated
    await conv.append([says("common") for _ in range(600)])
    hits = await et.search("common", limit=100)
    assert len(hits) == 100
    assert hits.truncated


async def test_what_was_acknowledged_is_found_at_once(et: Everthread, conv: Conversation) -> None:
    for number in range(20):
        await conv.append([says(f"word{number}", id=str(number))])
        assert await found(et, f"word{number}") == [str(number)]


WORDS = "red green blue fox foxes run running 红色 狐狸 狐 跑步 v1.2 snake_case naïve 東京 ok".split()


async def said_at_random(et: Everthread, dice: random.Random) -> None:
    """The same messages, revisions, edits, deletions and erasures for the same dice."""
    for number in range(3):
        conv = await et.conversations.create(id=f"c{number}")
        for turn in range(25):
            await conv.append([says(" ".join(dice.choices(WORDS, k=dice.randint(1, 5))), id=f"{number}/{turn}")])
        for turn in dice.sample(range(25), 8):
            await conv.append([says(" ".join(dice.choices(WORDS, k=3)), id=f"{number}/{turn}")])
        for turn in dice.sample(range(25), 4):
            await conv.edit(f"{number}/{turn}", says(dice.choice(WORDS), id=f"{number}/{turn}/edit"))
        for turn in dice.sample(range(25), 4):
            await conv.delete_message(f"{number}/{turn}")
        await et.search(dice.choice(WORDS))
        for turn in dice.sample(range(25), 2):
            await et.erase(conversation=conv.id, message=f"{number}/{turn}")
    await (await et.conversations.get("c1")).delete()


@pytest.mark.parametrize("seed", range(3))
async def test_every_store_finds_the_same(et: Everthread, seed: int) -> None:
    questions = [*WORDS, "red fox", "running foxes", '"green blue"', '"狐狸"', "狐狸 red", "case", "1.2", "京", "zebra"]
    async with everthread.open("memory://") as reference:
        await said_at_random(reference, random.Random(seed))
        await said_at_random(et, random.Random(seed))
        for question in questions:
            for conversation in (None, "c0"):
                expected = await reference.search(question, conversation=conversation, limit=200)
                hits = await et.search(question, conversation=conversation, limit=200)
                assert sorted((hit.id, hit.seq) for hit in hits) == sorted((hit.id, hit.seq) for hit in expected)
                assert hits.truncated == expected.truncated
        assert any([len(await reference.search(question)) > 1 for question in questions])


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ("We met at the café.", ("cafe", "CAFÉ", "Cafés", "cafe\u0301")),
        ("Frau Müller hat angerufen.", ("Müller", "Muller", "Mueller", "mueller")),
        ("Frau Mueller hat angerufen.", ("Müller", "Mueller", "MÜLLER")),
        ("Die Größe ist XL.", ("Größe", "groesse", "Grosse")),
        ("Nguyễn Văn Đức ở Đà Nẵng", ("nguyen van duc", "Nguyễn", "da nang")),
        ("Jutro jadę do Łodzi, mieszkam na ulicy Źródlanej.", ("lodzi", "Łodzi", "zrodlanej")),
        ("李小姐後來去了雲南", ("后来", "雲南", "云南", "後", "云")),
        ("开发票的时候写公司名", ("發票", "发票")),
        ("ＡＢＣ１２３ ﾊﾟﾋﾟﾙｽ", ("abc123", "パピルス")),
    ],
)
async def test_words_are_found_without_their_accents_and_in_either_chinese(
    et: Everthread, conv: Conversation, said: str, asked: tuple[str, ...]
) -> None:
    await appended(conv, said, "Nothing of the kind: caf, mull, 别的.")
    for words in asked:
        assert [hit.seq for hit in await et.search(words) if hit.match == "strong"] == [1], words
        assert [hit.seqs for hit in await conv.recall(words, limit=1)] == [(1,)], words


async def test_a_match_is_marked_as_it_was_written(et: Everthread, conv: Conversation) -> None:
    await appended(conv, "Frau Müller sitzt im café. 雲南很遠")
    assert "**Müller**" in (await et.search("mueller"))[0].snippet
    assert "**café**" in (await et.search("cafe"))[0].snippet
    assert "**雲南**" in (await et.search("云南"))[0].snippet


async def test_without_accents_a_word_is_still_not_another(et: Everthread, conv: Conversation) -> None:
    await appended(conv, "A gust of wind and a blu-ray", "mẹ tôi thích phở")
    assert await found(et, "guest") == []
    assert await found(et, "blue") == []
    assert [hit.seqs for hit in await conv.recall("mẹ thích gì", limit=1)] == [(2,)]
