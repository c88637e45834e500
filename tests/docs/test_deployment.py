"""What is meant to be deployed holds together: no engine is at hand, so its files are read as an engine would."""

from __future__ import annotations

import configparser
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from everthread.cli.commands import build_command
from everthread.settings import variables

ROOT = Path(__file__).parents[2]
UNIT = ROOT / "deploy" / "everthread.service"


def commands() -> set[str]:
    whole: Any = build_command()
    return set(whole.commands)


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))
    return found


def instructions() -> list[tuple[str, str]]:
    """The Dockerfile, an instruction a line."""
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [(name, rest) for name, rest in (line.split(None, 1) for line in lines)]


def test_the_image_runs_an_everthread_command_as_an_ordinary_user() -> None:
    last = dict(instructions())
    assert last["USER"] not in ("root", "0")
    assert json.loads(last["ENTRYPOINT"]) == ["everthread"]
    assert json.loads(last["CMD"])[0] in commands()


def test_what_the_image_copies_exists_and_every_base_has_a_version() -> None:
    for name, rest in instructions():
        if name == "COPY" and not rest.startswith("--from"):
            assert all((ROOT / source).exists() for source in rest.split()[:-1]), rest
        if name == "FROM":
            assert re.search(r":[\w.-]+", rest), rest
            assert ":latest" not in rest
        if name == "RUN" and "pip install" in rest:
            assert "--require-hashes" in rest or "--no-deps" in rest


def test_only_known_settings_are_set(compose: dict[str, Any]) -> None:
    files = (ROOT / "Dockerfile", UNIT)
    named = {name for file in files for name in re.findall(r"\bEVERTHREAD_\w+", file.read_text(encoding="utf-8"))}
    told = {name for one in compose["services"].values() for name in one.get("environment", {})}
    ours = {name for name in named | told if name.startswith("EVERTHREAD_")}
    assert len(ours) > 5
    assert ours <= set(variables().values())


def test_the_services_wait_for_the_database_and_run_commands_there_are(compose: dict[str, Any]) -> None:
    ours = {name: one for name, one in compose["services"].items() if one["image"] == "everthread"}
    assert set(ours) == {"service", "worker"}
    for one in ours.values():
        assert one["command"][0] in commands()
        assert one["depends_on"]["database"]["condition"] == "service_healthy"
        assert {volume.split(":")[0] for volume in one["volumes"]} <= set(compose["volumes"])
    assert "healthcheck" in compose["services"]["database"]
    assert all(port.startswith("127.0.0.1:") for port in ours["service"]["ports"])


def test_no_file_holds_a_password() -> None:
    lines = [line for line in (ROOT / "compose.yaml").read_text(encoding="utf-8").splitlines() if "PASSWORD" in line]
    assert len(lines) == 3
    assert all("${POSTGRES_PASSWORD" in line or line.startswith("#") for line in lines)


def test_the_unit_is_one_that_systemd_reads_and_stops_gently() -> None:
    unit = configparser.RawConfigParser(strict=False)
    unit.read(UNIT)
    assert {"Unit", "Service", "Install"} <= set(unit.sections())
    program, command = unit["Service"]["execstart"].split()[:2]
    assert Path(program).is_absolute()
    assert command in commands()
    assert unit["Service"]["killsignal"] == "SIGTERM"


@pytest.mark.long
@pytest.mark.parametrize(
    ("linter", "asked"),
    [("dockerfile-utils@0.16.3", ("lint", "Dockerfile")), ("dclint@3.1.0", ("compose.yaml",))],
)
def test_a_linter_of_the_field_finds_no_error(linter: str, asked: tuple[str, ...], tmp_path: Path) -> None:
    """Fetched by npm when it is wanted: who only changes Python need not have it."""
    npx = shutil.which("npx")
    if npx is None:
        pytest.skip("needs npx, of Node")
    command = [npx, "--yes", "--cache", str(tmp_path), linter, *asked]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode and "npm error" in done.stderr:
        pytest.skip(f"npm does not bring {linter}")
    assert done.returncode == 0, done.stdout + done.stderr
