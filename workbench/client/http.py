"""Operations over HTTP: `POST /api/ops/<name>`."""

from __future__ import annotations

import json
import os
from typing import Any, Self
from urllib.parse import quote

import httpx2

from workbench.errors import BadInput, Unavailable, WorkbenchError, from_dict

TIMEOUT_SECONDS = 60.0
"""Longer than any long poll lasts."""
HEALTH_SECONDS = 2.0


class HttpClient:
    """Calls operations with `POST /api/ops/<name>`. An asynchronous context manager.

    Args:
        url: address of the server, such as ``http://127.0.0.1:8765``.
        token: an agent's or the operator's; without one only what anonymous callers may do.
    """

    def __init__(self, url: str, token: str | None = None) -> None:
        self._http = connection(url, token)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.aclose()

    async def call(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        """Run an operation.

        Raises:
            WorkbenchError: what the server raised; ``NO_SERVER`` when none answers.
        """
        content = encoded(name, arguments)
        try:
            response = await self._http.post(f"/api/ops/{quote(name, safe='')}", content=content)
            body = response.json()
        except (httpx2.HTTPError, ValueError) as error:
            raise no_server(error) from error
        if body.get("success"):
            data: dict[str, Any] = body["data"]
            return data
        raise from_dict(body.get("error") or {})

    async def nonce(self) -> str | None:
        """The nonce of the server that answers; None when none does."""
        try:
            request = self._http.build_request("GET", "/health", timeout=HEALTH_SECONDS)
            request.headers.pop("Authorization", None)  # a server that refuses the token answers all the same
            answer = (await self._http.send(request)).json()
        except (httpx2.HTTPError, httpx2.InvalidURL, ValueError):
            return None
        return answer.get("nonce") if isinstance(answer, dict) else None


def connection(url: str, token: str | None) -> httpx2.AsyncClient:
    """Where the requests of one client go, with its token."""
    headers = entrance() | ({"Authorization": f"Bearer {token}"} if token else {})
    secure = url.startswith("https:")  # loading certificates takes longer than a call, so only where they are used
    return httpx2.AsyncClient(base_url=url, headers=headers, timeout=TIMEOUT_SECONDS, trust_env=False, verify=secure)


def entrance() -> dict[str, str]:
    """What a server that is open to other machines wants of everybody, from `WORKBENCH_ACCESS_TOKEN`."""
    access = os.environ.get("WORKBENCH_ACCESS_TOKEN")
    return {"X-Workbench-Access": access} if access else {}


def encoded(name: str, arguments: dict[str, Any]) -> bytes:
    """Arguments as JSON.

    Raises:
        BadInput: ``INVALID_ARGUMENTS``.
    """
    try:
        return json.dumps(arguments).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise BadInput("INVALID_ARGUMENTS", f"{name}: the arguments are not JSON: {error}.", problems=[]) from None


def no_server(error: BaseException) -> WorkbenchError:
    """The coded form of a server that cannot be reached."""
    return Unavailable("NO_SERVER", f"No Workbench server answers: {error}. Start one with `workbench serve`.")
