"""Attempts of workers on machines without a clone: begun and finished over real HTTP, with the branch as bundles."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests import given
from tests.conftest import Served, git
from tests.services.worktrees.lab import commit
from tests.services.worktrees.there import bundle_of, clone, send
from workbench.client import HttpClient
from workbench.process import Writer
from workbench.services.worktrees.kept_work import writer_lock

pytestmark = [pytest.mark.anyio, pytest.mark.long]

KEY = "k" * 43


@dataclass(frozen=True)
class Far:
    """A worker of another machine, and its copy of the branch."""

    client: HttpClient
    worktree: str
    copy: Path
    base: str

    async def begin(self, task: dict[str, Any]) -> dict[str, Any]:
        """Claim a task, and begin its attempt; the arguments that name that."""
        claimed = (await self.client.call("claim_task"))["task"]
        made = {"task_id": claimed["id"], "attempt": claimed["attempt"], "key": KEY}
        assert claimed["id"] == task["id"]
        begun = await self.client.call("begin_attempt", worktree=self.worktree, **made)
        assert begun["base_commit"] == git("rev-parse", self.base, cwd=self.copy)
        return made

    async def send(self) -> dict[str, Any]:
        """Send the commits of the copy; how to import them."""
        data, bundle = bundle_of(self.copy, self.base)
        await send(self.client, data, bundle["sha256"])
        return bundle


@pytest.fixture
async def far(served: Served, repository: Path, tmp_path: Path) -> AsyncIterator[Far]:
    token = (await served.workbench.call("add_machine", name="gpu"))["token"]
    async with HttpClient(served.info.url, token) as machine:
        made = await machine.call("enlist_elsewhere", key=KEY, persona_id="implementer")
    async with HttpClient(served.info.url, made["token"]) as client:
        copy = await clone(client, tmp_path)
        yield Far(client, made["worktree"], copy, git("rev-parse", "HEAD", cwd=copy))


async def test_an_attempt_elsewhere_completes_its_task_by_commits_that_it_sends(
    far: Far, served: Served, repository: Path
) -> None:
    task = await given.whole_task(served.workbench, "t", run="true")
    made = await far.begin(task)
    again = await far.client.call("begin_attempt", worktree=far.worktree, **made)  # its answer was lost
    assert (again["base_commit"], again["lent"]["devices"]) == (far.base, [])
    commit(far.copy, "new.txt", "made there\n")
    bundle = await far.send()
    await given.refuses("WORKTREE_BUSY", far.client.call("import_worktree_bundle", **bundle))
    stranger = {**made, "key": "another" + KEY}
    await given.refuses("LEASE_LOST", far.client.call("import_worktree_bundle", **bundle, **stranger))
    imported = await far.client.call("import_worktree_bundle", **bundle, **made)
    ended = await far.client.call(
        "finish_attempt", outcome="completed", artifacts=[f"commit:{imported['commit']}"], **made
    )
    assert ended["status"] == "completed"
    assert git("show", f"wb/{far.worktree}/main:new.txt", cwd=repository) == "made there"
    await given.refuses("LEASE_LOST", far.client.call("import_worktree_bundle", **bundle, **made))


async def test_commits_of_an_attempt_whose_lease_is_lost_do_not_come_into_the_next(
    far: Far, served: Served, repository: Path
) -> None:
    task = await given.whole_task(served.workbench, "t", run="true")
    made = await far.begin(task)
    first = commit(far.copy, "half.txt")
    await far.client.call("import_worktree_bundle", **await far.send(), **made)
    commit(far.copy, "rest.txt")
    bundle = await far.send()
    await served.workbench.call("cancel_task", task_id=task["id"])
    await given.refuses("LEASE_LOST", far.client.call("import_worktree_bundle", **bundle, **made))

    another = await given.whole_task(served.workbench, "u", run="true")
    later = await far.begin(another)
    await given.refuses("LEASE_LOST", far.client.call("import_worktree_bundle", **bundle, **made))
    assert git("rev-parse", f"wb/{far.worktree}/main", cwd=repository) == far.base
    assert git("rev-parse", f"refs/workbench/attempts/{task['id']}/{made['attempt']}", cwd=repository) == first
    bundle = await far.send()  # the same commits, of another attempt
    assert (await far.client.call("import_worktree_bundle", **bundle, **later))["moved"] is True
    await given.refuses("LEASE_LOST", far.client.call("finish_attempt", outcome="failed", **made))
    assert git("rev-parse", f"wb/{far.worktree}/main", cwd=repository) == git("rev-parse", "HEAD", cwd=far.copy)


async def test_an_attempt_elsewhere_does_not_begin_beside_a_local_worker(far: Far, served: Served) -> None:
    task = await given.whole_task(served.workbench, "t", run="true")
    lock = writer_lock(served.workbench.settings, far.worktree)
    with lock.held():
        lock.record(Writer.of_this_process(task["id"], 9))
        await given.refuses("WORKTREE_OCCUPIED", far.begin(task))
        lock.forget()
    await far.begin(task)


async def test_files_outside_of_git_are_sent_in_pieces_and_shown_with_the_task(far: Far, served: Served) -> None:
    served.workbench.settings.__dict__["max_artifact_bytes"] = 20
    task = await given.whole_task(served.workbench, "t", run="true")
    made = await far.begin(task)

    async def send_file(data: bytes, offset: int = 0, *, of: bytes = b"a,b\n1,2\n") -> dict[str, Any]:
        file = {"name": "/scratch/rows.csv", "sha256": hashlib.sha256(of).hexdigest(), "bytes": len(of)}
        piece = base64.b64encode(data).decode()
        return await far.client.call("send_artifact", **file, **made, offset=offset, data=piece)

    assert await send_file(b"a,b") == {"received": 3, "whole": False}
    assert await send_file(b"2\n", 6) == {"received": 3, "whole": False}  # a piece is missing
    assert await send_file(b"") == {"received": 3, "whole": False}  # asked, after the link was cut
    await given.refuses("ARTIFACT_DAMAGED", send_file(b"xxxxx", 3))
    assert await send_file(b"a,b\n1,2\n") == await send_file(b"") == {"received": 8, "whole": True}
    await given.refuses("ARTIFACT_TOO_LARGE", send_file(b"x", of=bytes(21)))
    await far.client.call("finish_attempt", outcome="completed", artifacts=["/scratch/rows.csv"], **made)
    await given.refuses("LEASE_LOST", send_file(b""))
    shown = await served.workbench.call("get_task_artifact", task_id=task["id"], name="/scratch/rows.csv")
    assert (shown["source"], shown["columns"], shown["rows"]) == ("sent", ["a", "b"], [["1", "2"]])
