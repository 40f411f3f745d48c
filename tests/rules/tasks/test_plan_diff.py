"""The changes that a new text of a plan would make, and the obstacles to them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.rules.tasks.test_plan import documents
from workbench.model import OnFailure, TaskState
from workbench.rules.tasks.plan import Defaults, PlannedTask, compare, dead_ends, obstacles


def task(name: str, **said: Any) -> PlannedTask:
    """A task that says little."""
    return PlannedTask(**{"name": name, "title": f"Do {name}", "persona": "implementer", **said})


def test_a_plan_diff_names_added_removed_and_changed_tasks() -> None:
    old = [task("a", worktree="w"), task("b"), task("c", description="x" * 50, run=["ls"], after=["a"])]
    new = [
        *(task("d"), task("a", priority=900, title="Do a\nwell"), task("b", persona="Implementer")),
        task("c", description=" " + "x" * 50, after=["d", "a"], metadata={"x": None}),
    ]
    diff = compare(old, new)
    assert (diff.added, diff.removed, list(diff.changed)) == (["d"], [], ["a", "c"])
    assert diff.text.splitlines() == [
        "+ d: Do d",
        '~ a: title Do a → "Do a\\nwell"; priority 500 → 900; worktree w → none',
        '~ c: after ["a"] → ["a", "d"]; run ["ls"] → none; metadata {} → {"x": null}',
    ]
    back = compare(new, old)
    assert (back.added, back.removed) == ([], ["d"])
    assert back.text.startswith("- d: Do d\n~ a: ")


def test_long_values_are_cut_in_the_readable_form_only() -> None:
    (change,) = compare([task("a", description="x" * 50)], [task("a")]).changed["a"]
    assert (change.field, change.before, change.after) == ("description", "x" * 50, "")
    assert compare([task("a", description="x" * 50)], [task("a")]).text == f'~ a: description {"x" * 39}… → ""'


@pytest.mark.parametrize(("one", "other"), [(1, True), (1, 1.0), (0, False), (None, 0), ([], {})])
def test_values_that_only_python_takes_for_equal_differ(one: Any, other: Any) -> None:
    assert compare([task("a", metadata={"x": one})], [task("a", metadata={"x": other})]).text


@pytest.mark.parametrize(
    "said",
    [{"check": "pytest"}, {"done_when": "said"}, {"needs": {"cpu": 1}}, {"budget": {"attempts": 3}}],
    ids=lambda said: next(iter(said)),
)
def test_what_a_task_says_for_the_first_time_or_no_more_is_a_change(said: dict[str, Any]) -> None:
    ((field, value),) = said.items()
    for old, new, change in (({}, said, (None, value)), (said, {}, (value, None))):
        (found,) = compare([task("a", **old)], [task("a", **new)]).changed["a"]
        assert (found.field, found.before, found.after) == (field, *change)


@given(documents(), documents(), st.randoms())
def test_a_diff_is_empty_between_plans_alike(one: dict[str, Any], other: dict[str, Any], random: Any) -> None:
    old, new = ([PlannedTask.model_validate(said) for said in document["tasks"]] for document in (one, other))
    shuffled = random.sample(old, len(old))
    assert compare(old, shuffled).text == ""
    diff = compare(old, new)
    touched = {*diff.added, *diff.removed, *diff.changed}
    same = {task.name for task in old if task.name not in touched}
    assert touched | same == {task.name for task in [*old, *new]}
    assert bool(touched) == bool(diff.text)
    assert not {change.field for found in diff.changed.values() for change in found} - set(PlannedTask.model_fields)


S = TaskState


@pytest.mark.parametrize(
    ("state", "changing", "removing"),
    [
        (S.PENDING, None, None),
        (S.CLAIMED, "title, run cannot change any more", "cancel it before it is removed"),
        (S.IN_PROGRESS, "title, run cannot change any more", "cancel it before it is removed"),
        (S.COMPLETED, "title, run cannot change any more", "it stays in the plan"),
        (S.FAILED, None, None),
        (S.CANCELLED, "retry it before title, run can change", None),
    ],
)
def test_a_started_or_ended_task_cannot_be_changed_by_a_plan(
    state: TaskState, changing: str | None, removing: str | None
) -> None:
    changed, removed = compare([task("a")], [task("a", title="x", run="ls")]), compare([task("a")], [])
    found = obstacles(changed, {"a": state}, {"a": 7})
    assert found == ([{"line": 7, "task": "a", "reason": f"'a' is {state}; {changing}"}] if changing else [])
    found = obstacles(removed, {"a": state}, {})
    assert found == ([{"line": None, "task": "a", "reason": f"'a' is {state}; {removing}"}] if removing else [])


def test_a_change_of_a_failed_task_retries_it_and_says_so() -> None:
    diff = compare([task("a"), task("b")], [task("a", run="ls"), task("b", run="ls")], failed={"a"})
    assert (diff.retried, diff.text) == (["a"], "~ a: run none → ls; retried\n~ b: run none → ls")
    assert compare([task("a")], [task("a")], failed={"a"}).retried == []


def test_obstacles_are_listed_in_order_of_their_lines() -> None:
    diff = compare([task("a"), task("b"), task("c")], [task("a", run="x"), task("b", run="x")])
    found = obstacles(diff, dict.fromkeys("abc", S.COMPLETED), {"a": 9, "b": 3})
    assert [(one["line"], one["task"]) for one in found] == [(None, "c"), (3, "b"), (9, "a")]


def test_defaults_of_a_task_are_filled_in_and_stripped_again() -> None:
    defaults = Defaults(max_retries=3, lease_seconds=60, persona_lease_seconds={"reviewer": 5, "implementer": None})
    for said, full in [
        (task("a"), task("a", max_retries=3, lease_seconds=60)),
        (task("a", persona="Reviewer"), task("a", persona="Reviewer", max_retries=3, lease_seconds=5)),
        (task("a", max_retries=0, lease_seconds=7), task("a", max_retries=0, lease_seconds=7)),
    ]:
        assert defaults.filled(said) == full
        assert defaults.stripped(full) == said
    assert defaults.filled(task("a", lease_seconds=1e-9)).lease_seconds == 1e-6


@pytest.mark.parametrize(
    ("old", "new", "state", "refused"),
    [
        ({}, {"after": ["a"]}, TaskState.FAILED, True),
        ({}, {"after": ["a", "a"]}, TaskState.CANCELLED, True),
        ({}, {"after": ["a"]}, TaskState.PENDING, False),
        ({}, {"after": ["a"]}, TaskState.COMPLETED, False),
        ({}, {"after": ["a"], "on_failure": OnFailure.BLOCK}, TaskState.FAILED, False),
        ({}, {"after": ["elsewhere"]}, TaskState.FAILED, False),
        ({"after": ["a"]}, {"after": ["a"], "title": "Other"}, TaskState.FAILED, False),
        ({"after": ["a"], "on_failure": OnFailure.BLOCK}, {"after": ["a"]}, TaskState.FAILED, True),
        (None, {"after": ["a"]}, TaskState.FAILED, True),
    ],
)
def test_a_new_dependency_on_a_failed_task_is_a_dead_end(
    old: dict[str, Any] | None, new: dict[str, Any], state: TaskState, refused: bool
) -> None:
    cancel = {"on_failure": OnFailure.CANCEL}
    before = [task("a")] + ([] if old is None else [task("b", **(cancel | old))])
    after = [task("a"), task("b", **(cancel | new))]
    found = dead_ends(compare(before, after), after, {"a": state, "b": TaskState.PENDING}, {"a": 3, "b": 5})
    reason = f"'b' comes after 'a', which is {state}, with on_failure=cancel"
    assert found == ([{"line": 5, "task": "b", "depends_on": "a", "reason": reason}] if refused else [])
