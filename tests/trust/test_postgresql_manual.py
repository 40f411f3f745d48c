"""`docs/postgresql.md`: what the administrator and the user type there works, and it names the codes of the store."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from docs.generator import ROOT
from docs.generator.reference import error_codes
from tests.code_blocks import blocks_in, environment
from tests.postgres import PostgresServer

pytestmark = [pytest.mark.postgres, pytest.mark.long]

PAGE = ROOT / "docs" / "postgresql.md"


def test_the_set_up_of_the_page_works(postgres_server: PostgresServer, repository: Path, tmp_path: Path) -> None:
    [as_administrator], [as_user] = blocks_in(PAGE, "sql"), blocks_in(PAGE, "sh")
    replaced = {
        "postgresql://ada@db.lab/penguins?sslmode=verify-full": (
            f"postgresql://ada@/penguins?host={postgres_server.home}"
        ),
        "db.lab": str(postgres_server.home),
    }
    typed = re.sub("|".join(map(re.escape, replaced)), lambda found: replaced[found[0]], as_user.code)
    with postgres_server.connect() as administrator:
        for statement in as_administrator.code.split(";\n"):
            administrator.execute(statement)
        try:
            (home := tmp_path / "home").mkdir()
            shell = ["/bin/sh", "-ec", typed]
            done = subprocess.run(
                shell, cwd=repository, env=environment(HOME=str(home)), capture_output=True, text=True, check=False
            )
        finally:
            administrator.execute("DROP DATABASE penguins WITH (FORCE)")
            administrator.execute("DROP ROLE ada")
    assert done.returncode == 0, done.stderr
    assert replaced["postgresql://ada@db.lab/penguins?sslmode=verify-full"] in done.stdout
    assert "change-me" not in done.stdout + done.stderr
    assert not list(repository.glob(".aiswarm/coordination*"))


def test_the_page_names_the_codes_of_the_database() -> None:
    text, codes = PAGE.read_text("utf-8"), error_codes()
    of_files = {"STORE_CLOSED", "STORE_CORRUPT", "STORE_FAILED", "STORE_INCOMPLETE", "STORE_IN_USE", "STORE_UNSYNCED"}
    wanted = {code for code in codes if code.startswith(("STORE_", "DATABASE_"))} - of_files
    assert {code for code in wanted if f"`{code}`" not in text} == set()
    assert {code for code in re.findall(r"`([A-Z]+(?:_[A-Z]+)+)`", text) if code not in codes} == set()
