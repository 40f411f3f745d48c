"""Every process is killed, stopped and continued at every point of an attempt: no byte of work is lost or mixed.

Run as a program, this file serves a project as a kernel does.
"""

from __future__ import annotations

import asyncio
import itertools
import math
import os
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from random import Random
from typing import Any, ClassVar

import psutil
import pytest

from tests.chance import SOAK, chance
from tests.confinement.outside_hosts import unused_port
from tests.conftest import git
from tests.elsewhere import FarWorker
from tests.postgres import NewServer, PostgresServer
from workbench.client import HttpClient
from workbench.errors import Unauthenticated, Unavailable
from workbench.state.database_url import VARIABLE
from workbench.state.server_file import ServerFile
from workbench.state.settings import Settings

pytestmark = [pytest.mark.anyio, pytest.mark.chaos, pytest.mark.usefixtures("database")]

ROUNDS = 200 * SOAK or 6
LINES = 12
LEASE_SECONDS = 6.0
"""Longer than a server may stand still on a busy machine before it restarts the leases that it could not renew."""
OPTIONS = {
    "WORKBENCH_LEASE_SECONDS": str(LEASE_SECONDS),
    "WORKBENCH_HEARTBEAT_SECONDS": "0.3",
    "WORKBENCH_RETRY_BASE_SECONDS": "0",
    "WORKBENCH_TERMINATE_GRACE_SECONDS": "1",
}
WORK = f"""
file=made-$WORKBENCH_TASK_ID.txt
i=0
while [ $i -lt {LINES} ]; do
    i=$((i + 1))
    echo "$WORKBENCH_ATTEMPT $i" >> $file
    if [ $((i % 5)) = 0 ]; then git add . && git commit -qm "Step $i"; fi
    sleep 0.05
done
"""
"""The work of an attempt: lines with its number, some of them committed by itself."""


class Victim(StrEnum):
    """The process that a signal hits; of a database, all of its processes."""

    SERVER = "server"
    KERNEL = "kernel"
    SUPERVISOR = "supervisor"
    COMMAND = "command"
    DATABASE = "database"


class Moment(StrEnum):
    """When it is hit."""

    AT_WORK = "at work"
    COMMIT = "around the commit"
    REPORT = "around the report"
    LEASE_END = "until the lease has ended"


NO_DATABASE = [victim for victim in Victim if victim is not Victim.DATABASE]
HITS = (signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM)
"""SIGSTOP is followed by SIGCONT."""


