"""The protocol of an agent as a pure class: events go in, actions come out."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, multiple, precondition, rule

from workbench.client.actions import ActionResult, Fail, GiveUp, Instructions, KeepToken, Ready, Reconnect, Send, Wake
from workbench.client.handshake import STEP, Handshake, Phase
from workbench.client.protocol import MOST_SENDS, AgentProtocol
from workbench.client.subscription import SubscriptionState
from workbench.errors import BadInput, Refused, Unavailable, WorkbenchError

BROKEN = Unavailable("NO_SERVER", "The connection broke.")


def fresh(token: str | None = "wba_x", agent_id: str | None = None) -> AgentProtocol:
    return AgentProtocol("me", Handshake("me", {"name": "Ada"}, "write", token, agent_id))


def enter(protocol: AgentProtocol) -> Instructions:
    """Connect, and be let in; what is to be done then."""
    protocol.connected()
    protocol.received(message("agent_id_required", STEP))
    return protocol.received(message("authentication_success", STEP, agent_id="ada"))


def ready() -> AgentProtocol:
    made = fresh()
    assert enter(made) == [Ready()]
    return made


def message(kind: str, request_id: int | None = None, **more: Any) -> str:
    numbered = {} if request_id is None else {"request_id": request_id}
    return json.dumps({"type": kind, **numbered, **more})


def sends(instructions: Instructions) -> list[tuple[str, dict[str, Any]]]:
    """Actions and data of what is sent."""
    return [tuple(json.loads(one.text)[1:]) for one in instructions if isinstance(one, Send)]


def codes(instructions: Instructions) -> list[str]:
    return [one.error.code for one in instructions if isinstance(one, Fail | Reconnect | GiveUp)]


# The handshake


def test_a_new_agent_registers_waits_selects_and_authenticates() -> None:
    protocol = fresh(token=None)
    assert sends(protocol.connected()) == [("register", {"name": "Ada", "request_id": STEP})]
    assert protocol.received(message("tool_selection_prompt")) == []
    assert protocol.received(message("registration_success", STEP, token="wba_new")) == [KeepToken("wba_new")]
    assert protocol.handshake.phase is Phase.WAITING
    assert sends(protocol.received(message("agent_assigned"))) == [("select_tool", {"tool": "write", "request_id": 0})]
    authenticates = [("authenticate", {"token": "wba_new", "request_id": STEP})]
    assert sends(protocol.received(message("agent_id_required", STEP))) == authenticates
    assert protocol.received(message("authentication_success", STEP, agent_id="ada")) == [Ready()]
    assert (protocol.handshake.token, protocol.handshake.agent_id) == ("wba_new", "ada")


def test_a_token_is_registered_once_and_a_rejection_ends_it() -> None:
    protocol = fresh(token=None)
    rejected = {"code": "REJECTED", "message": "Your registration was rejected: Not today.", "status": 403}
    protocol.connected()
    protocol.received(message("registration_success", STEP, token="wba_new"))
    [end] = protocol.received(message("registration_rejected", reason="Not today", **rejected))
    assert isinstance(end, GiveUp)
    assert isinstance(end.error, Refused)
    assert end.error.as_dict() == {**rejected, "details": {"reason": "Not today"}}
    protocol.disconnected(BROKEN)
    assert sends(protocol.connected()) == [("select_tool", {"tool": "write", "request_id": STEP})]


def test_an_agent_without_a_token_shows_its_id() -> None:
    protocol = fresh(token=None, agent_id="old")
    protocol.connected()
    shown = sends(protocol.received(message("agent_id_required", STEP)))
    assert shown == [("authenticate", {"agent_id": "old", "request_id": STEP})]


def test_an_agent_that_is_not_admitted_yet_waits_and_authenticates_again() -> None:
    protocol = fresh()
    protocol.connected()
    protocol.received(message("agent_id_required", STEP))
    assert protocol.received(message("error", STEP, code="NOT_ASSIGNED", status=403)) == []
    assert protocol.handshake.phase is Phase.WAITING
    assert [action for action, _ in sends(protocol.received(message("agent_assigned")))] == ["select_tool"]


@pytest.mark.parametrize(
    ("token", "statuses", "expected"),
    [("wba_x", (503, 500, 429), Reconnect), ("wba_x", (401,), GiveUp), (None, (503, 403), GiveUp)],
)
def test_a_failed_step_is_tried_again_if_it_may_succeed_and_the_agent_is_registered(
    token: str | None, statuses: tuple[int, ...], expected: type
) -> None:
    for status in statuses:
        protocol = fresh(token)
        protocol.connected()
        [end] = protocol.received(message("error", STEP, code="X", message="Why.", status=status))
        assert isinstance(end, expected), status


# Calls


def test_calls_made_before_the_agent_is_ready_are_sent_then_in_order() -> None:
    protocol = fresh()
    for name in ("one", "two"):
        assert protocol.call(name, {})[1] == []
    done = enter(protocol)
    assert [action for action, _ in sends(done)] == ["one", "two"]


def test_after_a_break_reads_are_sent_again_and_changes_fail() -> None:
    protocol = ready()
    read, _ = protocol.call("get_task", {})
    change, _ = protocol.call("claim_task", {})
    assert protocol.disconnected(BROKEN) == [Fail(change, BROKEN)]
    later, instructions = protocol.call("complete_task", {})
    assert instructions == []
    done = enter(protocol)
    assert [one.number for one in done if isinstance(one, Send)] == [read, later]
    assert protocol.received(message("get_task_response", read, data={"id": 1})) == [ActionResult(read, {"id": 1})]


def test_a_read_is_sent_only_a_limited_number_of_times() -> None:
    protocol = ready()
    number, _ = protocol.call("whoami", {})
    for _ in range(MOST_SENDS - 1):
        assert protocol.disconnected(BROKEN) == []
        enter(protocol)
    assert protocol.disconnected(BROKEN) == [Fail(number, BROKEN)]


def test_a_call_that_made_the_server_close_the_connection_is_not_sent_again() -> None:
    protocol = ready()
    protocol.call("whoami", {})
    done = protocol.disconnected(BROKEN, too_large=True)
    assert codes(done) == ["TOO_LARGE"]
    assert all(isinstance(one.error, BadInput) for one in done if isinstance(one, Fail))
    protocol = ready()
    for _ in range(3):
        protocol.call("whoami", {})
    assert codes(protocol.received(message("error", code="FLOODING", status=403))) == ["FLOODING"] * 3


def test_an_unreadable_reply_fails_only_the_oldest_call() -> None:
    protocol = ready()
    first, second = protocol.call("whoami", {})[0], protocol.call("ping", {})[0]
    [failed] = protocol.received("nonsense")
    assert isinstance(failed, Fail)
    assert (failed.number, failed.error.code) == (first, "BAD_REPLY")
    assert protocol.received(message("ping_response", second, data={})) == [ActionResult(second, {})]
    assert protocol.received(message("whoami_response", first, data={})) == []


def test_a_late_reply_to_a_call_that_was_given_up_is_ignored() -> None:
    protocol = ready()
    number, _ = protocol.call("ping", {})
    assert protocol.forget(number) == []
    assert protocol.received(message("ping_response", number, data={})) == []
    assert protocol.expired(number, BROKEN) == []


# Events


def test_a_slow_reader_is_caught_up_from_its_last_event(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workbench.client.subscription.UNREAD_LIMIT", 2)
    protocol = ready()
    number, subscription, asked = protocol.subscribe(["task.*"], 0)
    assert sends(asked) == [("subscribe", {"kinds": ["task.*"], "after": 0, "mine": True, "request_id": number})]
    protocol.received(message("subscribe_response", number, data={"after": 0}))
    for event in range(1, 5):
        assert protocol.received(message("event", number, data={"id": event})) == [Wake(number)]
    assert subscription.state is SubscriptionState.BEHIND
    assert [subscription.take(), subscription.take(), subscription.take()] == [{"id": 1}, {"id": 2}, None]
    assert [data["after"] for _, data in sends(protocol.resume(number))] == [2]
    protocol.received(message("event", number, data={"id": 5}))  # of the earlier request: taking it would leave a gap
    protocol.received(message("subscribe_response", number, data={"after": 2}))
    protocol.received(message("event", number, data={"id": 3}))
    assert [subscription.take(), subscription.take()] == [{"id": 3}, None]
    assert protocol.resume(number) == []


def test_a_subscription_ends_at_the_server_when_its_reader_leaves() -> None:
    protocol = ready()
    number, _, _ = protocol.subscribe([], None)
    assert sends(protocol.forget(number)) == [("unsubscribe", {"subscription": number, "request_id": number})]
    assert protocol.received(message("event", number, data={"id": 1})) == []


# Anything

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 5) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["id", "after", "x"]), inner),
    max_leaves=6,
)
TYPES = [
    *("registration_success", "agent_id_required", "authentication_success", "agent_assigned", "echo", "error"),
    *("registration_rejected", "subscribe_response", "ping_response", "event", "tool_selection_prompt", "weather"),
]
MESSAGES = (
    st.text(max_size=20)
    | st.binary(max_size=9)
    | JSON.map(json.dumps)
    | st.fixed_dictionaries(
        {"type": st.sampled_from(TYPES) | JSON},
        optional={
            "request_id": st.integers(0, 4) | JSON,
            "data": JSON,
            "token": JSON,
            "agent_id": JSON,
            "code": st.sampled_from(["NOT_ASSIGNED", "FLOODING", "BAD_MESSAGE", "READER_TOO_SLOW"]) | JSON,
            "status": st.sampled_from([401, 403, 429, 500, 503]) | JSON,
            "details": JSON,
        },
    ).map(json.dumps)
)


class AnyServer(RuleBasedStateMachine):
    """For any messages of a server and any breaks, each call is answered or failed once, at the latest at
    the end, and nothing raises."""

    numbers = Bundle("numbers")

    def __init__(self) -> None:
        super().__init__()
        self.protocol = fresh(token=None)
        self.open: set[int] = set()
        self.settled: Counter[int] = Counter()
        self.connected = False

    def _do(self, instructions: Instructions) -> None:
        for one in instructions:
            assert self.connected or not isinstance(one, Send)
            if isinstance(one, ActionResult | Fail):
                self.settled[one.number] += 1
            if isinstance(one, Reconnect | GiveUp):
                self._break()

    def _break(self) -> None:
        self.connected = False
        self._do(self.protocol.disconnected(BROKEN))

    @precondition(lambda self: not self.connected)
    @rule()
    def connect(self) -> None:
        self.connected = True
        self._do(self.protocol.connected())

    @precondition(lambda self: self.connected)
    @rule(too_large=st.booleans())
    def break_off(self, too_large: bool) -> None:
        self.connected = False
        self._do(self.protocol.disconnected(BROKEN, too_large=too_large))

    @precondition(lambda self: self.connected)
    @rule(text=MESSAGES)
    def receive(self, text: str | bytes) -> None:
        self._do(self.protocol.received(text))

    @precondition(lambda self: self.connected)
    @rule(number=numbers, kind=st.sampled_from(["ping_response", "error", "event", "subscribe_response"]))
    def reply(self, number: int, kind: str) -> None:
        self._do(self.protocol.received(message(kind, number, data={"id": 1, "after": 0})))

    @precondition(lambda self: self.connected)
    @rule()
    def go_through_the_handshake(self) -> None:
        for kind in ("registration_success", "agent_assigned", "agent_id_required", "authentication_success"):
            number = None if kind == "agent_assigned" else STEP
            if self.connected:
                self._do(self.protocol.received(message(kind, number, token="wba_x", agent_id="ada")))

    @rule(target=numbers, name=st.sampled_from(["whoami", "claim_task"]))
    def call(self, name: str) -> int:
        number, instructions = self.protocol.call(name, {})
        self.open.add(number)
        self._do(instructions)
        return number

    @rule(target=numbers)
    def subscribe(self) -> int:
        number, _, instructions = self.protocol.subscribe(["*"], None)
        self._do(instructions)
        return number

    @rule(number=numbers)
    def expire(self, number: int) -> None:
        self._do(self.protocol.expired(number, BROKEN))

    @rule(target=numbers, number=numbers)
    def read(self, number: int) -> Any:
        subscription = self.protocol._subscriptions.get(number)
        if subscription is not None and subscription.take() is None:
            self._do(self.protocol.resume(number))
        return multiple()

    @rule(number=numbers)
    def forget(self, number: int) -> None:
        self._do(self.protocol.forget(number))
        self.open.discard(number)

    @invariant()
    def nothing_is_settled_twice(self) -> None:
        assert all(times == 1 for times in self.settled.values())

    def teardown(self) -> None:
        self.connected = False
        self._do(self.protocol.ended(BROKEN))
        assert self.open <= set(self.settled)
        assert all(value.error for value in self.protocol._subscriptions.values())


TestAnyServer = AnyServer.TestCase


@given(MESSAGES, MESSAGES)
def test_any_two_messages_are_handled_without_an_exception(first: str | bytes, second: str | bytes) -> None:
    for protocol in (fresh(None), fresh(), ready()):
        protocol.connected()
        protocol.call("ping", {})
        protocol.received(first)
        protocol.received(second)


@given(JSON)
def test_an_error_reply_of_any_shape_raises_an_error(body: Any) -> None:
    protocol = ready()
    number, _ = protocol.call("ping", {})
    [failed] = protocol.received(message("error", number, code=body, message=body, status=body, details=body))
    assert isinstance(failed, Fail)
    assert isinstance(failed.error, WorkbenchError)
    assert json.dumps(failed.error.as_dict())
