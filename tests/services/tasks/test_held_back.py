"""What a task waits for holds back its subtasks as well."""

from __future__ import annotations

import pytest

from tests import given
from tests.conftest import Admitted
from workbench.app import Workbench
from workbench.errors import BadInput, Conflict

pytestmark = pytest.mark.anyio

NESTED = """
plan: p
tasks:
  - {name: x, title: X, persona: implementer}
  - name: a
    title: A
    persona: implementer
    after: [x]
    subtasks:
      - name: k
        title: K
        subtasks: [{name: deep, title: Deep}]
"""
BY_NAME = """
plan: p
tasks:
  - {name: k, title: K, persona: implementer, parent: a}
  - {name: deep, title: Deep, persona: implementer, parent: k}
  - {name: a, title: A, persona: implementer, after: [x]}
  - {name: x, title: X, persona: implementer}
"""
CHECKLIST = """# p
- [ ] X {name=x persona=implementer}
- [ ] A {name=a persona=implementer after=x}
  - [ ] K {name=k}
    - [ ] Deep {name=deep}
"""


async def blocked_by(workbench: Workbench, *ids: int) -> list[list[int]]:
    """What each of these tasks waits for."""
    return [(await given.task_now(workbench, task_id))["blocked_by"] for task_id in ids]


@pytest.mark.parametrize("text", [NESTED, BY_NAME, CHECKLIST])
async def test_a_plan_holds_back_the_subtasks_of_what_comes_after(
    workbench: Workbench, ada: Admitted, text: str
) -> None:
    ids = (await workbench.call("create_plan", text=text))["tasks"]
    x, below = ids["x"], [ids["a"], ids["k"], ids["deep"]]
    assert await blocked_by(workbench, *below) == [[x]] * 3
    assert (await workbench.call("count_tasks"))["blocked"] == 3
    with pytest.raises(Conflict, match=f"it waits for {x}"):
        await given.claim(workbench, ada, ids["deep"])
    await given.end(workbench, ada, x)
    assert await blocked_by(workbench, *below) == [[]] * 3
    for _ in below:
        await given.end(workbench, ada, (await given.claim(workbench, ada))["id"])


async def test_a_subtask_waits_for_what_its_parent_comes_to_wait_for(workbench: Workbench, ada: Admitted) -> None:
    x, parent = await given.task(workbench), await given.task(workbench)
    part = await given.task(workbench, parent_task_id=parent)
    await workbench.call("add_dependency", task_id=parent, depends_on=x)
    late = await given.task(workbench, parent_task_id=part, dependencies=[x])
    assert await blocked_by(workbench, part, late) == [[x], [x]]
    await workbench.call("remove_dependency", task_id=parent, depends_on=x)
    assert await blocked_by(workbench, part, late) == [[], [x]]
    await workbench.call("add_dependency", task_id=parent, depends_on=x)
    await given.end(workbench, ada, x)
    assert await blocked_by(workbench, part, late) == [[], []]


async def test_what_a_failed_dependency_means_for_a_parent_it_means_for_its_subtasks(
    workbench: Workbench, ada: Admitted
) -> None:
    x = await given.task(workbench, max_retries=0)
    blocked, ignoring = [
        await given.task(workbench, dependencies=[x], on_failure=policy) for policy in ("block", "ignore")
    ]
    parts = [await given.task(workbench, parent_task_id=parent) for parent in (blocked, ignoring)]
    await given.end(workbench, ada, x, "failed")
    assert await blocked_by(workbench, *parts) == [[x], []]
    await workbench.call("retry_task", task_id=x)
    assert await blocked_by(workbench, *parts) == [[x], [x]]
    await given.end(workbench, ada, x)
    assert await blocked_by(workbench, *parts) == [[], []]


async def test_the_subtasks_that_a_task_waits_for_do_not_hold_back_each_other(
    workbench: Workbench, ada: Admitted
) -> None:
    x, parent = await given.task(workbench), await given.task(workbench)
    first, second = [await given.task(workbench, parent_task_id=parent) for _ in range(2)]
    for on in (first, second, x):
        await workbench.call("add_dependency", task_id=parent, depends_on=on)
    await workbench.call("add_dependency", task_id=second, depends_on=first)
    assert await blocked_by(workbench, parent, first, second) == [[x, first, second], [x], [x, first]]
    for task_id in (x, first, second, parent):
        await given.end(workbench, ada, task_id)


async def test_a_task_cannot_wait_for_what_waits_for_its_subtask(workbench: Workbench) -> None:
    parent, other = await given.task(workbench), await given.task(workbench)
    part = await given.task(workbench, parent_task_id=parent)
    await workbench.call("add_dependency", task_id=other, depends_on=part)
    with pytest.raises(Conflict, match=f"Task {part} is a part of {parent}") as refused:
        await workbench.call("add_dependency", task_id=parent, depends_on=other)
    assert refused.value.details == {"path": [parent, other, part]}
    await workbench.call("remove_dependency", task_id=other, depends_on=part)
    await workbench.call("add_dependency", task_id=parent, depends_on=other)
    with pytest.raises(Conflict, match=f"{other} → {part} → {parent} → {other}"):
        await workbench.call("add_dependency", task_id=other, depends_on=part)


async def test_a_plan_in_which_a_task_comes_after_what_waits_for_its_subtask_is_refused(workbench: Workbench) -> None:
    with pytest.raises(BadInput, match="as a subtask waits for what its parent does: "):
        await workbench.call("create_plan", text=NESTED.replace("title: X", "title: X, after: [deep]"))
