"""The HTTP clients, and finding the server that `server.json` names, where another program answers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests import given
from tests.conftest import Served
from workbench.client import Agent, HttpClient, McpClient
from workbench.client.discovery import RunningServer, find_server, is_running
from workbench.errors import BadInput, Unauthenticated, Unavailable, WorkbenchError
from workbench.state.server_file import ServerFile

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def answering(body: bytes, status: str = "200 OK") -> AsyncIterator[tuple[str, list[bytes]]]:
    """Another program, which answers every request with the same body; its address, and the requests it got."""
    requests: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        requests.append(await reader.readuntil(b"\r\n\r\n"))
        head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        writer.write(f"{head}Connection: close\r\n\r\n".encode() + body)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", requests


STRANGE: list[Any] = [
    *([], [1], None, "text", 5, {}, {"success": True}, {"success": True, "data": []}, {"success": False}),
    {"success": False, "error": "no"},
    {"success": False, "error": {"code": "X", "details": [1], "status": "high"}},
    {"success": False, "error": {"code": "X", "details": {"code": 1, "self": 2}}},
]


@pytest.mark.parametrize("body", STRANGE, ids=str)
async def test_any_answer_of_a_server_is_a_result_or_a_coded_error(body: Any) -> None:
    async with answering(json.dumps(body).encode()) as (url, _), HttpClient(url) as client:
        with pytest.raises(WorkbenchError) as caught:
            await client.call("ping")
        assert caught.value.code in ("NO_SERVER", "X")
        assert await client.nonce() is None


async def test_a_late_server_is_not_reported_as_missing() -> None:
    asked: asyncio.Queue[asyncio.StreamWriter] = asyncio.Queue()

    async def wait(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asked.put(writer)

    async with await asyncio.start_server(wait, "127.0.0.1", 0) as server:
        async with HttpClient(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}") as client:
            client._http.timeout = 0.05
            error = await given.refuses("NO_REPLY", client.call("ping"))
        writer = await asked.get()
        writer.close()
        await writer.wait_closed()
    assert "it runs, but is busy" in error.message


@pytest.mark.parametrize("body", STRANGE[:6], ids=str)
async def test_any_bad_answer_over_mcp_is_a_coded_error(body: Any) -> None:
    async with answering(json.dumps(body).encode()) as (url, _), McpClient(f"{url}/mcp") as client:
        for _ in range(2):
            with pytest.raises(Unavailable):
                await client.call("ping")


BAD = ["", "nowhere", "http://", "http://[::1", "http://h:99999", "http://h:0", "ftp://x", "http://h h", "http://h?a=b"]


@pytest.mark.parametrize("url", [*BAD, "http://ada:pw@h"])
@pytest.mark.parametrize("client", [HttpClient, McpClient, Agent])
def test_an_invalid_address_is_a_coded_error(url: str, client: Callable[[str], Any]) -> None:
    with pytest.raises(BadInput, match="BAD_URL") as caught:
        client(url)
    assert "pw" not in caught.value.message


async def test_a_token_that_no_header_can_have_is_refused_and_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    for token in ("\ufeffwba_x", "wba_x\nwba_y", "# mine wba_x"):
        with pytest.raises(Unauthenticated, match="INVALID_TOKEN") as caught:
            HttpClient("http://127.0.0.1:1", token)
        assert "wba_x" not in caught.value.message
    monkeypatch.setenv("WORKBENCH_ACCESS_TOKEN", "wbs_ü")
    with pytest.raises(Unauthenticated, match="WORKBENCH_ACCESS_TOKEN"):
        HttpClient("http://127.0.0.1:1")


async def test_a_program_that_is_no_workbench_is_told_from_a_server_that_is_away() -> None:
    async with answering(b"<html>", "301 Moved\r\nLocation: https://lab/?key=1") as (url, _), HttpClient(url) as client:
        error = await given.refuses("NO_SERVER", client.call("ping"))
    assert "another program (HTTP status 301, which sends to https://lab/)" in error.message


async def test_arguments_that_are_not_json_are_refused_before_they_are_sent(served: Served) -> None:
    async with HttpClient(served.info.url) as client:
        for unfit in (float("nan"), object(), "\ud800"):
            with pytest.raises(BadInput, match="INVALID_ARGUMENTS"):
                await client.call("ping", unfit=unfit)


# Finding the server


async def test_the_server_that_answers_is_found_with_the_operators_token(served: Served) -> None:
    file = served.workbench.settings.server_file
    assert await find_server(file) == RunningServer(served.info, served.workbench.operator_token)
    assert served.workbench.operator_token not in repr(await find_server(file))
    await served.servers.stop()
    assert await find_server(file) is None
    assert not await is_running(served.info)
    file.write_text(json.dumps(served.info.model_dump() | {"url": "nowhere"}))
    assert await find_server(file) is None


async def test_another_server_at_the_same_address_is_not_taken_for_it_and_gets_no_token(served: Served) -> None:
    async with answering(b'{"nonce": "another"}') as (url, requests):
        file = ServerFile(served.workbench.settings.server_file)
        file.save(served.info.model_copy(update={"url": url}), "wbo_secret")
        assert await find_server(file.path) is None
        assert len(requests) == 1
        assert b"wbo_secret" not in requests[0]
