"""`workbench worker`: a worker that somebody runs in a terminal."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from tests import given
from tests.conftest import Served, git
from workbench.client import HttpClient
from workbench.confinement import abilities
from workbench.state.server_file import ServerFile
from workbench.state.settings import Settings

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(120)]

Start = Callable[..., Any]


@pytest.fixture
async def start(settings: Settings) -> AsyncIterator[Start]:
    """`await start("serve", "--port", "0")`: the command in a process of its own; killed at the end."""
    processes: list[asyncio.subprocess.Process] = []

    async def started(*arguments: str) -> asyncio.subprocess.Process:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "workbench.cli", *arguments),
            env=os.environ | {"WORKBENCH_PROJECT": str(settings.project)},
            stdin=DEVNULL,
            stdout=PIPE,
            stderr=PIPE,
        )
        processes.append(process)
        return process

    yield started
    for process in processes:
        if process.returncode is None:
            process.kill()
        await process.communicate()


@pytest.mark.long
async def test_attempts_of_a_real_worker_complete_fail_and_are_retried(
    served: Served, repository: Path, start: Start
) -> None:
    """Commands run in the box, in the worktree; the work of those that fail is not on its branch."""
    lab = await given.worktree(served.workbench)
    new = {"persona_id": "implementer", "target_worktree": "lab", "max_retries": 1}
    again = "touch again-$WORKBENCH_ATTEMPT; [ $WORKBENCH_ATTEMPT = 2 ] || exit 75"
    made = "touch ../outside; pwd > made; echo '{\"result\": 7}' > $WORKBENCH_RESULT"
    runs = (made, "touch failed; echo [ > $WORKBENCH_RESULT", "exit 75", again)
    await served.workbench.call("create_tasks", tasks=[{"title": run, "run": run, **new} for run in runs])
    worker = await start("worker", "--persona", "implementer", "--worktree", "lab", "--tasks", "6")
    _, said = await worker.communicate()
    assert worker.returncode == 0, said
    tasks = [await given.task_now(served.workbench, number) for number in (1, 2, 3, 4)]
    assert [(task["status"], [attempt["outcome"] for attempt in task["attempts"]]) for task in tasks] == [
        ("completed", ["completed"]),
        ("failed", ["failed"]),
        ("failed", ["failed", "failed"]),
        ("completed", ["failed", "completed"]),
    ]
    assert tasks[0]["result_data"] == 7
    assert "status 75 and asked to be tried again" in tasks[3]["attempts"][0]["error_message"]
    head = git("rev-parse", "wb/lab/main", cwd=repository)
    assert tasks[3]["artifacts"] == [f"commit:{head}"]
    assert git("ls-tree", "--name-only", head, cwd=repository).split() == ["README.md", "again-2", "made"]
    assert git("show", f"{head}:made", cwd=repository) == str(repository if abilities().namespaces else lab)
    enforced = (await served.workbench.call("get_confinement"))["enforced"]
    assert (lab.parent / "outside").exists() is not enforced
    assert b"wba_" not in said


async def serving(start: Start, settings: Settings) -> tuple[asyncio.subprocess.Process, HttpClient]:
    """A server on a port of its own, and a client of its."""
    server = await start("serve", "--port", "0")
    assert b"serves" in await server.stdout.readline()
    server_info = ServerFile(settings.server_file).load()
    assert server_info.info is not None
    return server, HttpClient(server_info.info.url, server_info.operator_token)


async def done(client: HttpClient, title: str) -> dict[str, Any]:
    """A task for the worktree, once it has ended."""
    new = {"title": title, "persona_id": "implementer", "target_worktree": "lab", "run": f"echo {title} > {title}"}
    task_id = (await client.call("create_task", **new))["id"]
    while (await client.call("wait_for_task", task_id=task_id))["status"] not in ("completed", "failed"):
        pass
    return await client.call("get_task", task_id=task_id)


@pytest.mark.long
async def test_a_worker_by_hand_outlives_the_server_and_finds_the_next_one(
    settings: Settings, start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    server, client = await serving(start, settings)
    await client.call("create_worktree", name="lab")
    worker = await start("worker", "--persona", "implementer", "--worktree", "lab", "--name", "walt")
    assert await worker.stderr.readline() == b"walt is running; press Ctrl-C to end it.\n"
    first = await done(client, "one")
    assert (first["status"], first["attempts"][0]["agent_id"]) == ("completed", "walt"), first["error_message"]
    server.kill()
    await server.wait()
    _, other = await serving(start, settings)
    second = await done(other, "two")
    assert (second["status"], second["attempts"][0]["agent_id"]) == ("completed", "walt")
    worker.send_signal(signal.SIGINT)
    _, said = await worker.communicate()
    assert worker.returncode == 0
    assert b"the server is at " in said
    assert b"wba_" not in said
    assert git("ls-tree", "--name-only", "wb/lab/main", cwd=settings.project).split() == ["README.md", "one", "two"]
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("workbench-")] == []
    await client.__aexit__()
    await other.__aexit__()


@pytest.mark.long
async def test_a_worker_by_hand_has_a_definition(settings: Settings, start: Start) -> None:
    _, client = await serving(start, settings)
    await client.call("create_worktree", name="lab")
    create = {"agentPath": "./agents/critic", "name": "Critic", "initialPrompt": "Be critical."}
    await client.call("agent_create", **create)
    options = ("--persona", "implementer", "--definition", "Critic", "--worktree", "lab", "--tasks", "1")
    worker = await start("worker", *options)
    assert await worker.stderr.readline() == b"Critic is running; press Ctrl-C to end it.\n"
    task = await done(client, "hand")
    version = (await client.call("agent_get_info", agentTarget="Critic"))["contentHash"]
    assert [(attempt["agent_id"], attempt["definition_hash"]) for attempt in task["attempts"]] == [("Critic", version)]
    assert await worker.wait() == 0
    await client.__aexit__()
