"""`docs/postgresql.md`: what the administrator and the user type there works, and it names the codes of the store."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from docs.generator import ROOT
from docs.generator.reference import error_codes
from tests.code_blocks import blocks_in, environment
from tests.postgres import NewServer, PostgresServer

pytestmark = [pytest.mark.postgres, pytest.mark.long]

PAGE = ROOT / "docs" / "postgresql.md"


ADDRESS = "postgresql://ada@db.lab/penguins?sslmode=verify-full"


def typed(server: PostgresServer, project: Path, home: Path, commands: str) -> str:
    """What commands of the page print that a user types, whose database the administrator makes as the page says."""
    [making] = blocks_in(PAGE, "sql")
    real = {ADDRESS: f"postgresql://ada@/penguins?host={server.home}", "db.lab": str(server.home)}
    shell = ["/bin/sh", "-ec", re.sub("|".join(map(re.escape, real)), lambda found: real[found[0]], commands)]
    home.mkdir()
    with server.connect() as administrator:
        for statement in making.code.split(";\n"):
            administrator.execute(statement)
    environ = environment(HOME=str(home))
    done = subprocess.run(shell, cwd=project, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "change-me" not in done.stdout + done.stderr
    return done.stdout.replace(real[ADDRESS], ADDRESS)


def test_the_set_up_of_the_page_works(new_postgres_server: NewServer, repository: Path, tmp_path: Path) -> None:
    [set_up, _] = blocks_in(PAGE, "sh")
    printed = typed(new_postgres_server(), repository, tmp_path / "home", set_up.code)
    assert re.search(f"^store +{re.escape(ADDRESS)}$", printed, re.MULTILINE)
    assert not list(repository.glob(".aiswarm/coordination*"))


def test_a_project_goes_to_postgresql_as_the_page_says(
    new_postgres_server: NewServer, repository: Path, tmp_path: Path
) -> None:
    [set_up, there] = blocks_in(PAGE, "sh")
    address = "".join(set_up.code.splitlines(keepends=True)[:2])
    commands = f"workbench init\nworkbench plan plan.yaml\n{address}{there.code}workbench status"
    printed = typed(new_postgres_server(), repository, tmp_path / "home", commands)
    assert re.search(f"^store +{re.escape(ADDRESS)}$", printed, re.MULTILINE)


def test_the_page_names_the_codes_of_the_database() -> None:
    text, codes = PAGE.read_text("utf-8"), error_codes()
    of_files = {"STORE_CLOSED", "STORE_CORRUPT", "STORE_FAILED", "STORE_INCOMPLETE", "STORE_IN_USE", "STORE_UNSYNCED"}
    wanted = {code for code in codes if code.startswith(("STORE_", "DATABASE_"))} - of_files
    assert {code for code in wanted if f"`{code}`" not in text} == set()
    assert {code for code in re.findall(r"`([A-Z]+(?:_[A-Z]+)+)`", text) if code not in codes} == set()
