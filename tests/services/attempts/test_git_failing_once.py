"""One git command of an attempt's end, a merge or an adoption fails once: nothing wrong is merged, nothing is lost.

`make soak` has 500 rounds, 50 in each project; they are repeated by their seed. No two rounds fail in the same way at
the same command; `WORKBENCH_SOAK=3` has nearly all.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Awaitable
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from tests import given
from tests.chance import SOAK, chance
from tests.conftest import Admit, Served, git
from tests.failing_git import KINDS, FailingGit, failing_git
from tests.worker.working import working
from workbench.errors import WorkbenchError
from workbench.worker import supervisor

pytestmark = [pytest.mark.anyio, pytest.mark.long, pytest.mark.timeout(1_200 if SOAK else 300)]

ROUNDS = 50 if SOAK else 10
PROJECTS = 10 * SOAK or 1
NEXT = re.compile(r"try again|tried again|integrate again|integration again", re.IGNORECASE)
"""What is said of the next step."""
TRIES = 4
"""After one failure, the next try succeeds; the queue and the retries of the server may have taken the failure."""


@pytest.mark.parametrize("project", range(1, PROJECTS + 1))
async def test_one_failing_git_command_costs_only_a_retry(
    served: Served, settle: Admit, repository: Path, monkeypatch: pytest.MonkeyPatch, project: int
) -> None:
    monkeypatch.setattr(supervisor, "WAIT_SECONDS", 0.05)
    with failing_git(monkeypatch) as broken:
        flow = Flow(served, settle, repository, broken)
        usual = {status: await flow.round(-number, status, "EAGAIN", 0) for number, status in ((1, 0), (2, 3))}
        every = [(*one, at) for one in product(usual, sorted(KINDS)) for at in range(1, usual[one[0]] + 1)]
        chance("git fails once").shuffle(every)
        rounds = every[ROUNDS * (project - 1) : ROUNDS * project]
        for number, (status, kind, at) in enumerate(rounds, 1):
            print(f"round {number}: status {status}, {kind}, command {at}")
            await flow.round(number, status, kind, at)
    print(*sorted(flow.hits.items()), sep="\n")
    assert not SOAK or {stage for stage, _ in flow.hits} == {"attempt", "merge", "adoption"}


class Flow:
    """A task from its attempt to its merge, and what is true of it at each step."""

    def __init__(self, served: Served, settle: Admit, root: Path, broken: FailingGit) -> None:
        self.served, self.settle, self.root, self.broken = served, settle, root, broken
        self.hits: Counter[tuple[str, str]] = Counter()
        """How often which command failed, and at which stage."""
        self.noted = False

    async def round(self, number: int, status: int, kind: str, at: int) -> int:
        """A round in a worktree of its own; how many git commands there were."""
        lab, agent = f"w{number}".replace("-", "u"), f"ada{number}".replace("-", "u")
        ada = await self.settle(agent, lab)
        made = {f"{lab}-committed.txt", f"{lab}-left.txt"}
        first, second = sorted(made)
        run = f"echo 1 > {first}; git add -A; git commit -qm 'In {lab}'; echo 2 > {second}; exit {status}"
        task_id = await given.task(self.served.workbench, run=run, max_retries=0)
        self.broken.begin(kind, at)
        self.noted = False
        async with working(self.served, ada.token, lab):
            task = await given.reached(self.served.workbench, task_id, "completed", "failed")
        self._note("attempt")
        if task["attempts"][0]["base_commit"] is None:  # it has not even begun
            assert task["error_message"].startswith("WORKTREE_UNUSABLE")
            return self.broken.end()
        if task["status"] == "completed":
            assert status == 0
            await self._integrated(lab)
            self._note("merge")
        else:
            assert status or self.broken.failed
            error = await self._settles(self._call("integrate_worktree", worktree_name=lab), "NOTHING_TO_INTEGRATE")
            assert error == "NOTHING_TO_INTEGRATE"
            assert not made & self._files("main")
            assert made <= self._files(f"refs/workbench/attempts/{task_id}/1")
            self._note("merge")
            await self._adopted(task_id)
            self._note("adoption")
        assert made <= self._files("main")
        git("fsck", "--no-dangling", "--connectivity-only", cwd=self.root)
        assert git("status", "--porcelain", "--untracked-files=no", cwd=self.root) == ""
        return self.broken.end()

    def _note(self, stage: str) -> None:
        """Count the command that failed since the last note, if one did."""
        if self.broken.failed and not self.noted:
            self.hits[stage, self.broken.failed[0]] += 1
            self.noted = True

    def _call(self, name: str, **arguments: Any) -> Any:
        return lambda: self.served.workbench.call(name, **arguments)

    def _files(self, commit: str) -> set[str]:
        return set(git("ls-tree", "--name-only", commit, cwd=self.root).split())

    async def _integrated(self, lab: str) -> None:
        for _ in range(TRIES):
            asked = await self._settles(self._call("integrate_worktree", worktree_name=lab))
            if await self._approved(asked["approval_id"]):
                return
        pytest.fail(f"{lab} is not merged")

    async def _adopted(self, task_id: int) -> None:
        for _ in range(TRIES):
            asked = await self._settles(self._call("adopt_attempt", task_id=task_id, attempt=1))
            if await self._approved(asked["approval_id"]):
                return
        pytest.fail(f"what was made for task {task_id} is not merged")

    async def _approved(self, approval_id: int) -> bool:
        """Whether it is merged; if not, it says why."""
        await self._settles(self._call("approve", approval_id=approval_id), "ALREADY_DECIDED", "APPROVAL_VOID")

        async def ended() -> Any:
            found = await self.served.workbench.call("get_approval", approval_id=approval_id)
            is_over = found["status"] != "approved" or found["outcome"]["state"] != "queued"
            return is_over and found

        found = await given.until(ended)
        if found["status"] == "approved":
            assert found["outcome"]["state"] == "integrated"
            return True
        assert NEXT.search(found["reason"]), found["reason"]
        return False

    async def _settles(self, request: Any, *also: str) -> Any:
        """The answer to a request that is repeated as long as it fails, or the code of an error that is an answer."""
        for _ in range(TRIES):
            try:
                return await asked(request())
            except WorkbenchError as error:
                if error.code in also:
                    return error.code
                assert self.broken.failed, error
                assert error.code != "INTERNAL_ERROR", error
                assert NEXT.search(error.message), error
        pytest.fail("it fails again and again")


async def asked(request: Awaitable[Any]) -> Any:
    return await request
