"""The endpoints of the spec's MCP servers (spec 5, 7.2 and 7.3), as plain JSON.

Those of the registry list all agents of the network that are known, and those under `/agents/{name}` an agent of this
project. Tools are called at the addresses that they are listed with.
"""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from workbench.app import Workbench
from workbench.errors import BadInput, NotFound
from workbench.koi.directory import PersonalityDirectory
from workbench.rules.personalities import mcp_adapter
from workbench.rules.personalities.profile import PersonalityProfile
from workbench.shells.http.endpoints import caller_of, coded


def routes(workbench: Workbench) -> list[Route]:
    """The endpoints; they take GET."""
    faces = _Faces(workbench)
    endpoints = {
        "/resources/list": faces.list_resources,
        "/resources/read/{id}": faces.read_resource,
        "/tools/list": faces.list_tools,
        "/agents/{name}/resources/list": faces.list_own_resource,
        "/agents/{name}/resources/read/{id}": faces.read_own_resource,
        "/agents/{name}/tools/list": faces.list_own_tools,
    }
    return [Route(path, coded(endpoint)) for path, endpoint in endpoints.items()]


class _Faces:
    """The handlers of the endpoints."""

    def __init__(self, workbench: Workbench) -> None:
        self._workbench = workbench

    async def list_resources(self, request: Request) -> Response:
        """The latest profile of every agent."""
        profiles = [personality.profile for personality in self._known(request).latest()]
        return JSONResponse({"resources": mcp_adapter.list_agents(profiles)})

    async def read_resource(self, request: Request) -> Response:
        """The latest profile of an agent."""
        name = _name(request)
        personality = self._known(request).find(name)
        if personality is None:
            raise _no_agent(name)
        return JSONResponse(mcp_adapter.get_agent(personality.profile))

    async def list_tools(self, request: Request) -> Response:
        """The tools of all agents."""
        profiles = [personality.profile for personality in self._known(request).latest()]
        return JSONResponse({"tools": mcp_adapter.get_all_tools(profiles)})

    async def list_own_resource(self, request: Request) -> Response:
        """The profile of one of this project's agents."""
        return JSONResponse({"resources": mcp_adapter.list_agents([self._own(request)])})

    async def read_own_resource(self, request: Request) -> Response:
        """The profile of one of this project's agents with its content."""
        profile = self._own(request)
        if _name(request) != profile.rid.name:
            raise _no_agent(_name(request))
        return JSONResponse(mcp_adapter.get_agent(profile))

    async def list_own_tools(self, request: Request) -> Response:
        """The tools of one of this project's agents."""
        return JSONResponse({"tools": mcp_adapter.get_tools_for_agent(self._own(request))})

    def _known(self, request: Request) -> PersonalityDirectory:
        return self._workbench.known_personalities(caller_of(request))

    def _own(self, request: Request) -> PersonalityProfile:
        name = request.path_params["name"]
        personality = self._known(request).find(name)
        if personality is None or not personality.is_own:
            raise _no_agent(name)
        return personality.profile


def _name(request: Request) -> str:
    """The name in the id of a resource.

    Raises:
        BadInput: ``INVALID_RESOURCE_ID``.
    """
    resource_id: Any = request.path_params["id"]
    name = resource_id.removeprefix(mcp_adapter.PREFIX)
    if not name or name == resource_id:
        raise BadInput("INVALID_RESOURCE_ID", "The id of a resource is agent:<name>. GET /resources/list lists them.")
    return str(name)


def _no_agent(name: str) -> NotFound:
    return NotFound("PERSONALITY_NOT_FOUND", f"No agent {name[:128]!r} is known here. GET /resources/list lists them.")
