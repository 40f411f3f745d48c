"""Signing in with OAuth at a real MCP server on loopback that asks for it: stored, used, refreshed, renewed."""

from __future__ import annotations

import asyncio
import secrets
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
import uvicorn
from mcp.server import MCPServer
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    RefreshToken,
    construct_redirect_uri,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken

from tests import given
from tests.upstream.servers import connecting, running
from workbench.state import user_files
from workbench.upstream.connection import ServerState
from workbench.upstream.http_transport import ServerAddress
from workbench.upstream.sign_in import SignIns, sign_in

pytestmark = [pytest.mark.anyio, pytest.mark.long]


class Authority:
    """An authorization server that lets everybody in."""

    def __init__(self) -> None:
        self.clients: dict[str, OAuthClientInformationFull] = {}
        self.codes: dict[str, AuthorizationCode] = {}
        self.tokens: dict[str, AccessToken] = {}
        self.resource: str | None = None
        self.refreshed = 0
        self.denies = False

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self.clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        self.clients[str(client_info.client_id)] = client_info

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        if self.denies:
            return construct_redirect_uri(str(params.redirect_uri), error="access_denied", state=params.state)
        code = AuthorizationCode(
            code=secrets.token_hex(20),
            client_id=str(client.client_id),
            scopes=[],
            expires_at=time.time() + 60,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=True,
            resource=params.resource,
        )
        self.codes[code.code] = code
        return construct_redirect_uri(str(params.redirect_uri), code=code.code, state=params.state)

    async def load_authorization_code(self, client: Any, authorization_code: str) -> AuthorizationCode | None:
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(self, client: Any, authorization_code: AuthorizationCode) -> OAuthToken:
        del self.codes[authorization_code.code]
        self.resource = authorization_code.resource
        return self._token(str(client.client_id))

    async def load_refresh_token(self, client: Any, refresh_token: str) -> RefreshToken | None:
        return RefreshToken(token=refresh_token, client_id=str(client.client_id), scopes=[])

    async def exchange_refresh_token(self, client: Any, refresh_token: Any, scopes: Any) -> OAuthToken:
        self.refreshed += 1
        return self._token(str(client.client_id))

    async def load_access_token(self, token: str) -> AccessToken | None:
        return self.tokens.get(token)

    def _token(self, client_id: str) -> OAuthToken:
        access = secrets.token_hex(20)
        self.tokens = {access: AccessToken(token=access, client_id=client_id, scopes=[], resource=self.resource)}
        return OAuthToken(access_token=access, refresh_token=secrets.token_hex(20), expires_in=3_600)


@asynccontextmanager
async def protected(authority: Any) -> AsyncIterator[str]:
    """An MCP server with a tool, `add`, for those who have signed in; its URL."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    address = f"http://127.0.0.1:{listener.getsockname()[1]}"
    auth = AuthSettings(
        issuer_url=address,  # type: ignore[arg-type]  # which it converts
        resource_server_url=f"{address}/mcp",  # type: ignore[arg-type]
        client_registration_options=ClientRegistrationOptions(enabled=True),
        validate_token_resource=True,
    )
    server = MCPServer("guarded", auth_server_provider=authority, auth=auth)
    server.tool(name="add")(add)
    runner = uvicorn.Server(uvicorn.Config(server.streamable_http_app(), log_config=None, timeout_graceful_shutdown=1))
    serving = asyncio.create_task(runner.serve(sockets=[listener]))
    try:
        yield f"{address}/mcp"
    finally:
        runner.should_exit = True
        await serving


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def signed_in_at(url: str) -> str:
    """Sign in as a person with a browser, in which another page guesses the port; the page that she sees last."""
    shown: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    signing = asyncio.create_task(sign_in(url, shown.set_result, 60.0))
    await asyncio.wait({signing, shown}, return_when=asyncio.FIRST_COMPLETED)
    if not shown.done():
        await signing
    async with httpx2.AsyncClient(follow_redirects=True) as browser:
        [redirect] = parse_qs(urlsplit(shown.result()).query)["redirect_uri"]
        for guess in ("error=no", "code=a&state=b"):
            assert (await browser.get(f"{redirect}?{guess}")).status_code == 404
        page = (await browser.get(shown.result())).text
    await signing
    return page


async def test_a_person_signs_in_and_her_token_is_stored_privately_used_and_refreshed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(user_files.CONFIG_VARIABLE, str(tmp_path / "config"))
    authority = Authority()
    async with protected(authority) as url:
        async with running(connecting(ServerAddress(url, {}))) as watched:
            upstream = await watched.until(lambda one: one.state is ServerState.FAILED)
            assert "`workbench tools servers sign-in` signs in there" in (upstream.problem or "")
        assert "You are signed in." in await signed_in_at(url)
        stored = SignIns(url)
        assert (stored.path.stat().st_mode & 0o777, stored.path.parent.stat().st_mode & 0o777) == (0o600, 0o700)
        assert authority.tokens.keys() <= stored.secrets
        async with running(connecting(ServerAddress(url, {}))) as watched:
            upstream = await watched.ready()
            assert (await upstream.call("add", {"a": 1, "b": 2})).structured_content == {"result": 3}
        stored.change(expires_at=1.0)
        before, noted = stored.secrets, set[str]()
        async with running(connecting(ServerAddress(url, {}, note=noted.update))) as watched:
            await watched.ready()
            assert authority.refreshed == 1
        assert noted == before | stored.secrets, "what it was given is masked, before and after"
        assert authority.tokens.keys() <= stored.secrets, "what was refreshed is stored"
        authority.tokens.clear()
        async with running(connecting(ServerAddress(url, {}))) as watched:
            upstream = await watched.until(lambda one: one.state is ServerState.FAILED)
            assert "sign-in`" in (upstream.problem or "")
        authority.denies = True
        error = await given.refuses("SIGN_IN_FAILED", signed_in_at(url))
        assert error.message == "You are not signed in: access_denied."
        assert not [record for record in caplog.records if record.name.startswith("mcp.client.auth")]
        assert stored.secrets == frozenset()
