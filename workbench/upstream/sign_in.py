"""Signing in at servers at a URL with OAuth, by the client of the MCP package.

The tokens are in a file of the person's own, outside every repository, which only she may read; they are in no log, no
export and no box. Only a person signs in; a connection uses and refreshes what she was given, and fails without.
"""

from __future__ import annotations

import asyncio
import hashlib
import html
import json
import logging
import time
from collections.abc import Awaitable, Callable, Collection
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from workbench.errors import Unavailable, first_within
from workbench.present.inert import inert_line
from workbench.state import user_files
from workbench.system import atomic_file

if TYPE_CHECKING:
    from mcp.client.auth import OAuthClientProvider
    from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthToken

CALLBACK = "/callback"
LONGEST_REQUEST = 16_384
LONGEST_REASON = 500
_SAYS_TRACEBACKS = "mcp.client.auth.oauth2"
"""The logger of the MCP package that writes the traceback of an error which is raised as well."""
_DONE = "You are signed in. You can close this page, and go on in the terminal."


class SignIns:
    """What a person was given for one server. Implements `mcp.client.auth.TokenStorage`.

    Args:
        url: of the server.
        note: gets the tokens whenever there are new ones, to be masked.
    """

    def __init__(self, url: str, note: Callable[[frozenset[str]], None] = lambda secrets: None) -> None:
        name = hashlib.sha256(url.encode()).hexdigest()[:32]
        self.url, self._note = url, note
        self.path = user_files.directory() / "sign-ins" / f"{name}.json"

    def read(self) -> dict[str, Any]:
        """What is stored; nothing if that cannot be read, or others could."""
        try:
            stored = json.loads(atomic_file.read(self.path, private=True))
        except (OSError, ValueError):
            return {}
        return stored if isinstance(stored, dict) and stored.get("url") == self.url else {}

    def change(self, **values: Any) -> None:
        """Store more."""
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        atomic_file.replace(self.path, json.dumps({"url": self.url, **self.read(), **values}), mode=0o600)

    def forget(self) -> bool:
        """Remove what is stored; False if there was nothing."""
        found = self.path.exists()
        self.path.unlink(missing_ok=True)
        return found

    @property
    def secrets(self) -> frozenset[str]:
        """The tokens, to be masked in whatever is said."""
        stored = self.read()
        parts = [stored.get("tokens") or {}, stored.get("client") or {}]
        names = ("access_token", "refresh_token", "client_secret")
        return frozenset(part[name] for part in parts for name in names if isinstance(part.get(name), str))

    async def get_tokens(self) -> OAuthToken | None:
        """See `TokenStorage`."""
        from mcp.shared.auth import OAuthToken

        tokens = self.read().get("tokens")
        return OAuthToken.model_validate(tokens) if tokens else None

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """See `TokenStorage`."""
        expires_at = None if tokens.expires_in is None else time.time() + tokens.expires_in
        self.change(tokens=tokens.model_dump(mode="json", exclude_none=True), expires_at=expires_at)
        self._note(self.secrets)

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """See `TokenStorage`."""
        from mcp.shared.auth import OAuthClientInformationFull

        client = self.read().get("client")
        return OAuthClientInformationFull.model_validate(client) if client else None

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """See `TokenStorage`."""
        self.change(client=client_info.model_dump(mode="json", exclude_none=True))


def signed_in(url: str, note: Callable[[frozenset[str]], None]) -> OAuthClientProvider | None:
    """What authenticates the requests to a server at which the person has signed in; None if she has not. Blocks.

    Args:
        note: gets the tokens, now and whenever they are refreshed, to be masked.
    """
    from mcp.shared.auth import OAuthMetadata, ProtectedResourceMetadata

    storage = SignIns(url, note)
    stored = storage.read()
    if not stored.get("tokens"):
        return None
    note(storage.secrets)
    provider = _provider(storage, "http://127.0.0.1/callback")
    provider.context.token_expiry_time = stored.get("expires_at")
    if metadata := stored.get("metadata"):
        provider.context.oauth_metadata = OAuthMetadata.model_validate(metadata)
    if resource := stored.get("resource"):
        provider.context.protected_resource_metadata = ProtectedResourceMetadata.model_validate(resource)
    return provider


