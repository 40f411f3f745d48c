"""Names, secrets and levels, as tables and properties."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.given import refused
from workbench.errors import BadInput
from workbench.git import Repository
from workbench.model import GrantedAccess, Level, Registration, Role
from workbench.rules import access

GOOD_IDS = ["a", "Ada", "ada.b_c-9", "9", "x" * 64, "pending"]
BAD_IDS = [
    *("", " ", "-a", ".a", "_a", "a b", "a/b", "é", "a\n", "x" * 65, "a\0", "Operator", "system", "pending_1"),
    *("Pending_1", "null", "None", "ME", "everyone", "all", "undefined", "true"),
]
GOOD_WORKTREES = ["a", "0", "report", "a-b_c", "x" * 50, "mainline"]
BAD_WORKTREES = [
    *("", "-a", "_a", "A", "a b", "a/b", "..", ".", "../x", "a.b", "a\n", "é", "x" * 51, "a\0b", "~", "$HOME"),
    *("head", "main", "master", "objects", "refs", "trash", "con", "nul", "aux", "prn"),
]


def accepted_names(check: Callable[[str], str], names: list[str]) -> list[str]:
    """The result of a check for each name that it accepts."""
    found = []
    for name in names:
        with suppress(BadInput):
            found.append(check(name))
    return found


def test_only_plain_words_that_cannot_be_taken_for_something_else_can_be_ids_of_agents() -> None:
    assert accepted_names(access.check_agent_id, GOOD_IDS + BAD_IDS) == GOOD_IDS
    refused("BAD_AGENT_ID", access.check_agent_id, "")


def test_only_plain_words_that_are_not_reserved_can_name_worktrees() -> None:
    assert accepted_names(access.check_worktree_name, GOOD_WORKTREES + BAD_WORKTREES) == GOOD_WORKTREES
    refused("BAD_WORKTREE_NAME", access.check_worktree_name, "")


@given(st.from_regex(access._WORKTREE, fullmatch=True))
def test_a_worktrees_name_is_always_fit_to_be_part_of_a_branch(name: str) -> None:
    Repository.check_branch_name(f"wb/{name}/main")


@given(st.text(max_size=120), st.sets(st.text(max_size=5), max_size=5))
def test_any_name_makes_an_id_that_is_valid_and_free(name: str, others: set[str]) -> None:
    base = access.id_from_name(name)
    taken = others | {base, f"{base}-2"}
    found = access.free_id(base, taken)
    assert access.check_agent_id(base)
    assert access.check_agent_id(found)
    assert found not in taken


@pytest.mark.parametrize(
    ("name", "agent_id"),
    [
        ("Ada", "Ada"),
        ("Ada Lovelace", "Ada-Lovelace"),
        ("../../etc", "etc"),
        ("…", "agent"),
        ("Operator", "agent-Operator"),
        ("pending_7", "agent-pending_7"),
        ("None", "agent-None"),
        ("Everyone!", "agent-Everyone"),
        ("a" * 99, f"{'a' * 23}-{'a' * 24}"),
        ("The agent that watches the pump in the basement 34", "The-agent-that-watches-pump-in-the-basement-34"),
        ("The agent that watches the pump in the basement 38", "The-agent-that-watches-pump-in-the-basement-38"),
    ],
)
def test_an_id_keeps_what_it_can_of_the_name(name: str, agent_id: str) -> None:
    assert access.id_from_name(name) == agent_id


def test_an_id_that_is_taken_gets_the_first_free_number() -> None:
    taken = (set(), {"a"}, {"a", "A-2"}, {"A", "a-3"})
    assert [access.free_id("a", ids) for ids in taken] == ["a", "a-2", "a-3", "a-2"]


@pytest.mark.parametrize("kind", ["wba", "wbo"])
def test_a_token_has_its_kind_in_front_and_256_random_bits(kind: str) -> None:
    tokens = {access.new_token(kind) for _ in range(100)}
    assert len(tokens) == 100
    assert all(re.fullmatch(kind + r"_[A-Za-z0-9_-]{43}", token) for token in tokens)


def test_a_token_equals_only_itself_and_its_hash_does_not_contain_it() -> None:
    one, other = access.new_token("wba"), access.new_token("wba")
    assert access.token_hash(one) == access.token_hash(one) != access.token_hash(other)
    assert one not in access.token_hash(one)
    assert access.same_token(one, one)
    assert not access.same_token(one, other)
    assert not access.same_token(one + "é", one)


LEVELS = {
    (GrantedAccess.READ, Role.WORKER): Level.READ,
    (GrantedAccess.READ, Role.PLANNER): Level.READ,
    (GrantedAccess.WRITE, Role.WORKER): Level.WORKER,
    (GrantedAccess.WRITE, Role.PLANNER): Level.PLANNER,
}


def test_the_grant_decides_the_level_of_an_admitted_agent_and_no_other_has_one() -> None:
    for status, tool, role in product(Registration, GrantedAccess, Role):
        wanted = LEVELS[tool, role] if status in ("assigned", "active", "inactive") else Level.ANONYMOUS
        assert access.level_of(status, tool, role) == wanted, (status, tool, role)
