"""The endpoints of the spec's registry and agent servers, asked by a real client."""

from __future__ import annotations

from urllib.parse import quote

import httpx2
import pytest

from tests.conftest import Admit, Served
from tests.services.personalities.known import profile
from tests.shells.conftest import Visit, error_of
from workbench.koi.directory import KnownPersonality
from workbench.rules.personalities.profile import PersonalityProfile
from workbench.state.settings import Settings

pytestmark = pytest.mark.anyio

ADD = {"is_callable": True, "description": "Add.", "input_schema": {"type": "object", "required": ["a"]}}
PATHS = ("/resources/list", "/resources/read/agent:ada", "/tools/list", "/agents/own/tools/list")


def learn(served: Served, made: PersonalityProfile, *, at: int = 1, is_own: bool = False) -> None:
    """Know a personality, as the pipeline notes it."""
    served.workbench._ctx.node.directory.put(KnownPersonality(made, at, is_own))


@pytest.fixture
async def reader(served: Served, visit: Visit, admit: Admit) -> httpx2.AsyncClient:
    """A client that may read, of a node that knows two agents; one is its own."""
    learn(served, profile("ada", "1.0", mood="calm", add=ADD))
    learn(served, profile("own", "1.0", sub=ADD), is_own=True)
    return visit((await admit("reader", tool="read")).token)


async def test_the_registry_lists_agents_and_their_tools(reader: httpx2.AsyncClient) -> None:
    assert (await reader.get("/resources/list")).json() == {
        "resources": [
            {
                "id": f"agent:{name}",
                "type": "agent_profile",
                "description": f"Personality of the agent {name}",
                "url": f"http://h/agents/{name}",
            }
            for name in ("ada", "own")
        ]
    }
    tools = (await reader.get("/tools/list")).json()["tools"]
    assert [tool["name"] for tool in tools] == ["ada.add", "own.sub"]
    assert tools[0] == {
        "name": "ada.add",
        "description": "Add.",
        "input_schema": {"type": "object", "required": ["a"]},
        "url": "http://h/agents/ada/tools/call/add",
    }


async def test_a_profile_is_read_by_the_id_that_the_list_has(served: Served, reader: httpx2.AsyncClient) -> None:
    learn(served, profile("a b+ä", mood="odd"))
    for resource in (await reader.get("/resources/list")).json()["resources"]:
        read = (await reader.get(f"/resources/read/{quote(resource['id'], safe='')}")).json()
        assert (read["id"], read["type"]) == (resource["id"], "agent_profile")
        assert PersonalityProfile.model_validate(read["content"]).rid.name == resource["id"].removeprefix("agent:")


async def test_the_newest_version_is_shown(served: Served, reader: httpx2.AsyncClient) -> None:
    learn(served, profile("ada", "2.0", mood="wild"), at=5)
    content = (await reader.get("/resources/read/agent:ada")).json()["content"]
    assert (content["rid"], len((await reader.get("/resources/list")).json()["resources"])) == (
        "orn:agent.personality:ada/2.0",
        2,
    )
    served.workbench._ctx.node.directory.remove("ada", "2.0")
    content = (await reader.get("/resources/read/agent:ada")).json()["content"]
    assert content["rid"] == "orn:agent.personality:ada/1.0"


async def test_an_agent_of_this_project_has_endpoints_of_its_own(reader: httpx2.AsyncClient) -> None:
    [resource] = (await reader.get("/agents/own/resources/list")).json()["resources"]
    assert resource["id"] == "agent:own"
    read = (await reader.get("/agents/own/resources/read/agent:own")).json()
    assert read["content"]["rid"] == "orn:agent.personality:own/1.0"
    [tool] = (await reader.get("/agents/own/tools/list")).json()["tools"]
    assert (tool["name"], tool["url"]) == ("sub", "http://h/agents/own/tools/call/sub")


REFUSED = {
    "/resources/read/agent:nobody": (404, "PERSONALITY_NOT_FOUND"),
    "/resources/read/ada": (400, "INVALID_RESOURCE_ID"),
    "/resources/read/agent:": (400, "INVALID_RESOURCE_ID"),
    "/resources/read/%00%ff": (400, "INVALID_RESOURCE_ID"),
    "/resources/read/agent:a/b": (404, "NO_SUCH_ENDPOINT"),
    "/resources/read/": (404, "NO_SUCH_ENDPOINT"),
    "/agents/ada/tools/list": (404, "PERSONALITY_NOT_FOUND"),
    "/agents/nobody/resources/list": (404, "PERSONALITY_NOT_FOUND"),
    "/agents/own/resources/read/agent:ada": (404, "PERSONALITY_NOT_FOUND"),
    "/agents/own/resources/read/own": (400, "INVALID_RESOURCE_ID"),
}


async def test_a_missing_personality_is_a_coded_refusal(reader: httpx2.AsyncClient) -> None:
    assert {path: error_of(await reader.get(path)) for path in REFUSED} == REFUSED
    assert error_of(await reader.post("/tools/list")) == (405, "METHOD_NOT_ALLOWED")


async def test_the_registry_needs_a_token(reader: httpx2.AsyncClient, visit: Visit, admit: Admit) -> None:
    for path in PATHS:
        assert error_of(await visit().get(path)) == (401, "TOKEN_REQUIRED")
        assert (await reader.get(path)).status_code == 200


class TestAnOpenRegistry:
    """With `koi_open_registry`."""

    @pytest.fixture
    def settings(self, settings: Settings) -> Settings:
        """The settings of a registry that is open to everybody."""
        return settings.model_copy(update={"koi_open_registry": True})

    async def test_a_public_registry_needs_no_token(self, reader: httpx2.AsyncClient, visit: Visit) -> None:
        for path in PATHS:
            assert (await visit().get(path)).status_code == 200
        assert error_of(await visit().get("/tools")) == (401, "TOKEN_REQUIRED")
