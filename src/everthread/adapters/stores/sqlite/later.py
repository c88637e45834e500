"""Tables that a file gets when something is first written to them.

Each table and each index takes a page of the file, whatever is in it, and most files never see a note, a vector or a
key. Until then the table stands, empty, in a database in memory that each connection has beside the file. SQLite
looks for a name in the file first and there next, so that no statement has to know: reading finds no rows, changing
changes none. An INSERT is refused when it is prepared; then the table is made in the file, in the same transaction,
and the INSERT is run again.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from functools import cache
from importlib.resources import files
from typing import Any

from everthread.core.failpoints import reach

_execute = sqlite3.Connection.execute
"""What every statement goes through, without the cost of `super()` for each."""

_BESIDE = "later"
_TRIES = 50
"""How often a statement is prepared anew before it is given up."""
_TABLES = "SELECT name FROM main.sqlite_schema WHERE type = 'table'"
_MAKES = re.compile(r"CREATE (?:UNIQUE |VIRTUAL )?(?:TABLE|INDEX) ")
_TABLE = re.compile(r"CREATE (?:VIRTUAL )?TABLE (\w+)")


class Connection(sqlite3.Connection):
    """A connection to a file that may not have all tables yet."""

    _seen: int | None = None
    """The version of the file's tables when we last looked; None where it has all of them."""
    _wanted: str = ""
    """The table that the last refused INSERT is for."""

    def stand_in(self) -> None:
        """Put empty tables beside the file if it does not have all of them."""
        seen = self._version()
        if {name for (name,) in super().execute(_TABLES)}.issuperset(_made_by()):
            return
        super().execute(f"ATTACH ':memory:' AS {_BESIDE}")
        self.deserialize(_empty(), name=_BESIDE)
        self._prepare_anew()
        self._seen = seen

    def look_again(self) -> None:
        """See the tables that have been made in the file since, by whomever."""
        if self._seen is not None and (version := self._version()) != self._seen:
            super().execute(_TABLES).fetchone()  # SQLite reads what tables there are when it reads a table
            self._prepare_anew()
            self._seen = version

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        """As ever; the table it is for is made if need be."""
        try:
            return _execute(self, sql, parameters)
        except sqlite3.DatabaseError as problem:
            return self._again(problem, lambda: _execute(self, sql, parameters))

    def executemany(self, sql: str, parameters: Iterable[Any], /) -> sqlite3.Cursor:
        """As ever; the table it is for is made if need be, before the first row is in it."""
        rows = list(parameters)
        try:
            return super().executemany(sql, rows)
        except sqlite3.DatabaseError as problem:
            run = super().executemany
            return self._again(problem, lambda: run(sql, rows))

    def _again(self, problem: sqlite3.DatabaseError, run: Callable[[], sqlite3.Cursor]) -> sqlite3.Cursor:
        """Run what could not be prepared, after what kept it from that is done away with."""
        for _ in range(_TRIES):
            self._mend(problem)
            try:
                return run()
            except sqlite3.DatabaseError as other:
                problem = other
        raise problem

    def _may(self, action: int, table: str | None, _column: str | None, database: str | None, _: str | None) -> int:
        """SQLite asks this when it prepares a statement."""
        if action != sqlite3.SQLITE_INSERT or database != _BESIDE or table is None or table not in _made_by():
            return sqlite3.SQLITE_OK
        self._wanted = table
        return sqlite3.SQLITE_DENY

    def _mend(self, problem: sqlite3.DatabaseError) -> None:
        code = getattr(problem, "sqlite_errorcode", 0)
        if code == sqlite3.SQLITE_AUTH:
            self._make(_made_by()[self._wanted])
        elif code != sqlite3.SQLITE_SCHEMA:  # FTS5 gives up when others make tables while it looks for its own
            raise problem

    def _make(self, statements: Sequence[str]) -> None:
        """All of them or none: in the transaction that wants them, or one of their own."""
        is_alone = not self.in_transaction
        if is_alone:
            super().execute("BEGIN IMMEDIATE")
        try:
            for statement in statements:
                super().execute(_MAKES.sub(r"\g<0>IF NOT EXISTS main.", statement, count=1))
            if is_alone:
                super().execute("COMMIT")
        finally:
            if is_alone and self.in_transaction:
                super().execute("ROLLBACK")
        self._prepare_anew()
        reach("table.made")

    def _prepare_anew(self) -> None:
        """Statements that were prepared know which table they read; SQLite forgets them when it is told whom to ask."""
        self.set_authorizer(self._may)

    def _version(self) -> int:
        return int(super().execute("PRAGMA main.schema_version").fetchone()[0])


@cache
def _empty() -> bytes:
    """A database with all tables that may be missing: to copy it takes a tenth of the time that making it takes."""
    with closing(sqlite3.connect(":memory:")) as made:
        made.execute("PRAGMA page_size = 512")
        for statements in dict.fromkeys(_made_by().values()):
            for statement in statements:
                made.execute(statement)
        return made.serialize()


@cache
def core() -> Sequence[str]:
    """The statements that make a new file."""
    return [statement for block in _blocks("core.sql") for statement in block]


@cache
def _made_by() -> Mapping[str, tuple[str, ...]]:
    """By table that may be missing, the statements that make it and what goes with it."""
    return {table: block for block in _blocks("later.sql") for table in _TABLE.findall("\n".join(block))}


def _blocks(name: str) -> list[tuple[str, ...]]:
    text = (files(__package__) / name).read_text("utf-8")
    blocks = (tuple(block.strip().removesuffix(";").split(";\n")) for block in text.split("\n\n"))
    return [block for block in blocks if not block[0].startswith("--")]
