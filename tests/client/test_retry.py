"""When a client connects again, and when it gives up."""

from __future__ import annotations

from itertools import islice

from hypothesis import given
from hypothesis import strategies as st

from workbench.client.retry import LONGEST_PAUSE_SECONDS, RetryPolicy, backoff
from workbench.errors import Refused, TooMany, Unavailable

LOST = ConnectionError("lost")


class Time:
    """A clock that only the test moves."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def met(time: Time) -> RetryPolicy:
    """After a server was met, with a patience of ten seconds."""
    policy = RetryPolicy(10.0, time, lambda: backoff(lambda: 0.0))
    policy.met()
    return policy


@given(st.floats(0, 1, exclude_max=True))
def test_pauses_grow_and_have_a_limit(chance: float) -> None:
    pauses = list(islice(backoff(lambda: chance), 50))
    assert all(0.1 <= pause <= LONGEST_PAUSE_SECONDS for pause in pauses)
    assert pauses == sorted(pauses)
    assert pauses[0] <= 0.2
    assert pauses[-1] >= LONGEST_PAUSE_SECONDS / 2


def test_a_server_that_was_never_met_is_not_tried_again() -> None:
    error = RetryPolicy(10.0, Time(), lambda: backoff(lambda: 0.0)).fatal(LOST)
    assert isinstance(error, Unavailable)
    assert error.code == "NO_SERVER"
    assert "lost" in error.message


def test_the_patience_with_a_server_begins_with_the_last_useful_connection() -> None:
    time = Time()
    made = met(time)
    time.now = 10.0
    assert made.fatal(LOST) is None
    made.met()  # which is no new beginning
    time.now = 10.1
    assert isinstance(made.fatal(LOST), Unavailable)
    time.now = 100.0
    made.was_of_use()
    time.now = 110.0
    assert made.fatal(LOST) is None


def test_a_final_refusal_is_not_retried_and_a_temporary_one_is() -> None:
    made, refused = met(Time()), Refused("REMOTE_NOT_ALLOWED", "No.")
    assert made.fatal(refused) is refused
    assert made.fatal(TooMany("RATE_LIMITED", "Later.")) is None
    assert made.fatal(Unavailable("TOO_MANY_CONNECTIONS", "Later.")) is None


def test_pauses_begin_anew_after_a_connection_that_was_of_use() -> None:
    made = met(Time())
    pauses = made.pauses()
    assert [next(pauses), next(pauses), next(made.pauses())] == [0.2, 0.4, 0.8]
    made.was_of_use()
    assert [next(pauses), next(made.pauses())] == [0.2, 0.4]
