"""What people and pipes do every day: append, ls, show, search, fork, copy, pin, delete, stats."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Quick
from tests.cli.shell import Shell, user


@pytest.fixture
def talk(quick: Quick) -> Quick:
    """A conversation of three messages."""
    messages = [
        user("Where is the harbour?", id="q1", name="ada", created_at="2024-02-03T04:05:06Z"),
        {"role": "assistant", "content": "Behind the lighthouse.", "id": "a1"},
        user("谢谢你的帮助", id="q2"),
    ]
    assert quick("append", "c1", "--title", "The harbour", input=messages).code == 0
    return quick


def test_lines_are_appended_and_shown_in_order(talk: Quick) -> None:
    shown = talk("show", "c1").out
    assert shown.index("Where is the harbour?") < shown.index("Behind the lighthouse.") < shown.index("谢谢你的帮助")
    assert "user (ada)  2024-02-03 04:05:06  q1" in shown


def test_what_comes_in_comes_back_as_json(talk: Quick) -> None:
    first, second, third = talk("show", "c1", "--json").lines
    assert [first["seq"], second["seq"], third["seq"]] == [1, 2, 3]
    assert first["payload"]["name"] == first["name"] == "ada"
    assert first["said_at"] == "2024-02-03T04:05:06+00:00"
    assert third["text"] == "谢谢你的帮助"


@pytest.mark.parametrize(
    "given",
    [
        '[{"role": "user", "content": "one"}, {"role": "user", "content": "two"}]',
        '{"role": "user", "content": "one"}\n\n{"role": "user", "content": "two"}\n',
        '[\n {"role": "user",\n  "content": "one"}, {"role": "user", "content": "two"}\n]\n',
    ],
)
def test_arrays_and_lines_are_the_same_messages(quick: Quick, given: str) -> None:
    receipts = quick("append", "c", "--json", input=given).json["receipts"]
    assert [receipt["seq"] for receipt in receipts] == [1, 2]
    assert [message["text"] for message in quick("show", "c", "--json").lines] == ["one", "two"]


def test_one_object_over_several_lines_is_one_message(quick: Quick) -> None:
    assert len(quick("append", "c", "--json", input='{\n"role": "user",\n"content": "x"\n}').json["receipts"]) == 1


def test_without_a_name_a_new_conversation_is_made(quick: Quick) -> None:
    made = quick("append", "--json", input=[user("x")]).json["conversation_id"]
    assert [row["id"] for row in quick("ls", "--json").lines] == [made]


@pytest.mark.parametrize("given", ["", "\n\n", "[]", "nonsense", '{"role": "user"', "5", '[{"content": "x"}]'])
def test_input_that_is_no_message_stores_nothing(quick: Quick, given: str) -> None:
    quick("append", "c", input=[user("before")])
    assert quick("append", "c", input=given).code == 2
    assert len(quick("show", "c", "--json").lines) == 1


def test_a_retry_with_a_key_adds_nothing(quick: Quick) -> None:
    first = quick("append", "c", "--key", "k", "--json", input=[user("x")]).json
    assert quick("append", "c", "--key", "k", "--json", input=[user("x")]).json == first
    assert quick("append", "c", "--key", "k", input=[user("y")]).code == 4


def test_an_append_to_a_head_that_moved_is_a_conflict(talk: Quick) -> None:
    failed = talk("append", "c1", "--expected-head", "2", "--json", input=[user("late")])
    assert (failed.code, failed.error["code"], failed.error["retryable"]) == (4, "head_moved", True)


def test_ls_shows_the_newest_first_and_as_many_as_asked(quick: Quick) -> None:
    for number in range(5):
        quick("append", f"c{number}", input=[user("x")])
    assert [row["id"] for row in quick("ls", "--limit", "3", "--json").lines] == ["c4", "c3", "c2"]
    few = quick("ls", "--limit", "3")
    assert "c4" in few.out
    assert "--limit shows more" in few.err


def test_ls_shows_children_of_a_parent(quick: Quick) -> None:
    quick("append", "top", input=[user("x")])
    quick("append", "sub", "--parent", "top", input=[user("x")])
    assert [row["id"] for row in quick("ls", "--parent", "top", "--json").lines] == ["sub"]


def test_owners_do_not_see_each_other(talk: Quick) -> None:
    assert talk("ls", "--owner", "eve", "--json").lines == []
    assert talk("show", "c1", "--owner", "eve").code == 3
    assert talk("search", "harbour", "--owner", "eve", "--json").json["hits"] == []


def test_options_stand_before_or_after_the_command_and_the_later_wins(talk: Quick, tmp_path: Path) -> None:
    absent = f"sqlite:///{tmp_path / 'absent.db'}"
    assert talk("--json", "ls").lines == talk("ls", "--json").lines
    assert talk("--database", absent, "ls").code == 3
    assert talk("--owner", "eve", "ls", "--owner", "local", "--json").lines == talk("ls", "--json").lines


@pytest.mark.parametrize(
    ("options", "seqs"),
    [
        (["--tail", "2"], [2, 3]),
        (["--tail", "0"], []),
        (["--after", "1"], [2, 3]),
        (["--after", "1", "--limit", "1"], [2]),
        (["--branch", "2"], [1, 2]),
        (["--branch", "main"], [1, 2, 3]),
    ],
)
def test_a_part_of_a_conversation_can_be_shown(talk: Quick, options: list[str], seqs: list[int]) -> None:
    assert [message["seq"] for message in talk("show", "c1", *options, "--json").lines] == seqs


def test_tail_and_after_together_are_refused(talk: Quick) -> None:
    assert talk("show", "c1", "--tail", "1", "--after", "1").code == 2


def test_long_messages_are_folded_unless_asked_for_in_full(quick: Quick) -> None:
    long = "\n".join(f"line {number}" for number in range(100))
    quick("append", "c", input=[user(long)])
    folded = quick("show", "c").out
    assert "line 5" in folded
    assert "line 50" not in folded
    assert "more characters (--full shows them)" in folded
    assert "line 99" in quick("show", "c", "--full").out


def test_tool_calls_are_shown(quick: Quick) -> None:
    call = {"id": "1", "type": "function", "function": {"name": "look_up", "arguments": '{"port": 4711}'}}
    quick("append", "c", input=[{"role": "assistant", "content": None, "tool_calls": [call]}])
    assert 'look_up {"port": 4711}' in quick("show", "c").out


def test_older_revisions_are_shown_when_asked(quick: Quick) -> None:
    quick("append", "c", input=[user("first", id="m")])
    quick("append", "c", input=[user("second", id="m")])
    assert [m["text"] for m in quick("show", "c", "--json").lines] == ["second"]
    assert [m["text"] for m in quick("show", "c", "--revisions", "--json").lines] == ["first", "second"]
    assert "[revision 2]" in quick("show", "c").out


def test_what_has_no_time_of_its_own_and_what_is_only_thought_is_shown_as_such(quick: Quick, tmp_path: Path) -> None:
    file = tmp_path / "chat.json"
    file.write_text(json.dumps({"id": "sg", "conversations": [{"from": "human", "value": "Hi"}]}))
    assert quick("import", str(file)).code == 0
    (id,) = (one["id"] for one in quick("ls", "--json").lines)
    assert "user  –  " in quick("show", id).out
    thought = {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm", "signature": "x"}], "id": "t"}
    quick("append", "c", input=[thought])
    shown = quick("show", "c").out
    assert "[thinking]" in shown
    assert "–" not in shown


def test_search_finds_words_of_any_language(talk: Quick) -> None:
    (hit,) = talk("search", "lighthouse", "--json").json["hits"]
    assert (hit["conversation_id"], hit["seq"], hit["id"]) == ("c1", 2, "a1")
    assert "lighthouse" in hit["snippet"]
    assert (hit["role"], hit["conversation_title"]) == ("assistant", "The harbour")
    (hit,) = talk("search", "harbour", "--json").json["hits"]
    assert (hit["name"], hit["said_at"]) == ("ada", "2024-02-03T04:05:06+00:00")
    told = talk("search", "harbour").out
    assert all(part in told for part in ("The harbour", "user", "2024-02-03 04:05:06"))
    assert [hit["seq"] for hit in talk("search", "帮助", "--json").json["hits"]] == [3]
    assert "c1" in talk("search", "harbour", "--conversation", "c1").out
    assert talk("search", "harbour", "--conversation", "gone").code == 3


def test_recall_says_why_each_message_was_found(talk: Quick) -> None:
    told = talk("recall", "c1", "Where", "is", "the", "harbour?", "--json").json
    first = told["hits"][0]
    assert (first["seqs"], first["words"], first["why"][0]) == ([1], ["harbour"], "words")
    assert sum(first["parts"].values()) == pytest.approx(first["score"], abs=1e-4)
    asked = talk("recall", "c1", "--explain", "Where is the harbour?")
    assert " = words " in asked.out
    assert "(harbour)" in asked.out
    assert " 0.000" not in asked.out
    for name in {name for hit in told["hits"] for name, part in hit["parts"].items() if part >= 0.001}:
        assert f"{name}: " in asked.err
    plain = talk("recall", "c1", "Where is the harbour?")
    assert "words" not in plain.out
    assert "words: " not in plain.err


def test_recall_shows_what_was_said_around_a_hit_where_that_is_asked_for(talk: Quick) -> None:
    (hit,) = talk("recall", "c1", "--around", "1", "--limit", "1", "lighthouse", "--json").json["hits"]
    assert (hit["seqs"], [one["seq"] for one in hit["before"]], [one["seq"] for one in hit["after"]]) == ([2], [1], [3])
    shown = talk("recall", "c1", "--around", "1", "--limit", "1", "lighthouse").out
    assert shown.index("#1 ") < shown.index("#2 ") < shown.index("#3 ")
    assert "before" not in talk("recall", "c1", "lighthouse", "--json").json["hits"][0]


def test_a_grade_of_what_used_nothing_again_is_no_percentage(talk: Quick) -> None:
    graded = talk("grade", "c1", "--fail-under", "100")
    assert graded.code == 0
    assert "%" not in graded.out
    assert "nothing to grade" in graded.err
    assert talk("grade", "c1", "--json").json["recalled_percent"] is None


def test_recall_of_what_nobody_said_notes_that_nothing_is_found(talk: Quick) -> None:
    assert "nothing found" in talk("recall", "c1", "zirconium").err
    assert talk("recall", "gone", "harbour").code == 3
    assert talk("recall", "c1", "harbour", "--scope", "world").code == 2


def test_a_search_by_meaning_without_an_embedder_says_that_it_is_by_words(talk: Quick) -> None:
    assert "searched by words only: no embedder is installed" in talk("search", "--meaning", "lighthouse").err
    told = talk("search", "--meaning", "lighthouse", "--json").json
    assert (told["hits"][0]["id"], told["by_meaning"]) == ("a1", False)
    assert "no embedder" in told["why_words_alone"]
    assert talk("search", "lighthouse").err == ""
    assert talk("search", "lighthouse", "--json").json["why_words_alone"] is None


def test_a_fork_shares_what_came_before(talk: Quick) -> None:
    branch = talk("fork", "c1", "1", "--json").json
    assert (branch["fork_seq"], branch["is_active"]) == (1, False)
    talk("append", "c1", "--branch", branch["id"], input=[user("another way")])
    assert [m["text"] for m in talk("show", "c1", "--branch", branch["id"], "--json").lines][1:] == ["another way"]
    assert len(talk("show", "c1", "--json").lines) == 3
    assert "active" in talk("fork", "c1", "1", "--activate").out
    assert talk("fork", "c1", "99").code == 3


@pytest.mark.parametrize("name", ["a1", "2"])
def test_a_message_is_pinned_by_id_or_seq_and_unpinned(talk: Quick, name: str) -> None:
    assert talk("pin", "c1", name, "--json").json == {"conversation_id": "c1", "message_id": "a1", "is_pinned": True}
    assert "[pinned]" in talk("show", "c1").out
    assert talk("pin", "c1", name, "--remove").code == 0
    assert [m["is_pinned"] for m in talk("show", "c1", "--json").lines] == [False] * 3


def test_an_id_that_looks_like_a_seq_is_an_id(quick: Quick) -> None:
    quick("append", "c", input=[user("first", id="2"), user("second", id="other")])
    assert quick("pin", "c", "2", "--json").json["message_id"] == "2"


@pytest.mark.parametrize("message", ["gone", "99"])
def test_a_message_that_is_not_there_is_not_found(talk: Quick, message: str) -> None:
    assert talk("pin", "c1", message).code == 3
    assert talk("delete", "c1", message).code == 3


def test_a_deleted_message_is_hidden_and_comes_back(talk: Quick) -> None:
    talk("delete", "c1", "a1")
    assert [m["seq"] for m in talk("show", "c1", "--json").lines] == [1, 3]
    assert "[deleted]" in talk("show", "c1", "--deleted").out
    talk("delete", "c1", "a1", "--undo")
    assert len(talk("show", "c1", "--json").lines) == 3


def test_a_deleted_conversation_is_hidden_and_comes_back(talk: Quick) -> None:
    talk("delete", "c1")
    assert talk("ls", "--json").lines == []
    assert "deleted" in talk("ls", "--deleted").out
    talk("delete", "c1", "--undo")
    assert len(talk("ls", "--json").lines) == 1


def test_stats_count_messages_and_bytes(talk: Quick) -> None:
    counted = talk("stats", "--json").json
    assert (counted["conversations"], counted["messages"]) == (1, 3)
    assert counted["payload_bytes"] > 100
    assert "messages" in talk("stats").out


def test_a_file_that_is_not_there_does_not_look_empty(quick: Quick, tmp_path: Path) -> None:
    for command in (["ls"], ["verify"], ["heads"], ["stats"], ["search", "x"], ["backup", "b.db"], ["erasures"]):
        ran = quick(*command)
        assert ran.code == 3, command
        assert "no database at" in ran.err
    assert not (tmp_path / "et.db").exists()


COMMANDS = (
    "migrate",
    "ls",
    "show c",
    "search 世界",
    "stats",
    "heads",
    "verify",
    "fork c 1",
    "pin c m",
    "delete c m",
    "config",
    "doctor",
    "erase conversation c --yes",
    "erasures",
)


def test_every_command_speaks_json_and_nothing_else_on_both_databases(quick: Quick, durable_url: str) -> None:
    database = {"EVERTHREAD_DATABASE": durable_url}
    assert quick("append", "c", "--json", input=[user("hello 世界", id="m"), user("bye")], env=database).json
    for command in COMMANDS:
        ran = quick(*command.split(), "--json", env=database)
        assert (ran.code, ran.err) == (0, ""), command
        assert ran.lines, command


def test_the_installed_program_works_on_both_databases(tmp_path: Path, durable_url: str) -> None:
    shell = Shell(tmp_path / "home", durable_url)
    assert shell("append", "c", input=[user("hello 世界")]).code == 0
    assert "hello 世界" in shell("show", "c").out
    assert "all chains hold" in shell("verify").out


def test_the_beginning_of_an_id_names_a_conversation_if_no_other_begins_so(quick: Quick) -> None:
    for id in ("harbour-1", "harbour-2", "volcano-1"):
        quick("append", id, input=[user(f"about {id}")])
    assert [line["text"] for line in quick("show", "volc", "--json").lines] == ["about volcano-1"]
    assert quick("show", "harbour-1", "--json").lines[0]["text"] == "about harbour-1"
    several = quick("show", "harb", "--json")
    assert (several.code, several.error["code"]) == (2, "invalid")
    assert "harbour-1" in several.error["message"]
    assert quick("show", "tundra", "--json").code == 3
    assert [line["text"] for line in quick("show", "v", "--json").lines] == ["about volcano-1"]
    assert quick("prove", "vo").code == 0


def test_a_message_is_named_by_its_seq_wherever_it_is_by_its_id(quick: Quick) -> None:
    quick("append", "trip", input=[user("keep"), user("burn", id="m2")])
    for command in ("pin", "quarantine", "spread", "delete"):
        assert quick(command, "trip", "2").code == 0
    assert quick("erase", "message", "trip", "2", "--yes").code == 0
    assert [line["message_id"] for line in quick("erasures", "--json").lines] == ["m2"]
    assert quick("erase", "message", "trip", "9", "--yes").code == 3
    begun = quick("erase", "conversation", "tri", "--yes")
    assert begun.code == 3
    assert "wants a whole id, and 'tri' only begins one: trip" in begun.err
    quick("append", "trivet", input=[user("hot")])
    several = quick("erase", "conversation", "tri", "--yes")
    assert several.code == 3
    assert "trip" in several.err
    assert "trivet" in several.err


def test_one_of_something_is_not_called_several(quick: Quick) -> None:
    assert "1 new of 1 message\n" in quick("append", "trip", input=[user("alone", id="m1")]).out
    assert "1 conversation, 1 entry, 1 message, 0 erased: all chains hold" in quick("verify").out
    assert "erased 1 entry in 0 whole conversations" in quick("erase", "message", "trip", "m1", "--yes").out


def test_a_search_for_nothing_is_a_wrong_command_line(quick: Quick) -> None:
    quick("append", "trip", input=[user("something")])
    for nothing in ("", "  "):
        ran = quick("search", nothing, "--json")
        assert (ran.code, ran.error["code"]) == (2, "usage")


def test_what_would_be_recalled_is_shown_best_first(quick: Quick) -> None:
    said = [user("My grandmother has a peanut allergy."), user("The train leaves at noon."), user("Good night.")]
    quick("append", "trip", input=said)
    found = quick("recall", "trip", "what", "about", "the", "peanut", "allergy?", "--json").json
    assert found["hits"][0]["seqs"] == [1]
    assert "#1" in quick("recall", "trip", "peanut allergy").out
    assert quick("recall", "trip", " ").code == 2


def test_usage_counts_turns_by_model(quick: Quick) -> None:
    echo = {"EVERTHREAD_MODEL": "scripted:echo"}
    quick("append", "talk", input=[user("zero")])
    for words in ("one", "two"):
        quick("chat", "--conversation", "talk", words, env=echo)
    (row,) = quick("usage", "talk", "--json").lines
    assert (row["model"], row["turns"], row["failed"]) == (None, 2, 0)  # none was named: the one that is set
    assert row["input_tokens"] > 0
    quick("chat", "--conversation", "talk", "--model", "scripted:echo", "three")
    shown = quick("usage").out
    assert "scripted:echo" in shown
    assert "as set" in shown
