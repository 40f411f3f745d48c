"""The work of attempts: on the branch if they complete their task, else kept as references off the branch."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from tests import given
from tests.conftest import Admit, Served, admitted, git
from tests.services.processes.running import crowded
from tests.worker.working import directory_of, done, output_of, ran, working
from workbench.rules.profile import Profile
from workbench.state.settings import Settings
from workbench.worker import supervised, supervisor

pytestmark = [pytest.mark.anyio, pytest.mark.long, pytest.mark.timeout(60)]


@pytest.fixture(autouse=True)
def _short_polls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "WAIT_SECONDS", 0.2)
    monkeypatch.setattr(supervised, "OCCUPIED_SECONDS", 0.02)


def ref(task_id: int, attempt: int = 1) -> str:
    return f"refs/workbench/attempts/{task_id}/{attempt}"


def files_of(project: Path, commit: str) -> dict[str, str]:
    """The files of a commit, with their content."""
    names = git("ls-tree", "-r", "--name-only", commit, cwd=project).split("\n")
    return {name: git("show", f"{commit}:{name}", cwd=project) for name in names}


async def over(served: Served, task_id: int) -> dict[str, Any]:
    """The first attempt at a task, once its work is put away."""

    async def kept() -> Any:
        attempt = (await given.task_now(served.workbench, task_id))["attempts"][0]
        return attempt["kept"] and attempt

    return dict(await given.until(kept))


WORK = "echo 1 > committed.txt; git add .; git commit -qm One; echo 2 > staged.txt; git add .; echo 3 > new.txt"
IGNORED = "echo '*.log' > .gitignore; git add .; git commit -qm Ignore; echo 4 > out.log"


async def test_work_of_a_failed_attempt_is_kept_and_its_branch_is_reset(
    served: Served, settle: Admit, repository: Path
) -> None:
    ada = await settle("ada", "lab")
    before = git("rev-parse", "wb/lab/main", cwd=repository)
    task_id = await given.task(served.workbench, run=f"{IGNORED}; {WORK}; echo 5 > README.md; exit 1", max_retries=0)
    nothing = await given.task(served.workbench, run="exit 1", max_retries=0)
    side = "git checkout -qb side; echo 2 > side.txt; git add .; git commit -qm Side; git checkout -q -"
    aside = await given.task(served.workbench, run=f"echo 1 > README.md; git stash -q; {side}; exit 1", max_retries=0)
    async with working(served, ada.token):
        task, *others = [await given.reached(served.workbench, one, "failed") for one in (task_id, nothing, aside)]
    attempt = task["attempts"][0]
    assert files_of(repository, ref(task_id)) == {
        ".gitignore": "*.log",
        "README.md": "5",
        "committed.txt": "1",
        "new.txt": "3",
        "staged.txt": "2",
    }
    assert attempt["kept"] | {"bytes": 0} == {
        "ref": ref(task_id),
        "commit": git("rev-parse", ref(task_id), cwd=repository),
        "commits": 3,
        "files": 5,
        "bytes": 0,
    }
    assert (attempt["base_commit"], attempt["worktree"]) == (before, "lab")
    assert git("rev-parse", "wb/lab/main", cwd=repository) == before
    assert sorted(p.name for p in directory_of(served).iterdir() if p.name != ".aiswarm") == [".git", "README.md"]
    assert git("status", "--porcelain", cwd=directory_of(served)) == ""
    assert len(await given.kinds(served.workbench, "task.work_kept")) == 2
    assert others[0]["attempts"][0]["kept"] is None
    subjects = git("log", "--format=%s", ref(aside), "^main", cwd=repository)  # other branches and stashes are kept too
    assert "Side" in subjects.splitlines()
    assert "WIP on wb/lab/main" in subjects
    refs = git("for-each-ref", "--format=%(refname)", "refs/workbench", cwd=repository).split()
    assert refs == [ref(task_id), ref(aside)]


async def test_each_attempt_keeps_its_own_work_and_the_one_that_completes_has_no_other(
    served: Served, settle: Admit, repository: Path
) -> None:
    ada = await settle("ada", "lab")
    leave = "echo $WORKBENCH_ATTEMPT > made-$WORKBENCH_ATTEMPT; echo $WORKBENCH_ATTEMPT > README.md"
    run = f"ls; {leave}; [ $WORKBENCH_ATTEMPT = 3 ] || exit 75"
    task_id = await given.task(served.workbench, run=run, max_retries=2)
    async with working(served, ada.token):
        task = await given.reached(served.workbench, task_id, "completed", "failed")
    made = [sorted(set(files_of(repository, ref(task_id, n))) - {"README.md"}) for n in (1, 2)]
    assert made == [["made-1"], ["made-2"]]
    changed = git("diff", "--name-only", "main", "wb/lab/main", cwd=repository).split()
    assert (changed, task["attempts"][2]["kept"]) == (["README.md", "made-3"], None)
    assert [a["outcome"] for a in task["attempts"]] == ["failed", "failed", "completed"]
    assert "status 75 and asked to be tried again: README.md" in task["attempts"][0]["error_message"]
    assert await output_of(served, task_id) == ["README.md"] * 3


async def test_commits_that_were_imported_during_a_failed_attempt_are_taken_off_the_branch(
    served: Served, settle: Admit, repository: Path
) -> None:
    ada = await settle("ada", "lab")
    task_id = await given.task(
        served.workbench, run=f"{WORK}; touch ../made; until [ -e ../go ]; do sleep 0.01; done; exit 1", max_retries=0
    )
    before = git("rev-parse", "wb/lab/main", cwd=repository)
    async with working(served, ada.token):
        await given.appeared(directory_of(served).parent / "made")
        await served.workbench.call("get_worktree_status", worktree_name="lab")
        assert git("rev-parse", "wb/lab/main", cwd=repository) != before
        (directory_of(served).parent / "go").touch()
        await given.reached(served.workbench, task_id, "failed")
    assert git("rev-parse", "wb/lab/main", cwd=repository) == before
    assert "committed.txt" in files_of(repository, ref(task_id))
    (worktree,) = (await served.workbench.call("get_worktree_status", worktree_name="lab"))["worktrees"]
    assert (worktree["commit"], worktree["ahead"], worktree["dirty"]) == (before, 0, [])


async def test_uncommitted_files_of_a_person_are_not_part_of_an_attempt(
    served: Served, settle: Admit, repository: Path
) -> None:
    ada = await settle("ada", "lab")
    (directory_of(served) / "mine.txt").write_text("mine")
    task_id = await given.task(served.workbench, run="echo half > half.txt; exit 1", max_retries=0)
    async with working(served, ada.token):
        await given.reached(served.workbench, task_id, "failed")
    assert git("diff", "--name-only", "main", "wb/lab/main", cwd=repository) == "mine.txt"
    assert git("diff", "--name-only", "wb/lab/main", ref(task_id), cwd=repository) == "half.txt"


async def test_work_on_another_branch_reaches_the_branch_of_the_worktree_on_completion(
    served: Served, settle: Admit, repository: Path
) -> None:
    ada = await settle("ada", "lab")
    task_id = await given.task(
        served.workbench, run="git checkout -qb side; echo 1 > side.txt; git add .; git commit -qm Side"
    )
    async with working(served, ada.token):
        task = await given.reached(served.workbench, task_id, "completed", "failed")
    head = git("rev-parse", "wb/lab/main", cwd=repository)
    assert (task["status"], task["artifacts"]) == ("completed", [f"commit:{head}"])
    assert "side.txt" in files_of(repository, head)


async def test_a_stale_finish_is_refused_its_work_is_kept_and_the_worker_goes_on(
    served: Served, settle: Admit, repository: Path
) -> None:
    ada = await settle("ada", "lab")
    before = git("rev-parse", "wb/lab/main", cwd=repository)
    run = "echo late > late.txt; touch ../begun; until [ -e ../go ]; do sleep 0.01; done"
    task_id = await given.task(served.workbench, run=run)
    async with working(served, ada.token, heartbeat_seconds=3_600) as running:
        await given.appeared(directory_of(served).parent / "begun")
        await served.workbench.call("cancel_task", task_id=task_id)
        (directory_of(served).parent / "go").touch()
        await over(served, task_id)
        await done(served)
        assert not running.done()
    assert (await given.task_now(served.workbench, task_id))["status"] == "cancelled"
    assert files_of(repository, ref(task_id))["late.txt"] == "late"
    assert git("rev-parse", "wb/lab/main", cwd=repository) == before


async def test_the_work_of_a_released_and_of_a_revoked_attempt_is_kept(
    served: Served, settle: Admit, repository: Path
) -> None:
    ada, bob = await settle("ada", "lab"), await settle("bob", "annex", "tester")
    run = "echo half > half.txt; touch ../begun-$WORKBENCH_TASK_ID; exec sleep 600"
    first, second = [await given.task(served.workbench, run=run, persona_id=one) for one in ("implementer", "tester")]
    async with working(served, ada.token):
        await given.appeared(directory_of(served).parent / f"begun-{first}")
    async with working(served, bob.token, "annex"):
        await given.appeared(directory_of(served).parent / f"begun-{second}")
        await served.workbench.call("revoke_agent", agent_id="bob")
    for task_id in (first, second):
        await over(served, task_id)
        assert files_of(repository, ref(task_id))["half.txt"] == "half"
    assert not (directory_of(served) / "half.txt").exists()
    assert not (directory_of(served, "annex") / "half.txt").exists()


async def test_work_that_is_too_large_to_import_stays_in_the_repository_of_its_worktree(
    settings: Settings, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORKBENCH_MAX_IMPORT_BYTES", "2000")
    async with crowded(settings, max_import_bytes=2_000) as served:
        await given.worktree(served.workbench)
        token = (await admitted(served.workbench, "ada", worktree="lab")).token
        task_id = await given.task(served.workbench, run="head -c 9000 /dev/urandom > large; exit 1", max_retries=0)
        async with working(served, token):
            task = await given.reached(served.workbench, task_id, "failed")
        own = served.workbench.settings.repositories / "lab"
    attempt = task["attempts"][0]
    assert (attempt["kept"], f"It is kept as {ref(task_id)} in {own}" in attempt["problem"]) == (None, True)
    assert git("cat-file", "-s", f"{ref(task_id)}:large", cwd=own) == "9000"
    assert not (directory_of(served) / "large").exists()


# The end that the command asks for

CALL = """
import json, os, pathlib, sys, time, urllib.request
task = json.load(open(os.environ["WORKBENCH_TASK_FILE"]))
server = json.load(open(os.path.expanduser("~/mcp.json")))["mcpServers"]["workbench"]
def call(name, **arguments):
    url = os.environ["WORKBENCH_URL"] + "/api/ops/" + name
    body = json.dumps({"task_id": task["id"], **arguments}).encode()
    return json.load(urllib.request.urlopen(urllib.request.Request(url, body, server["headers"])))
