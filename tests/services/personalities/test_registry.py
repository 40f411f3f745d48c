"""The registry, as it reads what the pipeline has stored."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conftest import Admit
from tests.services.personalities.known import ALICE, COORDINATOR, forget, join, know, meet, profile
from workbench.app import Workbench
from workbench.errors import BadInput, NotFound
from workbench.koi.identity import load_or_create
from workbench.rules.personalities.addresses import node_label
from workbench.services.personalities.self_node import key_file

pytestmark = pytest.mark.anyio

ADD = {"is_callable": True, "description": "Add."}


async def test_the_latest_version_of_each_name_is_listed_with_what_it_offers(
    workbench: Workbench, admit: Admit
) -> None:
    await know(workbench, profile("ada", "1.0", mood="calm"), at=1_000)
    await know(workbench, profile("ada", "2.0", description="Adds", add=ADD), at=2_000)
    await know(workbench, profile("bob"), at=3_000)
    page = await workbench.call("list_personalities")
    assert (page["total"], page["next_cursor"], page["unpublished"]) == (2, None, [])
    ada, bob = page["personalities"]
    assert (ada["rid"], ada["versions"]) == ("orn:agent.personality:ada/2.0", ["2.0", "1.0"])
    assert (ada["description"], ada["traits"], ada["tools"]) == ("Adds", 2, ["add"])
    assert [(one["name"], one["text"]) for one in ada["highlights"]] == [("description", "Adds"), ("add", "Add.")]
    assert (bob["name"], bob["mcp_url"]) == ("bob", "http://h/agents/bob")
    assert ada["provenance"]["published_at"] == "1970-01-01T00:00:00.002Z"
    reader = (await admit("reader", tool="read")).caller
    assert (await workbench.dispatch(reader, "list_personalities", {}))["total"] == 2


async def test_pages_follow_each_other_also_when_personalities_come_and_go(workbench: Workbench) -> None:
    for name in ("a", "b", "c", "d"):
        await know(workbench, profile(name))
    first = await workbench.call("list_personalities", limit=2)
    await forget(workbench, profile("b"))
    await know(workbench, profile("c2"))
    rest = await workbench.call("list_personalities", limit=2, cursor=first["next_cursor"])
    assert [one["name"] for one in first["personalities"] + rest["personalities"]] == ["a", "b", "c", "c2"]
    with pytest.raises(BadInput, match="BAD_CURSOR"):
        await workbench.call("list_personalities", cursor="x")


async def test_personalities_are_found_by_name_and_by_literal_text_in_their_traits(workbench: Workbench) -> None:
    await know(workbench, profile("ada", mood="Calm"))
    await know(workbench, profile("bob", rate="100%"))
    await know(workbench, profile("cyd"))

    async def names(**filters: Any) -> list[str]:
        page = await workbench.call("list_personalities", **filters)
        assert page["total"] == len(page["personalities"])
        return [personality["name"] for personality in page["personalities"]]

    for search, expected in {"BOB": ["bob"], "calm": ["ada"], "0%": ["bob"], "a_a": []}.items():
        assert await names(search=search) == expected
    assert await names(names=["cyd", "ada", "nobody"]) == ["ada", "cyd"]
    assert await names(names=[]) == []


async def test_a_listed_personality_says_whether_it_is_own_live_or_stale(workbench: Workbench) -> None:
    me = load_or_create(key_file(workbench.settings), "me").rid
    await know(workbench, profile("own", node=me))
    await know(workbench, profile("ada"), origin=COORDINATOR)
    await know(workbench, profile("bob"))

    async def freshness(**filters: bool) -> dict[str, str]:
        personalities = (await workbench.call("list_personalities", **filters))["personalities"]
        return {personality["name"]: personality["provenance"]["freshness"] for personality in personalities}

    assert await freshness() == {"own": "own", "ada": "stale", "bob": "stale"}
    await join(workbench)
    await meet(workbench, COORDINATOR)
    await meet(workbench, ALICE, failures=3)
    assert await freshness(own=False) == {"ada": "live", "bob": "stale"}
    assert await freshness(own=True) == {"own": "own"}
    provenance = (await workbench.call("get_personality", name="ada"))["provenance"]
    assert (provenance["owner"], provenance["owner_name"]) == (str(ALICE), node_label(str(ALICE)))
    assert (provenance["origin"], provenance["origin_name"]) == (str(COORDINATOR), node_label(str(COORDINATOR)))


async def test_a_version_is_read_whole_and_the_latest_by_default(workbench: Workbench) -> None:
    await know(workbench, old := profile("helpful-agent", "1.0", mood="calm"), at=1)
    await know(workbench, new := profile("helpful-agent", "2.0", add=ADD), at=2)
    assert (await workbench.call("get_personality", name="helpful-agent"))["profile"] == new.model_dump(mode="json")
    personality = await workbench.call("get_personality", name="helpful-agent", version="1.0")
    assert (personality["profile"], personality["versions"]) == (old.model_dump(mode="json"), ["2.0", "1.0"])
    with pytest.raises(NotFound, match="Did you mean helpful-agent"):
        await workbench.call("get_personality", name="helpfull-agent")
    with pytest.raises(NotFound, match=r"Its versions: 2\.0, 1\.0"):
        await workbench.call("get_personality", name="helpful-agent", version="3")


async def test_each_change_of_a_personality_has_its_difference(workbench: Workbench) -> None:
    await know(workbench, profile("ada", mood="calm"), at=1)
    await know(workbench, profile("ada", mood="curious", add=ADD), at=2, event_type="UPDATE")
    await know(workbench, profile("ada", "2.0", mood="curious"), at=3)
    await forget(workbench, profile("ada"), at=4)
    forgotten, second, update, first = (await workbench.call("list_personality_changes", name="ada"))["changes"]
    assert (forgotten["event_type"], forgotten["difference"], forgotten["since"]) == ("FORGET", None, None)
    assert (second["version"], second["since"]) == ("2.0", "1.0")
    assert [trait["name"] for trait in second["difference"]["removed"]] == ["add"]
    assert [trait["name"] for trait in update["difference"]["added"]] == ["add"]
    assert update["difference"]["changed"] == [
        {"name": "mood", "fields": [{"name": "value", "before": "calm", "after": "curious"}]}
    ]
    assert (first["since"], [trait["name"] for trait in first["difference"]["added"]]) == (None, ["mood"])


async def test_changes_come_in_pages_and_can_be_those_of_one_version(workbench: Workbench) -> None:
    for at in range(3):
        await know(workbench, profile("ada", count=at), at=at, event_type="UPDATE" if at else "NEW")
    await know(workbench, profile("ada", "2.0"), at=9)
    page = await workbench.call("list_personality_changes", name="ada", version="1.0", limit=2)
    rest = await workbench.call("list_personality_changes", name="ada", version="1.0", before=page["next_before"])
    assert [one["event_type"] for one in page["changes"] + rest["changes"]] == ["UPDATE", "UPDATE", "NEW"]
    assert rest["next_before"] is None
