"""`workbench doctor` on what is installed."""

from __future__ import annotations

import asyncio

import pytest

from tests import given
from tests.cli.conftest import Type
from tests.conftest import Command, Served
from workbench.app import Workbench
from workbench.cli import doctor
from workbench.state.settings import Settings


def row(run: Type, name: str) -> list[str]:
    """The state of a part, and what is printed about it."""
    [line] = [line for line in run("doctor").out.splitlines() if line.split()[1] == name]
    return [line.split()[0], " ".join(line.split()[2:])]


def test_the_doctor_says_whether_models_can_be_asked(run: Type, monkeypatch: pytest.MonkeyPatch) -> None:
    assert row(run, "chat") == ["ok", "models of all providers can be asked"]
    monkeypatch.setitem(doctor.PROVIDERS, "elsewhere", "no_such_package.models")
    assert row(run, "chat") == ["ok", "no packages for elsewhere: `pip install 'workbench-agents[chat]'`"]


def test_a_project_that_is_near_its_disk_limit_is_told(run: Type, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "the project takes" not in run("doctor").out
    monkeypatch.setenv("WORKBENCH_MAX_DISK_BYTES", str(1 << 40))
    assert "the project takes" in run("doctor").out
    monkeypatch.setenv("WORKBENCH_MAX_DISK_BYTES", "1000")
    assert "`workbench disk` shows what" in run("doctor").out


@pytest.mark.anyio
async def test_a_message_that_did_not_reach_the_person_is_told(
    run: Type, migrated: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = {"notify_command": ("/bin/sh", "-c", "exit 3"), "notify_digest_seconds": 0}
    settings = Settings.model_validate({**migrated.model_dump(), **command})
    async with Workbench.open(settings) as workbench:
        await workbench.call("register", name="ada")
        for duty in ("gathering what the person is told", "running the person's command"):
            await workbench.duties[duty].perform(workbench._ctx)
    assert "notifications" not in (await asyncio.to_thread(run, "doctor")).out
    monkeypatch.setenv("WORKBENCH_NOTIFY_COMMAND", "exit 3")
    state, words = await asyncio.to_thread(row, run, "notifications")
    assert state == "warning"
    assert "NOTIFY_COMMAND_FAILED: Your command for notifications ended with status 3." in words


@pytest.mark.long
def test_what_is_wrong_in_the_project_is_shown_first_and_mended_once_that_is_agreed(
    run: Type, migrated: Settings
) -> None:
    (ghost := migrated.worktrees / "ghost").mkdir(parents=True)
    (ghost / "work.txt").write_text("work")
    assert row(run, "consistency")[0] == "warning"
    before = run("doctor", "--fix")
    assert (before.status, ghost.exists()) == (1, True)
    assert "Move them to the trash" in before.out
    mended = run("doctor", "--fix", "--yes")
    assert (mended.status, "Move them to the trash" in mended.err) == (0, True)
    assert [path.read_text() for path in migrated.trash.glob("ghost-*/files/work.txt")] == ["work"]
    assert "Nothing is wrong in the project." in run("doctor", "--fix").out
    assert row(run, "consistency")[0] == "ok"


@pytest.mark.long
@pytest.mark.sqlite("damages the store's file")
def test_a_damaged_store_is_mended_by_its_newest_backup_once_that_is_agreed(run: Type, migrated: Settings) -> None:
    run("backup")
    migrated.database.write_bytes(b"X" * 4096)
    assert (run("doctor", "--fix").status, migrated.database.read_bytes()[:1]) == (1, b"X")
    assert run("doctor", "--fix", "--yes").status == 0
    assert run("doctor").status == 0


@pytest.mark.anyio
@pytest.mark.long
async def test_a_server_that_runs_mends_the_faults(served: Served, command: Command) -> None:
    settings = served.workbench.settings
    (ghost := settings.worktrees / "ghost").mkdir(parents=True)
    (ghost / "work.txt").write_text("work")
    assert (await command("doctor", "--fix", "--yes")).status == 0
    assert (ghost.exists(), [path.name[:6] for path in settings.trash.iterdir()]) == (False, ["ghost-"])
    assert await given.kinds(served.workbench, "fault.*") == ["fault.mended"]
