"""The caller of a message: a table, without a socket."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from workbench.errors import BadInput, Refused, Unauthenticated, WorkbenchError
from workbench.model import Capability, GrantedAccess, Level
from workbench.ops import ANONYMOUS, OPERATOR, Caller
from workbench.rules.wire.message import Frame
from workbench.shells.websocket.binding import Binding, announced, check_owner, credentials

HERE = replace(ANONYMOUS, address="127.0.0.1", client="test/1")
ADA = Caller(Level.WORKER, "ada", agent="a1")
BOB = Caller(Level.WORKER, "bob", agent="b2")
WAITING = Caller(Level.ANONYMOUS, "pending_c3", agent="c3")


@pytest.fixture
def binding() -> Binding:
    """The binding of a connection without authentication."""
    return Binding("me", HERE, max_failed_logins=3)


def frame(agent: str = "me", action: str = "whoami", **data: Any) -> Frame:
    return Frame(agent, action, data)


def test_a_connection_is_anonymous_until_it_is_bound_to_an_agent(
    binding: Binding,
) -> None:
    caller = binding.caller
    assert (caller.level, caller.address, caller.client) == (Level.ANONYMOUS, "127.0.0.1", "test/1")
    assert binding.is_anonymous
    for agent, is_another in ((ADA, True), (ADA, False), (WAITING, True), (OPERATOR, True), (OPERATOR, False)):
        assert binding.bind(agent) is is_another
        assert not binding.is_anonymous
    binding.release()
    assert binding.is_anonymous


def test_a_bound_caller_is_shown_as_the_store_knows_it_now(binding: Binding) -> None:
    binding.bind(ADA)
    planner = replace(ADA, level=Level.PLANNER)
    shown = binding.present(planner)
    assert (shown.level, shown.address) == (Level.PLANNER, "127.0.0.1")
    assert binding.present(planner) is shown
    assert binding.present(ADA).level is Level.WORKER


def test_the_smaller_of_the_granted_and_the_selected_access_counts(binding: Binding) -> None:
    binding.bind(ADA)
    assert binding.present(ADA).tool is GrantedAccess.WRITE
    binding.select("read")
    assert (binding.present(ADA).tool, binding.present(ADA).level) == (GrantedAccess.READ, Level.READ)
    able = replace(ADA, capabilities=frozenset(Capability))
    assert binding.present(able).capabilities == {Capability.OWN_DEFINITION}
    binding.bind(OPERATOR)
    assert binding.narrowed(OPERATOR).level is Level.OPERATOR


@pytest.mark.parametrize(
    ("caller", "sent", "names_agents", "allowed"),
    [
        (ANONYMOUS, frame("anybody"), False, True),
        (WAITING, frame("anybody"), False, True),
        (ADA, frame("ada"), False, True),
        (ADA, frame("me"), False, True),
        (ADA, frame("bob"), False, False),
        (ADA, frame("ada", agent_id="bob"), False, False),
        (ADA, frame("ada", agent_id="ada"), False, True),
        (ADA, frame("ada", agent_id="bob"), True, True),
        (ADA, frame("ada", agent_id=None), False, False),
        (OPERATOR, frame("operator", agent_id="bob"), False, True),
        (OPERATOR, frame("ada"), False, False),
    ],
)
def test_a_message_speaks_for_its_connection_only(
    binding: Binding, caller: Caller, sent: Frame, names_agents: bool, allowed: bool
) -> None:
    try:
        binding.check_sender(caller, sent, names_agents=names_agents)
    except Refused as error:
        assert (error.code, allowed) == ("FORBIDDEN", False)
    else:
        assert allowed


@pytest.mark.parametrize("action", ["read", "write", "request_contexts"])
def test_an_old_client_says_who_it_is_with_what_it_reads_and_writes(binding: Binding, action: str) -> None:
    assert binding.claimed_id(ANONYMOUS, frame(action=action, agent_id="old")) == "old"
    for agent_id in (None, "", 5, ["old"]):
        with pytest.raises(Unauthenticated, match="agent_id required"):
            binding.claimed_id(ANONYMOUS, frame(action=action, agent_id=agent_id))
    for caller in (ADA, WAITING, OPERATOR):
        assert binding.claimed_id(caller, frame(action=action, agent_id="old")) is None
    assert binding.claimed_id(ANONYMOUS, frame(action="whoami", agent_id="old")) is None


def test_only_failed_authentications_are_counted(binding: Binding) -> None:
    wrong = Unauthenticated("INVALID_TOKEN", "")
    claims, other = frame(action="authenticate", token="x"), frame(action="whoami")
    harmless: list[tuple[WorkbenchError, Frame | None]] = [(wrong, other), (BadInput("X", ""), claims), (wrong, None)]
    assert not any(binding.count_failure(*each) for each in harmless * 3)
    assert [binding.count_failure(wrong, claims) for _ in range(4)] == [False, False, True, True]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ({"token": "t"}, ("t", None)),
        ({"token": "t", "agent_id": "ada"}, ("t", "ada")),
        ({"agent_id": "ada"}, (None, "ada")),
        ({}, None),
        ({"token": 5}, None),
        ({"token": 5, "agent_id": "ada"}, None),
        ({"agent_id": 5}, None),
    ],
)
def test_credentials_are_a_token_or_an_id(data: dict[str, Any], expected: Any) -> None:
    if expected is None:
        with pytest.raises(Unauthenticated, match="TOKEN_REQUIRED"):
            credentials(data)
    else:
        assert credentials(data) == expected


def test_a_token_is_of_the_agent_whose_id_comes_with_it() -> None:
    for agent_id in (None, "ada", "pending_a1"):
        check_owner(ADA, agent_id)
    for agent_id in ("bob", "", 5):
        with pytest.raises(Unauthenticated, match="INVALID_TOKEN"):
            check_owner(ADA, agent_id)


def test_old_clients_announce_themselves_with_an_id() -> None:
    assert announced({"agent_id": "old"}) == "old"
    for agent_id in (None, 5, {}):
        with pytest.raises(BadInput, match="BAD_MESSAGE"):
            announced({"agent_id": agent_id})
