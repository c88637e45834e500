"""Settings: which source wins, and what is said of one that cannot be taken."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

import everthread
from everthread import CompactionPolicy
from everthread.core.errors import Invalid
from everthread.settings import Settings, load, variables


@pytest.fixture(autouse=True)
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder and a user's folders of our own."""
    here = tmp_path / "here"
    here.mkdir()
    (tmp_path / "config" / "everthread").mkdir(parents=True)
    monkeypatch.chdir(here)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    for variable in ("EVERTHREAD_CONFIG", "MAX_MESSAGE_HISTORY", *variables().values()):
        monkeypatch.delenv(variable, raising=False)
    return tmp_path


def test_each_source_wins_over_those_after_it(places: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def in_effect(**given: object) -> tuple[str, str]:
        loaded = load(given)
        return loaded.settings.owner, loaded.origins["owner"]

    assert in_effect() == ("local", "default")
    users = places / "config" / "everthread" / "everthread.toml"
    users.write_text('owner = "of the user"')
    assert in_effect() == ("of the user", str(users))
    nearer = places / "here" / "everthread.toml"
    nearer.write_text('owner = "of the folder"')
    assert in_effect() == ("of the folder", str(nearer))
    monkeypatch.setenv("EVERTHREAD_OWNER", "of the environment")
    assert in_effect() == ("of the environment", "environment")
    assert in_effect(owner="of the option") == ("of the option", "option")


def test_an_empty_variable_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVERTHREAD_OWNER", "")
    assert load({}).origins["owner"] == "default"


def test_a_relative_xdg_folder_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", "relative")
    assert load({}).settings.models_dir.is_absolute()


def test_a_strange_path_is_quoted_in_the_default_address(places: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(places / "50% of ?"))
    assert load({}).settings.database.endswith("/50%25%20of%20%3F/everthread/et.db")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("databse = 'x'", "databse"),
        ("log_level = 'loud'", "log_level"),
        ("owner = 5", "owner"),
        ("owner =", "is not TOML"),
    ],
)
def test_a_file_that_cannot_be_taken_says_what_is_wrong(places: Path, text: str, said: str) -> None:
    (places / "here" / "everthread.toml").write_text(text)
    with pytest.raises(Invalid, match=said):
        load({})


def test_settings_do_not_change() -> None:
    settings = load({}).settings
    with pytest.raises(ValidationError):
        settings.owner = "another"  # type: ignore[misc]


def test_i23_the_settings_do_not_show_the_address_by_themselves() -> None:
    assert "s3cret" not in repr(load({"database": "postgresql://ada:s3cret@host/db"}))


# --- compaction, and a file that is named ---


async def test_each_level_of_a_compactions_settings_lies_over_those_below(
    places: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = places / "here" / "everthread.toml"
    file.write_text("[compaction]\nkeep_recent = 11\nfan_in = 3\nthreshold = 0.6\nbreaker_failures = 5\n")
    monkeypatch.setenv("EVERTHREAD_COMPACTION_KEEP_RECENT", "12")
    monkeypatch.setenv("EVERTHREAD_COMPACTION_THRESHOLD", "0.7")
    loaded = load({})
    origins = {name: loaded.origins[f"compaction.{name}"] for name in ("keep_recent", "fan_in", "leaf_max_tokens")}
    assert origins == {"keep_recent": "environment", "fan_in": str(file), "leaf_max_tokens": "default"}
    async with everthread.open("memory://", settings=Settings.load()) as et:
        conv = await et.conversations.create()
        levels = [await et.compaction_config.get(conv)]
        for conversation, value in ((None, 13), (conv, 14)):
            await et.compaction_config.set({"keep_recent": value}, conversation=conversation)
            levels.append(await et.compaction_config.get(conv))
        with pytest.raises(Invalid, match="1 to 99"):
            await conv.compact(compaction={"keep_recent": 400})
    assert [level.keep_recent for level in levels] == [12, 13, 14]
    assert {(level.threshold, level.fan_in, level.breaker_failures) for level in levels} == {(0.7, 3, 5)}


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("enabled", "false", False),
        ("enabled", "On", True),
        ("fan_in", "5", 5),
        ("breaker_seconds", "2.5", 2.5),
        ("strategy", "coding", "coding"),
        ("summary_model", "ollama:qwen3", "ollama:qwen3"),
    ],
)
def test_a_variable_is_read_as_what_its_field_is(
    name: str, text: str, value: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variables()[f"compaction.{name}"], text)
    found = getattr(Settings.load().compaction, name)
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("variable", "text", "said"),
    [
        ("EVERTHREAD_COMPACTION_THRESHOLD", "7", "compaction.threshold: 7.0 is not allowed; choose from 0.05 to 1.0"),
        ("EVERTHREAD_COMPACTION_FAN_IN", "many", "compaction.fan_in: 'many' is not allowed; choose from 2 to 100"),
        ("EVERTHREAD_COMPACTION_ENABLED", "perhaps", "compaction.enabled: must be true or false"),
        ("EVERTHREAD_COMPACTION_STRATEGY", "poetic", "compaction.strategy: must be one of auto, chat"),
        ("MAX_MESSAGE_HISTORY", "9", "compaction.max_message_history: 9 is not allowed; choose from 10 to 1,000"),
        ("EVERTHREAD_LOG_FORMAT", "xml", "invalid value for the setting 'log_format'"),
        ("EVERTHREAD_COMPACTION", "{}", "set each field separately"),
        ("EVERTHREAD_COMPACTION_KEEP_RECNET", "5", "unknown compaction setting; available: breaker_failures"),
    ],
)
def test_a_bad_variable_is_refused_by_its_name_with_what_is_allowed(
    variable: str, text: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, text)
    with pytest.raises(Invalid) as refused:
        Settings.load()
    assert said in str(refused.value)
    assert variable in str(refused.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("threshold = 7", "compaction.threshold: 7 is not allowed; choose from 0.05 to 1.0"),
        ("threshold = true", "compaction.threshold: True is not allowed"),
        ("keep_recent = '5'", "compaction.keep_recent: '5' is not allowed; choose from 1 to 99"),
        ("keep_recnet = 5", "compaction.keep_recnet: unknown compaction setting; available: breaker_failures"),
        (
            "keep_recent = 30\nmax_message_history = 20",
            "compaction.keep_recent: 30 is not allowed; choose from 1 to 19",
        ),
    ],
)
def test_a_bad_table_is_refused_with_its_file_and_what_is_allowed(places: Path, text: str, said: str) -> None:
    file = places / "here" / "everthread.toml"
    file.write_text(f"[compaction]\n{text}\n")
    with pytest.raises(Invalid) as refused:
        Settings.load()
    assert said in str(refused.value)
    assert str(file) in str(refused.value)


