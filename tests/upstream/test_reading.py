"""Resources and prompts of a real server: listed and read as its tools, in parts; without any there are none."""

from __future__ import annotations

import pytest

from tests.upstream.servers import connecting, program, running
from workbench.errors import Unavailable

pytestmark = pytest.mark.anyio

READING = {"list_resources", "read_resource", "list_prompts", "get_prompt"}


@pytest.mark.long
@pytest.mark.parametrize("era", ["auto", "legacy"])
async def test_resources_and_prompts_are_listed_and_read(era: str) -> None:
    async with running(connecting(program("texts=1"), era)) as watched:
        upstream = await watched.ready()
        assert upstream.offers.reading == READING
        assert upstream.offers.tools["read_resource"].hints == {"readOnlyHint": True}
        listed = (await upstream.call("list_resources", {})).structured_content
        assert listed is not None
        assert {entry["uri"] for entry in listed["resources"]} == {"notes://long", "notes://bytes"}
        assert [entry["uriTemplate"] for entry in listed["templates"]] == ["notes://of/{name}"]
        of_ada = await upstream.call("read_resource", {"uri": "notes://of/ada"})
        assert [block.text for block in of_ada.content] == ["the notes of ada"]
        begun, said = (await upstream.call("read_resource", {"uri": "notes://long"})).content
        assert (len(begun.text), said.text) == (
            100_000,
            "[Characters 0 to 100,000 of 150,003; offset=100000 reads on.]",
        )
        rest = await upstream.call("read_resource", {"uri": "notes://long", "offset": 100_000})
        assert rest.content[0].text.endswith("xend")
        binary = await upstream.call("read_resource", {"uri": "notes://bytes"})
        assert [block.text for block in binary.content] == ["[application/octet-stream, 3 bytes]"]
        listed = (await upstream.call("list_prompts", {})).structured_content
        assert listed is not None
        assert listed["prompts"][0]["arguments"] == [{"name": "what", "required": True}]
        prompt = await upstream.call("get_prompt", {"name": "review", "arguments": {"what": "it"}})
        assert [block.text for block in prompt.content] == ["user: Review it."]
        with pytest.raises(Unavailable, match="TOOL_SERVER_ERROR"):
            await upstream.call("read_resource", {"uri": "notes://none"})


@pytest.mark.long
async def test_a_server_without_resources_and_prompts_has_no_tools_for_them() -> None:
    async with running(connecting(program())) as watched:
        assert not READING & (await watched.ready()).offers.tools.keys()
