"""Knowledge: documents in named collections, cut, found, replaced and removed; each owner's own."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import pytest

import everthread
from everthread import Everthread, Invalid, Knowledge, ModelError, NotFound
from everthread.adapters.documents import read_document
from everthread.adapters.stores.nearest import nearest
from everthread.core.embeddings import unit
from everthread.recall.knowledge import MAX_BYTES
from everthread.testing import FakeEmbedder
from tests.contracts.test_erase import everything_kept, traces

pypdf = pytest.importorskip("pypdf")

MANUAL = """# Coffee machine

## Descaling
Pour citric acid into the tank and press the red button for five seconds.

## Error codes
E07 means that the grinder is blocked.
"""
TRAVEL = """# 差旅制度

## 住宿
一线城市住宿标准为每晚六百元，其他城市四百元。

## 交通
高铁二等座实报实销。
"""


async def texts(et: Everthread, query: str, collection: Any = None, owner: str = "ann", **more: Any) -> list[str]:
    return [hit.passage.text for hit in await et.knowledge.search(owner, collection, query, **more)]


async def filled(et: Everthread) -> None:
    await et.knowledge.add("ann", "kitchen", MANUAL, id="machine.md")
    await et.knowledge.add("ann", "travel", TRAVEL, id="travel.md")


def pdf(*pages: str, password: str | None = None) -> bytes:
    """A small PDF with these words on its pages."""
    from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject  # noqa: PLC0415 - pypdf is an extra

    writer = pypdf.PdfWriter()
    for words in pages:
        page = writer.add_blank_page(300, 300)
        content = DecodedStreamObject()
        content.set_data(f"BT /F1 12 Tf 20 200 Td ({words}) Tj ET".encode())
        font = DictionaryObject(
            {
                NameObject("/Type"): NameObject("/Font"),
                NameObject("/Subtype"): NameObject("/Type1"),
                NameObject("/BaseFont"): NameObject("/Helvetica"),
            }
        )
        page[NameObject("/Resources")] = DictionaryObject(
            {NameObject("/Font"): DictionaryObject({NameObject("/F1"): font})}
        )
        page[NameObject("/Contents")] = writer._add_object(content)
    if password is not None:
        writer.encrypt(password, algorithm="RC4-128")
    buffer = io.BytesIO()
    writer.write(buffer)
    return buffer.getvalue()


# -- adding --------------------------------------------------------------------------------------------------------


async def test_a_document_is_found_by_the_words_of_its_passages_and_headings(et: Everthread) -> None:
    await filled(et)
    (hit, *_) = await et.knowledge.search("ann", "kitchen", "what does E07 mean?")
    assert hit.passage.text == "E07 means that the grinder is blocked."
    assert (hit.passage.heading, hit.passage.document_id) == ("Coffee machine › Error codes", "machine.md")
    assert (await texts(et, "descaling"))[0].startswith("Pour citric acid")
    assert (await texts(et, "住宿标准是多少"))[0].startswith("一线城市住宿标准")
    assert (await texts(et, "高铁"))[0].startswith("高铁二等座")


async def test_the_same_again_is_nothing_new_and_a_changed_one_takes_its_place(et: Everthread) -> None:
    first = await et.knowledge.add("ann", "kitchen", MANUAL, id="machine.md")
    again = await et.knowledge.add("ann", "kitchen", MANUAL, id="machine.md")
    assert (first.outcome, again.outcome, again.digest) == ("added", "same", first.digest)
    changed = await et.knowledge.add("ann", "kitchen", MANUAL.replace("grinder", "pump"), id="machine.md")
    assert (changed.outcome, changed.passages) == ("replaced", first.passages)
    assert await texts(et, "grinder") == []
    assert len(await texts(et, "pump")) == 1
    assert [one.id for one in (await et.knowledge.list("ann", "kitchen")).items] == ["machine.md"]
    (collection,) = await et.knowledge.collections("ann")
    assert (collection.name, collection.documents, collection.passages) == ("kitchen", 1, first.passages)


async def test_a_shorter_version_leaves_nothing_of_the_longer(et: Everthread) -> None:
    await et.knowledge.add("ann", "notes", "\n\n".join(f"needle {n} " + "hay " * 200 for n in range(20)), id="n")
    short = await et.knowledge.add("ann", "notes", "only this", id="n")
    assert short.passages == 1
    assert await texts(et, "needle") == []


async def test_a_text_without_a_name_goes_by_what_it_says(et: Everthread) -> None:
    one = await et.knowledge.add("ann", "notes", "water boils at 100 degrees")
    assert (await et.knowledge.add("ann", "notes", "water boils at 100 degrees")).id == one.id
    await et.knowledge.add("ann", "notes", "ice melts at 0 degrees")
    assert len((await et.knowledge.list("ann", "notes")).items) == 2


async def test_files_are_read_by_what_they_are(et: Everthread, tmp_path: Path) -> None:
    files = {
        "a.md": MANUAL.encode(),
        "b.txt": "\ufeffbyte order".encode(),
        "c.txt": "报销单要在月底前交".encode("gb18030"),
        "d.txt": "Straße und Café".encode("cp1252"),
        "e.txt": "wide words".encode("utf-16"),
        "f.pdf": pdf("harpsichord tuning", "second page about strings"),
    }
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
        added = await et.knowledge.add("ann", "files", tmp_path / name)
        assert added.id == name
    for words, name in {"grinder": "a.md", "order": "b.txt", "报销": "c.txt", "café": "d.txt", "wide": "e.txt"}.items():
        (hit,) = await et.knowledge.search("ann", "files", words)
        assert hit.passage.document_id == name
    (hit,) = await et.knowledge.search("ann", "files", "strings")
    assert (hit.passage.heading, hit.passage.document_id) == ("page 2", "f.pdf")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"  \n",
        b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR",
        bytes(range(256)) * 50,
        b"PK\x03\x04\x14\x00\x00\x00binary",
        b"%PDF-1.7\nthis is no PDF at all",
        b"%PDF-1.4\n1 0 obj\n<< /Type /Catalog /Pages 1 0 R >>\nendobj\ntrailer << /Root 1 0 R >>\n%%EOF",
        pdf("secret words", password="hunter2"),
        pdf(""),
        pdf("some words")[:200],
        b"# only\n\n## headings",
    ],
    ids=["empty", "blank", "image", "binary", "zip", "broken", "circular", "locked", "scan", "cut", "headings"],
)
async def test_what_has_no_text_is_refused_in_one_sentence(et: Everthread, data: bytes) -> None:
    with pytest.raises(Invalid) as problem:
        await et.knowledge.add("ann", "files", data, id="broken.md")
    assert problem.value.field == "source"
    assert await et.knowledge.collections("ann") == []


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"collection": ""}, "collection"),
        ({"collection": "x" * 129}, "collection"),
        ({"id": ""}, "id"),
        ({"id": "x" * 257}, "id"),
        ({"id": "a\x00b"}, "id"),
        ({"source": 7}, "source"),
        ({"source": Path("/nowhere/at/all.txt")}, "source"),
        ({"source": b"x" * (MAX_BYTES + 1)}, "source"),
        ({"owner": ""}, "owner"),
    ],
)
async def test_what_cannot_be_added_is_refused_by_its_field(et: Everthread, wrong: dict[str, Any], field: str) -> None:
    given = {"owner": "ann", "collection": "notes", "source": "words", "id": "n", **wrong}
    with pytest.raises(Invalid) as problem:
        await et.knowledge.add(given["owner"], given["collection"], given["source"], id=given["id"])
    assert problem.value.field == field


async def test_any_text_can_be_added(et: Everthread) -> None:
    for number, text in enumerate(("a\x00b needle", "half \ud800 needle", "🥜 needle ﷽", "x" * 100_000 + " needle")):
        await et.knowledge.add("ann", "odd", text, id=str(number))
    assert len(await texts(et, "needle")) == 4


# -- searching -----------------------------------------------------------------------------------------------------


async def test_a_search_looks_where_it_is_told_to(et: Everthread) -> None:
    await filled(et)
    await et.knowledge.add("ann", "garden", "The red button of the mower.", id="m")
    assert len(await texts(et, "red button", "kitchen")) == 1
    assert len(await texts(et, "red button", ["kitchen", "garden"])) == 2
    assert len(await texts(et, "red button")) == 2
    assert len(await texts(et, "red button", limit=1)) == 1
    assert await texts(et, "red button", max_tokens=1) == []
    with pytest.raises(NotFound):
        await texts(et, "red button", "cellar")


@pytest.mark.parametrize(
    "query", ["", " ", '"', "NEAR(a b)", "'; DROP TABLE notes; --", "x " * 50_000, "🥜", "the of", "茶"]
)
async def test_any_text_is_a_question(et: Everthread, query: str) -> None:
    await filled(et)
    assert (await et.knowledge.search("ann", None, query)).degraded is False
    assert (await et.knowledge.route("ann", query)).collection in (None, "kitchen", "travel")


async def test_a_question_is_for_one_collection_or_none(et: Everthread) -> None:
    await filled(et)
    for question, collection in {
        "How do I start the descaling of the coffee machine?": "kitchen",
        "what does error E07 mean": "kitchen",
        "出差住宿标准是多少？": "travel",
        "Who won the world cup in 1998?": None,
        "hello, how are you?": None,
        "今天天气怎么样": None,
        "": None,
    }.items():
        route = await et.knowledge.route("ann", question)
        assert route.collection == collection, (question, route.scores)
    only = await et.knowledge.route("ann", "what does error E07 mean", ["travel"])
    assert (only.collection, list(only.scores)) == (None, ["travel"])
    assert (await et.knowledge.route("bob", "what does error E07 mean")).collection is None


# -- removing, owners, erasing -------------------------------------------------------------------------------------


async def test_a_document_or_a_collection_can_be_removed(et: Everthread) -> None:
    await filled(et)
    await et.knowledge.add("ann", "kitchen", "The kettle whistles.", id="kettle")
    assert await et.knowledge.remove("ann", "kitchen", "machine.md") == 1
    assert await texts(et, "grinder") == []
    assert await texts(et, "kettle") == ["The kettle whistles."]
    assert await et.knowledge.remove("ann", "travel") == 1
    assert [one.name for one in await et.knowledge.collections("ann")] == ["kitchen"]
    for gone in ("machine.md", None):
        with pytest.raises(NotFound):
            await et.knowledge.remove("ann", "kitchen" if gone else "travel", gone)


async def test_pages_of_documents_follow_each_other(et: Everthread) -> None:
    for number in range(5):
        await et.knowledge.add("ann", "notes", f"note {number}", id=str(number))
    first = await et.knowledge.list("ann", "notes", limit=3)
    rest = await et.knowledge.list("ann", "notes", limit=3, cursor=first.next_cursor)
    assert [one.id for one in (*first.items, *rest.items)] == ["4", "3", "2", "1", "0"]
    assert rest.next_cursor is None


async def test_i20_another_owners_documents_look_unknown(et: Everthread) -> None:
    await filled(et)
    assert await et.knowledge.collections("bob") == []
    assert (await et.knowledge.list("bob", "kitchen")).items == []
    assert await texts(et, "grinder", owner="bob") == []
    for call in (
        lambda: et.knowledge.search("bob", "kitchen", "grinder"),
        lambda: et.knowledge.remove("bob", "kitchen", "machine.md"),
        lambda: et.knowledge.remove("bob", "kitchen"),
        lambda: et.knowledge.route("bob", "grinder", ["kitchen"]),
    ):
        with pytest.raises(NotFound):
            await call()
    await et.knowledge.add("bob", "kitchen", "His grinder.", id="machine.md")
    assert await texts(et, "grinder", "kitchen", owner="bob") == ["His grinder."]
    assert len(await texts(et, "grinder", "kitchen")) == 1


async def test_i22_after_an_owner_is_erased_nothing_holds_their_documents(url: str) -> None:
    async with everthread.open(url, worker=False) as et:
        await et.conversations.create(owner="ann")
        await et.knowledge.add("ann", "tatterdemalion", "# Quixotry\n\nxylophagous beetles", id="rigmarole.md")
        await et.knowledge.add("bob", "stays", "evergreen", id="evergreen")
        words = ("xylophagous", "quixotry", "rigmarole", "tatterdemalion")
        assert traces(await everything_kept(et, url), *words) == list(words)
        report = await et.erase(owner="ann")
        assert report.reached["notes"] == 2
        assert traces(await everything_kept(et, url), *words) == []
        assert await texts(et, "evergreen", owner="bob") == ["evergreen"]


# -- by meaning ----------------------------------------------------------------------------------------------------


def knowing(et: Everthread, embedder: Any) -> Knowledge:
    return Knowledge(et.store, read_document, embedder)


async def found(knowledge: Knowledge, query: str) -> list[str]:
    return [hit.passage.document_id for hit in await knowledge.search("ann", "films", query)]


async def test_what_is_near_in_meaning_is_found_without_a_word_of_it(et: Everthread) -> None:
    knowledge = knowing(et, FakeEmbedder(alike={"movie": "film", "picture": "film"}))
    await knowledge.add("ann", "films", "a film by Tarkovsky", id="a")
    await knowledge.add("ann", "films", "a recipe with lentils", id="b")
    assert await found(et.knowledge, "movie") == []
    assert await found(knowledge, "movie") == ["a"]
    assert (await found(knowledge, "which movie has lentils?"))[:2] in (["a", "b"], ["b", "a"])


async def test_vectors_of_two_models_are_never_compared_and_made_anew_when_added_again(et: Everthread) -> None:
    one, other = FakeEmbedder(alike={"movie": "film"}, name="one"), FakeEmbedder(alike={"movie": "film"}, name="other")
    await knowing(et, one).add("ann", "films", "a film by Tarkovsky", id="a")
    assert await found(knowing(et, other), "movie") == []
    again = await knowing(et, other).add("ann", "films", "a film by Tarkovsky", id="a")
    assert again.outcome == "replaced"
    assert await found(knowing(et, other), "movie") == ["a"]
    assert (await knowing(et, other).add("ann", "films", "a film by Tarkovsky", id="a")).outcome == "same"
    assert (await et.knowledge.add("ann", "films", "a film by Tarkovsky", id="a")).outcome == "same"


async def test_a_model_that_fails_leaves_the_words(et: Everthread) -> None:
    embedder = FakeEmbedder(alike={"movie": "film"})
    knowledge = knowing(et, embedder)
    embedder.fails = ModelError("away")
    assert (await knowledge.add("ann", "films", "a film by Tarkovsky", id="a")).passages == 1
    hits = await knowledge.search("ann", "films", "film")
    assert ([hit.passage.document_id for hit in hits], hits.degraded) == (["a"], True)
    embedder.fails = None
    assert await found(knowledge, "movie") == []
    assert (await knowledge.add("ann", "films", "a film by Tarkovsky", id="a")).outcome == "replaced"
    assert await found(knowledge, "movie") == ["a"]


async def test_i20_nothing_of_another_owner_is_near(et: Everthread) -> None:
    knowledge = knowing(et, FakeEmbedder())
    await knowledge.add("bob", "films", "a film by Tarkovsky", id="a")
    await knowledge.add("ann", "films", "lentils", id="b")
    assert await found(knowledge, "a film by Tarkovsky") == []


def test_without_numpy_the_nearest_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [(number, unit([number % 7, 1.0, number % 3, -0.5])) for number in range(50)]
    asked = unit([1.0, 0.2, 0.0, 0.3])
    fast = nearest(rows, asked, 5)
    monkeypatch.setitem(sys.modules, "numpy", None)
    slow = nearest(rows, asked, 5)
    assert [number for number, _ in slow] == [number for number, _ in fast]
    assert [score for _, score in slow] == pytest.approx([score for _, score in fast], abs=1e-5)
    assert nearest(rows, unit([1.0, 2.0]), 5) == []


async def test_a_question_in_other_words_is_for_the_collection_closest_in_meaning(et: Everthread) -> None:
    embedder = FakeEmbedder(alike={"movie": "film", "flick": "film", "meal": "soup", "supper": "soup"})
    knowledge = knowing(et, embedder)
    await knowledge.add("ann", "cinema", "film", id="a")
    await knowledge.add("ann", "cookery", "soup", id="b")
    found = await knowledge.route("ann", "flick movie")
    assert (found.collection, found.why.startswith("by meaning: ")) == ("cinema", True)
    between = await knowledge.route("ann", "movie meal")
    assert (between.collection, "equally close" in between.why) == (None, True)
    far = await knowledge.route("ann", "quantum chromodynamics")
    assert (far.collection, "none is close" in far.why) == (None, True)
    by_words = await knowledge.route("ann", "film")
    assert (by_words.collection, by_words.why.startswith("by words: ")) == ("cinema", True)
    embedder.fails = ModelError("away")
    assert "could not be compared" in (await knowledge.route("ann", "flick movie")).why