def test_compaction_that_is_no_table_is_refused(places: Path) -> None:
    (places / "here" / "everthread.toml").write_text("compaction = 5")
    with pytest.raises(Invalid, match="must be a table"):
        Settings.load()


def test_a_file_that_is_named_is_read_in_the_place_of_the_others(places: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (places / "here" / "everthread.toml").write_text('owner = "of the folder"\nlog_level = "debug"\n')
    named = places / "named.toml"
    named.write_text('owner = "of the named"')
    monkeypatch.setenv("EVERTHREAD_CONFIG", str(named))
    assert (Settings.load().owner, Settings.load().log_level) == ("of the named", "warning")
    other = places / "other.toml"
    other.write_text('owner = "of the option"')
    assert Settings.load(other).owner == "of the option"
    for gone in (places / "gone.toml", places):
        with pytest.raises(Invalid, match="file not found"):
            Settings.load(gone)


async def test_a_plain_open_honours_one_variable_and_reads_no_file(
    places: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (places / "here" / "everthread.toml").write_text("[compaction]\nfan_in = 3\n")
    monkeypatch.setenv("EVERTHREAD_COMPACTION_FAN_IN", "4")
    monkeypatch.setenv("MAX_MESSAGE_HISTORY", "10")
    async with everthread.open("memory://") as et:
        assert await et.compaction_config.get() == CompactionPolicy(max_message_history=10, keep_recent=9)
    async with everthread.open("memory://", compaction=CompactionPolicy(max_message_history=50)) as et:
        assert (await et.compaction_config.get()).max_message_history == 50
    monkeypatch.setenv("MAX_MESSAGE_HISTORY", "1001")
    with pytest.raises(Invalid, match=r"10 to 1,000 \(set by MAX_MESSAGE_HISTORY") as refused:
        everthread.open("memory://")
    assert refused.value.field == "MAX_MESSAGE_HISTORY"


def test_the_variable_with_the_prefix_goes_before_the_one_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAX_MESSAGE_HISTORY", "20")
    loaded = load({})
    assert loaded.settings.compaction.max_message_history == 20
    assert loaded.origins["compaction.max_message_history"] == "MAX_MESSAGE_HISTORY in the environment"
    monkeypatch.setenv("EVERTHREAD_COMPACTION_MAX_MESSAGE_HISTORY", "30")
    assert Settings.load().compaction.max_message_history == 30


async def test_settings_name_the_database_where_no_address_is_given(places: Path) -> None:
    async with everthread.open(settings=Settings.load(database="memory://")) as et:
        assert await et.stats()
    with pytest.raises(Invalid, match="url"):
        everthread.open()


def test_to_make_settings_by_hand_reads_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVERTHREAD_OWNER", "of the environment")
    assert Settings().owner == "local"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("localhost:3000", "write one such as http://localhost:3000"),
        ("ftp://localhost", "write one such as http://localhost:3000"),
        ("null", "write one such as http://localhost:3000"),
        ("https://*.example.com", "write one such as http://localhost:3000"),
        ("http://me@localhost:3000", "write one such as http://localhost:3000"),
        ("http://localhost:99999", "write one such as http://localhost:3000"),
        ("http://localhost:3000/", "write http://localhost:3000"),
        ("http://localhost:3000/chat?x=1", "write http://localhost:3000"),
        ("HTTP://LocalHost:3000", "write http://localhost:3000"),
        ("https://chat.example:443", "write https://chat.example"),
        ("http://localhost:3000, *", "`*` already is every page"),
    ],
)
def test_an_origin_that_no_browser_would_send_is_refused_and_the_right_one_said(
    monkeypatch: pytest.MonkeyPatch, given: str, said: str
) -> None:
    monkeypatch.setenv("EVERTHREAD_CORS_ORIGINS", given)
    with pytest.raises(Invalid) as caught:
        load({})
    assert said in str(caught.value)
    assert "EVERTHREAD_CORS_ORIGINS in the environment" in str(caught.value)


def test_origins_are_taken_with_spaces_and_ports() -> None:
    given = Settings(cors_origins=" http://localhost:3000 ,https://chat.example,http://[::1]:5173,")
    assert given.allowed_origins == ("http://localhost:3000", "https://chat.example", "http://[::1]:5173")
    assert Settings(cors_origins="*").allowed_origins == ("*",)
    assert Settings().allowed_origins == ()
