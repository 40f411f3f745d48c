"""The protocol of conversations as data: messages of the client and frames of the server."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.errors import BadInput, Hint, NotFound
from workbench.rules.wire import chat_message
from workbench.rules.wire.chat_message import Ping, RetryMessage, Say, StopMessage, Subscribe, Unsubscribe

SENT: list[tuple[type[Any], dict[str, Any], dict[str, Any]]] = [
    (Say, {"type": "message", "content": "Hi"}, {}),
    (Say, {"type": "message", "content": "Hi", "request_id": 1}, {"colour": "red"}),
    (Subscribe, {"type": "subscribe"}, {}),
    (Subscribe, {"type": "subscribe", "after": 7}, {}),
    (Unsubscribe, {"type": "unsubscribe"}, {}),
    (StopMessage, {"type": "stop"}, {}),
    (RetryMessage, {"type": "retry", "message_id": "m"}, {}),
]
"""Messages about a conversation: what each is read as, and fields that change nothing."""


@pytest.mark.parametrize(("command", "sent", "more"), SENT)
def test_a_message_of_a_client_is_read(command: type[Any], sent: dict[str, Any], more: dict[str, Any]) -> None:
    about = {"conversation_id": "c", **sent}
    assert chat_message.parse(json.dumps(about | more)) == command(**about)


def test_a_subscription_begins_with_the_next_frame_by_default() -> None:
    assert chat_message.parse('{"type": "ping"}') == Ping(type="ping")
    assert Subscribe(type="subscribe", conversation_id="c").after is None


OBJECTS = st.dictionaries(
    st.sampled_from(["type", "conversation_id", "content", "after", "request_id", "message_id"]),
    st.one_of(
        st.none(),
        st.integers(),
        st.text(max_size=5),
        st.sampled_from(["message", "subscribe", "unsubscribe", "stop", "retry", "ping"]),
        st.lists(st.integers(), max_size=2),
    ),
)


@given(st.one_of(st.text(), OBJECTS.map(json.dumps)))
def test_any_other_message_is_refused_with_a_reason(text: str) -> None:
    try:
        command = chat_message.parse(text)
    except BadInput as error:
        assert error.code == "BAD_MESSAGE"
    else:
        assert command.type in text


def test_a_frame_has_the_fields_of_its_message_and_its_number() -> None:
    stored = {"number": 3, "turn_id": "m", "type": "token", "data": {"content": "Hi"}, "at": "2026-01-01T00:00:00Z"}
    about = {"conversation_id": "c", "message_id": "m", "number": 3}
    assert chat_message.frame("c", stored) == {"type": "token", "content": "Hi", **about}


def test_only_a_message_with_a_request_id_is_acknowledged() -> None:
    stop = StopMessage(type="stop", conversation_id="c")
    assert chat_message.done(stop, "stop") == {}
    accepted = {"type": "accepted", "action": "stop", "conversation_id": "c", "request_id": 5}
    assert chat_message.done(stop.model_copy(update={"request_id": 5}), "stop") == accepted


def test_an_error_names_what_it_is_about() -> None:
    problem = NotFound("CONVERSATION_NOT_FOUND", "No.")
    said = {"type": "error", "message": "No.", "code": "CONVERSATION_NOT_FOUND", "status": 404}
    assert chat_message.error(problem, "c", 1) == {**said, "conversation_id": "c", "request_id": 1}
    assert "conversation_id" not in chat_message.error(problem, None)
    hinted = NotFound("CONVERSATION_NOT_FOUND", "No.", Hint("list_conversations"))
    assert chat_message.error(hinted, None)["hint"] == hinted.as_dict()["hint"]
