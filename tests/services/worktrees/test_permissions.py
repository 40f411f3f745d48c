"""Who may do what with worktrees."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests import given
from tests.conftest import Admit
from tests.services.worktrees.lab import approval, commit
from workbench.app import Workbench
from workbench.confinement import abilities
from workbench.errors import Refused

pytestmark = pytest.mark.anyio


async def test_a_planner_manages_only_its_own_worktrees(workbench: Workbench, admit: Admit) -> None:
    paula, pete = [await admit(name, "planner") for name in ("paula", "pete")]
    made = await workbench.dispatch(paula.caller, "create_worktree", {"name": "lab"})
    commit(Path(made["path"]))
    assert made["created_by"] == "paula"
    for name in ("integrate_worktree", "request_integration", "discard_worktree"):
        with pytest.raises(Refused, match=r"FORBIDDEN.*belongs to paula"):
            await workbench.dispatch(pete.caller, name, {"worktree_name": "lab"})
    asked = await workbench.dispatch(paula.caller, "request_integration", {"worktree_name": "lab"})
    assert (await approval(workbench, asked["approval_id"]))["requester"] == "paula"
    assert (await workbench.dispatch(paula.caller, "discard_worktree", {"worktree_name": "lab"}))["status"] == (
        "discarded"
    )


@pytest.mark.long
async def test_a_command_runs_in_a_worktree_and_only_there(
    workbench: Workbench, repository: Path, program: Any
) -> None:
    await given.worktree(workbench)
    assert (await program("worktrees", "run", "lab", "--", "sh", "-c", "exit 7")).status == 7
    assert (await program("worktrees", "run", "lab", "git", "log", "-1", "--format=%s")).out == "Start\n"
    ran = await program("worktrees", "run", "lab", "--", "sh", "-c", f"echo x > {repository}/x")
    assert (ran.status != 0, (repository / "x").exists()) == (abilities().abi > 0, abilities().abi == 0)
