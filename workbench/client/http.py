"""Operations over HTTP: `POST /api/ops/<name>`."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

import httpx2

from workbench.client.address import PERSON_HEADER, access_header, http_url, session_header, token_header
from workbench.client.messages import encoded, no_reply, no_server, not_here
from workbench.errors import BadInput, Refused, WorkbenchError, from_dict

TIMEOUT_SECONDS = 60.0
"""Longer than any long poll."""
WITHOUT_LIMIT = httpx2.Timeout(TIMEOUT_SECONDS, read=None)
"""A tool may run, or wait for the operator, for any time."""
HEALTH_SECONDS = 2.0
TRUST_IT = "Name a file with the authorities to trust in SSL_CERT_FILE, and start the server again."

IsAway = Callable[[], bool]


class HttpClient:
    """Calls operations with `POST /api/ops/<name>`. An asynchronous context manager.

    Args:
        url: address of the server, such as ``http://127.0.0.1:8765``.
        token: an agent's or the operator's; without one, only operations for anonymous callers run.
        is_away, certificate: see `connection`.

    Raises:
        BadInput: ``BAD_URL``, ``BAD_CERTIFICATE``. Unauthenticated: see `token_header`.
    """

    def __init__(
        self, url: str, token: str | None = None, is_away: IsAway | None = None, certificate: Path | None = None
    ) -> None:
        self._http = connection(url, token, is_away, certificate)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.aclose()

    async def call(self, name: str, person: str | None = None, /, **arguments: Any) -> dict[str, Any]:
        """Run an operation.

        Args:
            person: who of several makes the operator's request.

        Raises:
            WorkbenchError: what the server raised; ``NO_SERVER`` when none answers, ``NO_REPLY`` if it is late.
            Refused: ``CERTIFICATE_NOT_TRUSTED``.
        """
        content, headers = encoded(name, arguments), {PERSON_HEADER: quote(person)} if person else {}
        limit = WITHOUT_LIMIT if name == "call_tool" else self._http.timeout
        try:
            response = await self._http.post(
                f"/api/ops/{quote(name, safe='')}", content=content, headers=headers, timeout=limit
            )
        except httpx2.ReadTimeout as error:
            raise no_reply(TIMEOUT_SECONDS) from error
        except httpx2.HTTPError as error:
            raise _not_reached(error) from error
        return _unwrap(response)

    async def nonce(self) -> str | None:
        """The nonce of the server that answers; None when none does."""
        try:
            request = self._http.build_request("GET", "/health", timeout=HEALTH_SECONDS)
            request.headers.pop("Authorization", None)  # a server that refuses the token answers all the same
            answer = (await self._http.send(request)).json()
        except (httpx2.HTTPError, ValueError):
            return None
        return answer.get("nonce") if isinstance(answer, dict) else None


def _not_reached(error: Exception) -> WorkbenchError:
    """The coded error of a server that has not answered."""
    if why := distrust(error):
        text = f"The server's certificate is not trusted: {why}. Name the file of its certificate, "
        return Refused("CERTIFICATE_NOT_TRUSTED", f"{text}or of the authority that has signed it.")
    return no_server(error)


def distrust(error: BaseException) -> str | None:
    """Why the certificate of whom a request was for is not trusted; None if it failed otherwise."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return cause.verify_message
        cause = cause.__cause__ or cause.__context__
    return None


def _unwrap(response: httpx2.Response) -> dict[str, Any]:
    """The data in a reply.

    Raises:
        WorkbenchError: the error in it; ``NO_SERVER`` when it is not the reply of a Workbench server.
    """
    with suppress(ValueError):
        match response.json():
            case {"success": True, "data": dict() as data}:
                return data
            case {"success": False, "error": {"code": _} as error}:
                raise from_dict(error)
    to = f", which sends to {response.headers['location'].partition('?')[0]}" if response.has_redirect_location else ""
    raise no_server(ValueError(f"what answers there is another program (HTTP status {response.status_code}{to})"))


def connection(
    url: str, token: str | None, is_away: IsAway | None = None, certificate: Path | None = None
) -> httpx2.AsyncClient:
    """An HTTP client for one server, with a token.

    Args:
        is_away: asked before each request, which is not sent if another program has the server's address by now.
        certificate: the file of the one certificate, the server's or its authority's, that is trusted in place of the
            system's.

    Raises:
        BadInput: ``BAD_URL``, ``BAD_CERTIFICATE``. Unauthenticated: see `token_header`.
    """
    address = http_url(url)
    headers = access_header() | session_header() | token_header(token)
    trusted = _trusting(certificate) if certificate else url.startswith("https:")  # loading takes longer than a call
    http = httpx2.AsyncClient(
        base_url=address, headers=headers, timeout=TIMEOUT_SECONDS, trust_env=False, verify=trusted
    )

    async def require_here(_: httpx2.Request) -> None:
        if is_away is not None and is_away():
            raise httpx2.ConnectError(str(not_here()))

    http.event_hooks = {"request": [require_here]}
    return http


def _trusting(certificate: Path) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=certificate)
    except (OSError, ssl.SSLError) as error:
        text = (
            f"{certificate} is no file with a certificate as PEM: {error}. Name one that begins with BEGIN CERTIFICATE."
        )
        raise BadInput("BAD_CERTIFICATE", text) from None
