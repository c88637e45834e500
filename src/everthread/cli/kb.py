"""Collections of documents: kb add, ls, rm, search."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from everthread.cli.app import app, command
from everthread.cli.errors import ExitCode, print_error
from everthread.cli.invocation import Invocation
from everthread.cli.output import counted, format_time
from everthread.core.errors import Invalid
from everthread.core.nouns import MAX_PAGE
from everthread.text.printable import one_line, printable

if TYPE_CHECKING:
    from everthread.core.documents import Document, PassageHit
    from everthread.instance import Everthread

SUFFIXES = frozenset({".md", ".markdown", ".mdx", ".pdf", ".rst", ".text", ".txt"})
"""Files taken from a folder; a file named on the command line is taken whatever its suffix."""
kb = typer.Typer(no_args_is_help=True, help="Named collections of documents.")
app.add_typer(kb, name="kb")


CollectionArgument = Annotated[str, typer.Argument(metavar="COLLECTION", help="The collection's name.")]


@command(kb, "add")
async def add_documents(
    cli: Invocation,
    collection: CollectionArgument,
    paths: Annotated[list[Path], typer.Argument(metavar="PATH…", help="Files or folders.")],
) -> None:
    """Add documents (text, Markdown, PDF). A document that already exists is replaced if it changed."""
    files = [found for path in paths for found in _files(path)]
    failed = 0
    async with cli.open(create=True) as et:
        with cli.out.progress("adding", len(files)) as step:
            for file, name in files:
                failed += not await _add(cli, et, collection, file, name)
                step(1)
    if not files:
        raise Invalid("no documents found", field="PATH")
    if failed:
        raise typer.Exit(ExitCode.ERROR)


async def _add(cli: Invocation, et: Everthread, collection: str, file: Path, name: str) -> bool:
    """Whether it could be added. A file that cannot be read is reported, and the others are still added."""
    try:
        added = await et.knowledge.add(cli.owner, collection, file, id=name)
    except Invalid as problem:
        print_error(f"{file}: {problem}", code=problem.code, as_json=cli.out.json)
        return False
    if cli.out.json:
        cli.out.document(added)
    else:
        cli.out.text(f"{added.outcome:<8} {one_line(added.id)}  {counted(added.passages, 'passage')}")
    return True


def _files(path: Path) -> Iterator[tuple[Path, str]]:
    """The files to add with their document ids: the file's name, or its path within the given folder."""
    if not path.is_dir():
        yield path, path.name
        return
    for file in sorted(path.rglob("*")):
        if file.suffix.lower() in SUFFIXES and file.is_file():
            yield file, file.relative_to(path).as_posix()


@command(kb, "ls")
async def list_documents(
    cli: Invocation,
    collection: Annotated[
        str | None, typer.Argument(metavar="COLLECTION", help="List the documents of this collection.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=MAX_PAGE, help="The maximum number of documents.")] = 100,
) -> None:
    """List the collections, or the documents of one."""
    async with cli.open() as et:
        if collection is not None:
            _show(cli, (await et.knowledge.list(cli.owner, collection, limit=limit)).items)
            return
        found = await et.knowledge.collections(cli.owner)
    if cli.out.json:
        for one in found:
            cli.out.document(one)
    else:
        rows = [(one.name, one.documents, one.passages) for one in found]
        cli.out.table(("collection", ">documents", ">passages"), rows)


def _show(cli: Invocation, found: Sequence[Document]) -> None:
    if cli.out.json:
        for one in found:
            cli.out.document(one)
    else:
        rows = [(one.id, one.media_type, one.passages, one.characters, format_time(one.added_at)) for one in found]
        cli.out.table(("document", "type", ">passages", ">characters", "added"), rows)


@command(kb, "rm")
async def remove_documents(
    cli: Invocation,
    collection: CollectionArgument,
    document: Annotated[
        str | None, typer.Argument(metavar="DOCUMENT", help="The document's id; without it, all of them.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Confirm removing a whole collection.")] = False,
) -> None:
    """Remove a document, or a whole collection."""
    if document is None and not yes:
        raise Invalid("nothing was removed: name a document, or pass --yes to remove them all", field="DOCUMENT")
    async with cli.open() as et:
        removed = await et.knowledge.remove(cli.owner, collection, document)
    if cli.out.json:
        cli.out.document({"removed": removed})
    else:
        cli.out.text(f"removed {counted(removed, 'document')}")


@command(kb, "search")
async def search_documents(
    cli: Invocation,
    words: Annotated[list[str], typer.Argument(metavar="WORDS…", help="Words to search for, in any language.")],
    collection: Annotated[
        list[str] | None, typer.Option("--collection", metavar="NAME", help="Only in this collection; may be repeated.")
    ] = None,
    route: Annotated[
        bool, typer.Option("--route", help="Search only the collection that the question is about, if any.")
    ] = False,
    limit: Annotated[int, typer.Option(min=1, max=MAX_PAGE, help="The maximum number of passages.")] = 5,
) -> None:
    """Search passages of documents by words, best match first."""
    asked = " ".join(words)
    where: list[str] | None = collection
    async with cli.open() as et:
        if route:
            chosen = (await et.knowledge.route(cli.owner, asked, collection)).collection
            where = [] if chosen is None else [chosen]
            cli.out.note("for no collection" if chosen is None else f"for the collection {chosen}")
        hits = await et.knowledge.search(cli.owner, where, asked, limit=limit)
        searched = [one.name for one in await et.knowledge.collections(cli.owner)] if where is None else where
    if not searched and not route:
        cli.out.note("no documents yet; add some with `everthread kb add`")
    elif searched and not hits:
        cli.out.note(f"nothing found in {', '.join(searched)}")
    for hit in hits:
        _print_hit(cli, hit)


def _print_hit(cli: Invocation, hit: PassageHit) -> None:
    one = hit.passage
    if cli.out.json:
        cli.out.document({"score": hit.score, **{name: getattr(one, name) for name in one.__dataclass_fields__}})
        return
    place = " › ".join(filter(None, [one.collection, one.document_id, one.heading]))
    cli.out.pieces([(f"{one_line(place)}\n", "bold")])
    cli.out.pieces((f"    {line}\n", "") for line in printable(one.text).split("\n"))
