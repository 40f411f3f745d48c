"""B7: an MCP tool call that writes, beside the same function as a tool of a bare `MCPServer`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from tests.bench.child import Child, play
from tests.bench.mcp_load import Call, Target, serve, serve_workbench
from tests.bench.project import identify, opened, prepare, scratch
from tests.bench.rows import SHORT, Row, Samples, at_most, take_turns
from workbench.app import Workbench
from workbench.ops import Caller
from workbench.services.tasks import progress
from workbench.services.tasks.task import TaskSummary

CLIENTS = {"one client": 1, "eight clients": 8}
AGENTS = max(CLIENTS.values())


def run(rounds: int, quick: bool) -> Mapping[str, Samples]:
    """Milliseconds a call. Each server is in a process of its own, with a store of its own."""
    with scratch() as directory:
        seed = prepare(directory / "seed", agents=AGENTS, tasks=AGENTS)

        def calls(hello: Any) -> list[Call]:
            given = zip(hello["tasks"], seed.tokens, strict=True)
            return [Call("report_task_progress", _report(task), token) for task, token in given]

        places = {kind: str(seed.copy(directory / kind)) for kind in ("ours", "bare")}
        with (
            Child("b07", "ours", places["ours"], *seed.tokens) as ours,
            Child("b07", "bare", places["bare"], *seed.tokens) as bare,
        ):
            each = 5 if quick else 40
            targets = {"ours": Target(ours, calls, each), "bare": Target(bare, calls, each)}
            took = {
                name: take_turns(
                    rounds * SHORT, **{kind: partial(t.milliseconds, clients) for kind, t in targets.items()}
                )
                for name, clients in CLIENTS.items()
            }
    return {name: Samples(times["ours"], times["bare"], "ms") for name, times in took.items()}


def _report(task_id: int) -> dict[str, Any]:
    return {"task_id": task_id, "progress_note": "half way", "percent_complete": 50}


async def _claimed(workbench: Workbench, callers: Sequence[Caller]) -> list[int]:
    """A task for every agent."""
    claims = [await workbench.dispatch(caller, "claim_task", {}) for caller in callers]
    return [claim["task"]["id"] for claim in claims]


async def _ours(root: str, *tokens: str) -> None:
    async with opened(Path(root)) as workbench:
        await serve_workbench(workbench, tasks=await _claimed(workbench, await identify(workbench, tokens)))


async def _bare(root: str, *tokens: str) -> None:
    from mcp.server import MCPServer

    async with opened(Path(root)) as workbench:
        callers = await identify(workbench, tokens)
        tasks = await _claimed(workbench, callers)
        holders = dict(zip(tasks, callers, strict=True))
        server = MCPServer("bare", log_level="CRITICAL")

        @server.tool()
        async def report_task_progress(
            task_id: int, progress_note: str = "", percent_complete: int | None = None
        ) -> TaskSummary:
            ctx = workbench._ctx.of(holders[task_id])
            return await progress.report_task_progress(ctx, task_id, progress_note, percent_complete)

        await serve(server.streamable_http_app(), tasks=tasks)


ROW = Row(
    "B7",
    "MCP call of report_task_progress",
    "the same function in a bare MCPServer, without tokens",
    {name: at_most(1.3) for name in CLIENTS},
    run,
)

if __name__ == "__main__":
    play(ours=_ours, bare=_bare)