def rounds(random: Random, among: Sequence[Victim]) -> Iterator[tuple[Victim, signal.Signals, Moment]]:
    """Combinations without end: among five each of something occurs, among 60 each combination."""
    victims, hits, moments = (random.sample([*kind], len(kind)) for kind in (among, HITS, Moment))
    period = math.lcm(len(victims), len(hits), len(moments))
    for n in itertools.count():
        yield victims[n % len(victims)], hits[n % 3], moments[(n + n // period) % 4]


@dataclass
class Project:
    """A project that is served by one process after the other."""

    root: Path
    random: Random
    database: PostgresServer | None = None
    server: subprocess.Popen[bytes] | None = None
    kind: Victim = Victim.SERVER
    written: dict[tuple[int, int], list[str]] = field(default_factory=lambda: defaultdict(list))
    """The lines that attempts were seen to have written, by task and attempt."""
    tasks: list[int] = field(default_factory=list)
    options: list[str] = field(default_factory=list)
    """Of its servers."""

    keeps_all: ClassVar = True
    """Whether all is kept that an attempt has written."""

    @property
    def lab(self) -> Path:
        return self.root / ".aiswarm" / "worktrees" / "lab"

    async def served_by(self, victim: Victim) -> None:
        """If the victim is a server, have one of its kind serve."""
        if victim in (Victim.SERVER, Victim.KERNEL) and victim is not self.kind and self.server is not None:
            self.server.terminate()
            await asyncio.to_thread(self.server.wait)
            self.serve(victim)

    def serve(self, victim: Victim) -> None:
        """Start a server: a process of its own, or as a kernel has it."""
        self.kind = victim
        alone = ["-m", "workbench.cli", "serve", *self.options]
        command = [__file__, str(self.root), *self.options[-1:]] if victim is Victim.KERNEL else alone
        with (self.root.parent / "server.log").open("ab") as log:
            environment = os.environ | OPTIONS | {"WORKBENCH_PROJECT": str(self.root)}
            self.server = subprocess.Popen([sys.executable, *command], env=environment, stdout=log, stderr=log)

    async def call(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        """An operation, once a server answers."""
        while True:
            server_info = ServerFile(self.root / ".aiswarm" / "server.json").load()
            if server_info.info is not None and server_info.operator_token is not None:
                with suppress(Unavailable, Unauthenticated):
                    async with HttpClient(server_info.info.url, server_info.operator_token) as client:
                        return await client.call(name, **arguments)
            await asyncio.sleep(0.05)

    # One round

    async def round(self, victim: Victim, hit: signal.Signals, moment: Moment) -> None:
        """Make a task, hit the victim, and have the task completed."""
        await self.served_by(victim)
        new = {"title": "t", "persona_id": "implementer", "run": WORK, "max_retries": 50} | self.terms(moment)
        task_id = (await self.call("create_task", **new))["id"]
        self.tasks.append(task_id)
        task = await self.until_at_work(task_id)
        attempt = len(task["attempts"])
        await self.until(moment, task_id, attempt)
        self.note(task_id)
        ended = await self.strike(victim, hit, moment, task)
        self.note(task_id)
        if ended:
            self.serve(victim)
        task = await self.completed(task_id)
        if victim in (Victim.SERVER, Victim.KERNEL, Victim.DATABASE) and self.outlives(moment):
            ends = [(attempt["outcome"], attempt["error_message"]) for attempt in task["attempts"]]
            assert len(ends) == attempt, f"the command was ended by a restart of the {victim}: {ends}"

    def terms(self, moment: Moment) -> dict[str, Any]:
        """Where a task is to be done, and how."""
        return {"target_worktree": "lab"}

    def outlives(self, moment: Moment) -> bool:
        """Whether an attempt goes on although its server was hit at a moment: the next one renews its lease."""
        return True

    async def until_at_work(self, task_id: int) -> dict[str, Any]:
        """The task, once its command writes."""
        while not self.lines(task_id):
            await self.restart_agents()
            await asyncio.sleep(0.02)
        return await self.call("get_task", task_id=task_id)

    async def until(self, moment: Moment, task_id: int, attempt: int) -> None:
        """Wait for a moment of an attempt, and a little longer."""
        if moment in (Moment.AT_WORK, Moment.LEASE_END):
            await asyncio.sleep(self.random.random() * 0.05 * LINES)
            return
        while len(self.lines(task_id)) < LINES:
            if len((await self.call("get_task", task_id=task_id))["attempts"]) > attempt:
                return
            await asyncio.sleep(0.01)
        await asyncio.sleep(self.random.random() * (0.15 if moment is Moment.COMMIT else 0.5))

    def lines(self, task_id: int) -> list[str]:
        """The lines in the worktree."""
        try:
            return (self.lab / f"made-{task_id}.txt").read_text().splitlines()
        except OSError:
            return []

    def note(self, task_id: int) -> None:
        """Keep what is in the worktree, which is of one attempt."""
        lines = [line for line in self.lines(task_id) if line.count(" ") == 1]
        attempts = {int(line.split(" ")[0]) for line in lines}
        assert len(attempts) <= 1, f"two attempts write in one tree: {lines}"
        for attempt in attempts:
            known = self.written[task_id, attempt]
            self.written[task_id, attempt] = max(known, lines, key=len)

    async def strike(self, victim: Victim, hit: signal.Signals, moment: Moment, task: dict[str, Any]) -> bool:
        """Hit a process; whether it is a server that is to be started again."""
        assert self.server is not None
        if victim is Victim.DATABASE:
            await asyncio.to_thread(self.strike_database, hit)
            return False
        is_server = victim in (Victim.SERVER, Victim.KERNEL)
        process = psutil.Process(self.server.pid) if is_server else await self.worker_process(victim, task)
        if process is None:
            return False
        with suppress(psutil.NoSuchProcess):
            process.send_signal(hit)
            if hit is signal.SIGSTOP:
                long = moment is Moment.LEASE_END and not is_server
                await asyncio.sleep(LEASE_SECONDS + 1 if long else self.random.random())
                process.send_signal(signal.SIGCONT)
        if not is_server or hit is signal.SIGSTOP:
            return False
        await asyncio.to_thread(self.server.wait)
        if moment is Moment.LEASE_END:
            await asyncio.sleep(LEASE_SECONDS + 1)
        return True

    def strike_database(self, hit: signal.Signals) -> None:
        """Hit the database, and have it answer again after a while."""
        assert self.database is not None
        if hit is signal.SIGSTOP:
            with self.database.suspended():
                time.sleep(self.random.random())
            return
        if hit is signal.SIGKILL:
            self.database.kill()
        else:
            self.database.stop()
        time.sleep(self.random.random())
        self.database.start()

    async def worker_process(self, victim: Victim, task: dict[str, Any]) -> psutil.Process | None:
        """The supervisor of a task, or one of the processes that it has started; None if there is none any more."""
        with suppress(psutil.NoSuchProcess):
            supervisor = psutil.Process(await self.pid_of(task["attempts"][-1]["agent_id"]))
            if victim is Victim.SUPERVISOR:
                return supervisor
            below = supervisor.children(recursive=True)
            return self.random.choice(below) if below else None
        return None

    async def pid_of(self, agent_id: str) -> int:
        """The process of a worker."""
        agents = (await self.call("get_managed_agents"))["agents"]
        return next(int(agent["process"]["pid"]) for agent in agents if agent["agent_id"] == agent_id)

    async def completed(self, task_id: int) -> dict[str, Any]:
        """The task, once it is completed."""
        while True:
            task = await self.call("get_task", task_id=task_id)
            if task["status"] == "completed":
                return task
            assert task["status"] != "failed", task["error_message"]
            await self.restart_agents()
            await asyncio.sleep(0.05)

    async def hire(self) -> None:
        """Have two workers."""
        await self.call("create_worktree", name="lab")
        for name in ("walt", "wilma"):
            await self.call("spawn_agent", persona_id="implementer", assigned_worktree="lab", name=name)

    async def dismiss(self) -> None:
        """End them."""
        for agent_id in ("walt", "wilma"):
            with suppress(Exception):
                await asyncio.wait_for(self.call("terminate_agent", agent_id=agent_id), 10)

    async def restart_agents(self) -> None:
        """Restart the agents that have ended."""
        for agent_id in (await self.call("get_unattended_work"))["restartable"]:
            with suppress(Exception):
                await self.call("restart_agent", agent_id=agent_id)

    # What must hold

    async def check(self) -> None:
        """Every byte is on the branch or kept, no commit has lines of two attempts, and what is completed is there."""
        for task_id in self.tasks:
            task = await self.call("get_task", task_id=task_id)
            (done,) = [attempt["attempt"] for attempt in task["attempts"] if attempt["outcome"] == "completed"]
            (artifact,) = [artifact for artifact in task["artifacts"] if artifact.startswith("commit:")]
            whole = [f"{done} {n}" for n in range(1, LINES + 1)]
            branch = f"wb/{task['attempts'][-1]['worktree']}/main"
            assert self.file(branch, task_id) == whole
            assert self.file(artifact.removeprefix("commit:"), task_id) == whole
            git("merge-base", "--is-ancestor", artifact.removeprefix("commit:"), branch, cwd=self.root)
            for (of_task, attempt), lines in self.written.items():
                if of_task == task_id and (attempt == done or self.keeps_all):
                    where = branch if attempt == done else f"refs/workbench/attempts/{task_id}/{attempt}"
                    assert self.file(where, task_id)[: len(lines)] == lines, (task_id, attempt)
        for commit, task_id in self.commits():
            assert len({line.split(" ")[0] for line in self.file(commit, task_id)}) <= 1, (commit, task_id)

    def file(self, commit: str, task_id: int) -> list[str]:
        return git("show", f"{commit}:made-{task_id}.txt", cwd=self.root).splitlines()

    def commits(self) -> Iterator[tuple[str, int]]:
        """All commits of attempts, and the tasks whose file is in each."""
        refs = git("for-each-ref", "--format=%(refname)", "refs/workbench/attempts", cwd=self.root).split()
        for commit in git("rev-list", "--branches=wb/*", *refs, "--not", "main", cwd=self.root).split():
            names = git("diff-tree", "-r", "-m", "--name-only", "--no-commit-id", commit, cwd=self.root).split()
            for name in {name for name in names if name.startswith("made-")}:
                yield commit, int(name.removeprefix("made-").removesuffix(".txt"))


@dataclass
class FarProject(Project):
    """A project whose workers are on another machine, in directories of their own."""

    far: Path = Path()
    workers: list[FarWorker] = field(default_factory=list)
    keeps_all = False  # what a worker that is killed had not sent is lost with it

    def terms(self, moment: Moment) -> dict[str, Any]:
        """Nobody tells the worker that no server runs: its lease is longer than one takes to start."""
        return {"lease_seconds": LEASE_SECONDS if moment is Moment.LEASE_END else 60.0}

    def outlives(self, moment: Moment) -> bool:
        return moment is not Moment.LEASE_END  # it cannot know that no server runs

    def lines(self, task_id: int) -> list[str]:
        """The lines of the newest attempt that has written some."""
        files = self.far.glob(f"far-*/work/.aiswarm/worktrees/*/made-{task_id}.txt")
        texts = [text.splitlines() for file in files if (text := file.read_text()).endswith("\n")]
        return max(texts, key=lambda lines: int(lines[0].split(" ")[0]), default=[])

    async def hire(self) -> None:
        url = f"http://127.0.0.1:{self.options[-1]}"
        token = (await self.call("add_machine", name="far"))["token"]
        for number in (1, 2):
            place = self.far / f"far-{number}"
            self.workers.append(FarWorker(place, url, token, "--persona", "implementer", "--name", place.name))
        await self.restart_agents()

    async def dismiss(self) -> None:
        for worker in self.workers:
            worker.end()
            print(worker.log)

    async def restart_agents(self) -> None:
        for worker in self.workers:
            if not worker.is_running:
                worker.start()

    async def pid_of(self, agent_id: str) -> int:
        worker = next(worker for worker in self.workers if worker.place.name == agent_id)
        assert worker.process is not None
        return worker.process.pid


FAR_ROUNDS = 100 * SOAK or 2


@pytest.mark.timeout(3_600 * SOAK or 900)
async def test_no_kill_loses_a_task_of_a_worker_elsewhere_or_has_it_done_twice(on_disk: Path, repository: Path) -> None:
    await kill(
        FarProject(repository, chance(), options=["--port", str(unused_port())], far=on_disk), NO_DATABASE, FAR_ROUNDS
    )


@pytest.mark.postgres
@pytest.mark.skipif(not SOAK, reason="takes minutes; kills of workers elsewhere are tried with SQLite")
@pytest.mark.timeout(3_600)
async def test_no_kill_of_a_database_loses_a_task_of_a_worker_elsewhere_or_has_it_done_twice(
    on_disk: Path, repository: Path, new_postgres_server: NewServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = new_postgres_server()
    with server.new_database() as name:
        monkeypatch.setenv(VARIABLE, server.url(name))
        project = FarProject(repository, chance(), server, options=["--port", str(unused_port())], far=on_disk)
        await kill(project, [*Victim], FAR_ROUNDS)


@pytest.mark.timeout(3_600 * SOAK or 900)
async def test_no_kill_loses_or_mixes_a_byte_of_an_attempt(repository: Path) -> None:
    await kill(Project(repository, chance()), NO_DATABASE)


@pytest.mark.postgres
@pytest.mark.timeout(3_600 * SOAK or 900)
async def test_no_kill_of_the_database_or_of_who_uses_it_loses_or_mixes_a_byte_of_an_attempt(
    repository: Path, new_postgres_server: NewServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = new_postgres_server()
    with server.new_database() as name:
        monkeypatch.setenv(VARIABLE, server.url(name))
        await kill(Project(repository, chance(), server), [*Victim])


async def kill(project: Project, victims: Sequence[Victim], count: int = ROUNDS) -> None:
    """Have tasks done while processes are hit, and look at what became of them."""
    project.serve(Victim.SERVER)
    try:
        await project.hire()
        for victim, hit, moment in itertools.islice(rounds(project.random, victims), count):
            print(f"{hit.name} to the {victim}, {moment}", flush=True)
            await project.round(victim, hit, moment)
        await project.check()
    finally:
        await project.dismiss()
        if project.server is not None:
            project.server.terminate()
            project.server.wait()


if __name__ == "__main__":
    from kernel_ext.hosting.host import KernelHost

    host = KernelHost(Settings.load(Path(sys.argv[1])))
    host.start(*map(int, sys.argv[2:]))
    while True:
        time.sleep(60)
