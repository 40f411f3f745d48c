"""A sweep has a server for as long as it runs, whoever ran it before."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from pathlib import Path

from tests.given import wait_until
from workbench.client.discovery import find_server
from workbench.client.lasting import LastingConnection
from workbench.recording import connection
from workbench.shells.meanwhile import connected
from workbench.state.settings import Settings


def test_a_sweep_that_calls_nothing_serves_when_the_one_that_served_ends(migrated: Settings) -> None:
    """Such as one whose runs are executed by a cluster: only its workers call."""

    def nonce() -> str | None:
        found = asyncio.run(find_server(migrated.server_file))
        return found and found.info.nonce

    worker, recording = LastingConnection(migrated.server_file), connection.RecorderConnection(migrated.project)
    with ExitStack() as first, ExitStack() as second:
        first.enter_context(connected(migrated))
        served = nonce()
        second.enter_context(connected(migrated))
        assert nonce() == served is not None
        worker.start()
        second.callback(worker.stop)
        second.callback(recording.close)
        assert recording.call("whoami")
        first.close()
        wait_until(nonce, "a server of the second sweep")
        assert nonce() != served
        for call in (worker, recording.call):  # at the same address, with another token
            assert call("whoami")["level"] == "operator"


def test_a_server_that_ends_with_its_work_tells_the_person_first(migrated: Settings, tmp_path: Path) -> None:
    told = tmp_path / "told"
    command = ("/bin/sh", "-c", f'echo "$WORKBENCH_MESSAGE" >> {told}')
    changes = {"notify_command": command, "notify_digest_seconds": 3_600}
    with connected(Settings.model_validate({**migrated.model_dump(), **changes})) as call:
        made = call("create_plan", text="plan: p\ntasks: [{name: a, title: A, persona: implementer}]\n")
        call("cancel_task", task_id=made["tasks"]["a"], reason="not needed")
        assert not told.exists()
    assert told.read_text() == "The plan p has ended: 0 of 1 tasks are completed.\n"
