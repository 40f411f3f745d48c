"""The profiles of this project's own agents: published, changed, and following what they are made of."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests import given
from tests.conftest import Admit, Served
from tests.services.personalities.known import ALICE, know, online, own, profile
from workbench.app import Workbench
from workbench.errors import Conflict, NotFound, Refused
from workbench.state.settings import Settings

pytestmark = pytest.mark.anyio

URL = "http://127.0.0.1:2"
"""Where this node says that it is."""
ADD = {"name": "add", "description": "Add.", "parameters": {"type": "object"}, "version": "1", "trait": "ada"}


@dataclass
class Lab:
    """A served project that takes part in a network."""

    workbench: Workbench
    _read_to: int = field(default=0)

    async def call(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        return await self.workbench.call(name, **arguments)

    async def events(self, count: int = 1) -> list[tuple[str, str]]:
        """The next events about personalities; waits until there are so many."""
        found: list[tuple[str, str]] = []
        while len(found) < count:
            page = await self.call("list_events", kinds=["personality.*"], after=self._read_to, wait_seconds=30)
            self._read_to = page["next_after"]
            found += [(event["kind"], event["subject"].partition(":")[2]) for event in page["events"]]
        return found

    async def profile(self, name: str) -> dict[str, Any]:
        """A profile as the network sees it."""
        return dict((await self.call("get_personality", name=name))["profile"])

    async def traits(self, name: str) -> dict[str, Any]:
        return {trait["name"]: trait["value"] for trait in (await self.profile(name))["traits"]}

    async def offer(self, *tools: dict[str, Any]) -> None:
        """Offer functions as a kernel does, instead of those that it has offered."""
        await self.call("offer_tools", host_id="k", name="kernel", tools=list(tools))


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """Definitions that others edit are noticed soon."""
    return settings.model_copy(update={"definition_watch_seconds": 0.1})


@pytest.fixture
async def lab(served: Served) -> AsyncIterator[Lab]:
    """A served project that takes part in a network."""
    async with online(served.workbench):
        yield Lab(served.workbench)


async def test_a_profile_is_published_changed_and_withdrawn(lab: Lab) -> None:
    personality = await lab.call("publish_personality", name="ada", traits={"mood": "calm", "age": 3})
    assert (personality["rid"], personality["is_published"]) == ("orn:agent.personality:ada/1.0", True)
    assert await lab.traits("ada") == {"age": 3, "mood": "calm"}
    profile = await lab.profile("ada")
    assert (profile["base_url"], profile["mcp_url"]) == (f"{URL}/koi-net", f"{URL}/agents/ada")
    [known] = lab.workbench._ctx.node.directory.latest()
    assert known.is_own
    await lab.call("update_traits", name="ada", traits={"mood": "calm"})  # which it is: nothing is published
    changed = await lab.call("update_traits", name="ada", traits={"mood": "curious", "age": None})
    assert (changed["set_by_hand"], changed["functions"]) == (["mood"], [])
    assert await lab.traits("ada") == {"mood": "curious"}
    await lab.call("withdraw_personality", name="ada")
    with pytest.raises(NotFound, match="PERSONALITY_NOT_FOUND"):
        await lab.traits("ada")
    events = ["personality.published", "personality.updated", "personality.forgotten"]
    assert await lab.events(3) == [(kind, "ada/1.0") for kind in events]


async def test_a_new_version_replaces_the_former_one(lab: Lab) -> None:
    await lab.call("publish_personality", name="ada", traits={"mood": "calm"})
    await lab.call("publish_personality", name="ada", version="2.0")
    personality = await lab.call("get_personality", name="ada")
    assert (personality["version"], personality["versions"], await lab.traits("ada")) == (
        "2.0",
        ["2.0"],
        {"mood": "calm"},
    )
    assert (await lab.events(3))[1:] == [("personality.published", "ada/2.0"), ("personality.forgotten", "ada/1.0")]


async def test_a_profile_follows_its_definition(lab: Lab) -> None:
    about = {"name": "Reviewer", "description": "Reads code"}
    await lab.call("agent_create", agentPath="./agents/reviewer", **about)
    personality = await lab.call("publish_personality", name="ada", definition="Reviewer", traits={"mood": "calm"})
    assert personality["version"] == "1.0.0"
    assert await lab.traits("ada") == {"description": "Reads code", "mode": "interactive", "mood": "calm"}
    metadata = {"description": "Reads all code"}
    await lab.call("agent_update_metadata", agentTarget="Reviewer", metadata=metadata)
    assert (await lab.events(2))[1] == ("personality.updated", "ada/1.0.0")
    assert (await lab.traits("ada"))["description"] == "Reads all code"
    await lab.call("agent_delete", agentTarget="Reviewer", confirm=True)
    await lab.events()
    assert await lab.traits("ada") == {"mood": "calm"}


async def test_a_profile_follows_a_definition_that_is_edited_outside_of_workbench(lab: Lab, settings: Settings) -> None:
    about = {"name": "Reviewer", "description": "Reads code"}
    await lab.call("agent_create", agentPath="./agents/reviewer", **about)
    await lab.call("publish_personality", name="ada", definition="Reviewer")
    await lab.events()
    [file] = [path for path in settings.project.rglob("agent.yaml") if "Reads code" in path.read_text()]
    file.write_text(file.read_text().replace("Reads code", "Reads every line"))
    assert await lab.events() == [("personality.updated", "ada/1.0.0")]
    assert (await lab.traits("ada"))["description"] == "Reads every line"
    file.unlink()
    await lab.call("update_traits", name="ada", traits={"mood": "calm"})
    await lab.events()
    assert (await lab.traits("ada"))["description"] == "Reads every line"


async def test_a_profile_follows_its_agent(lab: Lab, admit: Admit) -> None:
    await admit("ada", persona_id="implementer")
    await lab.call("publish_personality", name="ada-1", agent_id="ada")
    assert await lab.traits("ada-1") == {"persona": "Implementer", "role": "worker"}
    await lab.call("update_agent", agent_id="ada", changes={"persona_id": "reviewer"})
    await lab.events(2)
    assert (await lab.traits("ada-1"))["persona"] != "Implementer"
    await lab.call("save_persona", persona_id="reviewer", text="---\nname: Strict reader\n---\nRead.")
    await lab.events()
    assert (await lab.traits("ada-1"))["persona"] == "Strict reader"
    await lab.call("delete_agent", agent_id="ada")
    assert await lab.events() == [("personality.forgotten", "ada-1/1.0")]
    await lab.call("restore_agent", agent_id="ada")
    assert await lab.events() == [("personality.published", "ada-1/1.0")]


async def test_a_function_is_a_trait_as_long_as_a_kernel_offers_it(lab: Lab) -> None:
    await lab.offer(ADD)
    assert await lab.events() == [("personality.published", "ada/1.0")]
    [trait] = (await lab.profile("ada"))["traits"]
    assert (trait["name"], trait["is_callable"], trait["input_schema"]) == ("add", True, {"type": "object"})
    await lab.offer({**ADD, "version": "2"})
    assert await lab.events() == [("personality.updated", "ada/1.0")]
    await lab.call("withdraw_tools", host_id="k")
    assert await lab.events() == [("personality.forgotten", "ada/1.0")]
    await lab.offer({**ADD, "trait": ""}, {**ADD, "name": "plain", "trait": None})
    assert await lab.events() == [("personality.published", "lab/1.0")]  # it named no agent, so it is this node's
    assert list(await lab.traits("lab")) == ["add"]


async def test_traits_are_set_beside_functions_but_not_in_their_place(lab: Lab) -> None:
    await lab.offer(ADD)
    await lab.events()
    personality = await lab.call("update_traits", name="ada", traits={"mood": "calm"})
    assert (personality["set_by_hand"], personality["functions"]) == (["mood"], ["add"])
    with pytest.raises(Conflict, match="TRAIT_IS_FUNCTION"):
        await lab.call("update_traits", name="ada", traits={"add": 5})
    with pytest.raises(Conflict, match="PERSONALITY_HAS_FUNCTIONS"):
        await lab.call("withdraw_personality", name="ada")
    await lab.offer()
    await lab.events(2)
    assert await lab.traits("ada") == {"mood": "calm"}


async def test_an_agent_changes_its_own_profile_if_its_grant_says_so(lab: Lab, admit: Admit) -> None:
    ada = await admit("ada")
    await lab.call("publish_personality", name="ada-1", agent_id="ada")
    await lab.call("publish_personality", name="bob-1")

    async def update(**arguments: Any) -> dict[str, Any]:
        caller = await lab.workbench.identify(ada.token)
        return await lab.workbench.dispatch(caller, "update_traits", {"traits": {"mood": "calm"}, **arguments})

    for tools in ([], ["*"]):
        await lab.call("update_agent", agent_id="ada", changes={"tools": tools})
        with pytest.raises(Refused, match="FORBIDDEN"):
            await update()
    await lab.call("update_agent", agent_id="ada", changes={"tools": ["update_traits"]})
    assert (await update())["name"] == "ada-1"
    with pytest.raises(Refused, match="NOT_YOUR_PERSONALITY"):
        await update(name="bob-1")
    await lab.call("withdraw_personality", name="ada-1")
    with pytest.raises(NotFound, match="NO_PERSONALITY"):
        await update()


async def test_a_profile_waits_for_a_network_and_follows_the_addresses_of_the_server(served: Served) -> None:
    lab = Lab(served.workbench)
    personality = await lab.call("publish_personality", name="ada", traits={"mood": "calm"})
    assert not personality["is_published"]
    assert (await lab.call("list_personalities"))["unpublished"] == ["ada"]
    async with online(served.workbench):
        assert await lab.events() == [("personality.published", "ada/1.0")]
        assert await lab.traits("ada") == {"mood": "calm"}
        assert (await lab.call("list_personalities"))["unpublished"] == []
    function = {"name": "mean", "description": "", "parameters": {"type": "object"}, "trait": "zoe"}
    await lab.call("offer_tools", host_id="k", name="kernel 1", tools=[function])
    assert (await lab.call("list_personalities"))["unpublished"] == ["zoe"]
    async with online(served.workbench, "http://127.0.0.1:3/koi-net"):
        assert await lab.events() == [("personality.updated", "ada/1.0"), ("personality.published", "zoe/1.0")]
        assert (await lab.profile("ada"))["mcp_url"] == "http://127.0.0.1:3/agents/ada"


async def test_a_personality_cannot_take_the_name_of_another_nodes(lab: Lab) -> None:
    await know(lab.workbench, profile("alice-1"))
    await own(lab.workbench, "alice-1", ALICE)
    with pytest.raises(Conflict, match="is an agent of the node alice"):
        await lab.call("publish_personality", name="alice-1")
    with pytest.raises(NotFound, match="PERSONALITY_NOT_FOUND"):
        await lab.call("update_traits", name="alice-1", traits={"mood": "mine"})


async def test_a_refused_change_of_traits_changes_nothing(lab: Lab) -> None:
    await lab.call("publish_personality", name="ada", traits={"mood": "calm"})
    for operation, arguments, code in (
        ("update_traits", {"traits": {"mood": 1}}, "PERSONALITY_NAME_REQUIRED"),
        ("update_traits", {"name": "ada", "traits": {"mood": 1, "a/b": 2}}, "INVALID_TRAIT"),
        ("publish_personality", {"name": "ada", "traits": {"text": "x" * 300_000}}, "TRAITS_TOO_LARGE"),
        ("publish_personality", {"name": "ada", "agent_id": "nobody"}, "AGENT_NOT_FOUND"),
    ):
        assert (await given.refusal(lab.call(operation, **arguments))).code == code
    assert await lab.traits("ada") == {"mood": "calm"}
    assert (await lab.call("get_own_personality", name="ada"))["set_by_hand"] == ["mood"]


async def test_a_profile_that_the_network_would_refuse_changes_nothing(
    settings: Settings,
) -> None:
    small = settings.model_copy(update={"max_koi_profile_bytes": 1_024})
    large, larger = {"text": "x" * 2_000}, {"text": "y" * 2_000}
    async with Workbench.open(small) as workbench, online(workbench):
        lab = Lab(workbench)
        with pytest.raises(Conflict, match="PERSONALITY_REFUSED"):
            await lab.call("publish_personality", name="ada", traits=large)
        assert (await lab.call("list_personalities"))["unpublished"] == []
        await lab.call("publish_personality", name="ada", traits={"mood": "calm"})
        with pytest.raises(Conflict, match="PERSONALITY_REFUSED"):
            await lab.call("update_traits", name="ada", traits=large)
        assert await lab.traits("ada") == {"mood": "calm"}
        assert (await lab.call("get_own_personality", name="ada"))["set_by_hand"] == ["mood"]
        changes: list[dict[str, Any]] = [large, {"mood": "keen"}, larger, {"age": 3}]
        calls = [lab.call("update_traits", name="ada", traits=traits) for traits in changes]
        results = await asyncio.gather(*calls, return_exceptions=True)
        assert [isinstance(result, Conflict) for result in results] == [True, False, True, False]
        assert await lab.traits("ada") == {"mood": "keen", "age": 3}
        assert (await lab.call("get_own_personality", name="ada"))["set_by_hand"] == ["mood", "age"]
