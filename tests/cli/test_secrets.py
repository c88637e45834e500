"""No password of a database is ever printed."""

from __future__ import annotations

import pytest

from everthread.settings import masked, without_passwords
from tests.cli.conftest import Quick
from tests.cli.shell import Shell
from tests.postgres import Server

SECRET = "hunter2-x%40y"
FORMS = ("hunter2-x%40y", "hunter2-x@y", "hunter2")


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("postgresql://ada:s3cret@host:5432/db", "postgresql://ada:***@host:5432/db"),
        ("postgresql://ada:p@ss/w?rd#1@host/db", "postgresql://ada:***@host/db"),
        ("postgresql://ada:two words@host/db", "postgresql://ada:***@host/db"),
        ("postgresql://:s3cret@host/db", "postgresql://:***@host/db"),
        ("postgresql:/ada:s3cret@host/db", "postgresql:/ada:***@host/db"),
        ("postgresql://ada@host/db?password=s3cret&sslmode=require", "postgresql://ada@host/db?password=***&sslmode=require"),
        ("postgresql://ada@host/db", "postgresql://ada@host/db"),
        ("sqlite:////data/a:b@c.db", "sqlite:////data/a:b@c.db"),
        ("memory://", "memory://"),
        ("ada:s3cret@host/db", "ada:***@host/db"),
    ],
)  # fmt: skip
def test_an_address_is_shown_without_its_password(address: str, shown: str) -> None:
    assert masked(address) == shown


def test_a_password_is_hidden_wherever_it_stands_and_however_it_is_written() -> None:
    text = without_passwords("said s3c@ret, s3c%40ret", ["postgresql://ada:s3c%40ret@host/db"])
    assert text == "said ***, ***"


def test_addresses_nobody_named_lose_their_passwords_too() -> None:
    assert without_passwords("see 'https://me:s3cret@host/x' and y@z") == "see 'https://me:***@host/x' and y@z"


@pytest.mark.parametrize(
    "database",
    [
        f"postgresql://ada:{SECRET}@127.0.0.1:1/none",
        f"postgresql:/ada:{SECRET}@127.0.0.1:1/none",
        f"postgresql://127.0.0.1:1/none?user=ada&password={SECRET}",
        f"postgresql://ada:{SECRET}@127.0.0.1:nonsense/none",
        f"postgresql://ada:{SECRET}@[::1/none",
        f"mysql://ada:{SECRET}@127.0.0.1/none",
        f"ada:{SECRET}@127.0.0.1/none",
    ],
)
@pytest.mark.parametrize("command", ["ls", "doctor", "config"])
def test_i23_no_command_prints_the_password(quick: Quick, database: str, command: str) -> None:
    debug = {"EVERTHREAD_LOG_LEVEL": "debug"}
    by_option = quick(command, "--database", database, env=debug)
    by_variable = quick(command, "--json", env={**debug, "EVERTHREAD_DATABASE": database})
    said = "".join((by_option.out, by_option.err, by_variable.out, by_variable.err))
    assert said
    assert not [form for form in FORMS if form in said]


def test_i23_a_password_that_works_is_not_printed_either(quick: Quick, postgres_server: Server) -> None:
    with postgres_server.database() as address:
        name = address.partition("@/")[2].partition("?")[0]
        url = postgres_server.url(name, password="hunter2-x@y")
        for command in (["ls"], ["config"], ["doctor"], ["verify"], ["show", "gone"], ["restore", "gone.dump"]):
            ran = quick(*command, "--database", url)
            assert not [form for form in FORMS if form in ran.out + ran.err], command


def test_i23_a_password_in_a_settings_file_is_not_printed(shell: Shell, quick: Quick) -> None:
    shell.database = None
    file = shell.folder / "everthread.toml"
    file.write_text(f'database = "postgresql://ada:{SECRET}@127.0.0.1:1/none"\nowner = 5\n')
    unreadable = quick("config")
    assert unreadable.code == 2
    file.write_text(f'database = "ada:{SECRET}@127.0.0.1:1/none"\nlog_level = "debug"\n')
    mistyped = quick("ls")
    assert mistyped.code == 2
    said = unreadable.out + unreadable.err + mistyped.out + mistyped.err
    assert not [form for form in FORMS if form in said]
