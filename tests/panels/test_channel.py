"""The panel's channel while the kernel is silent, busy or lost: its JavaScript in Node, with a test clock."""

from __future__ import annotations

import pytest

from tests.panels.conftest import Ask

pytestmark = pytest.mark.node
DONE = {"kind": "answer", "request": "a", "ok": True, "outcome": "done"}
ACCEPTED = {"kind": "accepted", "request": "a"}


@pytest.fixture(scope="session")
def play(in_node: Ask) -> Ask:
    """The requests that were sent, how they were settled, and the state of the connection."""
    return lambda *steps: in_node("channel.mjs")(steps)


def test_an_answer_settles_its_request(play: Ask) -> None:
    found = play(("request", ["a"]), ("receive", DONE))
    assert found["settled"] == {"a": "done"}


@pytest.mark.parametrize(
    ("username", "name", "person"),
    [("ada", "Ada Lovelace", "ada"), ("0" * 32, "Somebody", None), ("x", "Anonymous Io", None)],
)
def test_a_request_in_a_shared_notebook_names_whom_the_jupyter_server_knows(
    play: Ask, username: str, name: str, person: str | None
) -> None:
    found = play(("request", ["a"]), ("edited_by", {"username": username, "name": name}), ("request", ["b"]))
    assert found["people"] == [None, person]


def test_half_a_minute_of_silence_is_a_failure(play: Ask) -> None:
    assert play(("request", ["a"]), ("seconds", 29))["settled"] == {}
    assert play(("request", ["a"]), ("seconds", 30))["settled"] == {"a": "NO_ANSWER"}


def test_work_that_was_accepted_is_waited_for_and_asked_about_again(play: Ask) -> None:
    minutes = [step for _ in range(20) for step in (("receive", ACCEPTED), ("seconds", 30))]
    found = play(("request", ["a"]), *minutes, ("receive", DONE))
    assert found["settled"] == {"a": "done"}
    assert found["requests"] == ["a"] * 21


def test_a_kernel_that_falls_silent_after_it_has_accepted_is_a_failure(play: Ask) -> None:
    found = play(("request", ["a"]), ("receive", ACCEPTED), ("seconds", 30), ("seconds", 30))
    assert found["settled"] == {"a": "NO_ANSWER"}


def test_the_same_request_made_twice_is_sent_once_and_settles_both(play: Ask) -> None:
    found = play(("request", ["a", "first"]), ("request", ["a", "second"]), ("receive", DONE))
    assert (found["requests"], found["settled"]) == (["a"], {"first": "done", "second": "done"})


def test_a_late_answer_is_ignored(play: Ask) -> None:
    found = play(("request", ["a"]), ("seconds", 30), ("receive", DONE), ("receive", ACCEPTED))
    assert found["settled"] == {"a": "NO_ANSWER"}


def test_a_lost_kernel_settles_everything_at_once(play: Ask) -> None:
    found = play(("request", ["a"]), ("connected", False), ("request", ["b"]))
    assert (found["settled"], found["link"]) == ({"a": "KERNEL_GONE", "b": "KERNEL_GONE"}, "disconnected")


def test_a_stopped_workbench_settles_everything_with_its_reason(play: Ask) -> None:
    found = play(("request", ["a"]), ("receive", {"kind": "stopped", "error": None}))
    assert (found["settled"], found["link"]) == ({"a": "NOT_STARTED"}, "stopped")
