"""Steps that tests share: create tasks, worktrees and projects, read them, and wait for changes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Admitted
from workbench.app import Workbench
from workbench.errors import WorkbenchError
from workbench.ops import OPERATOR
from workbench.shells.serve import Servers
from workbench.state.settings import Settings
from workbench.store.queries import Query

SECONDS = 60.0
"""How long something is waited for that a test expects."""
STEP_SECONDS = 0.02


async def whole_task(
    workbench: Workbench, title: str = "t", persona_id: str = "implementer", *, by: Admitted | None = None, **more: Any
) -> dict[str, Any]:
    """A new task of the operator or of an agent, with all that is said of it."""
    new = {"title": title, "persona_id": persona_id, **more}
    return await workbench.dispatch(by.caller if by else OPERATOR, "create_task", new)


async def task(workbench: Workbench, *words: str, **more: Any) -> int:
    """The id of a new task; see `whole_task`."""
    return int((await whole_task(workbench, *words, **more))["id"])


async def worktree(workbench: Workbench, name: str = "lab", **more: Any) -> Path:
    """The directory of a new worktree."""
    return Path((await workbench.call("create_worktree", name=name, **more))["path"])


@asynccontextmanager
async def another_server(port: int, project: Path) -> AsyncIterator[None]:
    """The server of another project at a port, whose store is a file."""
    project.mkdir()
    async with Workbench.open(Settings(project=project, database_url=None)) as workbench, Servers(workbench) as servers:
        await servers.start(port)
        yield


async def project(workbench: Workbench, name: str = "alpha", **more: Any) -> dict[str, Any]:
    """A new project."""
    return await workbench.call("create_project", name=name, **more)


async def session(workbench: Workbench, name: str, project_id: str = "alpha") -> dict[str, Any]:
    """A new session of a project."""
    return await workbench.call("create_session", project_id=project_id, name=name)


async def team(workbench: Workbench, name: str, session_id: str | None = None) -> dict[str, Any]:
    """A new team."""
    return await workbench.call("create_team", name=name, session_id=session_id)


async def task_now(workbench: Workbench, task_id: int) -> dict[str, Any]:
    """Everything about a task, as it is now."""
    return await workbench.call("get_task", task_id=task_id)


async def reached(workbench: Workbench, task_id: int, *states: str) -> dict[str, Any]:
    """Everything about a task, once it is in one of some states."""
    async with workbench.feed.subscribe("task.*") as events:
        while (found := await task_now(workbench, task_id))["status"] not in states:
            await anext(events)
    return found


async def done_by(workbench: Workbench, agent: Admitted, name: str, task_id: int, **more: Any) -> dict[str, Any]:
    """The result of an agent's call about a task."""
    return await workbench.dispatch(agent.caller, name, {"task_id": task_id, **more})


async def claim(workbench: Workbench, agent: Admitted, task_id: int | None = None) -> Any:
    """The task that an agent claims: a certain one, or the best; None if there is none."""
    return (await workbench.dispatch(agent.caller, "claim_task", {"task_id": task_id}))["task"]


async def end(workbench: Workbench, agent: Admitted, task_id: int, how: str = "completed") -> None:
    """Bring a task to one of its ends; an agent that completes or fails it claims it first."""
    if how == "cancelled":
        await workbench.call("cancel_task", task_id=task_id)
        return
    await claim(workbench, agent, task_id)
    if how == "completed":
        await done_by(workbench, agent, "complete_task", task_id)
    else:
        await done_by(workbench, agent, "fail_task", task_id, error_message="no", retryable=False)


async def kinds(workbench: Workbench, *patterns: str, **which: Any) -> list[str]:
    """The kinds of the events so far, of some kinds or about one subject."""
    wanted = {"kinds": list(patterns)} if patterns else {}
    return [event["kind"] for event in (await workbench.call("list_events", **wanted, **which, limit=1000))["events"]]


async def refusal(call: Awaitable[object]) -> WorkbenchError:
    """The error that a call ends with."""
    with pytest.raises(WorkbenchError) as caught:
        await call
    return caught.value


async def refuses(code: str, call: Awaitable[object]) -> WorkbenchError:
    """The error of a code that a call ends with."""
    error = await refusal(call)
    assert error.code == code, error
    return error


def refused(code: str, function: Callable[..., object], *arguments: Any, **named: Any) -> WorkbenchError:
    """The error of a code that a function ends with."""
    with pytest.raises(WorkbenchError) as caught:
        function(*arguments, **named)
    assert caught.value.code == code
    return caught.value


async def rows(workbench: Workbench, question: str) -> list[tuple[Any, ...]]:
    """The rows that some SQL selects from the store."""
    return await workbench.store.read(lambda tx: tx.tuples(Query("asked", question)))


async def until(look: Callable[[], Any], seconds: float = SECONDS) -> Any:
    """The result of a look, once it is true; a look may take its time."""
    async with asyncio.timeout(seconds):
        while not (seen := await found if isinstance(found := look(), Awaitable) else found):
            await asyncio.sleep(STEP_SECONDS)
    return seen


def wait_until(look: Callable[[], Any], what: str = "it", seconds: float = SECONDS) -> Any:
    """The result of a look, once it is true, in synchronous code."""
    end = time.monotonic() + seconds
    while not (seen := look()):
        assert time.monotonic() < end, f"did not happen: {what}"
        time.sleep(STEP_SECONDS)
    return seen


async def ended(workbench: Workbench, agent_id: str) -> dict[str, Any]:
    """The process of an agent, once it has ended."""

    async def look() -> dict[str, Any] | None:
        process = await workbench.call("get_agent_process_info", agent_id=agent_id)
        return process if process["state"] == "ended" else None

    return dict(await until(look))


async def is_kept(workbench: Workbench, task_id: int) -> bool:
    """Whether what the first attempt at a task left has been kept."""
    return (await task_now(workbench, task_id))["attempts"][0]["kept"] is not None


async def appeared(path: Path) -> None:
    """Return once there is a file."""
    await until(path.exists)


async def written(path: Path) -> str:
    """The content of a file, once there is some."""
    return str(await until(lambda: path.exists() and path.read_text()))
