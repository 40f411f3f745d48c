"""The access token that clients send to a server that is open to other machines."""

from __future__ import annotations

from http import HTTPStatus

import pytest
from websockets.asyncio.server import ServerConnection, serve
from websockets.http11 import Request, Response

from workbench.client import Agent, HttpClient
from workbench.errors import WorkbenchError

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("access", ["sesame", None])
async def test_clients_bring_the_access_token_of_the_environment_and_nothing_without_one(
    monkeypatch: pytest.MonkeyPatch, access: str | None
) -> None:
    monkeypatch.delenv("WORKBENCH_ACCESS_TOKEN", raising=False)
    if access:
        monkeypatch.setenv("WORKBENCH_ACCESS_TOKEN", access)
    brought = []

    def look(socket: ServerConnection, request: Request) -> Response:
        brought.append(request.headers.get("X-Workbench-Access"))
        return socket.respond(HTTPStatus.FORBIDDEN, "no\n")

    async def talk(socket: ServerConnection) -> None:
        raise AssertionError("nobody gets in")

    async with serve(talk, "127.0.0.1", 0, process_request=look) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with HttpClient(url, "t") as client:
            await client.nonce()
        with pytest.raises(WorkbenchError):
            async with Agent(url, name="ada", patience=0):
                pass
    assert brought == [access, access]
