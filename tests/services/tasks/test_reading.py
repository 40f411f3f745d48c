"""What is read of one task, or of several: all of it, and its log."""

from __future__ import annotations

import pytest

from tests.conftest import Admitted
from workbench.app import Workbench
from workbench.errors import BadInput, NotFound

pytestmark = pytest.mark.anyio


async def made(workbench: Workbench) -> int:
    """The id of a new task."""
    return int((await workbench.call("create_task", title="t", persona_id="implementer"))["id"])


async def test_several_tasks_are_read_in_full_in_the_order_that_is_asked_for(workbench: Workbench) -> None:
    ids = [await made(workbench) for _ in range(3)]
    asked = [ids[2], 99, ids[0], ids[2]]
    assert (await workbench.call("get_tasks", task_ids=asked))["tasks"] == [
        await workbench.call("get_task", task_id=task_id) for task_id in (ids[2], ids[0])
    ]
    assert (await workbench.call("get_tasks", task_ids=[]))["tasks"] == []
    with pytest.raises(BadInput, match="INVALID_ARGUMENTS"):
        await workbench.call("get_tasks", task_ids=list(range(101)))


async def test_a_log_is_read_in_pages(workbench: Workbench, ada: Admitted) -> None:
    task, other = await made(workbench), await made(workbench)
    await workbench.dispatch(ada.caller, "claim_task", {"task_id": task})
    for note in ("one", "two", "three"):
        report = {"task_id": task, "progress_note": note, "level": "warn"}
        await workbench.dispatch(ada.caller, "report_task_progress", report)
    lines = (await workbench.call("get_task_logs", task_id=task, limit=2))["lines"]
    lines += (await workbench.call("get_task_logs", task_id=task, cursor=lines[-1]["id"]))["lines"]
    found = [(x["message"], x["agent_id"], x["level"]) for x in lines]
    assert found == [(note, "ada", "warn") for note in ("one", "two", "three")]
    assert (await workbench.call("get_task_logs", task_id=other))["lines"] == []


async def test_a_log_is_read_from_its_end_backward(workbench: Workbench, ada: Admitted) -> None:
    task, other = await made(workbench), await made(workbench)
    for held in (task, other):
        await workbench.dispatch(ada.caller, "claim_task", {"task_id": held})
    for note in range(5):
        for held in (task, other):
            report = {"task_id": held, "progress_note": str(note)}
            await workbench.dispatch(ada.caller, "report_task_progress", report)
    pages, cursor = [], 0
    for _ in range(4):
        found = await workbench.call("get_task_logs", task_id=task, cursor=cursor, limit=2, newest_first=True)
        pages.append([line["message"] for line in found["lines"]])
        cursor = found["lines"][-1]["id"] if found["lines"] else cursor
    assert pages == [["4", "3"], ["2", "1"], ["0"], []]


@pytest.mark.parametrize("name", ["get_task", "get_task_logs", "get_task_status", "wait_for_task", "cancel_task"])
async def test_a_task_that_is_not_there_cannot_be_asked_for(workbench: Workbench, name: str) -> None:
    with pytest.raises(NotFound, match="TASK_NOT_FOUND"):
        await workbench.call(name, task_id=7)
