"""Addresses that a server wants the person to visit before it answers a call."""

from __future__ import annotations

import pytest

from tests.upstream.servers import connecting, program, running
from workbench.errors import Unavailable
from workbench.upstream.call import ElicitationReply, ServerQuestion

pytestmark = pytest.mark.anyio


@pytest.mark.long
async def test_a_call_is_made_again_once_the_person_has_been_where_the_server_says() -> None:
    asked: list[ServerQuestion] = []

    async def go(question: ServerQuestion) -> ElicitationReply:
        asked.append(question)
        return ElicitationReply("accept")

    async def stay(question: ServerQuestion) -> ElicitationReply:
        return ElicitationReply("decline")

    async with running(connecting(program())) as watched:
        upstream = await watched.ready()
        done = await upstream.call("visit", {"where": "https://example.org/"}, ask=go)
        assert done.structured_content == {"result": "been at https://example.org/"}
        assert asked == [ServerQuestion("Sign in", {}, "https://example.org/")]
        with pytest.raises(Unavailable, match="TOOL_SERVER_ERROR"):
            await upstream.call("visit", {"where": "https://example.com/"}, ask=stay)
