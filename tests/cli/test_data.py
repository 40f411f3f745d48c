"""The commands that export, import, measure and migrate the store."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests import given
from tests.cli.conftest import Type, code, data
from tests.conftest import Admit, Command, Served
from tests.interrupting import interrupted_in_duckdb


@pytest.fixture
def other(run: Type, tmp_path: Path) -> str:
    """Another project; its directory."""
    (place := tmp_path / "other").mkdir()
    assert run("init", "--project", str(place)).status == 0
    return str(place)


def test_rows_are_exported_and_numbers_shown(run: Type, tmp_path: Path) -> None:
    run("projects", "add", "Lab")
    assert run("export", "projects").out.splitlines()[0].startswith("id,name,")
    assert run("export", "projects", "-o", str(tmp_path / "p.json")).status == 0
    assert [one["name"] for one in json.loads((tmp_path / "p.json").read_text())] == ["Lab"]
    assert "commit ms p95" in run("performance").out


def test_an_export_is_refused_if_the_file_name_means_another_format(run: Type, tmp_path: Path) -> None:
    refused = run("export", "tasks", "-o", str(tmp_path / "tasks.xlsx"))
    assert (refused.status, list(tmp_path.glob("*.xlsx"))) == (2, [])
    assert "tasks.xlsx is not named .csv, .json, .jsonl, .parquet. Give --format." in refused.err
    assert run("export", "tasks", "-o", str(tmp_path / "tasks.xlsx"), "--format", "csv").status == 0


def test_migrations_are_listed_and_an_older_database_must_be_one(run: Type, tmp_path: Path) -> None:
    listed = data(run("--json", "migrate", "--status"))
    assert listed[0]["migration_name"] == "001_initial_schema"
    assert all(one["success"] for one in listed)
    assert run("migrate").out == f"The store is up to date; its latest migration is {listed[-1]['migration_name']}.\n"
    (tmp_path / "old.db").write_text("not a database")
    assert run("migrate", "--from", str(tmp_path / "old.db")).err.startswith("NOT_A_DATABASE: ")
    assert run("migrate", "--from", str(tmp_path / "old.db"), "--status").status == 2


@pytest.mark.long
@pytest.mark.anyio
async def test_an_agent_may_not_open_the_store(served: Served, command: Command, admit: Admit) -> None:
    ada = await admit("ada")
    for arguments in (["sql", "SELECT 1"], ["sql", "--files", "SELECT 1"], ["migrate"]):
        assert code(await command(*arguments, token=ada.token)) == "FORBIDDEN"
    assert (await command("sql", "SELECT 1 AS one")).status == 0


@pytest.mark.long
@pytest.mark.parametrize("words", [["sql", "SELECT 1"], ["report", "tasks"]], ids=lambda words: words[0])
def test_an_interrupt_of_the_database_itself_is_one_line(tmp_path: Path, words: list[str]) -> None:
    ran = interrupted_in_duckdb(tmp_path, *words)
    assert (ran.status, ran.out, len(ran.err.splitlines())) == (130, "", 1)
    assert ran.err.startswith("INTERRUPTED: The command was interrupted.")


@pytest.mark.sqlite("one variable names the database of both projects")
@pytest.mark.parametrize("form", ["csv", "json"])
def test_import_shows_a_file_first_and_adds_it_with_yes(run: Type, other: str, tmp_path: Path, form: str) -> None:
    run("projects", "add", "Lab")
    run("sessions", "add", "Lab", "Day 1")
    run("contexts", "add", "Day 1", "Bills", "--content", "Longer in the north.")
    for resource in ("projects", "sessions", "contexts"):
        file = str(tmp_path / f"{resource}.{form}")
        run("export", resource, "--format", form, "-o", file)
        shown = run("import", resource, file, "--project", other)
        told = f"Nothing was changed. To import this: import {resource} {file} --yes"
        assert (shown.status, shown.out.splitlines()[2:]) == (0, ["To add: 1. Already here: 0.", told])
        imported = run("--project", other, "import", resource, file, "--yes").out
        assert imported == f"Imported 1 {resource.removesuffix('s')}. Already here: 0.\n"
        assert run("import", resource, file).out == "Nothing to import. Already here: 1.\n"
    assert "Longer in the north." in run("contexts", "search", "north", "--json", "--project", other).out


def test_a_file_that_cannot_be_imported_is_refused_with_its_rows(run: Type, tmp_path: Path) -> None:
    (tmp_path / "teams.csv").write_text("name,session\nred,nowhere\n")
    ran = run("import", "teams", str(tmp_path / "teams.csv"), "--yes")
    assert (ran.status, ran.out) == (1, "")
    assert ran.err.startswith("IMPORT_INVALID: row 1: SESSION_NOT_FOUND: There is no session 'nowhere'.")
    (tmp_path / "teams.csv").write_bytes(b"name\n\xff\n")
    assert run("import", "teams", str(tmp_path / "teams.csv")).err.startswith("NOT_TEXT: ")
    (tmp_path / "teams.txt").write_text("[]")
    assert run("import", "teams", str(tmp_path / "teams.txt")).status == 2
    assert run("import", "teams", str(tmp_path / "teams.txt"), "--format", "json").status == 0


@pytest.mark.long
@pytest.mark.anyio
async def test_a_file_larger_than_a_request_is_imported_while_a_server_runs(
    served: Served, command: Command, tmp_path: Path
) -> None:
    await given.project(served.workbench, "Lab")
    await given.session(served.workbench, "Day 1", "Lab")
    row = {"session": "Day 1", "title": "Long", "content": "x" * 200_000}
    (tmp_path / "contexts.json").write_text(json.dumps([row] * 6))
    made = data(await command("--json", "import", "contexts", str(tmp_path / "contexts.json"), "--yes"))
    assert len(made["added"]) == 6
    assert len((await served.workbench.call("read", limit=10))["data"]) == 6


@pytest.mark.sqlite("one variable names the database of both projects")
@pytest.mark.long
def test_a_query_uses_another_project_and_is_drawn(run: Type, other: str, repository: Path, tmp_path: Path) -> None:
    run("call", "create_task", "title=Count", "persona_id=tester")
    for title in ("Weigh", "Draw"):
        run("call", "create_task", f"title={title}", "persona_id=tester", "--project", other)
    query = "SELECT title FROM tasks UNION ALL SELECT title FROM other.tasks ORDER BY title"
    found = data(run("--json", "sql", query, "--project", f"other={other}", "--project", str(repository)))
    assert [row["title"] for row in found] == ["Count", "Draw", "Weigh"]
    picture = tmp_path / "picture.svg"
    how = ("--chart", str(picture), "--draw", "bar title")
    drawn = run("sql", query, "--project", f"other={other}", *how)
    assert drawn.out == f"Drew 3 rows into {picture}.\n"
    assert picture.read_text().startswith("<svg")
    assert run("sql", query, "--project", "other=").err.startswith("INVALID_ARGUMENTS: --project: 'other='")
    assert run("report", "projects", other).out.startswith("this project and other: ")


@pytest.mark.long
def test_two_plans_and_two_runs_are_compared(run: Type) -> None:
    for plan in ("alpha", "beta", "gamma"):
        text = f"plan: {plan}\ntasks:\n- {{name: one, title: One, persona: tester}}\n"
        run("call", "create_plan", f"text={text}")
    found = data(run("--json", "report", "comparison", "alpha", "gamma"))
    assert [row["compared"] for row in found["rows"]] == ["alpha", "gamma"]
    assert run("report", "comparison", "alpha", "delta").err.startswith("NO_GROUPS: There is no group with tasks delta")
    assert run("report", "waits", "alpha").err.startswith("NO_GROUPS: ")
    for name, lr in (("low", 0.1), ("high", 0.5)):
        run("call", "start_run", f"name={name}", f'parameters={{"lr": {lr}}}')
    found = data(run("--json", "report", "comparison", "--by", "run", "1", "2"))
    assert [(row["compared"], row["parameters.lr"]) for row in found["rows"]] == [("1 low", 0.1), ("2 high", 0.5)]
    assert found["sentence"] == "0 of 2 runs completed, 2 running."
    assert run("report", "runs", "7").err.startswith("NO_GROUPS: There is no run 7")


def test_a_view_is_exported_by_its_name(run: Type, tmp_path: Path) -> None:
    run("projects", "add", "Lab")
    assert run("export", "approvals").out.startswith("id,")
    saved = run("export", "events", "-o", str(tmp_path / "events.parquet"))
    assert (saved.status, " of events to " in saved.out) == (0, True)
    assert (tmp_path / "events.parquet").read_bytes()[:4] == b"PAR1"
    refused = run("export", "taks").err
    assert "There is no view 'taks'. Did you mean tasks? " in refused
    assert "Resources: agents, teams, contexts, sessions, projects, tasks, events." in refused
    assert "-o FILE.parquet" in run("export", "tasks", "--format", "parquet").err
