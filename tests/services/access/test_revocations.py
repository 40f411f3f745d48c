"""Waiters on an agent are told when its token becomes invalid, and why; those that left are forgotten."""

from __future__ import annotations

from dataclasses import replace

import pytest

from workbench.model import Level
from workbench.ops import OPERATOR, Caller
from workbench.services.access.authentication import REASONS, Revocations

pytestmark = pytest.mark.anyio

ADA = Caller(Level.WORKER, "ada", agent="a1")
BOB = Caller(Level.WORKER, "bob", agent="b2")


@pytest.mark.parametrize(("kind", "reason"), [item for item in REASONS.items() if item[0] != "agent.token_ended"])
async def test_each_waiter_on_an_agent_is_told_of_its_revocation_once(kind: str, reason: str) -> None:
    revocations = Revocations()
    with revocations.awaited(ADA) as one, revocations.awaited(ADA) as two, revocations.awaited(BOB) as other:
        for told in (kind, "agent.revoked"):
            revocations.note({"subject": "agent:a1", "kind": told})
        assert (one.result(), two.result(), other.done()) == (reason, reason, False)


async def test_the_end_of_an_attempt_revokes_only_the_token_of_its_command() -> None:
    revocations = Revocations()
    first, second = (replace(ADA, attempt=(7, number)) for number in (1, 2))
    ended = {"subject": "agent:a1", "kind": "agent.token_ended", "data": '{"task_id": 7, "attempt": 1}'}
    with revocations.awaited(ADA) as agent, revocations.awaited(first) as one, revocations.awaited(second) as two:
        revocations.note(ended)
        assert (one.result(), two.done(), agent.done()) == ("TOKEN_ENDED", False, False)


async def test_a_waiter_that_left_is_forgotten() -> None:
    revocations = Revocations()
    with revocations.awaited(ADA) as one:
        with revocations.awaited(ADA), revocations.awaited(OPERATOR) as nobody:
            pass
        revocations.note({"subject": "agent:a1", "kind": "agent.deleted"})
        assert (one.done(), nobody.done()) == (True, False)
    assert revocations._waiting == {}
