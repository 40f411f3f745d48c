"""What a worker is told when it is started. It comes on standard input, because it holds the token."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Orders:
    """Where the server is, and who the worker is there.

    Args:
        url: the server's address.
        token: the worker's own secret; never passed on to the tasks' commands.
        mcp_url: talk MCP to this endpoint instead of plain HTTP.
        commit: commit what a finished task left, and undo what a failed one left. Only ever true
            in a worktree of its own.
        heartbeat_seconds: how often leases are renewed.
    """

    url: str
    token: str = field(repr=False)
    mcp_url: str | None = None
    commit: bool = False
    heartbeat_seconds: float = 15.0
