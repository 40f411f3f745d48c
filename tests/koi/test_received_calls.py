"""Calls of other nodes: each is run once, as long as it could be sent again, and no node sends too many."""

from __future__ import annotations

import pytest

from workbench.errors import Conflict, TooMany
from workbench.koi.received_calls import BUCKETS, FRESH_SECONDS, ReceivedCalls
from workbench.model import SECOND

NOW = 1_800_000_000 * SECOND
REPEATABLE = 2 * FRESH_SECONDS * SECOND
"""A call may be sent with a clock that is ahead, and again when it is as old as it may be."""


def test_a_call_is_known_as_long_as_it_could_be_sent_again_and_then_forgotten() -> None:
    calls = ReceivedCalls()
    calls.admit("ada", "1", NOW)
    for later in (0, REPEATABLE // 2, REPEATABLE):
        with pytest.raises(Conflict, match="CALL_REPLAYED"):
            calls.admit("ada", "1", NOW + later)
    for other in (("ada", "2"), ("bob", "1")):
        calls.admit(*other, NOW + REPEATABLE)
    calls.admit("ada", "1", NOW + REPEATABLE + 1)
    assert len(calls._received) == 3


def test_each_rule_limits_the_calls_a_minute_of_a_node() -> None:
    calls = ReceivedCalls()
    for rule, most, again in (("few", 3, 20), ("many", 600, 1)):
        for _ in range(most):
            calls.spend("ada", rule, most, NOW)
        with pytest.raises(TooMany, match=f"RATE_LIMITED: This node may send {most} such calls a minute") as refused:
            calls.spend("ada", rule, most, NOW)
        assert refused.value.details == {"retry_after_seconds": again}
    for other in (("bob", "few", 3), ("ada", "another", 3), ("ada", "few", 1)):
        calls.spend(*other, NOW)
    calls.spend("ada", "few", 3, NOW + 20 * SECOND)
    with pytest.raises(TooMany, match="RATE_LIMITED"):
        calls.spend("ada", "few", 3, NOW + 39 * SECOND)
    assert calls._rates.maxsize == BUCKETS


def test_the_open_calls_of_a_node_are_limited() -> None:
    calls = ReceivedCalls()
    with calls.open("ada", 2), calls.open("bob", 1):
        with calls.open("ada", 2), pytest.raises(TooMany, match="TOO_MANY_CALLS: 2 calls") as refused:
            calls.open("ada", 2).__enter__()
        assert refused.value.details == {"retry_after_seconds": 1}
        with calls.open("ada", 2):
            pass
    assert not calls._open