"""


def talking(then: str) -> dict[str, Any]:
    """A program that has the agent's token, in which `call` calls an operation for its task."""
    return {"profile": Profile(name="talk", summary="Talks.", token=True, command=[sys.executable, "-c", CALL + then])}


RUNS_ON = """
pathlib.Path("before.txt").write_text("before")
answer = call("complete_task", result_data="mine", artifacts=["x"])
pathlib.Path("../asked").write_text(answer["data"]["takes_effect"])
while not os.path.exists("../go"): time.sleep(0.01)
pathlib.Path("after.txt").write_text("after")
sys.exit(3)
"""


async def test_a_task_completed_by_its_command_waits_for_the_commands_exit_and_commit(
    served: Served, settle: Admit, repository: Path
) -> None:
    ada = await settle("ada", "lab")
    task_id = await given.task(served.workbench, run=None, target_worktree="lab")
    next_id = await given.task(served.workbench, run=None, persona_id="tester", dependencies=[task_id])
    async with working(served, ada.token, **talking(RUNS_ON)):
        await given.appeared(directory_of(served).parent / "asked")
        held, waits = await given.task_now(served.workbench, task_id), await given.task_now(served.workbench, next_id)
        assert (held["status"], held["attempts"][0]["finishing"]) == ("in_progress", "completed")
        assert (waits["blocked_by"], held["artifacts"]) == ([task_id], [])
        (directory_of(served).parent / "go").touch()
        task = await given.reached(served.workbench, task_id, "completed", "failed")
    head = git("rev-parse", "wb/lab/main", cwd=repository)
    assert (task["status"], task["result_data"], task["artifacts"]) == ("completed", "mine", ["x", f"commit:{head}"])
    assert {"before.txt", "after.txt"} < set(files_of(repository, head))
    assert (directory_of(served).parent / "asked").read_text() == "when the command has ended"
    assert (await given.task_now(served.workbench, next_id))["blocked_by"] == []


