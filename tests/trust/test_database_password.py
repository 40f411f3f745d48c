"""The password of the database reaches the server, and nobody and nothing else."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
import yaml

from tests.given import refused
from tests.postgres import PostgresServer
from tests.services.processes.running import process, serving, spawn
from tests.worker.working import done, output_of
from workbench.rules.secrets.forms import MASK
from workbench.state.database_url import DatabaseUrl
from workbench.state.settings import Settings
from workbench.trust import project_store
from workbench.trust.withheld import trust, withheld

pytestmark = [pytest.mark.anyio, pytest.mark.postgres, pytest.mark.long, pytest.mark.timeout(60)]

PASSWORD = "correct-horse-7battery"


@pytest.fixture
def with_password(
    settings: Settings, postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Settings]:
    """The settings of a project whose user has a password for the database, in the variables of this process."""
    with postgres_server.new_role(PASSWORD) as role, postgres_server.new_database() as name:
        with postgres_server.connect() as connection:
            connection.execute(f"ALTER DATABASE {name} OWNER TO {role}")
        monkeypatch.setenv("WORKBENCH_DATABASE_URL", postgres_server.url(name, role, PASSWORD))
        monkeypatch.setenv("PGPASSWORD", PASSWORD)
        url = Settings(project=settings.project).database_url
        yield settings.model_copy(update={"database_url": url})


async def test_a_worker_and_all_records_are_without_the_password(with_password: Settings) -> None:
    (with_password.home / "profiles").mkdir(parents=True)
    look = "env; cat /proc/*/environ 2>/dev/null | tr '\\0' '\\n'"
    fields = {"summary": "Looks.", "command": ["sh", "-c", look], "passes": ["PGPASSWORD"]}
    (with_password.home / "profiles" / "looks.yaml").write_text(yaml.safe_dump(fields))
    trust(with_password.project, withheld(with_password.project))
    async with serving(with_password) as served:
        made = await spawn(served, profile="looks")
        task = await done(served, None)
        seen = "\n".join(await output_of(served, task["id"]))
        details = await process(served, made["agent_id"])
        events = await served.workbench.call("list_events", after=0, limit=500)
        supervisor = psutil.Process(made["pid"])
        assert PASSWORD not in json.dumps([supervisor.environ(), supervisor.cmdline()])
        assert served.workbench.masked(f"password={PASSWORD}.") == f"password={MASK}."
        await served.workbench.end_workers()
    assert "PATH=" in seen
    for text in (seen, json.dumps(task), json.dumps(events), Path(details["log"]).read_text()):
        assert PASSWORD not in text
    for file in with_password.home.rglob("*"):
        assert not file.is_file() or PASSWORD.encode() not in file.read_bytes()


async def test_what_is_wrong_with_the_database_is_told_without_the_password(with_password: Settings) -> None:
    assert with_password.database_url is not None
    right = with_password.database_url.conninfo
    wrong = {
        "DATABASE_REFUSES_USER": right.replace(PASSWORD, f"{PASSWORD}x"),
        "DATABASE_MISSING": right.replace("/wb_", "/no_"),
        "DATABASE_URL_INVALID": f"{right}&nonsense=1",
    }
    for code, address in wrong.items():
        settings = with_password.model_copy(update={"database_url": DatabaseUrl(address)})
        error = await asyncio.to_thread(refused, code, project_store.open_store, settings)
        assert PASSWORD not in f"{error.message} {error.details} {error!r}"
