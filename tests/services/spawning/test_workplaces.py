"""The workplace of an agent: what its commands find in their worktree, with mounts and without."""

from __future__ import annotations

import json
import os
import venv
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests import given
from tests.conftest import Admit, Served, git
from tests.services.processes.running import serving, spawn
from tests.services.spawning.test_definition import define, file_of
from tests.worker.working import directory_of, output_of, ran
from workbench.confinement import abilities
from workbench.errors import BadInput, NotFound, Refused, Unavailable, WorkbenchError
from workbench.rules.secrets.forms import MASK
from workbench.state.settings import Settings
from workbench.state.settings_file import settings_path
from workbench.trust.withheld import INCLUDED, trust, withheld

pytestmark = [pytest.mark.anyio, pytest.mark.long, pytest.mark.timeout(60)]

MODES = [
    pytest.param("auto", marks=pytest.mark.skipif(not abilities().namespaces, reason="the system allows no mounts")),
    "off",
]
IGNORED = ["/data/", "/.venv/", ".env", "/cache/"]


@pytest.fixture
def project(repository: Path) -> Path:
    """A repository with ignored data, an environment, and a file of variables."""
    (repository / ".gitignore").write_text("\n".join([*IGNORED, ""]))
    git("add", ".gitignore", cwd=repository)
    git("commit", "-qm", "Ignore", cwd=repository)
    (repository / "data").mkdir()
    (repository / "data" / "rows.csv").write_text("a,b\n")
    (repository / "data" / "private.csv").write_text("hidden\n")
    (repository / ".env").write_text("LAB=1\n")
    venv.create(repository / ".venv", symlinks=True)
    return repository


@asynccontextmanager
async def in_lab(settings: Settings, **keys: Any) -> AsyncIterator[Served]:
    """A served project with these settings and a worktree."""
    async with serving(Settings(**{**settings.model_dump(exclude_unset=True), **keys})) as served:
        await served.workbench.call("create_worktree", name="lab")
        yield served


async def outcome(served: Served, run: str) -> tuple[dict[str, Any], list[str]]:
    """A task in the worktree once it has ended, and its output."""
    task = await ran(served, run, target_worktree="lab", max_retries=0)
    return task, await output_of(served, task["id"])


@pytest.mark.parametrize("mode", MODES)
async def test_a_worktree_has_the_data_and_the_environment_where_the_project_has_them(
    settings: Settings, project: Path, mode: str
) -> None:
    keys: dict[str, Any] = {"read": ["data"], "environment": ".venv", "env": {"LAB": "x"}}
    async with in_lab(settings, confinement_namespaces=mode, **keys) as served:
        spawned = await spawn(served, assigned_worktree="lab")
        opens = ["read: data (settings)", "environment: .venv (settings)", "env: LAB (settings)"]
        assert spawned["opens"] == opens
        (question,) = (await served.workbench.call("list_approvals", status="decided"))["approvals"]
        assert question["payload"]["opens"] == opens
        script = "import sys; print(sys.prefix)"
        run = f'cat data/rows.csv; .venv/bin/python -c "{script}"; python -c "{script}"; echo $LAB $VIRTUAL_ENV'
        task, lines = await outcome(served, f"set -e; {run}; cat {project}/data/rows.csv; git status --porcelain")
        assert task["status"] == "completed", task["error_message"]
        environment = str(project / ".venv")
        assert lines[0] == lines[-1] == "a,b"
        assert lines[2:4] == [environment, f"x {environment}"]
        for change in ("echo x >> data/rows.csv", "rm data/rows.csv", "chmod 600 data/rows.csv", "touch .venv/x"):
            if "chmod" in change and mode == "off":
                continue
            refused, _ = await outcome(served, change)
            assert refused["status"] == "failed", change
    assert (project / "data" / "rows.csv").read_text() == "a,b\n"
    assert git("ls-tree", "-r", "--name-only", "wb/lab/main", cwd=project).split() == [".gitignore", "README.md"]


