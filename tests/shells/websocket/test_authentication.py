"""Authentication of WebSocket clients: ids, tokens and guesses."""

from __future__ import annotations

from typing import Any

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from tests.conftest import Admit, Served, Talks, limited
from tests.shells.websocket.conftest import WRONG, closed, why_not
from workbench.rules.wire import message

pytestmark = pytest.mark.anyio


async def test_an_id_and_its_token_bind_the_connection(talk: Talks, admit: Admit) -> None:
    ada = await admit("ada")
    line = await talk()
    assert await line.say("me", "authenticate", agent_id="ada", token=ada.token) == message.authentication_success(
        "ada", "ada", "write"
    )
    me = (await line.say("ada", "whoami"))["data"]
    assert (me["agent_id"], me["level"], me["tool"], me["persona_id"]) == ("ada", "worker", "write", "implementer")


@limited(max_failed_logins=10)
async def test_authentication_is_refused_for_a_reason(served: Served, talk: Talks, admit: Admit) -> None:
    ada, bob = await admit("ada"), await admit("bob")
    waiting = await served.workbench.call("register", name="Eve")
    line = await talk()
    refused: list[tuple[dict[str, Any], str]] = [
        ({"agent_id": "ada"}, "TOKEN_REQUIRED"),
        ({"agent_id": "ada", "token": None}, "TOKEN_REQUIRED"),
        ({"agent_id": "ada", "token": [ada.token]}, "TOKEN_REQUIRED"),
        ({"agent_id": "ada", "token": WRONG}, "INVALID_TOKEN"),
        ({"agent_id": "ada", "token": bob.token}, "INVALID_TOKEN"),
        ({"agent_id": ["bob"], "token": bob.token}, "INVALID_TOKEN"),
        ({"agent_id": waiting["agent_id"], "token": waiting["token"]}, "NOT_ASSIGNED"),
    ]
    for data, code in refused:
        reply = await line.say("me", "authenticate", **data)
        assert (reply["type"], reply["action"], reply["code"]) == ("error", "authenticate", code)
        assert (await line.say("me", "whoami"))["code"] == "TOKEN_REQUIRED"


async def test_five_wrong_tokens_end_the_connection(talk: Talks) -> None:
    line = await talk()
    for _ in range(5):
        assert (await line.say("me", "authenticate", token=WRONG))["code"] == "INVALID_TOKEN"
    assert await closed(line) == (4401, "TOO_MANY_FAILED_LOGINS")


GUESSES: dict[str, dict[str, Any]] = {
    "authenticate": {"agent_id": "nobody"},
    "read": {"agent_id": "nobody"},
    "write": {"agent_id": "ada"},
    "request_contexts": {"agent_id": "nobody"},
    "announce": {"agent_id": "ada"},
    "registration_status": {"token": WRONG},
}


@limited(max_failed_logins=3)
async def test_guesses_of_ids_and_tokens_are_limited(talk: Talks, admit: Admit) -> None:
    await admit("ada")
    for action, guess in GUESSES.items():
        line = await talk()
        for _ in range(4):  # says nobody's name, and is no guess
            assert (await line.say("me", "read"))["code"] == "TOKEN_REQUIRED"
        for _ in range(3):
            assert (await line.say("me", action, **guess))["status"] == 401, action
        assert await closed(line) == (4401, "TOO_MANY_FAILED_LOGINS"), action


async def test_a_token_may_come_as_a_subprotocol(served: Served, talk: Talks, admit: Admit) -> None:
    ada = await admit("ada")
    line = await talk("me", subprotocols=["wb.v1", f"bearer.{ada.token}"])
    assert line.socket.subprotocol == "wb.v1"
    assert (await line.say("ada", "whoami"))["data"]["agent_id"] == "ada"
    waiting = await served.workbench.call("register", name="Eve")
    line = await talk("eve", subprotocols=["wb.v1", f"bearer.{waiting['token']}"])
    assert (await line.say("eve", "whoami"))["code"] == "NOT_ASSIGNED"


TURNED_AWAY: list[tuple[dict[str, Any], int, str]] = [
    ({"subprotocols": ["wb.v1", f"bearer.{WRONG}"]}, 401, "INVALID_TOKEN"),
    ({"additional_headers": {"Authorization": f"Bearer {WRONG}"}}, 401, "INVALID_TOKEN"),
    ({"origin": "http://evil.example"}, 403, "BAD_ORIGIN"),
    ({"origin": "http://localhost:8888"}, 403, "BAD_ORIGIN"),
    ({"origin": "null"}, 403, "BAD_ORIGIN"),
    ({"origin": "http://[evil"}, 403, "BAD_ORIGIN"),
    ({"uri": "ws://evil.example/ws/me"}, 400, "BAD_HOST"),
    ({"uri": "ws://127.0.0.1.evil.example/ws/me"}, 400, "BAD_HOST"),
    ({"uri": f"ws://127.0.0.1/ws/{'r' * 201}"}, 400, "BAD_CLIENT_ID"),
    ({"uri": "ws://127.0.0.1/ws/robot%007"}, 400, "BAD_CLIENT_ID"),
    ({"uri": "ws://127.0.0.1/ws/robot%1b%5b31m"}, 400, "BAD_CLIENT_ID"),
]


async def test_a_connection_with_a_bad_origin_or_token_is_refused_before_it_opens(served: Served, talk: Talks) -> None:
    host, port = served.info.url.removeprefix("http://").split(":")
    for turned_away, status, code in TURNED_AWAY:
        with pytest.raises(InvalidStatus) as caught:
            await connect(**{"uri": f"{served.info.ws_url}/me", "host": host, "port": int(port)} | turned_away)
        assert why_not(caught.value) == (status, code), turned_away
    line = await talk("me", origin=served.info.url)
    assert (await line.say("me", "ping"))["type"] == "ping_response"
