"""The frames and replies of spec 1, without a socket."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.given import refused
from workbench.errors import BadInput, NotFound, WorkbenchError
from workbench.rules.wire import json_safety, message
from workbench.rules.wire.message import Frame, parse

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=10)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=10,
)
ALMOST = st.text() | JSON.map(json.dumps) | st.lists(JSON, min_size=2, max_size=4).map(json.dumps)

BAD_FRAMES = {
    "nothing": "",
    "no JSON": "hello",
    "half a frame": '["a", "ping", {}',
    "two frames": '["a","ping",{}]["a","ping",{}]',
    "an object of nobody": '{"type": "announce"}',
    "an object of no known type": '{"type": "sing", "agent_id": "a"}',
    "an object without a type": '{"agent_id": "a"}',
    "an object whose agent is an array": '{"type": "announce", "agent_id": ["a"]}',
    "a string": '"ping"',
    "no element": "[]",
    "two elements": '["a", "ping"]',
    "four elements": '["a", "ping", {}, {}]',
    "data is an array": '["a", "ping", []]',
    "data is null": '["a", "ping", null]',
    "data is a string": '["a", "ping", "{}"]',
    "agent is a number": '[1, "ping", {}]',
    "agent is null": '[null, "ping", {}]',
    "agent is an array": '[["a"], "ping", {}]',
    "action is an object": '["a", {"ping": 1}, {}]',
    "NaN": '["a", "ping", {"x": NaN}]',
    "infinity": '["a", "ping", {"x": 1e999}]',
    "half a character": '["a", "ping", {"x": "\\ud800"}]',
    "half a character for a name": '["\\udc00", "ping", {}]',
    "half a character as the request's id": '["a", "ping", {"request_id": "\\ud800"}]',
    "a huge integer": f'["a", "ping", {{"x": {"9" * 5_000}}}]',
    "arrays in arrays": f'["a", "ping", {{"x": {"[" * 100}{"]" * 100}}}]',
    "more arrays than Python reads": f'["a", "ping", {{"x": {"[" * 100_000}{"]" * 100_000}}}]',
    "only openings": "[" * 100_000,
}
"""Texts that no client may expect an answer to but BAD_MESSAGE."""


def frame(agent: Any, action: Any, data: Any) -> str:
    return json.dumps([agent, action, data])


@pytest.mark.parametrize("text", BAD_FRAMES.values(), ids=BAD_FRAMES)
def test_text_that_is_no_frame_is_a_bad_message(text: str) -> None:
    assert "[agent, action, data]" in refused("BAD_MESSAGE", parse, text).message


@given(ALMOST)
@example("[" * 5_000)
@example("9" * 5_000)
@example('["a","b",{"\\ud800":1e999}]')
def test_parsing_raises_nothing_but_bad_input(text: str) -> None:
    with suppress(BadInput):
        read, sent = parse(text), json.loads(text)
        if isinstance(sent, list):
            assert sent[:2] == [read.agent, read.action]


@given(TEXTS, TEXTS, st.dictionaries(TEXTS, JSON, max_size=4))
def test_a_frame_is_parsed_back_unchanged(agent: str, action: str, data: dict[str, Any]) -> None:
    try:
        json_safety.check([agent, action, data])
    except ValueError:
        return
    read = parse(frame(agent, action, data))
    rest = {name: value for name, value in data.items() if name != "request_id"}
    assert read == Frame(agent, action, rest, data.get("request_id"))
    assert message.echo(read)["original"] == {"agent": agent, "action": action, "data": rest}


@pytest.mark.parametrize(("request_id", "carried"), [(7, True), ("x", True), (0, True), ([1], True), (None, False)])
def test_a_reply_carries_the_id_of_its_request_if_there_was_one(request_id: Any, carried: bool) -> None:
    read = parse(frame("a", "ping", {"request_id": request_id}))
    answer = message.reply({"type": "pong"}, read.request_id)
    assert answer == ({"type": "pong", "request_id": request_id} if carried else {"type": "pong"})
    assert read.data == {}


def test_an_error_tells_code_message_and_action_and_details_only_if_there_are_some() -> None:
    plain = message.error(NotFound("TASK_NOT_FOUND", "There is none."), "get_task")
    known = {"code": "TASK_NOT_FOUND", "message": "There is none.", "status": 404}
    assert plain == {"type": "error", **known, "action": "get_task"}
    detailed = message.error(NotFound("TASK_NOT_FOUND", "There is none.", task=1), None)
    assert detailed == plain | {"action": None, "details": {"task": 1}}


def test_old_clients_objects_are_read_as_frames() -> None:
    announced = parse('{"type": "announce", "agent_id": "ada", "name": "Ada", "request_id": 1}', "me")
    assert announced == Frame("ada", "announce", {"agent_id": "ada", "name": "Ada"}, 1)
    assert parse(' {"type": "request_contexts", "limit": 3}', "me") == Frame("me", "request_contexts", {"limit": 3})


def test_a_decision_tells_the_session_or_the_reason_of_the_rejection() -> None:
    state = {"agent_id": "ada", "session_id": "s", "tool": "read", "reason": None, "status": "assigned"}
    assigned = {"type": "agent_assigned", "agent_id": "ada", "session_id": "s", "tool": "read"}
    assert message.decision(state, admitted=True) == assigned
    told = "Your registration was rejected: Not today. Ask the operator before you register again."
    rejected = {"reason": "Not today", "code": "REJECTED", "message": told, "status": 403}
    found = message.decision({**state, "reason": "Not today"}, admitted=False)
    assert found == {"type": "registration_rejected", **rejected}


def test_a_wrapped_error_keeps_its_code_and_class() -> None:
    told = message.failed("Registration", NotFound("PERSONA_NOT_FOUND", "There is none.", persona="x"))
    assert (type(told), told.code, told.details) == (NotFound, "PERSONA_NOT_FOUND", {"persona": "x"})
    assert told.message == "Registration failed: There is none."


def test_replies_of_the_server_are_those_of_the_specification() -> None:
    select = "register (new agent), read (read-only access), write (read-write access)"
    expected = json.dumps(["me", "authenticate", {"agent_id": "your_assigned_id", "token": "your_token"}])
    assert message.prompt() == {
        "type": "tool_selection_prompt",
        "available_tools": ["register", "read", "write"],
        "message": f"Please select a tool to continue: {select}",
    }
    assert message.authentication_success("a", "A", "read") == {
        **{"type": "authentication_success", "agent_id": "a", "agent_name": "A", "tool": "read"},
        "message": "Authentication successful. You can now use read operations.",
    }
    assert message.agent_id_required("me", "read") == {
        "type": "agent_id_required",
        "message": "To use 'read' tool, provide your assigned agent_id",
        "expected_format": expected,
    }
    written = {"resource_type": "contexts", "context_id": "c", "sequence_number": 1, "status": "success"}
    assert message.response("write", written) == {"type": "write_response", **written}
    assert message.response("read", {"data": []}) == {"type": "read_response", "data": []}
    assert message.response("ping", {"ok": True}) == {"type": "ping_response", "data": {"ok": True}}
    assert message.agent_status("a", "pending") == {"type": "agent_status", "agent_id": "a", "status": "pending"}
    assert message.announce_ack("a", x=1) == {"type": "announce_ack", "agent_id": "a", "x": 1}
    assert message.contexts("a", {"data": [1]}) == {"type": "contexts", "agent_id": "a", "results": [1]}


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (
            lambda: message.invalid_tool(),
            "INVALID_TOOL: Invalid tool selection. Must be 'register', 'read', or 'write'",
        ),
        (message.agent_id_missing, "TOKEN_REQUIRED: agent_id required for read/write operations"),
        (message.not_assigned, "NOT_ASSIGNED: Agent not yet assigned by human administrator"),
        (lambda: message.not_admitted(None), "NOT_ASSIGNED: Agent not yet assigned by human administrator"),
        (lambda: message.failed("Reading", BadInput("X", "no", a=1)), "X: Reading failed: no"),
    ],
)
def test_errors_have_the_words_of_the_spec(made: Callable[[], WorkbenchError], said: str) -> None:
    error = made()
    assert f"{error.code}: {error.message}" == said
