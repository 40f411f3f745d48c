"""Checks that the server in a project's `server.json` is the one that answers at its address."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from workbench.client.http import HttpClient
from workbench.errors import BadInput
from workbench.model import ServerInfo
from workbench.state.server_file import ServerFile


@dataclass(frozen=True, slots=True)
class RunningServer:
    """A server that answers, and the token with which the operator may call it."""

    info: ServerInfo
    operator_token: str | None = field(repr=False)


async def find_server(server_file: Path) -> RunningServer | None:
    """The server that `server.json` names; None when it does not answer, or another one answers in its place."""
    content = ServerFile(server_file).load()
    if content.info is None or not await is_running(content.info):
        return None
    return RunningServer(content.info, content.operator_token)


async def is_running(info: ServerInfo) -> bool:
    """Whether a server still answers at its address; another server at that address has another nonce."""
    try:
        client = HttpClient(info.url)
    except BadInput:
        return False
    async with client:
        return await client.nonce() == info.nonce