@pytest.mark.parametrize(("layout", "form"), [("src", "path"), (".", "finder")])  # all: confinement/test_own_files.py
@pytest.mark.parametrize("mode", MODES)
async def test_with_an_editable_environment_the_worktrees_code_is_tried(
    settings: Settings, project: Path, mode: str, layout: str, form: str
) -> None:
    code = project / layout / "lab_code"
    code.mkdir(parents=True)
    (code / "__init__.py").write_text("WHERE = 'checkout'\n")
    git("add", "-A", cwd=project)
    git("commit", "-qm", "Code", cwd=project)
    (packages,) = project.glob(".venv/lib/python3*/site-packages")
    if form == "path":
        (packages / "lab.pth").write_text(f"{code.parent}\n")
    else:
        (packages / "__editable___lab_finder.py").write_text(FINDER.replace("PLACE", str(code)))
        (packages / "lab.pth").write_text("import __editable___lab_finder as f; f.install()\n")
    async with in_lab(settings, environment=".venv", confinement_namespaces=mode) as served:
        place = directory_of(served) / layout / "lab_code" / "__init__.py"
        place.write_text("WHERE = 'worktree'\n")
        await spawn(served, assigned_worktree="lab")
        task, lines = await outcome(served, "cd / && python -c 'import lab_code; print(lab_code.WHERE)'")
        assert (task["status"], lines[-1]) == ("completed", "worktree")


FINDER = """\
import importlib.util, os, sys
MAPPING = {'lab_code': 'PLACE'}

class Finder:
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name in MAPPING:
            return importlib.util.spec_from_file_location(name, os.path.join(MAPPING[name], "__init__.py"))

def install():
    sys.meta_path.append(Finder)
"""


@pytest.mark.skipif(not abilities().namespaces, reason="the system allows no mounts")
async def test_a_hidden_path_cannot_be_read_by_any_name(settings: Settings, project: Path) -> None:
    async with in_lab(settings, read=["data"], hide=["data/private.csv"]) as served:
        await spawn(served, assigned_worktree="lab")
        task, lines = await outcome(served, f"cat data/private.csv {project}/data/private.csv; cat data/rows.csv")
        assert (task["status"], lines[-1]) == ("completed", "a,b")
        assert "hidden" not in lines


@pytest.mark.skipif(not abilities().namespaces, reason="the system allows no mounts")
async def test_what_is_hidden_by_way_of_a_link_is_hidden(settings: Settings, project: Path, tmp_path: Path) -> None:
    data, link = tmp_path / "disk" / "data", tmp_path / "link"
    data.mkdir(parents=True)
    (data / "private.csv").write_text("hidden\n")
    link.symlink_to(data.parent)
    async with in_lab(settings, read=[f"{link}/data"], hide=[f"{link}/data/private.csv"]) as served:
        await spawn(served, assigned_worktree="lab")
        task, lines = await outcome(served, f"cat {data}/private.csv {link}/data/private.csv; ls {data}")
        assert (task["status"], lines[-1]) == ("completed", "private.csv")
        assert "hidden" not in lines


async def test_without_mounts_what_cannot_be_hidden_is_refused(settings: Settings, project: Path) -> None:
    async with in_lab(settings, read=["data"], hide=["data/private.csv"], confinement_namespaces="off") as served:
        with pytest.raises(Unavailable, match=r"private\.csv cannot be hidden") as caught:
            await spawn(served, assigned_worktree="lab")
        assert caught.value.code == "HIDE_UNAVAILABLE"


async def test_a_setup_runs_once_and_again_when_a_lock_file_changes(settings: Settings, project: Path) -> None:
    setup = "mkdir -p cache && echo run >> cache/runs"
    async with in_lab(settings, setup=setup) as served:
        await spawn(served, assigned_worktree="lab")
        for count, run in ((1, "true"), (1, "echo 1 > uv.lock"), (2, "true")):
            task, _ = await outcome(served, run)
            assert task["status"] == "completed", task["error_message"]
            assert (directory_of(served) / "cache" / "runs").read_text() == "run\n" * count


