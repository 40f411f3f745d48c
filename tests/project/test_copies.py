"""A project that was copied, restored or moved, or is reached by another path: what is done there is done there."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests import given
from tests.conftest import Served, git, typed
from tests.project.copies import SAME, WAYS, contents, copied
from tests.project.every_command import everything, snapshot
from tests.services.processes.running import process, serving, spawn
from tests.services.worktrees.lab import finished, worktree_row
from tests.worker.working import ran
from workbench.app import Workbench
from workbench.client.discovery import find_server
from workbench.git import Repository
from workbench.process import ProcessTable
from workbench.process.writer import Writer, WriterLock
from workbench.state import user_files
from workbench.state.server_file import ServerFile
from workbench.state.settings import Settings
from workbench.sweeps import leftovers
from workbench.trust import state_directory
from workbench.trust.withheld import trust, withheld

pytestmark = pytest.mark.anyio


COMMANDS: list[tuple[str, dict[str, Any]]] = [
    ("get_worktree_status", {}),
    ("list_conflicts", {}),
    ("get_worktree_diff", {"worktree_name": "lab"}),
    ("update_worktree", {"worktree_name": "lab"}),
    ("resolve_worktree", {"worktree_name": "lab"}),
    ("approve", {"approval_id": 1}),
    ("discard_worktree", {"worktree_name": "spare", "force": True, "delete_branch": True}),
    ("create_worktree", {"name": "spare"}),
    ("prune_worktrees", {}),
]


@pytest.mark.long
@pytest.mark.parametrize(
    "way", ["copied", *(pytest.param(way, marks=pytest.mark.long) for way in WAYS if way != "copied")]
)
async def test_every_command_acts_on_the_project_in_which_it_is_given(original: Path, way: str, tmp_path: Path) -> None:
    project = WAYS[way](original, tmp_path / "other")
    before = contents(original)
    if way not in SAME:
        assert given.refused("STATE_NOT_TRUSTED", state_directory.check, project)
        state_directory.adopt(project)
    state_directory.check(project)
    async with Workbench.open(Settings(project=project, port=0)) as workbench:
        assert (await worktree_row(workbench, "spare"))["dirty"] == ["precious.txt"]
        for name, arguments in COMMANDS:
            await workbench.call(name, **arguments)
            if name == "approve":
                await finished(workbench, 1)
            if way not in SAME:
                assert contents(original) == before, name
        assert (await worktree_row(workbench, "spare"))["path"] == str(
            project.resolve() / ".aiswarm" / "worktrees" / "spare"
        )
    assert git("log", "-1", "--format=%s", cwd=project) == "Integrate lab"
    assert "precious" in git("show", f"{saved(project)}:precious.txt", cwd=project)
    listed = git("worktree", "list", "--porcelain", cwd=project)
    assert listed.count("/.aiswarm/worktrees/") == 1
    assert "prunable" not in listed


def saved(project: Path) -> str:
    (bundle,) = (project / ".aiswarm" / "trash").glob("*.bundle")
    git("fetch", "-q", str(bundle), "refs/*:refs/back/*", cwd=project)
    return "refs/back/workbench/saved/spare/uncommitted"


@pytest.mark.long
async def test_a_worktree_is_discarded_whole_by_way_of_a_mount(original: Path, tmp_path: Path) -> None:
    (alias := tmp_path / "alias").mkdir()
    typed_there = f"cd {alias} && {sys.executable} -m workbench.cli discard spare --force && git worktree list"
    command = ["unshare", "--mount", "sh", "-c", f"mount --bind {original} {alias} || exit 77; {typed_there}"]
    ran = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True)
    if ran.returncode == 77 or "unshare" in ran.stderr:
        pytest.skip("this user may not mount")
    assert (ran.returncode, "spare" in ran.stdout.partition("bundle.")[2]) == (0, False), ran.stdout + ran.stderr


@pytest.mark.parametrize("way", ["copied", "restored", "moved", *SAME])
async def test_a_server_is_that_of_its_directory_only(served: Served, way: str, tmp_path: Path) -> None:
    original = served.workbench.settings.project
    project = WAYS[way](original, tmp_path / "other")
    server_info = await find_server(project / ".aiswarm" / "server.json")
    assert (server_info is None) == (way in ("copied", "restored"))
    if way not in SAME:
        state_directory.adopt(project)
    assert (project / ".aiswarm" / "server.json").exists() == (way not in ("copied", "restored"))
    if way == "moved":
        await given.refuses("PROJECT_MOVED", served.workbench.call("create_worktree", name="lab"))
        copied(project, original)
        await given.refuses("PROJECT_MOVED", served.workbench.call("create_worktree", name="lab"))
        before = snapshot(original)
        await served.servers.stop()
        assert snapshot(original) == before


def test_the_processes_that_a_copy_names_are_those_of_the_original(tmp_path: Path) -> None:
    table, other = ProcessTable("1.1"), ProcessTable("1.2")
    ref = table.start(["sleep", "60"], cwd=tmp_path, env=dict(os.environ), log=tmp_path / "log")
    try:
        assert not other.recognises(ref)
        assert not other.alive(ref)
        assert not other.terminate(ref, 0.0)
        assert other.usage([ref])[ref].memory_bytes == 0
        assert table.alive(ref)
    finally:
        assert table.terminate(ref, 0.0)


def test_the_writer_and_the_workers_of_a_sweep_that_a_copy_names_are_left_alone(tmp_path: Path) -> None:
    (original := tmp_path / "original").mkdir()
    with WriterLock(original / "lab").held():
        WriterLock(original / "lab").record(Writer.of_this_process(1, 1))
    leftovers.note_worker(original)
    copy = copied(original, tmp_path / "copy")
    assert WriterLock(original / "lab").writer() is not None
    assert WriterLock(copy / "lab").writer() is None
    leftovers._end_workers(copy / leftovers.WORKERS)
    assert not (copy / leftovers.WORKERS).exists()


@pytest.mark.parametrize("name", ["coordination.db", "worktrees", "worktrees/lab", "server.json"])
def test_state_that_is_a_link_out_of_the_project_is_refused_by_name(
    migrated: Settings, name: str, tmp_path: Path
) -> None:
    place = migrated.home / name
    place.unlink(missing_ok=True)
    place.parent.mkdir(exist_ok=True)
    place.symlink_to(tmp_path)
    error = given.refused("STATE_ELSEWHERE", state_directory.check, migrated.project)
    assert name in error.message


def test_the_copy_of_a_linked_worktree_is_refused_by_name(repository: Path, tmp_path: Path) -> None:
    git("worktree", "add", "-q", "-b", "mine", str(tmp_path / "mine"), cwd=repository)
    copy = copied(tmp_path / "mine", tmp_path / "copy")
    assert given.refused("COPIED_WORKTREE", Repository.open, copy).message.startswith(f"{copy} is a copy")
    Repository.open(tmp_path / "mine")
    Repository.open((tmp_path / "mine").rename(tmp_path / "yours"))


async def test_no_row_of_a_store_names_a_place_of_its_project(original: Path, migrated: Settings) -> None:
    with closing(sqlite3.connect(migrated.database)) as store:
        assert [line for line in store.iterdump() if str(original) in line] == []


def test_trust_at_one_path_holds_at_another_that_leads_to_the_same_directory(
    migrated: Settings, tmp_path: Path
) -> None:
    project, alias = migrated.project, tmp_path / "alias"
    alias.symlink_to(project)
    record = user_files.load_record(project).model_copy(update={"project": str(alias)})
    user_files.record_path(project).write_text(record.model_dump_json())  # as if by a mount
    state_directory.check(project)
    alias.unlink()
    copied(project, alias)
    given.refused("STATE_NOT_TRUSTED", state_directory.check, project)


@pytest.mark.parametrize("way", ["copied", "moved"])
def test_trust_in_a_file_holds_only_at_the_path_where_it_was_shown(
    migrated: Settings, way: str, tmp_path: Path
) -> None:
    original = migrated.project
    (original / ".aiswarm" / "settings.toml").write_text('integration_gates = ["./check.sh"]\n')
    trust(original, withheld(original))
    assert withheld(original) == []
    project = WAYS[way](original, tmp_path / "other")
    state_directory.adopt(project)
    assert [one.file for one in withheld(project)] == ["settings.toml"]
    trust(project, withheld(project))
    shutil.rmtree(original, ignore_errors=True)
    copied(project, original)  # where another of the same content was trusted
    state_directory.adopt(original)
    assert [one.file for one in withheld(original)] == ["settings.toml"]
    assert withheld(project) == []


def test_a_server_without_proof_of_its_directory_does_not_count(tmp_path: Path) -> None:
    file = tmp_path / "server.json"
    file.write_text('{"port": 8765}')
    file.chmod(0o600)
    assert ServerFile(file).load().port is None


@pytest.mark.long
async def test_a_worker_of_a_copy_works_there_and_those_of_the_original_go_on(served: Served, tmp_path: Path) -> None:
    original = served.workbench.settings.project
    await given.worktree(served.workbench)
    agent = await spawn(served, assigned_worktree="lab", name="walt")
    project = copied(original, tmp_path / "other")
    state_directory.adopt(project)
    watched = (".git/refs", ".aiswarm/worktrees", ".aiswarm/repositories")  # its own server changes the rest
    before = [contents(original / name) for name in watched]
    async with serving(Settings(project=project, port=0)) as other:
        assert not (await process(other, "walt"))["running"]
        await spawn(other, assigned_worktree="lab", name="wanda")
        task = await ran(other, "pwd; echo 2 > two", target_worktree="lab")
        assert (task["status"], task["attempts"][0]["agent_id"]) == ("completed", "wanda")
        assert git("show", "wb/lab/main:two", cwd=project) == "2"
    assert [contents(original / name) for name in watched] == before
    details = await process(served, "walt")
    assert (details["running"], details["pid"]) == (True, agent["pid"])


@pytest.mark.long
@pytest.mark.timeout(600)
async def test_no_command_in_a_copy_changes_the_original(
    original: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = copied(original, tmp_path / "other")
    (project / "plan.yaml").write_text("plan: p\ntasks:\n  - {name: t, title: T, persona: implementer}\n")
    state_directory.adopt(project)
    monkeypatch.chdir(project)
    before = contents(original)
    changed = {}
    try:
        for words in everything("serve", "mcp", "worker", "demo", "stop"):
            ran = await asyncio.to_thread(typed, *words)
            if contents(original) != before:
                changed[" ".join(words)] = ran.err
    finally:
        await asyncio.to_thread(typed, "stop")  # the server that one of them has started
    assert changed == {}
