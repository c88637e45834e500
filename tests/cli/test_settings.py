"""Settings: which source wins, and what is said of one that cannot be taken."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from everthread.core.errors import Invalid
from everthread.settings import Settings, load


@pytest.fixture(autouse=True)
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder and a user's folders of our own."""
    here = tmp_path / "here"
    here.mkdir()
    (tmp_path / "config" / "everthread").mkdir(parents=True)
    monkeypatch.chdir(here)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    for name in Settings.model_fields:
        monkeypatch.delenv(f"EVERTHREAD_{name.upper()}", raising=False)
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
