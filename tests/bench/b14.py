"""B14: thirty workers in thirty worktrees do a plan of three hundred tasks, and what they made is integrated.

Each task takes a second of CPU and leaves a file; every third worktree also changes a line that others change, so
that some integrations are conflicts. Its counterpart does the same work without a server: thirty shells, one a
worktree, which run their commands and commit what each left.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kernel_ext.hosting.host import KernelHost
from tests.bench.child import Child, environment, heard, say
from tests.bench.project import scratch
from tests.bench.rows import Row, Samples, at_most, within
from tests.bench.ws_load import p99
from workbench.state.settings import Settings

WORKERS = 30
TASKS = 300
BURN = "import time\nend = time.process_time() + {}\nwhile time.process_time() < end: pass"
PROBE_SECONDS = 0.05
POLL_SECONDS = 0.2
OPEN = ("pending", "claimed", "in_progress")
AUTHOR = ("-c", "user.name=Bench", "-c", "user.email=bench@localhost")


def run(rounds: int, quick: bool) -> Mapping[str, Samples]:
    """A round is both, one after the other; what each needs to begin is not counted and told apart."""
    workers, tasks, cpu = (3, 9, 0.1) if quick else (WORKERS, TASKS, 1.0)
    made = [_round(workers, tasks, cpu) for _ in range(min(rounds, 2))]
    begun = f"until all workers wait: {max(ours['begun'] for ours, _ in made):.1f} s"
    outcomes = "; ".join(f"{ours['integrated']} integrated, {ours['conflicts']} in conflict" for ours, _ in made)
    seconds, slowest = [ours["seconds"] for ours, _ in made], [p99(ours["latencies"]) for ours, _ in made]
    return {
        "wall time": Samples(seconds, [bare for _, bare in made], unit="s", note=f"{begun}; {outcomes}"),
        "the server's p99 meanwhile": Samples(slowest, unit="ms"),
    }


def _round(workers: int, tasks: int, cpu: float) -> tuple[dict[str, Any], float]:
    commands = [_commands(worker, tasks // workers, cpu) for worker in range(workers)]
    with scratch() as directory:
        bare = _bare(_repository(directory / "bare"), commands)
        with Child("b14", str(_repository(directory / "ours"))) as child:
            child.tell(commands)
            probe = _Probe(child.hear())
            ours = child.hear()
            ours["latencies"] = probe.stop()
            child.tell("end")
    assert ours["completed"] == tasks, f"{ours['completed']} of {tasks} tasks were completed"
    assert ours["integrated"] + ours["conflicts"] == workers, "a worktree is neither integrated nor in conflict"
    return ours, bare


def _commands(worker: int, count: int, cpu: float) -> list[str]:
    """The commands of one worker's tasks: each burns CPU and leaves a file."""
    burn = f"{sys.executable} -I -c '{BURN.format(cpu)}'"
    lines = [f"{burn} && echo {number} > out-{worker}-{number}.txt" for number in range(count)]
    if worker % 3 == 0:
        lines[0] += f" && echo {worker} > shared.txt"
    return lines


def _repository(root: Path) -> Path:
    root.mkdir()
    (root / "shared.txt").write_text("nobody\n")
    for arguments in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-q", "-m", "First"]):
        _git(root, *arguments)
    return root


def _git(where: Path, *arguments: str) -> None:
    subprocess.run(["git", *AUTHOR, *arguments], cwd=where, check=True, env=environment())


def _bare(root: Path, commands: Sequence[Sequence[str]]) -> float:
    """Seconds that as many shells need for the same commands and commits in worktrees of their own."""
    git = " ".join(["git", *(f"'{part}'" for part in AUTHOR)])
    for worker in range(len(commands)):
        _git(root, "worktree", "add", "-q", "-b", f"bare/{worker}", str(root / "worktrees" / str(worker)))
    started = time.perf_counter()
    shells = [
        subprocess.Popen(
            ["/bin/sh", "-e", "-c", "\n".join(f"{line}\n{git} add -A\n{git} commit -q -m done" for line in lines)],
            cwd=root / "worktrees" / str(worker),
            env=environment(),
        )
        for worker, lines in enumerate(commands)
    ]
    assert not any(shell.wait() for shell in shells), "a bare process failed"
    return time.perf_counter() - started