def _provider(storage: SignIns, redirect: str, **handlers: Any) -> OAuthClientProvider:
    from mcp.client.auth import OAuthClientProvider
    from mcp.shared.auth import OAuthClientMetadata

    logging.getLogger(_SAYS_TRACEBACKS).setLevel(logging.CRITICAL)
    metadata = OAuthClientMetadata.model_validate(
        {"client_name": "Workbench", "redirect_uris": [redirect], "token_endpoint_auth_method": "none"}
    )
    return OAuthClientProvider(storage.url, metadata, storage, **handlers)


async def sign_in(url: str, show: Callable[[str], None], seconds: float) -> None:
    """Sign in at a server: the person opens the address that is shown, and the answer comes to a port of this machine.

    Args:
        show: shows the address; nothing opens it.

    Raises:
        Unavailable: ``SIGN_IN_FAILED``.
    """
    import httpx2
    from mcp.client import Client
    from mcp.client.streamable_http import streamable_http_client

    storage, answer, states = SignIns(url), asyncio.get_running_loop().create_future(), set[str]()
    storage.forget()  # a client that was registered before has another port

    async def redirected(address: str) -> None:
        states.update(parse_qs(urlsplit(address).query).get("state", ()))
        show(address)

    async def answered() -> AuthorizationCodeResult:
        result: AuthorizationCodeResult = await answer
        return result

    server = await asyncio.start_server(_taking(answer, states), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    provider = _provider(
        storage, f"http://127.0.0.1:{port}{CALLBACK}", redirect_handler=redirected, callback_handler=answered
    )
    try:
        async with (
            asyncio.timeout(seconds),
            httpx2.AsyncClient(auth=provider) as http,
            Client(streamable_http_client(url, http_client=http)),
        ):
            pass
    except Exception as error:
        cause = first_within(error)
        late = f"nobody signed in within {seconds:g} s"
        if isinstance(cause, Unavailable):
            raise cause from None
        if not storage.read().get("tokens"):  # with them, she is: what else the server does shows when it is used
            raise _failed(late if isinstance(cause, TimeoutError) else str(cause)) from None
    finally:
        server.close()  # without waiting for what a browser has opened in advance
    if not storage.read().get("tokens"):
        raise _failed("the server did not ask for it")
    metadata, resource = provider.context.oauth_metadata, provider.context.protected_resource_metadata
    storage.change(
        metadata=metadata.model_dump(mode="json", exclude_none=True) if metadata else None,
        resource=resource.model_dump(mode="json", exclude_none=True) if resource else None,
    )


def _failed(reason: str) -> Unavailable:
    return Unavailable("SIGN_IN_FAILED", f"You are not signed in: {inert_line(reason)[:LONGEST_REASON].rstrip('.')}.")


def _taking(
    answer: asyncio.Future[AuthorizationCodeResult], states: Collection[str]
) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]:
    """Takes the answer that the person's browser brings; one that names none of the states is from somewhere else."""

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from mcp.shared.auth import AuthorizationCodeResult

        try:
            line = (await reader.readuntil(b"\r\n\r\n"))[:LONGEST_REQUEST].decode("latin-1").partition("\r\n")[0]
            address = urlsplit([*line.split(" "), "", ""][1])
            query = {name: values[0] for name, values in parse_qs(address.query).items()}
            text, status = _DONE, "200 OK"
            is_answer = query.get("state") in states and query.keys() & {"code", "error"}
            if address.path != CALLBACK or not is_answer:
                text, status = "There is nothing here.", "404 Not Found"
            elif "error" in query and not answer.done():
                text = f"You are not signed in: {html.escape(query['error'])}."
                answer.set_exception(_failed(query.get("error_description", query["error"])))
            elif not answer.done():
                answer.set_result(AuthorizationCodeResult.model_validate(query))
            head = f"HTTP/1.1 {status}\r\ncontent-type: text/plain\r\nconnection: close\r\n\r\n"
            writer.write(f"{head}{text}".encode())
            await writer.drain()
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError):
            pass
        finally:
            writer.close()

    return take
