"""Three hosts, of which one has the project, and the others nothing but its server's address and a token."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.chance import SOAK
from tests.chaos.test_two_hosts import PLAN, Machine, carried_out, finish, is_begun, make_project, open_tasks, until
from tests.conftest import git
from tests.elsewhere import ACCESS, FarWorker
from tests.hosts import Host, are_possible, network

pytestmark = [
    pytest.mark.chaos,
    pytest.mark.timeout(1_200),
    pytest.mark.skipif(not SOAK, reason="takes minutes"),
    pytest.mark.skipif(not are_possible(), reason="needs root, and namespaces and networks of its own"),
]

PORT = "8765"
WORKTREES = ("report", "bills", "mass")
OTHERS = 5
"""Workers besides those of the plan, for tasks of their own."""
TASKS = 10


@pytest.fixture
def hosts(on_disk: Path) -> Iterator[Callable[..., list[Host]]]:
    """`hosts("lab", "north")`: hosts that reach each other, and see nothing else of each other."""
    with ExitStack() as stack:
        yield stack.enter_context(network(on_disk)).hosts


def lab_on(host: Host) -> Machine:
    """The project, whose server other hosts reach."""
    make_project(host)
    remote = {"WORKBENCH_HOST": host.address, "WORKBENCH_ALLOW_REMOTE": "1", "WORKBENCH_ACCESS_TOKEN": ACCESS}
    return Machine(host, "", **remote, WORKBENCH_PORT=PORT)


def worker_on(host: Host, lab: Machine, name: str, persona: str) -> FarWorker:
    """A worker that has joined, with a worktree of its name."""
    token = lab.call("add_machine", name=f"of-{name}")["token"]
    url = f"http://{lab.host.address}:{PORT}"
    worker = FarWorker(host.home / name, url, token, "--persona", persona, "--name", name, host=host)
    worker.start()
    return worker


def test_the_plan_ends_as_on_one_machine_although_a_host_without_the_project_is_ended(
    hosts: Callable[..., list[Host]],
) -> None:
    alone_host, lab_host, north, south = hosts("alone", "lab", "north", "south")
    make_project(alone_host)
    alone = Machine(alone_host, "")
    carried_out([alone], PLAN, report=alone, bills=alone, mass=alone)
    finish([alone])

    lab = lab_on(lab_host)
    lab.admit_reviewer()
    named = [(name, "implementer") for name in WORKTREES] + [(f"other-{n}", "tester") for n in range(OTHERS)]
    workers = {name: worker_on(north if name == "report" else south, lab, name, persona) for name, persona in named}
    until(lambda: len(lab.call("list_machines")["machines"]) == len(workers) == working(lab))
    lab.call("create_plan", text=PLAN)
    others = [lab.call("create_task", title="t", persona_id="tester", run=MADE)["id"] for _ in range(TASKS)]
    until(lab.review)
    until(lambda: is_begun(lab, "bills", "mass"))
    south.end()
    assert open_tasks(lab)
    south.begin()
    for name, worker in workers.items():
        if name != "report":
            worker.start()
    finish([lab])
    assert lab.tree("wb/report/main") == alone.tree("wb/report/main")
    for task_id in others:
        check(lab, task_id)


MADE = "echo $WORKBENCH_ATTEMPT > $WORKBENCH_TASK_ID.txt; sleep 0.5"


def working(lab: Machine) -> int:
    """How many workers have joined."""
    return sum(machine["workers"] for machine in lab.call("list_machines")["machines"])


def check(lab: Machine, task_id: int) -> None:
    """One attempt has completed a task, and what it made is on its branch, once."""
    task: dict[str, Any] = lab.call("get_task", task_id=task_id)
    (done,) = [attempt for attempt in task["attempts"] if attempt["outcome"] == "completed"]
    branch, file = f"wb/{done['worktree']}/main", f"{task_id}.txt"
    assert git("show", f"{branch}:{file}", cwd=lab.project) == str(done["attempt"])
    assert len(git("log", "--format=%H", "--branches", "--", file, cwd=lab.project).split()) == 1