@pytest.mark.parametrize(
    ("name", "state", "runs_on"),
    [("complete_task", "completed", True), ("fail_task", "failed", True), ("report_task_progress", "completed", False)],
)
async def test_a_command_may_end_its_task_by_call_or_result_and_its_worker_continues(
    served: Served, settle: Admit, repository: Path, name: str, state: str, runs_on: bool
) -> None:
    ada = await settle("ada", "lab")
    more = {"fail_task": ", error_message='No.', retryable=False", "report_task_progress": ", progress_note='half'"}
    then = f"open('made.txt', 'w').write('made'); call('{name}'{more.get(name, '')}); {runs_on} and time.sleep(600)"
    async with working(served, ada.token, finish_grace_seconds=0.05, **talking(then)) as running:
        task = await ran(served, None, target_worktree="lab")
        assert (await ran(served, None, target_worktree="lab"))["status"] == state
        assert not running.done()
    where = "wb/lab/main" if state == "completed" else ref(task["id"])
    assert (task["status"], files_of(repository, where)["made.txt"]) == (state, "made")
    assert (task["error_message"], len(task["attempts"])) == ("No." if state == "failed" else None, 1)
    assert git("rev-list", "--count", "wb/lab/main", cwd=repository) == ("2" if state == "completed" else "1")


async def test_a_command_cannot_finish_its_attempt_in_place_of_its_supervisor(served: Served, settle: Admit) -> None:
    ada = await settle("ada", "lab")
    then = """
try:
    call("finish_attempt", attempt=1, key="x" * 43, outcome="completed")
except urllib.error.HTTPError as error:
    open(os.environ["WORKBENCH_RESULT"], "w").write(json.dumps({"result": json.load(error)["error"]["code"]}))
"""
    async with working(served, ada.token, **talking(then)):
        task = await ran(served, None, target_worktree="lab")
    assert (task["status"], task["result_data"]) == ("completed", "LEASE_LOST")
