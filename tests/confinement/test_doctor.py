"""`workbench doctor` and `get_confinement`: what this machine has, what it lacks and what to do."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Served, typed
from workbench.app import Workbench
from workbench.confinement import abilities

pytestmark = pytest.mark.long


Doctor = Callable[..., tuple[int, dict[str, tuple[str, str]]]]


@pytest.fixture
def doctor(monkeypatch: pytest.MonkeyPatch) -> Doctor:
    """`doctor(directory, *options, NAME=value)`: its exit status, and what it says of each thing: state and text."""

    def ask(directory: Path, *options: str, **environment: str) -> tuple[int, dict[str, tuple[str, str]]]:
        monkeypatch.chdir(directory)
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        ran = typed("--json", *options, "doctor")
        assert ran.err == ""
        return ran.status, {row["what"]: (row["state"], row["says"]) for row in json.loads(ran.out)}

    return ask


def test_doctor_approves_a_complete_machine_and_leaves_nothing_behind(doctor: Doctor, repository: Path) -> None:
    before = sorted(repository.rglob("*"))
    status, found = doctor(repository)
    assert sorted(repository.rglob("*")) == before
    assert status == 0
    assert found["Python"] == ("ok", sys.version.split()[0])
    assert found["git"][0] == "ok"
    assert found["git"][1].endswith(f"repository {repository}")
    assert found["project"] == ("ok", str(repository))
    own = "Each command has files, shared memory and a network of its own" if abilities().namespaces else ""
    assert found["confinement"][0] == ("ok" if abilities().complete else "warning")
    assert found["confinement"][1].startswith(f"{abilities().summary} {own}".rstrip())
    assert found["server"] == ("-", "not running; start it with `%workbench start` in a notebook or `workbench serve`")
    assert "free" in found["disk"][1]
    assert found["JupyterLab"][0] in ("ok", "-")


def test_without_git_the_status_is_1_and_it_says_what_to_install(
    doctor: Doctor, repository: Path, tmp_path: Path
) -> None:
    status, found = doctor(repository, "--project", str(repository), PATH=str(tmp_path))
    assert status == 1
    assert found["git"] == ("missing", "git is not installed. Install git 2.38 or newer.")


def test_programs_of_agents_are_found_in_the_path(doctor: Doctor, repository: Path, tmp_path: Path) -> None:
    programs = [tmp_path / name for name in ("claude", "codex", "gemini")]
    for program in programs:
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
    _, found = doctor(repository, PATH=f"{tmp_path}:{os.environ['PATH']}")
    assert {("ok", str(program)) for program in programs} <= {*found.values()}


def test_doctor_warns_of_confinement_that_is_off_and_of_a_missing_repository(doctor: Doctor, tmp_path: Path) -> None:
    status, found = doctor(tmp_path, "--project", str(tmp_path), WORKBENCH_CONFINEMENT="off")
    assert status == 0
    assert found["confinement"] == ("warning", "Workers are not confined: the setting confinement is off.")
    assert found["git"][0] == "warning"
    assert "git init" in found["git"][1]


@pytest.mark.anyio
async def test_get_confinement_lists_the_enforced_and_missing_protections(workbench: Workbench) -> None:
    confinement = await workbench.call("get_confinement")
    able = abilities()
    assert confinement.pop("summary").startswith(able.summary)
    assert confinement == {
        "mode": "auto",
        "abi": able.abi,
        "enforced": list(able.enforced),
        "missing": list(able.missing),
        "namespaces": bool(able.namespaces),
        "unused": [],
    }


def test_doctor_says_that_a_setting_keeps_commands_from_having_files_of_their_own(
    doctor: Doctor, repository: Path
) -> None:
    if not abilities().abi:
        pytest.skip(abilities().summary)
    _, found = doctor(repository, WORKBENCH_CONFINEMENT_NAMESPACES="off")
    assert "the setting confinement_namespaces is off" in found["confinement"][1]


def test_a_path_that_the_settings_open_and_that_is_not_there_is_named(doctor: Doctor, repository: Path) -> None:
    missing = "confinement_write names ~/no-such/results, which does not exist: workers get no access to it."
    _, found = doctor(
        repository, WORKBENCH_CONFINEMENT_WRITE="~/no-such/results", WORKBENCH_CONFINEMENT_READ="/o/*:/usr"
    )
    assert found["confinement"][0] == "warning"
    assert missing in found["confinement"][1]
    assert "confinement_read names /o/*, which is a pattern and no path" in found["confinement"][1]
    assert "/usr" not in found["confinement"][1]


@pytest.mark.anyio
async def test_a_server_that_runs_is_named(doctor: Doctor, served: Served) -> None:
    project = served.workbench.settings.project
    _, found = await asyncio.to_thread(doctor, project, "--project", str(project))
    assert found["server"] == ("ok", f"{served.info.url}, process {os.getpid()}")
