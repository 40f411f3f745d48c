"""The commands about agents, and the expiry of a grant, as it is typed."""

from __future__ import annotations

from typing import Any

import click
import pytest

from tests.cli.conftest import Type, data
from workbench.cli.grants import Expiry


def levels(run: Type) -> set[str]:
    return {one["access_level"] for one in data(run("--json", "agents"))}


def test_agents_are_changed_together_or_not_at_all_and_deleted_and_restored(run: Type) -> None:
    for name in ("ada", "bob", "eve"):
        run("call", "register", f"name={name}")
    run("approve", "--all")
    assert run("grant", "ada", "bob", "eve", "--access", "team_level").out == "Changed ada, bob and eve.\n"
    assert run("grant", "ada", "nobody", "--access", "self_only").err.startswith("AGENT_NOT_FOUND: ")
    assert levels(run) == {"team_level"}
    ran = run("agents", "delete", "ada", "bob", "--reason", "Done")
    assert ran.out == "Deleted ada and bob. `agents restore ada bob` brings them back.\n"
    assert [one["agent_id"] for one in data(run("--json", "agents"))] == ["eve"]
    assert [one["agent_id"] for one in data(run("--json", "agents", "list", "--deleted"))] == ["ada", "bob"]
    assert "Done" in run("history", "ada").out
    assert run("agents", "restore", "ada", "bob").out == "Restored ada and bob.\n"
    assert levels(run) == {"team_level"}
    assert run("agents", "delete", "nobody-here").err.startswith("AGENT_NOT_FOUND: ")
    assert data(run("--json", "agents", "grant", "ada", "--name", "Ada L."))["name"] == "Ada L."
    assert "Ada L." in run("agents", "show", "ada").out


@pytest.mark.parametrize(
    ("typed", "choices"),
    [
        ("30m", {"expires_in_seconds": 1_800}),
        ("2h", {"expires_in_seconds": 7_200}),
        ("7d", {"expires_in_seconds": 604_800}),
        ("never", {"expires_at": None}),
        ("2030-01-31T18:00:00Z", {"expires_at": "2030-01-31T18:00:00Z"}),
    ],
)
def test_an_expiry_is_a_duration_a_date_or_never(typed: str, choices: dict[str, Any]) -> None:
    assert Expiry().convert(typed, None, None) == choices


@pytest.mark.parametrize("typed", ["soon", "2x", "-1h", "", "1h30m"])
def test_a_malformed_expiry_is_refused(typed: str) -> None:
    with pytest.raises(click.BadParameter, match="is not a time"):
        Expiry().convert(typed, None, None)