class _Probe:
    """Ask the server something small all the time, as a panel does; how long each answer took, in seconds."""

    def __init__(self, server: Mapping[str, str]) -> None:
        self._url, self._token = f"{server['url']}/api/ops/get_performance", server["token"]
        self._latencies: list[float] = []
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._ask, daemon=True)
        self._thread.start()

    def _ask(self) -> None:
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        while not self._done.wait(PROBE_SECONDS):
            began = time.perf_counter()
            request = urllib.request.Request(self._url, b"{}", headers)
            with urllib.request.urlopen(request, timeout=60) as answer:
                answer.read()
            self._latencies.append(time.perf_counter() - began)

    def stop(self) -> list[float]:
        """Ask no more."""
        self._done.set()
        self._thread.join()
        return self._latencies


def _serve(root: Path) -> None:
    """In the child: the project's servers in a kernel's thread, and the person who plans, waits and approves."""
    host = KernelHost(Settings(project=root, port=0, max_agents_running=WORKERS, lease_seconds=600))
    lines = heard()
    commands = next(lines)
    info = host.start(0)
    token = json.loads((root / ".aiswarm" / "server.json").read_text())["operator_token"]
    begun = _crowd(host, [f"w{worker}" for worker in range(len(commands))])
    say({"url": info.url, "token": token})
    started = time.perf_counter()
    host.call(
        "create_tasks",
        tasks=[
            {"title": line[-40:], "persona_id": "implementer", "run": line, "target_worktree": f"w{worker}"}
            for worker, some in enumerate(commands)
            for line in some
        ],
    )
    while any(host.call("list_tasks", status=state, limit=1)["tasks"] for state in OPEN):
        time.sleep(POLL_SECONDS)
    completed = len(host.call("list_tasks", status="completed", limit=500)["tasks"])
    ends = Counter(_integrate(host, f"w{worker}") for worker in range(len(commands)))
    seconds = time.perf_counter() - started
    say({"seconds": seconds, "begun": begun, "completed": completed, "integrated": 0, "conflicts": 0, **ends})
    next(lines, None)
    host.stop()


def _crowd(host: KernelHost, names: Sequence[str]) -> float:
    """A worktree and a worker for each name; seconds until all of them wait for work."""
    started = time.perf_counter()
    for name in names:
        host.call("create_worktree", name=name)
        host.call("spawn_agent", persona_id="implementer", assigned_worktree=name)
    while len(host.call("list_agents", status="active", limit=500)["agents"]) < len(names):
        time.sleep(POLL_SECONDS)
    return time.perf_counter() - started


def _integrate(host: KernelHost, name: str) -> str:
    """Ask, approve, merge; what came of it."""
    approval = host.call("integrate_worktree", worktree_name=name)["approval_id"]
    host.call("approve", approval_id=approval)
    found: dict[str, Any] = {"settled": False}
    while not found["settled"]:
        found = host.call("get_approval", approval_id=approval, wait_seconds=20)
    outcome = found["outcome"]
    if found["status"] == "approved":
        return str(outcome["state"])
    if outcome["code"] != "MERGE_CONFLICT":
        raise RuntimeError(f"{name} was not integrated: {outcome}")
    return "conflicts"


ROW = Row(
    "B14",
    f"{WORKERS} workers, {TASKS} tasks of a second of CPU, {WORKERS} worktrees, integrated",
    f"{WORKERS} bare processes, the same commands and commits in worktrees of their own",
    {"wall time": at_most(1.5), "the server's p99 meanwhile": within(300, "ms")},
    run,
)

if __name__ == "__main__":
    _serve(Path(sys.argv[1]))
