"""`wb` in a shell without a kernel: its name, several threads, forked processes, tasks that are waited for."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from IPython.core.interactiveshell import InteractiveShell

from kernel_ext import magics
from kernel_ext.session import WorkbenchSession
from workbench.errors import Conflict, NotFound, WorkbenchError
from workbench.state.settings import Settings

pytestmark = pytest.mark.anyio


@pytest.fixture
def session(migrated: Settings) -> Iterator[WorkbenchSession]:
    made = WorkbenchSession()
    made.start(migrated.project, port=0)
    yield made
    made.stop()


def test_cells_and_tools_query_at_once(session: WorkbenchSession) -> None:
    for number in range(4):
        session.call("create_task", title=f"t{number}", persona_id="implementer")

    def ask(number: int) -> int:
        if number % 4 == 3:
            return len(session.report("totals").frame)
        return len(session.sql("FROM tasks WHERE id > $n", n=number % 4))

    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(ask, range(16)))

    assert answers[:3] * 4 == [answer for at, answer in enumerate(answers) if at % 4 != 3]
    assert answers[:3] == [4, 3, 2]


def in_a_fork(work: Callable[[], object]) -> str:
    """What a forked process says of some work."""
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()

    def run() -> None:
        try:
            there.send(repr(work()))
        except WorkbenchError as error:
            there.send(error.code)

    process = context.Process(target=run)
    process.start()
    try:
        return str(here.recv()) if here.poll(60) else "silent"
    finally:
        process.kill()
        process.join()


def test_a_forked_process_records_and_is_told_what_it_cannot_do(session: WorkbenchSession) -> None:
    session.sql("FROM tasks")
    with session.run("forked") as run:
        assert in_a_fork(lambda: session.record(loss=0.5)) == "None"
    assert session.runs[run.id].metrics["loss"] == 0.5

    asks = (lambda: session.call("list_tasks"), lambda: session.sql("FROM tasks"), lambda: session.report("totals"))
    assert [in_a_fork(ask) for ask in asks] == ["FORKED"] * 3

    session.stop()
    assert in_a_fork(asks[1]) == "FORKED"


async def test_a_wait_for_a_task_says_who_is_missing_and_ends_in_time(session: WorkbenchSession) -> None:
    first = session.call("create_task", title="First", persona_id="reviewer")["id"]
    after = session.call("create_task", title="After", persona_id="implementer", dependencies=[first])["id"]

    with pytest.raises(TimeoutError, match="no agent to do 1 open task, which needs the persona reviewer"):
        await session.task(after).wait(timeout=0)


async def test_a_wait_for_a_task_raises_when_the_task_has_failed(session: WorkbenchSession) -> None:
    task = session.tasks.create("Fit", "implementer", max_retries=0).id
    asked = session.call("register", name="ada", persona_id="implementer")
    session.call("approve", approval_id=asked["approval_id"])
    ada = session.as_agent(asked["token"])
    ada.call("claim_task", task_id=task)
    ada.call("start_task", task_id=task)
    assert [held.id for held in session.agents["ada"].tasks] == [task]
    ada.call("fail_task", task_id=task, error_message="ValueError: singular matrix\nFile fit.py, line 3")

    with pytest.raises(Conflict) as failed:
        await session.task(task)
    assert failed.value.code == "TASK_FAILED"
    assert failed.value.message.splitlines() == [
        f"Task {task} failed: ValueError: singular matrix",
        f"`wb.task({task})` shows its attempts and log.",
    ]


def test_the_parameters_of_runs_are_columns_and_their_times_are_times(session: WorkbenchSession) -> None:
    for lr in (0.1, 0.2):
        with session.run("fit", lr=lr, seed=1, look_at="the moon") as run:
            run.record(rate=1 - lr, stopped_at=7)

    frame = session.runs(sort="-rate", where="lr<1").frame()
    assert frame["parameters.lr"].tolist() == [0.1, 0.2]
    assert (frame["parameters.look_at"][0], frame["metrics.stopped_at"][0]) == ("the moon", 7)
    assert str(frame["started_at"].dtype).startswith("datetime64")
    head = str(session.runs(sort="-rate")).splitlines()[0].split()
    assert head == ["run", "name", "state", "rate", "lr", "metrics", "took"]
    assert [run.parameters["lr"] for run in session.runs.sort("-lr")] == [0.2, 0.1]


def test_a_minus_sorts_every_list_from_the_largest_down(session: WorkbenchSession) -> None:
    for priority in (1, 3, 2):
        session.call("create_task", title=f"t{priority}", persona_id="implementer", priority=priority)
    assert [task.priority for task in session.tasks.sort("-priority")] == [3, 2, 1]
    assert [task.priority for task in session.tasks().sort("-priority", reverse=True)] == [3, 2, 1]


def test_lists_make_what_they_list_and_processes_and_sessions_are_lists_too(session: WorkbenchSession) -> None:
    session.call("create_project", name="house")
    night = session.sessions.create("night", "house")
    plan = session.plans.create(
        "plan: p\ntasks:\n- {name: a, title: A, persona: tester, session: night, run: 'true'}\n"
    )
    assert (plan.plan, [task.title for task in night.tasks]) == ("p", ["A"])
    night.update(description="Long runs")
    assert session.sessions["night"].description == "Long runs"
    assert night.id in str(session.sessions)
    with pytest.raises(NotFound, match="Did you mean night"):
        session.sessions["nigth"]
    assert "`workbench spawn`" not in str(session.processes)
    assert session.worktrees.create("lab").name == "lab"
    ada = session.agents.spawn("tester", assigned_worktree="lab", name="ada")
    process = session.processes["ada"]
    assert (process.agent, [one.pid for one in session.processes]) == (ada, [process.pid])
    assert "Process of ada" in str(process)
    process.terminate("enough")
    assert not process.running
    night.delete()
    assert list(session.sessions) == []


@pytest.fixture
def shell() -> Iterator[InteractiveShell]:
    made = InteractiveShell()
    magics.load(made)
    yield made
    magics.unload(made)


def test_a_variable_wb_of_the_persons_stays(shell: InteractiveShell) -> None:
    shell.run_cell("wb = [1]\n%workbench help", silent=True).raise_error()
    assert shell.user_ns["wb"] == [1]
    magics.unload(shell)
    assert shell.user_ns["wb"] == [1]


def test_a_reset_of_the_shell_does_not_lose_workbench(shell: InteractiveShell) -> None:
    shell.run_cell("%reset -f", silent=False).raise_error()
    assert "wb" not in shell.user_ns
    shell.run_cell("kind = type(wb).__name__").raise_error()
    assert shell.user_ns["kind"] == "UnopenedSession"


def test_objects_show_themselves(session: WorkbenchSession, shell: InteractiveShell) -> None:
    def shown(value: object) -> str:
        formats, _ = shell.display_formatter.format(value)  # type: ignore[union-attr]
        return str(formats["text/plain"])

    assert session.server.url in shown(session)
    assert ["url", session.server.url] in [line.split() for line in shown(session.server).splitlines()]
    assert str(session.settings.project) in shown(session.settings)
    asked = session.call("register", name="eve", persona_id="tester")["approval_id"]
    assert "{" not in shown(session.approvals[asked].payload)
    assert repr(session.tasks.page) == "<bound method Listing.page of <wb.tasks>>"
    assert shown(session.tasks) == str(session.tasks)


@pytest.mark.anyio
async def test_a_command_that_waits_for_a_server_elsewhere_works_beside_the_kernels_loop(
    session: WorkbenchSession,
) -> None:
    session.run(["tools", "servers", "add", "hub", "--url", "http://127.0.0.1:9/mcp"])
    with pytest.raises(WorkbenchError) as refused:
        session.run(["tools", "servers", "sign-in", "hub", "--seconds", "5"])
    assert refused.value.code == "SIGN_IN_FAILED"
