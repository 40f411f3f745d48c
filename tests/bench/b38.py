"""B38: an archive of a project with a million events, and the project that `restore` makes of it, on both stores."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from tests.bench.b12 import EVENTS, TASKS, fill_store
from tests.bench.project import prepare, scratch
from tests.bench.rows import Row, Samples, by_name, within
from tests.postgres import PostgresServer, installed, running_server
from workbench.archives.making import back_up
from workbench.archives.restoring import restore
from workbench.state.settings import Settings

BOTH = "both"


def run(rounds: int, quick: bool) -> Mapping[str, Samples]:
    """Seconds of each, with everything that is verified; rows are read back from the restored store."""
    events, binaries = 10_000 if quick else EVENTS, installed()
    with scratch() as directory, ExitStack() as stack:
        server = stack.enter_context(running_server(binaries)) if binaries else None
        measured = _measured(directory / "sqlite", None, rounds, events)
        if server is None:
            return measured
        on_postgres = _measured(directory / "postgres", server, rounds, events)
    return measured | {f"on PostgreSQL, {line}": samples for line, samples in on_postgres.items()}


def _measured(place: Path, server: PostgresServer | None, rounds: int, events: int) -> dict[str, Samples]:
    place.mkdir()
    with ExitStack() as stack:
        url = _new_database(stack, server)
        settings = Settings(
            project=prepare(place / "project", agents=1, tasks=0, database_url=url).root, database_url=url
        )
        fill_store(url or settings.database, events, events * TASKS // EVENTS)
        return by_name([_round(settings, place / str(number), server) for number in range(rounds)], "s")


def _new_database(stack: ExitStack, server: PostgresServer | None) -> str | None:
    return server.url(stack.enter_context(server.new_database())) if server else None


def _round(settings: Settings, place: Path, server: PostgresServer | None) -> dict[str, float]:
    place.mkdir()
    (archive, restored) = place / "archive", place / "restored"
    restored.mkdir()
    with ExitStack() as stack:
        into = Settings(project=restored, database_url=_new_database(stack, server))
        begun, processor = time.perf_counter(), time.process_time()
        back_up(settings, archive)
        made = time.perf_counter()
        restore(into, archive, lambda question: None)
        ended = time.perf_counter()
    computed = time.process_time() - processor
    return {"backup": made - begun, "restore": ended - made, BOTH: ended - begun, "processor time of both": computed}


ROW = Row(
    "B38",
    f"an archive of a project with {EVENTS:,} events",
    "–",
    {BOTH: within(60, "s"), f"on PostgreSQL, {BOTH}": within(60, "s")},
    run,
)
