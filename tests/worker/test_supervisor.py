"""The worker against a real server: one attempt from its claim to its report, and what can go wrong meanwhile."""

from __future__ import annotations

import asyncio
import json
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from tests import given
from tests.conftest import Admit, Clock, Served, admitted, ended, followed, git
from tests.tcp_sink import TcpSink
from tests.worker.working import directory_of, done, output_of, ran, working
from workbench.app import Workbench
from workbench.confinement import BoxLimits
from workbench.errors import Refused
from workbench.shells.serve import Servers
from workbench.state.server_file import ServerFile
from workbench.state.settings import Settings
from workbench.worker import supervisor as worker

pytestmark = [pytest.mark.anyio, pytest.mark.long, pytest.mark.timeout(40)]

TALKS = pytest.mark.parametrize("mcp", [False, True], ids=["http", "mcp"])


@pytest.fixture(autouse=True)
def _short_polls(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that stops waits for the polls under way."""
    monkeypatch.setattr(worker, "WAIT_SECONDS", 0.2)


# An attempt


@TALKS
async def test_a_task_is_claimed_run_committed_and_reported(served: Served, settle: Admit, mcp: bool) -> None:
    ada = await settle("ada", "lab")
    answer = '{"result": {"n": 1}, "artifacts": ["task.json"]}'
    run = f"cat > task.json; echo one; echo two >&2; echo '{answer}' > $WORKBENCH_RESULT"
    task_id = await given.task(served.workbench, run=run, target_worktree="lab")
    async with working(served, ada.token, mcp=mcp):
        task = await given.reached(served.workbench, task_id, "completed")
    head = git("rev-parse", "wb/lab/main", cwd=served.workbench.settings.project)
    assert (task["result_data"], task["artifacts"]) == ({"n": 1}, ["task.json", f"commit:{head}"])
    assert (task["attempt"], task["attempts"][0]["agent_id"]) == (1, "ada")
    assert await output_of(served, task_id) == ["one", "two"]
    shown = git("log", "-1", "--format=%an <%ae>|%s|%b", head, cwd=directory_of(served))
    assert shown == "ada <ada@workbench.localhost>|t|Task 1, attempt 1, by ada."
    told = json.loads(git("show", f"{head}:task.json", cwd=directory_of(served)))
    assert (told["id"], told["attempt"], told["run"]) == (task_id, 1, run)
    steps = ("created", "claimed", "started", "progressed", "completed")
    assert await given.kinds(served.workbench, "task.*") == [f"task.{step}" for step in steps]


async def test_a_task_without_a_worktree_reads_the_files_of_the_target(
    served: Served, admit: Admit, repository: Path
) -> None:
    ada = await admit("ada")
    (repository / "mine.txt").write_text("mine")
    good = await given.task(served.workbench, run="pwd; ls; echo > good.txt; cat $WORKBENCH_PROJECT/mine.txt")
    bad = await given.task(served.workbench, run="echo > bad.txt; exit 1", max_retries=0)
    async with working(served, ada.token, None):
        await given.reached(served.workbench, good, "completed")
        await given.reached(served.workbench, bad, "failed")
    where, *rest = await output_of(served, good)
    assert (Path(where) != repository, rest) == (True, ["README.md", "mine"])
    assert [p.name for p in repository.glob("*.txt")] == ["mine.txt"]
    assert git("rev-list", "--count", "--all", cwd=repository) == "1"


async def test_a_worktree_has_the_commits_that_others_made_since(
    served: Served, settle: Admit, repository: Path
) -> None:
    ada, bob = await settle("ada", "lab"), await settle("bob", "annex", "tester")
    (repository / "new.txt").write_text("new")
    git("add", ".", cwd=repository)
    git("commit", "-q", "-m", "More", cwd=repository)
    first = await given.task(served.workbench, run="echo > made.txt", target_worktree="annex", persona_id="tester")
    async with working(served, bob.token, "annex"):
        await given.reached(served.workbench, first, "completed")
    run = "git merge -q main && git merge -q --no-edit wb/annex/main && ls"
    async with working(served, ada.token):
        task = await ran(served, run, target_worktree="lab")
    assert (task["status"], await output_of(served, task["id"])) == ("completed", ["README.md", "made.txt", "new.txt"])


LARGE = """python3 -c 'print(str({"result": "x" * 2000000}).replace(chr(39), chr(34)))' > $WORKBENCH_RESULT"""


HELPLESS = {
    None: "This task has no command",
    ("/no/such/program",): "could not be started",
    "echo '[' > $WORKBENCH_RESULT": "The result file cannot be used",
    LARGE: "TOO_LARGE",
}


@TALKS
async def test_a_failure_that_no_retry_helps_fails_the_task_but_not_the_worker(
    served: Served, settle: Admit, mcp: bool
) -> None:
    ada = await settle("ada", "lab")
    async with working(served, ada.token, mcp=mcp) as running:
        for run, why in HELPLESS.items():
            task_id = await given.task(served.workbench, run=list(run) if isinstance(run, tuple) else run)
            task = await given.reached(served.workbench, task_id, "failed")
            assert len(task["attempts"]) == 1
            assert why in task["error_message"]
        task = await done(served)
        assert (task["artifacts"], task["result_data"]) == ([], None), "nothing was left, so there is no commit"
        assert not running.done()


# Leases


async def test_a_lease_shorter_than_the_heartbeat_is_kept(settings: Settings, clock: Clock, repository: Path) -> None:
    async with Workbench.open(settings, clock=clock) as workbench, Servers(workbench) as servers:
        served = Served(workbench, await servers.start(0), servers)
        ada = await admitted(workbench, "ada")
        task_id = await given.task(
            served.workbench, run="until [ -e $WORKBENCH_PROJECT/go ]; do sleep 0.01; done", lease_seconds=1.5
        )
        async with working(served, ada.token, None, heartbeat_seconds=3_600):
            await given.reached(served.workbench, task_id, "in_progress")
            for _ in range(3):
                before = (await given.task_now(served.workbench, task_id))["lease_expires_at"]
                clock.forward(0.8)
                while (await given.task_now(served.workbench, task_id))["lease_expires_at"] == before:
                    await asyncio.sleep(0.01)
            (repository / "go").touch()
            assert (await given.reached(served.workbench, task_id, "completed", "pending"))["attempt"] == 1


async def test_a_worker_that_loses_its_lease_ends_the_command_and_goes_on(served: Served, settle: Admit) -> None:
    ada = await settle("ada", "lab")
    task_id = await given.task(served.workbench, run="echo > half.txt; echo $$ > ../pid; exec sleep 600")
    async with working(served, ada.token):
        await given.appeared(directory_of(served).parent / "pid")
        await served.workbench.call("cancel_task", task_id=task_id)
        await done(served, "ls > ../seen")
    await ended(int((directory_of(served).parent / "pid").read_text()))
    assert (directory_of(served).parent / "seen").read_text() == "README.md\n"
    assert (await given.task_now(served.workbench, task_id))["status"] == "cancelled"


async def test_an_attempt_whose_end_could_not_be_told_is_ended_when_its_worker_gets_it_again(
    settings: Settings, clock: Clock, repository: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("WARNING", "workbench.worker")
    async with Workbench.open(settings, clock=clock) as workbench, Servers(workbench) as servers:
        served = Served(workbench, await servers.start(0), servers)
        ada = await admitted(workbench, "ada")
        once = "[ -e $WORKBENCH_PROJECT/begun ] || { touch $WORKBENCH_PROJECT/begun; exec sleep 600; }"
        task_id = await given.task(workbench, run=once, lease_seconds=1.0)
        async with working(served, ada.token, None, heartbeat_seconds=0.2):
            await given.appeared(repository / "begun")
            with closing(sqlite3.connect(settings.database, isolation_level=None)) as other:
                other.execute("BEGIN IMMEDIATE")  # the server answers that it cannot store anything
                await given.until(lambda: "trying again" in caplog.text.partition(" is lost: ")[2])
            task = await given.reached(workbench, task_id, "completed")
    assert [attempt["outcome"] for attempt in task["attempts"]] == ["released", "completed"]


async def test_a_worker_that_is_revoked_ends_the_command_and_itself(served: Served, settle: Admit) -> None:
    ada = await settle("ada", "lab")
    await given.task(served.workbench, run="echo > half.txt; echo $$ > ../pid; exec sleep 600")
    async with working(served, ada.token) as running:
        await given.appeared(directory_of(served).parent / "pid")
        await served.workbench.call("revoke_agent", agent_id="ada")
        await given.refuses("INVALID_TOKEN", running)
    await ended(int((directory_of(served).parent / "pid").read_text()))
    await given.until(lambda: not (directory_of(served) / "half.txt").exists())
    async with working(served, ada.token, None) as running:
        await given.refuses("INVALID_TOKEN", running)


@TALKS
async def test_a_worker_that_is_stopped_releases_its_task(served: Served, settle: Admit, mcp: bool) -> None:
    ada = await settle("ada", "lab")
    task_id = await given.task(served.workbench, run="echo > half.txt; echo $$ > ../pid; exec sleep 600")
    async with working(served, ada.token, mcp=mcp):
        await given.appeared(directory_of(served).parent / "pid")
    task = await given.task_now(served.workbench, task_id)
    assert (task["status"], task["retry_count"]) == ("pending", 0)
    assert [(a["outcome"], a["error_message"]) for a in task["attempts"]] == [("released", "the worker was stopped")]
    await ended(int((directory_of(served).parent / "pid").read_text()))
    assert not (directory_of(served) / "half.txt").exists()


# Admission and the server


@TALKS
async def test_a_worker_waits_until_it_is_admitted(served: Served, repository: Path, mcp: bool) -> None:
    registration = await served.workbench.call("register", name="ada", persona_id="implementer")
    task_id = await given.task(served.workbench, run="true")
    async with working(served, registration["token"], None, mcp=mcp):
        await followed(served.workbench)
        await served.workbench.call("approve", approval_id=registration["approval_id"], choices={"agent_id": "ada"})
        task = await given.reached(served.workbench, task_id, "completed")
    assert task["attempts"][0]["agent_id"] == "ada"


@TALKS
async def test_a_worker_that_is_rejected_ends_with_the_reason(served: Served, repository: Path, mcp: bool) -> None:
    registration = await served.workbench.call("register", name="ada", persona_id="implementer")
    async with working(served, registration["token"], None, mcp=mcp) as running:
        await followed(served.workbench)
        await served.workbench.call("reject", approval_id=registration["approval_id"], reason="Full house.")
        with pytest.raises(Refused, match=r"REJECTED: Your registration was rejected: Full house\."):
            await running


async def restarted(served: Served, port: int | None = None) -> Served:
    """Stop the servers and start them again, at the same address or another."""
    port = int(served.info.url.rpartition(":")[2]) if port is None else port
    await served.servers.stop()
    return replace(served, info=await served.servers.start(port))


WAITING = "cd $WORKBENCH_PROJECT; touch begun; until [ -e go ]; do sleep 0.01; done"


@TALKS
@pytest.mark.parametrize("port", [None, 0], ids=["same address", "other address"])
async def test_a_worker_outlives_a_restart_of_the_server(
    served: Served, admit: Admit, repository: Path, mcp: bool, port: int | None
) -> None:
    ada = await admit("ada")
    first = await given.task(served.workbench, run=WAITING + "; echo '{\"result\": 1}' > $WORKBENCH_RESULT")
    async with working(served, ada.token, None, mcp=mcp) as running:
        await given.appeared(repository / "begun")
        served = await restarted(served, port)
        (repository / "go").touch()
        task = await given.reached(served.workbench, first, "completed", "failed", "pending")
        assert (task["status"], task["attempt"], task["result_data"]) == ("completed", 1, 1)
        await followed(served.workbench)
        await restarted(served, port)
        task = await done(served)
        assert not running.done()


@TALKS
async def test_the_server_of_another_project_at_the_old_address_ends_no_worker(
    served: Served, admit: Admit, repository: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture, mcp: bool
) -> None:
    ada, old = await admit("ada"), int(served.info.url.rpartition(":")[2])
    task_id = await given.task(served.workbench, run=WAITING)
    async with working(served, ada.token, None, mcp=mcp) as running:
        await given.appeared(repository / "begun")
        await served.servers.stop()
        async with given.another_server(old, tmp_path / "other"):
            (repository / "go").touch()
            while caplog.text.count("trying again") < 4 and not running.done():
                await asyncio.sleep(given.STEP_SECONDS)
            await served.servers.start(0)
            task = await given.reached(served.workbench, task_id, "completed", "failed", "pending")
        assert (task["status"], len(task["attempts"])) == ("completed", 1)
        assert not running.done()


async def test_the_token_is_sent_to_the_projects_server_only(served: Served, admit: Admit, repository: Path) -> None:
    """A server named by the file must answer with its nonce; until then the worker asks the old address."""
    ada = await admit("ada")
    async with TcpSink() as sink, working(served, ada.token, None) as running:
        await done(served)
        file = ServerFile(served.workbench.settings.server_file)
        port = int(served.info.url.rpartition(":")[2])
        await served.servers.stop()
        file.save(served.info.model_copy(update={"url": sink.url, "mcp_url": sink.url}), "wbo_x")
        await sink.asked.wait()
        await served.servers.start(port)
        await done(served)
        assert not running.done()
    assert b"wba_" not in sink.received
    assert b"/health" in sink.received


async def test_a_worker_whose_server_does_not_come_back_ends(served: Served, admit: Admit) -> None:
    ada = await admit("ada")
    async with working(served, ada.token, None, patience_seconds=0.3) as running:
        await done(served)
        await served.servers.stop()
        await given.refuses("NO_SERVER", running)


async def test_a_worker_whose_project_was_removed_ends_though_it_holds_a_task(
    served: Served, admit: Admit, repository: Path, tmp_path: Path
) -> None:
    ada = await admit("ada")
    (state := tmp_path / "state").mkdir()
    file = ServerFile(state / "server.json")
    file.save(served.info, "wbo_x")
    async with working(served, ada.token, None, patience_seconds=600, server_file=file.path) as running:
        await given.task(
            served.workbench, run=f"touch {repository}/begun; until [ -e {repository}/go ]; do sleep 0.05; done"
        )
        await given.appeared(repository / "begun")
        await served.servers.stop()
        shutil.rmtree(state)
        (repository / "go").touch()
        await given.refuses("NO_SERVER", running)


# One task, or only so many


async def test_a_worker_for_one_task_waits_for_it_does_it_and_ends(served: Served, admit: Admit) -> None:
    ada = await admit("ada")
    before = await given.task(served.workbench, run=None)
    mine = await given.task(served.workbench, run="exit $((2 - WORKBENCH_ATTEMPT))", dependencies=[before])
    other = await given.task(served.workbench, run="true")
    async with working(served, ada.token, None, task_id=mine) as running:
        bob = await admit("bob")
        for name in ("claim_task", "complete_task"):
            await given.done_by(served.workbench, bob, name, before)
        task = await given.reached(served.workbench, mine, "completed", "failed")
        await running
    assert [(a["agent_id"], a["outcome"]) for a in task["attempts"]] == [("ada", "failed"), ("ada", "completed")]
    assert (await given.task_now(served.workbench, other))["status"] == "pending"


async def test_a_worker_for_a_task_that_another_agent_has_ends(served: Served, admit: Admit) -> None:
    ada, bob = await admit("ada"), await admit("bob")
    task_id = await given.task(served.workbench, run="true")
    await served.workbench.dispatch(bob.caller, "claim_task", {"task_id": task_id})
    async with working(served, ada.token, None, task_id=task_id) as running:
        await running
    assert (await given.task_now(served.workbench, task_id))["assigned_agent_id"] == "bob"


async def test_a_worker_that_may_make_two_attempts_ends_after_them(served: Served, admit: Admit) -> None:
    ada = await admit("ada")
    made = [await given.task(served.workbench, run="true") for _ in range(3)]
    async with working(served, ada.token, None, limits=BoxLimits(tasks=2)) as running:
        await running
    states = [(await given.task_now(served.workbench, one))["status"] for one in made]
    assert states == ["completed", "completed", "pending"]
