"""config and demo."""

from __future__ import annotations

from pathlib import Path

import pytest

from everthread.cli import demo
from tests.cli.conftest import Quick
from tests.cli.shell import Shell


def test_config_shows_each_setting_and_where_it_came_from(shell: Shell, quick: Quick) -> None:
    (shell.folder / "everthread.toml").write_text('owner = "ada"\n')
    shown = quick("config", "--json", "--database", "memory://").json["settings"]
    assert shown["database"] == {"value": "memory://", "from": "option"}
    assert shown["owner"] == {"value": "ada", "from": str(shell.folder / "everthread.toml")}
    assert shown["log_level"] == {"value": "warning", "from": "default"}
    assert quick("config", "--json").json["settings"]["database"]["from"] == "environment"
    assert shown["model_vision"] == {"value": None, "from": "default"}
    assert "ada" in quick("config").out
    assert "None" not in quick("config").out


def test_config_shows_the_settings_of_compaction_and_the_file_that_was_named(shell: Shell, quick: Quick) -> None:
    named = shell.folder / "mine.toml"
    named.write_text("[compaction]\nenabled = false\n")
    for arguments in (["--config", str(named), "config"], ["config", "--config", str(named)]):
        shown = quick(*arguments, "--json", env={"MAX_MESSAGE_HISTORY": "50"}).json
        assert shown["settings"]["compaction.enabled"] == {"value": "false", "from": str(named)}
        assert shown["settings"]["compaction.max_message_history"]["value"] == "50"
        assert shown["files"] == [{"path": str(named), "exists": True}]
    gone = quick("config", "--config", "gone.toml", "--json")
    assert (gone.code, gone.error["code"]) == (2, "invalid")


def test_without_a_database_named_the_file_is_in_the_data_folder(shell: Shell, quick: Quick) -> None:
    shell.database = None
    assert quick("append", "c", input='{"role": "user", "content": "x"}').code == 0
    assert (shell.home / ".local/share/everthread/et.db").is_file()
    elsewhere = quick("ls", "--json", env={"XDG_DATA_HOME": str(shell.home / "data")})
    assert elsewhere.code == 3
    assert str(shell.home / "data/everthread/et.db") in elsewhere.error["message"]


def test_the_demo_shows_that_nothing_is_lost(quick: Quick, tmp_path: Path) -> None:
    pytest.importorskip("langchain", reason="needs everthread[langchain]")
    database = f"sqlite:///{tmp_path / 'demo.db'}"
    result = quick("demo", "--json", "--database", database).json
    assert result["ok"] is True
    assert result["in_log"] == result["said"] > result["in_checkpoint"]
    assert len(quick("show", result["conversation_id"], "--json", "--database", database).lines) == result["said"]


def test_the_demo_leaves_a_database_alone_that_was_not_named_for_it(quick: Quick, tmp_path: Path) -> None:
    pytest.importorskip("langchain", reason="needs everthread[langchain]")
    shown = quick("demo")
    assert shown.code == 0
    assert "hash chain verified" in shown.out
    assert not (tmp_path / "et.db").exists()


def test_without_its_extra_the_demo_says_what_to_install(quick: Quick, monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> None:
        raise ModuleNotFoundError("No module named 'langchain'", name="langchain")

    monkeypatch.setattr(demo, "import_module", absent)
    ran = quick("demo", "--json")
    assert (ran.code, ran.error["code"]) == (1, "missing_extra")
    assert "everthread[cli,langchain]" in ran.error["message"]