@pytest.mark.parametrize(
    ("setup", "reason"),
    [
        ("echo broken; exit 3", "ended with status 3: broken"),
        ("exec sleep 60", "longer than"),
        ("echo x > /usr/outside-of-every-box", "status"),
    ],
)
async def test_a_setup_that_fails_is_a_coded_failure_and_keeps_the_work(
    settings: Settings, project: Path, setup: str, reason: str
) -> None:
    async with in_lab(settings, setup=setup, **({"setup_seconds": 1.0} if reason == "longer than" else {})) as served:
        (directory_of(served) / "work.txt").write_text("kept\n")
        await spawn(served, assigned_worktree="lab")
        task, _ = await outcome(served, "true")
        assert task["status"] == "failed"
        error = task["error_message"]
        assert "SETUP_FAILED" in error
        assert reason in error
        log = served.workbench.settings.logs / "setup-lab.log"
        assert str(log) in error
        assert ("broken" in log.read_text()) is ("broken" in setup)
        assert (directory_of(served) / "work.txt").read_text() == "kept\n"
    assert not Path("/usr/outside-of-every-box").exists()


async def test_a_variable_may_name_a_secret_which_is_masked(
    settings: Settings, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEY_OF_THE_LAB", "correct horse battery")
    async with in_lab(settings, env={"LAB_KEY": "env://KEY_OF_THE_LAB"}) as served:
        await spawn(served, assigned_worktree="lab")
        _, lines = await outcome(served, 'test "$LAB_KEY" = "correct horse battery" && echo "$LAB_KEY"')
        assert lines == [MASK]
        monkeypatch.delenv("KEY_OF_THE_LAB")
        with pytest.raises(Unavailable, match=r"env\.LAB_KEY: .*KEY_OF_THE_LAB"):
            await spawn(served, assigned_worktree="lab")


async def test_a_change_of_the_environment_while_it_is_used_is_said(settings: Settings, project: Path) -> None:
    async with in_lab(settings, environment=".venv") as served:
        await spawn(served, assigned_worktree="lab")
        _, lines = await outcome(served, "true")
        assert lines == []
        (project / ".venv" / "pyvenv.cfg").write_text((project / ".venv" / "pyvenv.cfg").read_text() + "prompt = x\n")
        _, lines = await outcome(served, "true")
        assert "has changed since this agent was started" in lines[-1]


async def test_an_editable_install_of_another_project_is_told_until_it_can_be_read(
    settings: Settings, project: Path, on_disk: Path
) -> None:
    (packages,) = project.glob(".venv/lib/python3*/site-packages")
    (packages / "other.pth").write_text(f"{on_disk}\n{project}\n")
    async with in_lab(settings, environment=".venv") as served:
        place = await served.workbench.call("get_workplace", worktree="lab")
        assert [str(on_disk) in problem for problem in place["problems"]] == [True]
        assert str(on_disk) in " ".join((await spawn(served, assigned_worktree="lab"))["unused"])
        opened = await spawn(served, assigned_worktree="lab", workplace={"read": [str(on_disk)]})
        assert str(on_disk) not in " ".join(opened["unused"])


async def test_what_this_machine_cannot_give_is_refused_before_an_agent_is_made(
    settings: Settings, project: Path
) -> None:
    broken = project / "cache"
    venv.create(broken, symlinks=True)
    for name in ("python", "python3"):
        (broken / "bin" / name).unlink()
        (broken / "bin" / name).symlink_to("/nowhere/python")
    async with in_lab(settings) as served:
        for keys, code, error in (
            ({"environment": "data"}, "ENVIRONMENT_NOT_FOUND", NotFound),
            ({"environment": "cache"}, "ENVIRONMENT_BROKEN", Unavailable),
            ({"read": ["missing"]}, "READ_NOT_FOUND", NotFound),
            ({"reads": ["data"]}, "BAD_WORKPLACE", BadInput),
        ):
            with pytest.raises(error) as caught:
                await spawn(served, assigned_worktree="lab", workplace=keys)
            assert caught.value.code == code
        assert (await served.workbench.call("list_agents"))["agents"] == []


async def test_a_mount_where_the_branch_has_a_file_is_refused_with_what_to_do(
    settings: Settings, project: Path
) -> None:
    async with in_lab(settings) as served:
        (directory_of(served) / "data").mkdir()
        (directory_of(served) / "data" / "own.txt").write_text("x")
        with pytest.raises(WorkbenchError, match="data cannot be brought into the worktree") as caught:
            await spawn(served, assigned_worktree="lab", workplace={"read": ["data"]})
        assert caught.value.code == "MOUNT_POINT_TAKEN"


async def show(served: Served, **which: Any) -> dict[str, tuple[Any, str]]:
    """The keys of a workplace that are not as they are by default: value and level."""
    place = await served.workbench.call("get_workplace", **which)
    return {row["key"]: (row["value"], row["source"]) for row in place["keys"] if row["source"] != "default"}


async def test_every_level_counts_and_a_restart_keeps_what_the_spawn_said(settings: Settings, project: Path) -> None:
    async with in_lab(settings, read=["data"], shm="64M") as served:
        call = served.workbench.call
        await define(served)
        agent_file = file_of(served)
        agent_file.write_text(agent_file.read_text() + "setup_seconds: 30\ngpu: 0\n")
        text = "---\nname: Implementer\nhide: [data/private.csv]\n---\nDo it."
        await call("save_persona", persona_id="implementer", text=text)
        plan = {"plan": "p", "submodules": False, "tasks": [{"name": "t", "title": "t", "persona": "implementer"}]}
        plan["tasks"][0] |= {"worktree": "lab", "run": "true"}  # type: ignore[index]
        await call("create_plan", text=json.dumps(plan))
        keys = {"shm": "32M", "env": {"A": "1"}}
        spawned = await spawn(served, assigned_worktree="lab", definition="Reviewer", workplace=keys)
        expected = {
            "read": (["data"], "settings"),
            "submodules": (False, "plan"),
            "hide": (["data/private.csv"], "persona"),
            "setup_seconds": (30.0, "definition"),
            "gpu": (0, "definition"),
            "shm": (32 << 20, "spawn"),
        }
        assert await show(served, agent=spawned["agent_id"]) == expected
        await call("restart_agent", agent_id=spawned["agent_id"])
        assert await show(served, agent=spawned["agent_id"]) == expected
        assert (await show(served, worktree="lab"))["submodules"] == (False, "plan")


async def test_a_plan_and_a_persona_open_nothing_until_the_person_trusts_them(
    settings: Settings, project: Path
) -> None:
    async with in_lab(settings) as served:
        call = served.workbench.call
        saved = await call("save_persona", persona_id="reader", text="---\nread: [data]\n---\nRead.")
        assert "is not used until you trust it" in saved["warnings"][0]
        plan = json.dumps({"plan": "p", "env": {"A": "1"}, "tasks": [{"name": "t", "title": "t", "persona": "reader"}]})
        made = await call("create_plan", text=plan)
        assert "--trust-workplace" in made["warnings"][0]
        task_id = made["tasks"]["t"]
        place = await call("get_workplace", persona="reader", task_id=task_id)
        assert [problem.partition(" is not used")[0] for problem in place["problems"]] == [
            "The key env of the plan",
            "The key read of the persona",
        ]
        settings_path(settings.project).write_text('read = ["data"]\n')
        (settings.project / INCLUDED).write_text(".env\n")
        of_all = (await call("get_workplace"))["problems"]
        assert [problem.partition(",")[0] for problem in of_all] == [
            "The project's settings.toml sets read",
            ".worktreeinclude is not used",
        ]
        trust(settings.project, withheld(settings.project))
        assert (await call("get_workplace"))["problems"] == []
        await call("create_plan", text=plan, trust_workplace=True)
        assert await show(served, persona="reader", task_id=task_id) == {
            "env": ({"A": "1"}, "plan"),
            "read": (["data"], "persona"),
        }
        exported = await call("export_plan", plan="p")
        assert "env:\n  A: '1'" in exported["text"]
        assert not (await call("create_plan", text=exported["text"], update=True))["changed"]


async def test_a_definition_that_opens_something_asks_for_trust(settings: Settings, project: Path) -> None:
    async with in_lab(settings) as served:
        await define(served)
        agent_file = file_of(served)
        agent_file.write_text(agent_file.read_text() + "read: [data]\n")
        with pytest.raises(Refused, match=r"opens to its commands read = \[.*data.*\]") as caught:
            await spawn(served, assigned_worktree="lab", definition="Reviewer")
        await served.workbench.call("approve", approval_id=caught.value.details["approval_id"])
        spawned = await spawn(served, assigned_worktree="lab", definition="Reviewer")
        assert spawned["opens"] == ["read: data (definition)"]


async def test_an_agents_agent_gets_no_more_than_the_settings_open(served: Served, admit: Admit) -> None:
    planner = await admit("paula", "planner")
    keys = {"workplace": {"read": ["/etc"], "setup_seconds": 5}, "new_worktree": True}
    refusal = await given.refuses("FORBIDDEN", spawn(served, planner, **keys))
    assert "may open no more than the operator's settings do: read." in refusal.message
    assert not (served.workbench.settings.worktrees / "implementer").exists()


async def test_ignored_files_are_copied_into_a_new_worktree_and_nothing_is_overwritten(
    settings: Settings, project: Path
) -> None:
    (project / "cache").mkdir()
    (project / "cache" / "one.bin").write_text("1")
    (project / "cache" / "link").symlink_to("one.bin")
    (project / ".worktreeinclude").write_text("# what the tests need\n.env\n")
    async with in_lab(settings, include=["cache/", "README.md"]) as served:
        lab = directory_of(served)
        assert (lab / "cache" / "one.bin").read_text() == "1"
        assert (lab / "cache" / "one.bin").stat().st_nlink == 1
        assert str((lab / "cache" / "link").readlink()) == "one.bin"
        assert not (lab / ".env").exists(), "the file is not trusted yet"
        trust(settings.project, withheld(settings.project))
        await served.workbench.call("create_worktree", name="two")
        assert (directory_of(served, "two") / ".env").read_text() == "LAB=1\n"
        assert git("status", "--porcelain", cwd=directory_of(served, "two")) == ""


@pytest.mark.parametrize("what", ["link", "pipe", "large", "repository"])
async def test_an_include_that_cannot_be_is_refused_and_leaves_nothing(
    settings: Settings, project: Path, what: str
) -> None:
    place = project / "cache"
    place.mkdir()
    if what == "link":
        (place / "out").symlink_to("../../secret")
    elif what == "pipe":
        os.mkfifo(place / "pipe")
    elif what == "repository":
        git("init", "-q", "inner", cwd=place)
    else:
        with (place / "big").open("wb") as file:
            file.truncate(10_000_000_000)
    code = "INCLUDE_TOO_LARGE" if what == "large" else "INCLUDE_REFUSED"
    async with serving(Settings(**settings.model_dump(exclude_unset=True), include=["cache", "cache/pipe"])) as served:
        with pytest.raises(BadInput) as caught:
            await served.workbench.call("create_worktree", name="lab")
        assert caught.value.code == code
        assert not directory_of(served).exists()


async def test_an_include_never_writes_by_way_of_a_link_of_the_branch(settings: Settings, project: Path) -> None:
    (project / "cache").mkdir()
    (project / "cache" / "one.bin").write_text("1")
    outside = project.parent / "outside"
    outside.mkdir()
    git("checkout", "-qb", "linked", cwd=project)
    async with serving(Settings(**settings.model_dump(exclude_unset=True), include=["cache"])) as served:
        (project.parent / "target").write_text(str(outside))
        blob = git("hash-object", "-w", str(project.parent / "target"), cwd=project)
        git("update-index", "--add", "--cacheinfo", f"120000,{blob},cache", cwd=project)
        git("commit", "-qm", "A link", cwd=project)
        with pytest.raises(WorkbenchError) as caught:
            await served.workbench.call("create_worktree", name="lab")
        assert caught.value.code == "INCLUDE_IN_THE_WAY"
    assert list(outside.iterdir()) == []
