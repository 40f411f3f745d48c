"""The five shells, each behind one `call`: the same operation as a program, a socket, a tool, a request, a command."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import httpx2
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from workbench.errors import WorkbenchError
from workbench.ops import ANONYMOUS

if TYPE_CHECKING:
    from tests.conftest import Command, Served, Talk, Talks


@dataclass(frozen=True)
class Refusal:
    """A coded error; `status` is None in a shell that does not tell the family, `why` is a person's reason."""

    code: str
    status: int | None = None
    why: str | None = None


Outcome = dict[str, Any] | Refusal


def refusal(error: dict[str, Any]) -> Refusal:
    why = error.get("details", {}).get("reason") if error["code"] == "REJECTED" else None
    return Refusal(error["code"], error.get("status"), why)


def http_client(token: str | None) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(
        headers={"Authorization": f"Bearer {token}"} if token else {}, trust_env=False, verify=False
    )


def first(error: BaseException) -> BaseException:
    return first(error.exceptions[0]) if isinstance(error, BaseExceptionGroup) else error


@dataclass(frozen=True)
class Shell:
    """One way to call operations, as the owner of the token."""

    served: Served
    command: Command
    talk: Talks

    async def call(self, token: str | None, name: str, /, **arguments: Any) -> Outcome:
        raise NotImplementedError


class PythonShell(Shell):
    async def call(self, token: str | None, name: str, /, **arguments: Any) -> Outcome:
        workbench = self.served.workbench
        try:
            caller = ANONYMOUS if token is None else await workbench.identify(token)
            return await workbench.dispatch(caller, name, arguments)
        except WorkbenchError as error:
            return refusal(error.as_dict())


class WebSocketShell(Shell):
    """A connection for each call; the token is told with `authenticate`."""

    async def call(self, token: str | None, name: str, /, **arguments: Any) -> Outcome:
        line: Talk = await self.talk("story")
        if token is not None:
            bound = await line.say("story", "authenticate", token=token)
            if bound["type"] == "error":
                return refusal(bound)
        reply = await line.say("story", name, **arguments)
        match reply.pop("type"):
            case "error":
                return refusal(reply)
            case "registration_success":
                return reply
            case kind if kind == f"{name}_response":
                data: dict[str, Any] = reply["data"]
                return data
            case kind:
                return {"type": kind, **reply}


class McpShell(Shell):
    """A session for each call, with the library's own client, which compares each result with its output schema."""

    async def call(self, token: str | None, name: str, /, **arguments: Any) -> Outcome:
        async with http_client(token) as http:
            transport = streamable_http_client(self.served.info.mcp_url, http_client=http)
            try:
                async with Client(transport) as client:
                    result = await client.call_tool(name, arguments)
            except ExceptionGroup as errors:
                error = first(errors)
                assert isinstance(error, MCPError)
                return refusal(error.data) if error.data else Refusal(error.message)
        if result.is_error:
            assert result.structured_content is None
            [text] = result.content
            assert text.type == "text"
            return refusal(json.loads(text.text)["error"])
        data: dict[str, Any] = result.structured_content or {}
        return data


class RestShell(Shell):
    async def call(self, token: str | None, name: str, /, **arguments: Any) -> Outcome:
        async with http_client(token) as http:
            response = await http.post(f"{self.served.info.url}/api/ops/{name}", json=arguments)
        body = response.json()
        if body["success"]:
            data: dict[str, Any] = body["data"]
            return data
        assert body["error"]["status"] == response.status_code
        return refusal(body["error"])


class CliShell(Shell):
    """A command for each call; the token travels in its environment."""

    async def call(self, token: str | None, name: str, /, **arguments: Any) -> Outcome:
        ran = await self.command("--json", "call", name, json.dumps(arguments), token=token)
        if ran.status == 0:
            data: dict[str, Any] = json.loads(ran.out)
            return data
        assert ran.status == 1
        return refusal(json.loads(ran.err))


SHELLS: dict[str, type[Shell]] = {
    "python": PythonShell,
    "websocket": WebSocketShell,
    "mcp": McpShell,
    "rest": RestShell,
    "cli": CliShell,
}
