"""Where a worktree stands at the project's path, people are told its own paths: in outputs, errors, results, gates."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests import given
from tests.conftest import Admit, Served, limited
from tests.services.worktrees.lab import ask, commit, settled
from tests.worker.test_kept_work import talking
from tests.worker.working import done, output_of, ran, working
from workbench.app import Workbench
from workbench.confinement import Box, abilities
from workbench.errors import Unavailable
from workbench.git import Repository
from workbench.services.worktrees.places import WorktreeLocation, box_of, checkout_of

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.timeout(60),
    pytest.mark.skipif(not abilities().namespaces, reason="no namespaces"),
]

ANSWER = """{"result": {"file": "'$PWD'/out/a.txt"}, "artifacts": ["'$PWD'/out/a.txt"]}"""
WRITES = f"mkdir out; echo made > out/a.txt; echo \"in $PWD/out\"; echo '{ANSWER}' > $WORKBENCH_RESULT"


@pytest.fixture
async def box(served: Served, settle: Admit) -> tuple[str, Box]:
    """A worker's token, and its box as a spawned worker has it."""
    ada, settings = await settle("ada", "lab"), served.workbench.settings
    place = WorktreeLocation.of(settings, "lab")
    return ada.token, await asyncio.to_thread(box_of, settings, Repository.open(settings.project), place)


@pytest.mark.long
async def test_a_task_tells_the_paths_of_its_worktree(served: Served, box: tuple[str, Box], repository: Path) -> None:
    place = served.workbench.settings.worktree("lab")
    async with working(served, box[0], "lab", box=box[1]):
        task = await done(served, WRITES)
        failed = await ran(served, "echo $PWD/src/a.py:3: wrong; exit 3", max_retries=0)
    assert (await output_of(served, task["id"]))[0] == f"in {place}/out"
    now = await given.task_now(served.workbench, task["id"])
    assert now["result_data"] == {"file": f"{place}/out/a.txt"}
    assert now["artifacts"][0] == f"{place}/out/a.txt"
    shown = await served.workbench.call("get_task_artifact", task_id=task["id"], name=f"{place}/out/a.txt")
    assert (shown["path"], shown["text"]) == ("out/a.txt", "made\n")
    error = (await given.task_now(served.workbench, failed["id"]))["error_message"]
    assert error.startswith(f"The command ended with status 3: {place}/src/a.py:3: wrong")
    assert f"{repository}/src" not in error


@pytest.mark.long
async def test_what_a_command_reports_by_its_tools_tells_the_paths_of_its_worktree(
    served: Served, box: tuple[str, Box]
) -> None:
    place, port = served.workbench.settings.worktree("lab"), urlsplit(served.info.url).port
    then = """here = os.getcwd()\nopen("x", "w")\ncall("complete_task", result_data=here, artifacts=[here + "/x"])"""
    async with working(served, box[0], "lab", box=replace(box[1], forward=(port,)), **talking(then)):
        task = await done(served, None)
    now = await given.task_now(served.workbench, task["id"])
    assert (now["result_data"], now["artifacts"][0]) == (f"{place}", f"{place}/x")


async def test_an_error_of_git_in_a_worktree_tells_its_path(workbench: Workbench) -> None:
    await given.worktree(workbench)
    settings = workbench.settings
    checkout = checkout_of(settings, Repository.open(settings.project), WorktreeLocation.of(settings, "lab"))
    with pytest.raises(Unavailable, match=str(checkout.path / "none")):
        checkout.ask("diff", "--no-index", f"{checkout.seen_at}/none", f"{checkout.seen_at}/README.md")


@limited(integration_gates=["echo $PWD/README.md; exit 1"])
async def test_a_gate_tells_paths_relative_to_the_files_that_it_ran_on(workbench: Workbench) -> None:
    commit(await given.worktree(workbench))
    request = await settled(workbench, await ask(workbench))
    assert request["payload"]["gates"][0]["output"] == "./README.md\n"
