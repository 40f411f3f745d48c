"""Two hosts, each with a clone, a kernel and workers of its own, have one truth: a database that both reach.

Run as a program, this file is a kernel of a project that does what it is told, line by line.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import git
from tests.hosts import GATEWAY, PREFIX, Host, are_possible, network
from tests.postgres import SUPERUSER, running_server
from workbench.errors import WorkbenchError
from workbench.state.database_url import VARIABLE
from workbench.state.settings import shipped

pytestmark = [
    pytest.mark.chaos,
    pytest.mark.postgres,
    pytest.mark.timeout(400),
    pytest.mark.skipif(not are_possible(), reason="needs root, and namespaces and networks of its own"),
]

OPTIONS = {
    "WORKBENCH_LEASE_SECONDS": "8",
    "WORKBENCH_HEARTBEAT_SECONDS": "0.5",
    "WORKBENCH_RETRY_BASE_SECONDS": "0",
    "WORKBENCH_PORT": "0",
    "WORKBENCH_PRIVATE": "\n".join(f"{PREFIX}.{number}:9418" for number in (2, 3)),
    "PYTHONDONTWRITEBYTECODE": "1",
    "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
}
PLAN = shipped("data", "penguins-plan.yaml").read_text("utf-8")
MERGE = "git merge --quiet --no-edit wb/{0}/main"
FETCH = "git fetch --quiet git://{1}/penguins wb/{0}/main && git merge --quiet --no-edit FETCH_HEAD"
"""A host has what another made when it fetches it, as people do."""
SECONDS = 120.0


class Machine:
    """A host with a clone of the project, which others may fetch from, and a kernel.

    Args:
        options: variables of the kernel.
    """

    def __init__(self, host: Host, database_url: str, **options: str) -> None:
        self.host = host
        self.project = host.home / "penguins"
        self._url = database_url
        self._options = OPTIONS | options
        self.begin()

    def begin(self) -> None:
        """Start what ended with the host."""
        daemon = ["git", "daemon", "--export-all", f"--base-path={self.host.home}", f"--listen={self.host.address}"]
        self.host.popen(*daemon, "--reuseaddr", stderr=subprocess.DEVNULL)
        with (self.host.home / "kernel.log").open("ab") as log:
            self._kernel = self.host.popen(
                *(sys.executable, __file__, str(self.project)),
                env=self._options | {VARIABLE: self._url, "PYTHONPATH": str(Path(__file__).parents[2])},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
            )
        assert self._hear() == {"result": "ready"}

    def end(self) -> None:
        """Switch the host off."""
        self.host.end()
        self._kernel.wait()

    def call(self, name: str, /, token: str | None = None, **arguments: Any) -> dict[str, Any]:
        """An operation of the kernel's person, or of the agent whose token is given.

        Raises:
            WorkbenchError: it was refused.
        """
        assert self._kernel.stdin is not None
        self._kernel.stdin.write(json.dumps([name, token, arguments]) + "\n")
        self._kernel.stdin.flush()
        answer = self._hear()
        if "error" in answer:
            raise WorkbenchError(*answer["error"])
        result: dict[str, Any] = answer["result"]
        return result

    def _hear(self) -> dict[str, Any]:
        assert self._kernel.stdout is not None
        line = self._kernel.stdout.readline()
        if not line:
            pytest.fail(f"the kernel of {self.host.name} ended:\n{(self.host.home / 'kernel.log').read_text()}")
        heard: dict[str, Any] = json.loads(line)
        return heard

    # What its person does

    def hire(self, worktree: str) -> None:
        """Make a worktree with a worker."""
        self.call("create_worktree", name=worktree)
        self.call("spawn_agent", persona_id="implementer", assigned_worktree=worktree, name=f"at-{worktree}")

    def admit_reviewer(self) -> None:
        """Have somebody here who decides."""
        asked = self.call("register", name=f"reviewer-{self.host.name}", persona_id="reviewer")
        self.call("approve", approval_id=asked["approval_id"])
        self._reviewer = asked["token"]

    def review(self) -> int | None:
        """Complete a decision, if there is one; its task."""
        task = self.call("claim_task", self._reviewer)["task"]
        if task is None:
            return None
        self.call("complete_task", self._reviewer, task_id=task["id"], attempt=task["attempt"])
        return int(task["id"])

    def restart_workers(self) -> None:
        """Restart those that have ended."""
        for agent_id in self.call("get_unattended_work")["restartable"]:
            self.call("restart_agent", agent_id=agent_id)

    def tree(self, branch: str) -> str:
        """The files of a branch, as one name."""
        return git("rev-parse", f"{branch}^{{tree}}", cwd=self.project).strip()


def until(look: Callable[[], Any]) -> Any:
    """The result of a look, once it is true."""
    deadline = time.monotonic() + SECONDS
    while not (found := look()):
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.1)
    return found


def make_project(host: Host) -> None:
    """Have the sample project on a host."""
    project = host.home / "penguins"
    shutil.copytree(shipped("data", "penguins"), project)
    for arguments in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-q", "-m", "The penguins, raw"]):
        git(*arguments, cwd=project)


@pytest.fixture
def machines(tmp_path: Path, postgres_binaries: Path) -> Iterator[Callable[..., list[Machine]]]:
    """`machines("anna", "berta")`: hosts with a clone of the sample project each, and a database that all reach.

    One of them alone has its own store, as it has by default.
    """
    with ExitStack() as stack:
        hosts = stack.enter_context(network(tmp_path))

        def made(*names: str) -> list[Machine]:
            first, *others = hosts.hosts(*names)
            make_project(first)
            for other in others:
                git("clone", "-q", str(first.home / "penguins"), str(other.home / "penguins"), cwd=tmp_path)
            url = ""
            if others:
                where = {"entering": hosts.entering, "trusts": f"{PREFIX}.0/24"}
                listening = f"listen_addresses={GATEWAY}"
                server = stack.enter_context(running_server(postgres_binaries, "fsync=off", listening, **where))
                url = f"postgresql://{SUPERUSER}@{GATEWAY}/{stack.enter_context(server.new_database())}"
            return [Machine(host, url) for host in (first, *others)]

        yield made


def plan_on(**where: Machine) -> str:
    """The penguins' plan, whose branches are fetched from the machines that have them."""
    text = PLAN
    for worktree, machine in where.items():
        text = text.replace(MERGE.format(worktree), FETCH.format(worktree, machine.host.address))
    assert "wb/" in text
    return text


