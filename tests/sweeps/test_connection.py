"""A sweep has a server for as long as it runs, whoever ran it before."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack

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
