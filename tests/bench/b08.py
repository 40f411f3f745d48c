"""B8: an MCP call of an operation that does next to nothing, beside the same tool of fastmcp."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from tests.bench.child import Child, play
from tests.bench.mcp_load import Call, Target, serve, serve_workbench
from tests.bench.project import opened, prepare, scratch
from tests.bench.rows import SHORT, Row, Samples, at_most, take_turns
from workbench.model import Access, GrantedAccess
from workbench.services.access.authentication import CallerIdentity

WHO = CallerIdentity(
    agent_id="agent-0",
    level="worker",
    tool=GrantedAccess.WRITE,
    access_level=Access.SELF_ONLY,
    persona_id="implementer",
    session_id=None,
    team_id=None,
    worktree=None,
    worktree_path=None,
    supervised=False,
)
"""What the peer answers: the same as Workbench."""


def run(rounds: int, quick: bool) -> Mapping[str, Samples]:
    """Milliseconds a call, of one client."""
    with scratch() as directory:
        seed = prepare(directory / "ours", agents=1, tasks=0)

        def calls(hello: Any) -> list[Call]:
            return [Call("whoami", {}, seed.tokens[0])]

        with Child("b08", "ours", str(seed.root)) as ours, Child("b08", "fastmcp") as fastmcp:
            each = 10 if quick else 100
            targets = {"ours": Target(ours, calls, each), "fastmcp": Target(fastmcp, calls, each)}
            times = take_turns(rounds * SHORT, **{kind: partial(t.milliseconds, 1) for kind, t in targets.items()})
    return {"": Samples(times["ours"], times["fastmcp"], "ms")}


async def _ours(root: str) -> None:
    async with opened(Path(root)) as workbench:
        await serve_workbench(workbench)


async def _fastmcp() -> None:
    from fastmcp import FastMCP

    server: Any = FastMCP("peer")

    @server.tool
    async def whoami() -> CallerIdentity:
        return WHO

    await serve(server.http_app(path="/mcp"))


ROW = Row(
    "B8",
    "MCP call of whoami, with authentication, validation and presence",
    "fastmcp, same tool, without",
    {"": at_most(1.05)},
    run,
    needs=("fastmcp",),
)

if __name__ == "__main__":
    play(ours=_ours, fastmcp=_fastmcp)
