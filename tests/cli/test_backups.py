"""`workbench backup`, `restore` and what `doctor` says of the store: a person's way out of a store that is not used."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Type, code, data
from workbench.state.settings import Settings

pytestmark = pytest.mark.sqlite("damages and replaces the store's file")


def of_doctor(run: Type) -> tuple[int, str, str]:
    """The exit status of `doctor`, and its state and sentence about the store."""
    ran = run("--json", "doctor")
    (row,) = (row for row in json.loads(ran.out) if row["what"] == "store")
    return ran.status, row["state"], row["says"]


def test_a_destroyed_store_is_named_and_restored_from_its_backup(run: Type, penguins: Path, migrated: Settings) -> None:
    store = migrated.database
    assert of_doctor(run)[1:] == (
        "ok",
        f"whole, {store.stat().st_size / (1 << 20):.1f} MB; no backup: `workbench backup` makes one",
    )
    backup = data(run("--json", "backup"))["backup"]
    run("cancel", "1", "--yes")
    store.write_bytes(b"X" * 100 + store.read_bytes()[100:])
    status, state, says = of_doctor(run)
    assert (status, state) == (1, "damaged")
    assert f"`workbench restore` brings back the newest backup, {backup}." in says
    for command in ("tasks", "status", "report throughput", "init"):
        ran = run(*command.split())
        assert (command, ran.status, ran.err.partition(":")[0]) == (command, 1, "STORE_CORRUPT")
        assert f"newest backup, {backup}." in ran.err
    made = data(run("--json", "restore"))
    assert (made["backup"], (Path(made["aside"]) / store.name).read_bytes()[:100]) == (backup, b"X" * 100)
    assert {task["status"] for task in data(run("--json", "tasks"))} == {"pending"}
    assert of_doctor(run)[1] == "ok"


def test_a_missing_store_is_not_replaced_by_a_new_one(run: Type, penguins: Path, migrated: Settings) -> None:
    migrated.database.unlink()
    for command in ("tasks", "status", "init", "plan " + str(penguins)):
        assert code(run(*command.split())) == "STORE_INCOMPLETE"
    assert code(run("restore")) == "NO_BACKUP"
    assert code(run("restore", "--empty", "--as-it-is")) == "CONFLICTING_OPTIONS"
    data(run("--json", "restore", "--empty"))
    assert data(run("--json", "tasks")) == []


def test_an_intact_store_is_replaced_only_with_confirmation(run: Type, penguins: Path, migrated: Settings) -> None:
    run("backup")
    assert not migrated.database.with_name("coordination.db-wal").exists()
    assert code(run("restore")) == "NOT_CONFIRMED"
    aside = Path(data(run("--json", "restore", "--yes"))["aside"])
    data(run("--json", "restore", str(aside / "coordination.db"), "--yes"))
    assert len(data(run("--json", "tasks"))) == 2
