"""A project's server belongs to all that use it: one stops, or is killed, and the others go on."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kernel_ext.hosting.host import KernelHost
from kernel_ext.session import WorkbenchSession
from tests.kernel.test_host import served_elsewhere
from tests.kernel.test_leaving import runs
from workbench.errors import NotFound, Unavailable
from workbench.state import shares
from workbench.state.server_file import ServerFile
from workbench.state.settings import Settings

pytestmark = [pytest.mark.long, pytest.mark.timeout(120)]


@pytest.fixture
def hosts(settings: Settings) -> Iterator[tuple[KernelHost, KernelHost]]:
    """A host that serves, and one that is attached to it."""
    first, second = KernelHost(settings), KernelHost(settings)
    first.start(0)
    second.start()
    assert (first.attached, second.attached) == (False, True)
    yield first, second
    for host in (first, second):
        host.stop()


@pytest.fixture
def sessions() -> Iterator[tuple[WorkbenchSession, WorkbenchSession]]:
    made = WorkbenchSession(), WorkbenchSession()
    yield made
    for session in made:
        session.stop()


@pytest.fixture
def server(settings: Settings) -> Iterator[subprocess.Popen[str]]:
    with served_elsewhere(settings) as process:
        yield process
        process.kill()


@pytest.fixture
def host(settings: Settings, server: subprocess.Popen[str]) -> Iterator[KernelHost]:
    """A host that is attached to another process."""
    made = KernelHost(settings)
    made.start()
    assert made.attached
    yield made
    made.stop()


def create(host: KernelHost, title: str) -> str | None:
    """Create a task; its title, or None if the server ended before it replied."""
    try:
        host.call("create_task", title=title, persona_id="tester")
    except Unavailable as error:
        assert error.code == "NO_REPLY"
        return None
    return title


def titles(host: KernelHost) -> list[str]:
    return sorted(task["title"] for task in host.call("list_tasks", limit=500)["tasks"])


def test_a_server_that_stops_is_replaced_at_the_same_address_with_the_same_token(
    hosts: tuple[KernelHost, KernelHost],
) -> None:
    first, second = hosts
    agent = first.call("register", name="ada")["token"]
    before = ServerFile(first.settings.server_file).load()
    first.stop()
    assert first.departure == shares.Departure(True, (os.getpid(),), True)
    assert second.wait(second.acall_as(agent, "registration_status"))["status"] == "pending"
    assert second.call("ping") == {"ok": True}
    after = ServerFile(second.settings.server_file).load()
    assert before.info is not None
    assert after.info is not None
    assert (after.info.url, after.operator_token) == (before.info.url, before.operator_token)
    assert after.info.nonce != before.info.nonce
    assert not second.attached
    assert first.start() == second.info
    assert first.attached


def test_the_others_go_on_when_one_that_is_attached_stops(hosts: tuple[KernelHost, KernelHost]) -> None:
    first, second = hosts
    info = first.info
    second.stop()
    assert second.departure == shares.Departure(False, (os.getpid(),), True)
    assert (first.info, first.call("ping")) == (info, {"ok": True})


def test_a_call_that_waits_goes_on_waiting_at_the_next_server(hosts: tuple[KernelHost, KernelHost]) -> None:
    first, second = hosts
    last = second.call("list_events", after=None)["next_after"]
    waiting = second.submit(second.acall("list_events", after=last, kinds=["task.created"], wait_seconds=30))
    first.call("list_events", after=None)
    first.stop()
    task = second.call("create_task", title="after", persona_id="tester")["id"]
    assert [event["subject"] for event in waiting.result(60)["events"]] == [f"task:{task}"]


def test_no_call_is_lost_or_made_twice_while_the_server_is_handed_over(hosts: tuple[KernelHost, KernelHost]) -> None:
    first, second = hosts
    enough = threading.Event()

    def work(number: int) -> list[str | None]:
        made: list[str | None] = []
        while not enough.is_set() or len(made) < 20:
            made.append(create(second, f"{number}-{len(made)}"))
        return made

    with ThreadPoolExecutor() as pool:
        working = [pool.submit(work, number) for number in range(4)]
        first.stop()
        second.call("ping")
        enough.set()
        made = [title for done in working for title in done.result()]
    assert not second.attached
    assert None not in made
    assert titles(second) == sorted(filter(None, made))


def test_tasks_that_a_killed_server_acknowledged_are_kept_and_none_is_repeated(
    host: KernelHost, server: subprocess.Popen[str]
) -> None:
    with ThreadPoolExecutor() as pool:
        working = pool.map(lambda number: create(host, str(number)), range(200))
        made = [next(working) for _ in range(20)]
        server.kill()  # it stays a zombie
        made += list(working)
    found = titles(host)
    assert not host.attached
    assert {title for title in made if title} <= set(found)
    assert len(found) == len(set(found))


def test_the_last_to_leave_ends_the_workers_even_if_all_leave_at_once(hosts: tuple[KernelHost, KernelHost]) -> None:
    first, _ = hosts
    worker = first.call("spawn_agent", persona_id="implementer")["pid"]
    with ThreadPoolExecutor() as pool:
        list(pool.map(KernelHost.stop, hosts))
    assert not runs(worker)
    assert ServerFile(first.settings.server_file).load().info is None
    assert shares.holders(first.settings.shares) == []
    assert all(host.is_stopped for host in hosts)


def test_the_last_to_leave_ends_the_workers_of_a_server_that_was_killed(
    host: KernelHost, server: subprocess.Popen[str]
) -> None:
    worker = host.call("spawn_agent", persona_id="implementer")["pid"]
    server.kill()
    server.wait()  # until then it uses the project
    host.stop(end_workers=True)
    assert not runs(worker)


def test_a_worker_goes_on_when_its_server_is_handed_over(host: KernelHost, server: subprocess.Popen[str]) -> None:
    lab = Path(host.call("create_worktree", name="lab")["path"])
    host.call("spawn_agent", persona_id="implementer", assigned_worktree="lab")
    run = "touch begun; until [ -e go ]; do sleep 0.02; done; echo made > made.txt"
    task = host.call("create_task", title="t", persona_id="implementer", run=run)["id"]
    while not (lab / "begun").exists():
        host.call("list_events", after=None)
    server.send_signal(signal.SIGINT)
    assert server.stdout is not None
    assert server.stdout.read() == f"Process {os.getpid()} uses the project too, so its server goes on.\n"
    assert server.wait() == 0
    (lab / "go").touch()
    while (found := host.call("wait_for_task", task_id=task))["status"] not in ("completed", "failed"):
        pass
    assert not host.attached
    assert (found["status"], len(host.call("get_task", task_id=task)["attempts"])) == ("completed", 1)


def test_workers_that_others_use_are_not_ended_and_the_answer_says_so(
    sessions: tuple[WorkbenchSession, WorkbenchSession], settings: Settings
) -> None:
    first, second = sessions
    first.start(settings.project, 0)
    note = second.start(settings.project, 1, end_workers=True)
    assert repr(note) == (
        f"Attached to process {os.getpid()}, which serves project. "
        f"--port and --end-workers had no effect, because the servers already ran at {first.server.url}."
    )
    worker = first.call("spawn_agent", persona_id="implementer")["pid"]
    note = first.stop(end_workers=True)
    assert repr(note) == (
        f"Workbench is stopped in this kernel. Process {os.getpid()} uses the project too, so its server goes on. "
        "These agents go on working: implementer. They are not ended while others use the project; "
        "`%workbench terminate AGENT` ends one."
    )
    assert note.data == {"kept": ["implementer"], "others": [os.getpid()]}
    assert runs(worker)
    assert repr(second.stop(end_workers=True)) == "Workbench is stopped."
    assert not runs(worker)


def test_a_project_that_was_removed_is_not_made_again(host: KernelHost, server: subprocess.Popen[str]) -> None:
    shutil.rmtree(host.settings.home)
    server.kill()
    with pytest.raises(Unavailable, match="NOT_STARTED"):
        host.call("ping")
    with pytest.raises(NotFound, match="NO_PROJECT"):
        host.stop()
    assert not host.settings.home.exists()


@pytest.fixture
def other(tmp_path: Path) -> Path:
    (made := tmp_path / "other").mkdir()
    return made


def test_only_a_start_with_a_project_stops_another_one_and_only_if_that_one_starts(
    sessions: tuple[WorkbenchSession, WorkbenchSession],
    settings: Settings,
    other: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session, _ = sessions
    session.start(settings.project, 0)
    url = session.server.url
    monkeypatch.chdir(other)
    assert repr(session.start()) == (
        f"Workbench serves project at {url}. The current directory belongs to another project: "
        f"`%workbench start --project {other}` changes to that."
    )
    assert not (other / ".aiswarm").exists()
    (other / ".aiswarm").write_text("in the way")
    with pytest.raises(Unavailable, match="PROJECT_UNWRITABLE"):
        session.start(other, 0)
    assert session.settings.project == settings.project
    assert session.call("ping") == {"ok": True}
    (other / ".aiswarm").unlink()
    said = repr(session.start(other, 0))
    assert said == f"Workbench is stopped for project. Workbench serves other at {session.server.url}."
