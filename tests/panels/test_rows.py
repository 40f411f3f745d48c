"""The rows of a panel and their differences: pure functions, and their twin in JavaScript."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_ext.panels.rows import (
    Change,
    apply,
    by_id,
    conflict_rows,
    diff,
    in_tree,
    process_row,
    task_rows,
    unpublished_row,
    waits_for,
    worktree_row,
)
from tests.panels.conftest import Ask


def task(task_id: int, parent: int | None = None, **more: Any) -> dict[str, Any]:
    return {"id": task_id, "title": "t", "status": "pending", "parent_task_id": parent, "blocked": False, **more}


def row(task_id: int, status: str = "pending", *dependencies: int) -> dict[str, Any]:
    blocked = {"blocked": True} if status == "pending" and dependencies else {}
    return {"id": task_id, "status": status, "dependencies": list(dependencies), **blocked}


ROWS = st.dictionaries(st.integers(0, 8), st.integers(0, 2)).map(
    lambda values: {key: {"id": key, "value": value} for key, value in values.items()}
)
STATES = st.lists(st.dictionaries(st.sampled_from(["approvals", "tasks"]), ROWS), min_size=1, max_size=6)


@given(STATES)
def test_diffs_applied_to_a_snapshot_give_the_newest_state(
    states: list[dict[str, Any]],
) -> None:
    shown: dict[str, Any] = states[0]
    assert diff(shown, shown) == {}
    for before, after in pairwise(states):
        shown = apply(shown, diff(before, after))
        assert {name: rows for name, rows in shown.items() if rows} == {n: rows for n, rows in after.items() if rows}


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ({}, {"tasks": {1: row(1)}}, {"tasks": {"set": [row(1)], "removed": []}}),
        ({"tasks": {1: row(1)}}, {"tasks": {}}, {"tasks": {"set": [], "removed": [1]}}),
        (
            {"tasks": {1: row(1)}},
            {"tasks": {1: row(1, "failed")}},
            {"tasks": {"set": [row(1, "failed")], "removed": []}},
        ),
        ({"tasks": {1: row(1)}, "approvals": {}}, {"tasks": {1: row(1)}, "approvals": {}}, {}),
    ],
)
def test_a_diff_names_only_what_changed(old: Any, new: Any, expected: Change) -> None:
    assert diff(old, new) == expected


def test_rows_of_tasks_omit_nulls_and_include_dependencies() -> None:
    rows = task_rows([task(1), task(2, blocked=True, priority=0, error_message="x" * 500)], [(2, 1)])
    assert rows[1] == {"id": 1, "title": "t", "status": "pending", "dependencies": []}
    assert rows[2]["dependencies"] == [1]
    assert (rows[2]["blocked"], rows[2]["priority"], rows[2]["error_message"]) == (True, 0, "x" * 200)


def test_a_tree_has_parents_before_children_and_depths() -> None:
    rows = task_rows([task(1), task(2, 1), task(3, 1), task(4, 2), task(5), task(6, 77)], [])
    assert [(r["id"], depth) for r, depth in in_tree(rows)] == [(1, 0), (2, 1), (4, 2), (3, 1), (5, 0), (6, 0)]


def test_a_chain_may_be_deeper_than_the_stack() -> None:
    rows = task_rows([task(n, n - 1 or None) for n in range(1, 5_001)], [])
    assert [depth for _, depth in in_tree(rows)] == list(range(5_000))


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        (row(9, "pending", 1, 2, 3), [2, 3]),
        (row(9, "pending", 1), []),
        (row(9, "completed", 2), []),
        (row(9, "pending", 77), []),
    ],
)
def test_a_task_waits_for_dependencies_that_are_not_completed(task: dict[str, Any], expected: list[int]) -> None:
    assert waits_for(task, by_id([row(1, "completed"), row(2, "failed"), row(3)])) == expected


def test_a_worktree_is_a_row_with_counts_instead_of_its_files() -> None:
    files = [{"path": f"f{n}", "added": 1, "removed": 0} for n in range(3)]
    worktree = {"name": "w", "files": files, "dirty": ["x"] * 300, "agents": ["ada"], "open_tasks": 2, "ahead": 1}
    row = worktree_row(worktree)
    assert row == {"name": "w", "ahead": 1, "changed": 3, "uncommitted": 300, "dirty": ["x"] * 200}


def test_conflicts_are_rows_of_pairs_and_one_of_how_many_were_looked_at() -> None:
    pair = {"one": "a", "other": "main", "is_target": True, "files": ["f"]}
    assert conflict_rows({"pairs": [pair], "checked": 3}) == {
        "": {"id": "", "checked": 3},
        "a\nmain": {"id": "a\nmain", **pair},
    }


def test_a_row_of_a_process_omits_its_usage() -> None:
    process = {"state": "running", "cpu_percent": 3.0, "memory_bytes": 1, "log_tail": [], "exit_code": None}
    agent = {"agent_id": "ada", "name": "Ada", "persona_id": "tester"}
    assert process_row(agent | {"process": process}) == {"name": "Ada", "persona_id": "tester", "state": "running"}
    assert process_row(agent | {"process": None}) is None


def test_an_own_personality_without_a_network_is_a_row_like_the_others() -> None:
    traits = [{"name": "mood", "value": "calm"}, {"name": "add", "description": "Adds.", "is_callable": True}]
    row = unpublished_row({"rid": "orn:agent.personality:ada/1.0", "name": "ada", "version": "1.0", "traits": traits})
    assert (row["id"], row["versions"], row["traits"], row["tools"]) == ("ada", ["1.0"], 2, ["add"])
    assert [(one["name"], one["text"]) for one in row["highlights"]] == [("mood", "calm"), ("add", "Adds.")]
    assert row["provenance"] == {"freshness": "unpublished"}


@pytest.mark.node
@given(states=STATES)
def test_the_front_end_comes_to_the_same_state(in_node: Ask, states: list[dict[str, Any]]) -> None:
    snapshot = {name: list(rows.values()) for name, rows in states[0].items()}
    changes = [diff(before, after) for before, after in pairwise(states)]
    shown = in_node("apply_changes.mjs")({"snapshot": snapshot, "changes": changes})
    expected = {name: sorted(rows.values(), key=lambda r: r["id"]) for name, rows in states[-1].items() if rows}
    assert shown == {"tables": expected, "version": len(states), "missed": True}