def open_tasks(machine: Machine) -> list[dict[str, Any]]:
    """What is not done yet; nothing may have failed."""
    tasks = machine.call("list_tasks", limit=100)["tasks"]
    failed = [task["id"] for task in tasks if task["status"] in ("failed", "cancelled")]
    ends = [machine.call("get_task", task_id=number)["attempts"] for number in failed]
    assert not ends, json.dumps(ends, indent=1)
    return [task for task in tasks if task["status"] != "completed"]


def is_begun(machine: Machine, *worktrees: str) -> bool:
    """Whether something is being done in one of some worktrees."""
    return any(task["status"] != "pending" and task["worktree"] in worktrees for task in open_tasks(machine))


def finish(machines: list[Machine]) -> None:
    """Review and restart until all is done."""

    def look() -> bool:
        for machine in machines:
            machine.restart_workers()
            machine.review()
        return not open_tasks(machines[0])

    until(look)


AT_BERTAS: dict[str, dict[str, Any]] = {
    "discard_worktree": {"worktree_name": "bills", "reason": "not needed"},
    "get_agent_process_info": {"agent_id": "at-bills"},
    "get_worktree_diff": {"worktree_name": "bills"},
    "get_worktree_outputs": {"worktree_name": "bills", "path": "results/bills.json"},
    "get_worktree_status": {"worktree_name": "bills"},
    "integrate_worktree": {"worktree_name": "bills"},
    "request_changes": {"worktree_name": "bills", "comments": [], "note": "A title, please"},
    "restart_agent": {"agent_id": "at-bills"},
    "spawn_agent": {"persona_id": "implementer", "assigned_worktree": "bills"},
    "terminate_agent": {"agent_id": "at-bills", "reason": "done"},
    "update_worktree": {"worktree_name": "bills"},
}
"""What needs files or processes of another machine, which is away."""


def told_of(machine: Machine, name: str, **arguments: Any) -> str:
    """The answer or the refusal, as text."""
    try:
        return json.dumps(machine.call(name, **arguments))
    except WorkbenchError as error:
        return str(error)


def carried_out(machines: list[Machine], plan: str, **places: Machine) -> None:
    """Have worktrees with workers on some machines, reviewers on all, and the plan."""
    for machine in machines:
        machine.admit_reviewer()
    for worktree, machine in places.items():
        machine.hire(worktree)
    machines[0].call("create_plan", text=plan)


def test_the_plan_ends_as_on_one_machine_although_a_host_is_ended_in_the_middle(
    machines: Callable[..., list[Machine]],
) -> None:
    (alone,) = machines("alone")
    carried_out([alone], PLAN, report=alone, bills=alone, mass=alone)
    finish([alone])

    anna, berta = machines("anna", "berta")
    places = {"report": anna, "bills": berta, "mass": berta}
    carried_out([anna, berta], plan_on(**places), **places)
    until(anna.review)
    until(lambda: is_begun(anna, "bills", "mass"))
    berta.end()
    berta.host.begin()
    berta.begin()
    left = until(lambda: found if (found := anna.call("get_unattended_work"))["message"] else None)
    assert (left["restartable"], "on the machine berta" in left["message"]) == ([], True)
    finish([anna, berta])
    assert anna.tree("wb/report/main") == alone.tree("wb/report/main")
    berta.end()
    for name, arguments in AT_BERTAS.items():
        told = told_of(anna, name, **arguments)
        assert "berta" in told.replace(str(berta.host.home), "…"), f"{name}: {told}"


if __name__ == "__main__":
    from kernel_ext.hosting.host import KernelHost
    from workbench.state.settings import Settings

    kernel = KernelHost(Settings.load(Path(sys.argv[1])))
    kernel.start()
    print(json.dumps({"result": "ready"}), flush=True)
    for order in sys.stdin:
        name, token, arguments = json.loads(order)
        try:
            if token is None:
                answer = {"result": kernel.call(name, **arguments)}
            else:
                answer = {"result": kernel.wait(kernel.acall_as(token, name, **arguments))}
        except WorkbenchError as error:
            answer = {"error": [error.code, error.message]}
        print(json.dumps(answer), flush=True)
