"""API keys on the command line: what the first one changes, and where those of others are."""

from __future__ import annotations

from tests.cli.conftest import Quick
from tests.cli.shell import Fork


def first_lines(fork: Fork, count: int) -> str:
    with fork("serve", "--port", "0") as server:
        return "".join(server.stdout.readline().decode() for _ in range(count))


def test_the_first_key_says_what_it_changes_and_the_service_asks_for_it(fork: Fork, quick: Quick) -> None:
    assert "Bearer" not in first_lines(fork, 3)
    assert "401" in quick("key", "create", "--owner", "anna").err
    assert "401" not in quick("key", "create", "--owner", "bert").err
    said = first_lines(fork, 4)
    assert "sign in with a key" in said
    assert "/api/v1/chat -H 'Authorization: Bearer KEY'" in said


def test_a_list_of_keys_says_that_others_have_some(quick: Quick) -> None:
    quick("key", "create", "--owner", "anna")
    assert "1 of other owners: list them with --all" in quick("key", "ls").err
    for all_of_them in (("--all",), ("--owner", "anna")):
        ran = quick("key", "ls", *all_of_them)
        assert "anna" in ran.out
        assert "other owners" not in ran.err
