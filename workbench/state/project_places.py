"""Where a project has its state, and what it has outside of its tree."""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.state import outside
from workbench.state.home import expanded
from workbench.state.root import STATE


class ProjectPlaces:
    """The files and directories of a project, from its root and the settings that name others."""

    if TYPE_CHECKING:  # the settings define them
        project: Path
        definition_roots: str

    @cached_property
    def home(self) -> Path:
        """The project's state directory, `.aiswarm/`."""
        return self.project / STATE

    @property
    def database(self) -> Path:
        """The store's file."""
        return self.home / "coordination.db"

    @property
    def server_file(self) -> Path:
        """The file with the running server and the operator's token; mode 0600."""
        return self.home / "server.json"

    @property
    def shares(self) -> Path:
        """The shares of the processes that use the project's server."""
        return self.home / "shares"

    @property
    def tool_servers_file(self) -> Path:
        """The file that names the MCP servers whose tools the project uses."""
        return self.home / "mcp.json"

    @property
    def definitions(self) -> tuple[Path, ...]:
        """The directories that hold agent definitions."""
        others = (expanded(part) for part in self.definition_roots.split(os.pathsep) if part)
        return self.home / "agents", *others

    @property
    def logs(self) -> Path:
        """Log files of worker processes."""
        return self.home / "logs"

    @property
    def tool_logs(self) -> Path:
        """The output of functions that ran for tools, a file for each call."""
        return self.logs / "tools"

    @property
    def worktrees(self) -> Path:
        """Git worktrees, one directory each."""
        return self.home / "worktrees"

    def worktree(self, name: str) -> Path:
        """The files of a worktree: in `worktrees`, or outside of the project if there is a link to it.

        The link is for people; where it leads is not followed.
        """
        path = self.worktrees / name
        return self.outer_worktree(name) if path.is_symlink() else path

    def outer_worktree(self, name: str) -> Path:
        """Where the files of a worktree are that must not lie in the project's tree."""
        return outside.of(self.home) / "worktrees" / name

    @property
    def outer_gates(self) -> Path:
        """Where the merge results of gates are that must not lie in the project's tree."""
        return outside.of(self.home) / "gates"

    @property
    def repositories(self) -> Path:
        """The worktrees' own git directories. Workers write there, so nothing in them is trusted."""
        return self.home / "repositories"

    @property
    def bundles(self) -> Path:
        """Bundles on their way between the worktrees' branches and other machines, a directory for each worktree."""
        return self.home / "bundles"

    @property
    def artifacts(self) -> Path:
        """Files that attempts on machines without a clone have sent, a directory for each task."""
        return self.home / "artifacts"

    @property
    def scratch(self) -> Path:
        """Home and temporary directories of confined commands."""
        return self.home / "scratch"

    @property
    def agent_sessions(self) -> Path:
        """Conversations of agents' programs, a directory for each task. Only supervisors write there."""
        return self.home / "agent_sessions"

    @property
    def setups(self) -> Path:
        """For which set-up each worktree is ready. Only supervisors write there."""
        return self.home / "setups"

    @property
    def writers(self) -> Path:
        """Locks of the worktrees' writers. Only supervisors write there."""
        return self.home / "writers"

    @property
    def machine_facts(self) -> Path:
        """What machines that are reached by ssh have said of themselves, a file for each."""
        return self.home / "machines"

    @property
    def devices(self) -> Path:
        """Locks of the devices that attempts lease. Only supervisors write there."""
        return self.home / "devices"

    @property
    def executions(self) -> Path:
        """Locks of the plans that are being carried out, the agents that these have started, and the output of those
        that were scheduled."""
        return self.home / "executions"

    def execution_log(self, plan: str) -> Path:
        """The output of the last execution of a plan that was scheduled."""
        return self.executions / f"{plan}.log"

    @property
    def gates(self) -> Path:
        """Temporary worktrees with the merge results on which gates run."""
        return self.home / "gates"

    @property
    def runs(self) -> Path:
        """The executed notebooks of sweeps, a directory each."""
        return self.home / "runs"

    @property
    def trash(self) -> Path:
        """Bundles of discarded work that exists nowhere else."""
        return self.home / "trash"

    @property
    def checkouts(self) -> Path:
        """Read-only checkouts for tasks without a worktree, one of each commit."""
        return self.home / "checkouts"
