"""The commands that export, measure and migrate the store."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Type, data
from tests.conftest import Admit, Command, Served


def test_rows_are_exported_and_numbers_shown(run: Type, tmp_path: Path) -> None:
    run("projects", "add", "Lab")
    assert run("export", "projects").out.splitlines()[0].startswith("id,name,")
    assert run("export", "projects", "--format", "json", "-o", str(tmp_path / "p.json")).status == 0
    assert [one["name"] for one in json.loads((tmp_path / "p.json").read_text())] == ["Lab"]
    assert "commit ms p95" in run("performance").out


def test_migrations_are_listed_and_an_older_database_must_be_one(run: Type, tmp_path: Path) -> None:
    listed = data(run("--json", "migrate", "--status"))
    assert listed[0]["migration_name"] == "001_initial_schema"
    assert all(one["success"] for one in listed)
    assert run("migrate").out == f"The store is up to date; its latest migration is {listed[-1]['migration_name']}.\n"
    (tmp_path / "old.db").write_text("not a database")
    assert run("migrate", "--from", str(tmp_path / "old.db")).err.startswith("NOT_A_DATABASE: ")
    assert run("migrate", "--from", str(tmp_path / "old.db"), "--status").status == 2


@pytest.mark.anyio
async def test_an_agent_may_not_open_the_store(served: Served, command: Command, admit: Admit) -> None:
    ada = await admit("ada")
    for arguments in (["sql", "SELECT 1"], ["sql", "--files", "SELECT 1"], ["migrate"]):
        ran = await command(*arguments, token=ada.token)
        assert (ran.status, ran.out) == (1, "")
        assert ran.err.startswith("FORBIDDEN: ")
    assert (await command("sql", "SELECT 1 AS one")).status == 0
