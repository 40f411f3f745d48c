"""HTTP clients of a served project."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack

import httpx2
import pytest

from tests.conftest import Served

Visit = Callable[..., httpx2.AsyncClient]


@pytest.fixture
async def visit(served: Served) -> AsyncIterator[Visit]:
    """`visit(token)`: an HTTP client of the server."""
    async with AsyncExitStack() as stack:

        def client(token: str | None = None) -> httpx2.AsyncClient:
            headers = {"Authorization": f"Bearer {token}"} if token else {}
            made = httpx2.AsyncClient(base_url=served.info.url, headers=headers, trust_env=False, verify=False)
            stack.push_async_callback(made.aclose)
            return made

        yield client


@pytest.fixture
def operator(served: Served, visit: Visit) -> httpx2.AsyncClient:
    return visit(served.workbench.operator_token)


def error_of(response: httpx2.Response) -> tuple[int, str]:
    """Status and code of a refusal, whose body has the one form that all refusals have."""
    body = response.json()
    assert body.keys() == {"success", "error"}
    assert body["success"] is False
    assert body["error"].keys() - {"hint"} == {"code", "message", "details", "status"}
    assert body["error"]["status"] == response.status_code
    assert ("WWW-Authenticate" in response.headers) == (response.status_code == 401 and "INVALID" in str(body))
    return response.status_code, body["error"]["code"]
