"""The operator releases names of personalities from their owners; replayed messages do not claim them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests import given
from tests.services.personalities.nodes import NEW, Here, Other, event, forget
from workbench.errors import NotFound
from workbench.koi.envelope import signed
from workbench.koi.payloads import EventsPayload
from workbench.koi.requests import BROADCAST
from workbench.rules.personalities.rid import AgentPersonality
from workbench.services.personalities.exchange import receiving

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(30)]


async def release_name(here: Here, name: str = "helper", **more: Any) -> dict[str, Any]:
    return await here.workbench.call("release_personality_name", name=name, **more)


async def code_of(here: Here, name: str, **more: Any) -> str:
    return (await given.refusal(release_name(here, name, **more))).code


async def owner(here: Here, name: str = "helper") -> str | None:
    rows = await here.rows("SELECT owner FROM personality_owners WHERE name = :name", name=name)
    return rows[0]["owner"] if rows else None


async def test_a_node_with_a_new_key_gets_the_name_and_no_other_that_its_lost_key_owned(
    here: Here, ada: Other, other: Callable[[str], Other]
) -> None:
    await here.receive(ada, *ada.handshake(), ada.personality("helper", mood="calm"), ada.personality("helper2"))
    new = other("ada-again")
    await here.receive(new, *new.handshake(), new.personality("helper", mood="keen"))
    assert await here.refusals() == {"KOI_NAME_TAKEN": 1}
    release = await release_name(here)
    assert (release["former_owner"], release["owner"], release["dropped"]) == (str(ada.rid), None, ["1"])
    assert await here.registry() == {"helper2/1"}
    kinds = [row["kind"] for row in await here.rows("SELECT kind FROM events ORDER BY id DESC LIMIT 2")]
    assert kinds == ["name.released", "personality.forgotten"]
    await here.receive(new, new.personality("helper", mood="keen"))
    assert await here.registry() == {"helper/1", "helper2/1"}
    assert await owner(here) == str(new.rid)


async def test_old_and_new_messages_of_the_former_owner_of_a_name_are_refused(
    here: Here, ada: Other, bob: Other
) -> None:
    body = EventsPayload(events=[ada.personality("helper", "1"), ada.personality("helper", "2")])
    old = signed(ada.identity, body, here.rid)
    await here.meet(ada, bob)
    await receiving.answer(here.ctx, BROADCAST, old)
    await here.receive(ada, forget("helper", "2"))
    await release_name(here)
    await receiving.answer(here.ctx, BROADCAST, old)
    here.clock.forward(3_600)
    await here.receive(ada, ada.personality("helper", "3"))
    renamed = ada.profile("helper", "3") | {"node_rid": str(ada.rid).replace("ada+", "eve+")}
    await here.receive(ada, event(NEW, ada.bundle(AgentPersonality("helper", "3"), renamed)))
    await here.make_relay(bob)
    await here.receive(bob, ada.personality("helper", "4"))
    assert await here.registry() == set()
    assert await owner(here) is None
    assert await here.refusals() == {"KOI_NAME_RELEASED": 5}
    await here.receive(bob, bob.personality("helper"))
    await receiving.answer(here.ctx, BROADCAST, old)
    assert await here.registry() == {"helper/1"}
    assert await here.refusals() == {"KOI_NAME_RELEASED": 5, "KOI_NAME_TAKEN": 2}


async def test_a_released_name_can_be_assigned_to_a_node(here: Here, ada: Other, bob: Other) -> None:
    await here.receive(ada, *ada.handshake(), ada.personality("helper"))
    release = await release_name(here, to=str(bob.rid))
    assert release["owner"] == await owner(here) == str(bob.rid)
    await here.receive(ada, ada.personality("helper"))
    assert await here.refusals() == {"KOI_NAME_TAKEN": 1}
    await here.receive(bob, *bob.handshake(), bob.personality("helper"))
    assert await here.registry() == {"helper/1"}
    assert (await release_name(here, to="ada"))["owner"] == str(ada.rid)
    await here.receive(ada, ada.personality("helper"))
    assert await here.registry() == {"helper/1"}


async def test_permissions_for_tools_of_the_former_owner_end(here: Here, ada: Other) -> None:
    tool = ada.profile("helper")
    tool["traits"] = [{"name": "add", "type": "function", "value": None, "is_callable": True}]
    await here.receive(ada, *ada.handshake(), event(NEW, ada.bundle(ada.personality("helper").rid, tool)))
    await here.workbench.call("set_tool_permission", name="helper__add", permission="always")
    assert (await release_name(here))["asked_again"] == ["helper__add"]
    assert (await here.workbench.call("list_tool_permissions"))["permissions"] == []


async def test_a_name_that_cannot_be_released_is_refused_with_a_code(here: Here, ada: Other) -> None:
    assert await code_of(here, "nobody") == "NO_OWNER"
    await here.workbench.call("publish_personality", name="own")
    assert await code_of(here, "own") == "PERSONALITY_PUBLISHED"
    await here.receive(ada, *ada.handshake(), ada.personality("helper"))
    assert await code_of(here, "helper", to="ada") == "SAME_OWNER"
    assert await code_of(here, "helper", to="nobody") == "PEER_NOT_FOUND"
    assert await here.registry() == {"own/1.0", "helper/1"}


async def test_an_agent_of_another_node_cannot_be_changed_or_withdrawn(here: Here, ada: Other) -> None:
    await here.receive(ada, *ada.handshake(), ada.personality("helper"))
    changes: dict[str, dict[str, Any]] = {"update_traits": {"traits": {"mood": "keen"}}, "withdraw_personality": {}}
    for operation, more in changes.items():
        with pytest.raises(NotFound, match="helper is an agent of another node, which alone can change or withdraw it"):
            await here.workbench.call(operation, name="helper", **more)


async def test_a_withdrawn_name_is_free_for_others_and_can_be_reclaimed(here: Here, ada: Other) -> None:
    await here.workbench.call("publish_personality", name="own", version="1")
    await here.workbench.call("withdraw_personality", name="own")
    early = ada.personality("own")
    await here.receive(ada, *ada.handshake(), early)
    assert await here.refusals() == {"KOI_NAME_TAKEN": 1}
    await release_name(here, "own")
    await here.receive(ada, early)
    assert await here.registry() == {"own/1"}
    await release_name(here, "own")
    await here.workbench.call("publish_personality", name="own", version="1")
    assert await owner(here, "own") == str(here.rid)
