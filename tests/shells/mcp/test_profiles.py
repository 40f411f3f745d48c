"""Profiles of the KOI network as resources, in both eras of the protocol."""

from __future__ import annotations

import json

import pytest

from tests.conftest import Admit, Served
from tests.services.personalities.known import forget, know, online, profile
from tests.shells.mcp.sessions import session
from tests.shells.mcp.test_resources import error_of, text_of, uris_of
from tests.shells.mcp.watching import notified

pytestmark = pytest.mark.anyio


async def test_profiles_are_listed_and_read_by_name_and_by_version(served: Served, admit: Admit, era: str) -> None:
    await know(served.workbench, profile("ada", "1.0", mood="calm"), at=1)
    await know(served.workbench, new := profile("ada", "2.0", mood="wild"), at=2)
    await know(served.workbench, profile("a b"), at=3)
    reader = await admit("reader", tool="read")
    async with session(served, reader.token, era) as client:
        uris = await uris_of(client)
        assert [uri for uri in uris if uri.startswith("profile://")] == ["profile://a%20b", "profile://ada"]
        templates = (await client.list_resource_templates()).resource_templates
        offered = {template.uri_template for template in templates}
        assert {"profile://{name}", "profile://{name}/{version}"} <= offered
        assert json.loads(await text_of(client, "profile://ada"))["profile"] == new.model_dump(mode="json")
        old = json.loads(await text_of(client, "profile://ada/1.0"))
        assert (old["version"], old["versions"]) == ("1.0", ["2.0", "1.0"])
        assert json.loads(await text_of(client, "profile://a%20b"))["name"] == "a b"
        assert json.loads(await text_of(client, "workbench://personalities"))["total"] == 2
        assert (await error_of(client, "profile://nobody"))[1] == "PERSONALITY_NOT_FOUND"


async def test_changes_of_profiles_are_announced(served: Served, admit: Admit, era: str) -> None:
    reader = await admit("reader", tool="read")
    async with online(served.workbench):
        await served.workbench.call("publish_personality", name="ada", traits={"mood": "calm"})
        async with notified(served, reader.token, era, "profile://ada", "profile://ada/1.0") as following:
            await served.workbench.call("update_traits", name="ada", traits={"mood": "curious"})
            assert {await following() for _ in range(2)} == {"profile://ada", "profile://ada/1.0"}
            await served.workbench.call("withdraw_personality", name="ada")
            gone = {await following() for _ in range(3)}
            assert gone == {"profile://ada", "profile://ada/1.0", "resources"}


async def test_a_forgotten_profile_is_no_resource_any_more(served: Served, admit: Admit) -> None:
    await know(served.workbench, profile("ada"))
    reader = await admit("reader", tool="read")
    async with session(served, reader.token, "auto") as client:
        assert "profile://ada" in await uris_of(client)
        await forget(served.workbench, profile("ada"))
        assert "profile://ada" not in await uris_of(client)
