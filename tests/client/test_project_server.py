"""The address of a project's server, as its file has it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import Served
from workbench.client.address import is_same_place
from workbench.client.project_server import ProjectServer
from workbench.errors import BadInput
from workbench.state.server_file import ServerFile

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("http://127.0.0.1:8765", "ws://127.0.0.1:8765/ws", True),
        ("http://localhost:8765/", "http://127.0.0.1:8765", True),
        ("http://127.0.0.1:8765", "http://127.0.0.1:8766", False),
        ("http://127.0.0.1:8765", "http://127.0.0.2:8765", False),
        ("http://[::1]:8765", "http://127.0.0.1:8765", False),
    ],
)
def test_addresses_with_equal_host_and_port_are_of_one_server(one: str, other: str, same: bool) -> None:
    assert is_same_place(one, other) is same
    with pytest.raises(BadInput, match="BAD_URL"):
        is_same_place("127.0.0.1:8765", "http://127.0.0.1:8765")


async def test_a_server_is_followed_only_in_the_project_that_names_it(
    served: Served, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(repository)
    assert ProjectServer.at(served.info.url, None).nonce() == served.info.nonce
    assert ProjectServer.at(served.info.ws_url, None).nonce() == served.info.nonce
    assert ProjectServer.at("http://127.0.0.1:1", None).nonce() == ""
    assert ProjectServer.at("http://127.0.0.1:1", repository).url == served.info.url


async def test_a_server_that_stops_is_away_and_is_found_only_when_it_answers(served: Served, repository: Path) -> None:
    server = ProjectServer.at(served.info.url, repository)
    assert (server.is_away(), await server.find()) == (False, None)
    await served.servers.stop()
    assert (server.is_away(), server.nonce(), await server.find()) == (True, None, None)
    elsewhere = served.info.model_copy(update={"url": "http://127.0.0.1:1"})
    ServerFile(served.workbench.settings.server_file).save(elsewhere, "wbo_x")
    assert (server.is_away(), await server.find()) == (True, None)
    info = await served.servers.start(0)
    assert await server.find() == (info if info.url != served.info.url else None)
    assert (server.url, server.is_away()) == (info.url, False)
    assert server.is_away("http://127.0.0.1:1")  # where it was looked for before
