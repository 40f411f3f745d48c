"""A night: a plan on the penguins is carried out by three programs, while what can happen in a night happens."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.conftest import git
from tests.night.clock import NightClock
from tests.small_disk import fill, small_disk
from workbench.state.settings import shipped

HERE = Path(__file__).parent
CREWS = {"implementer": "claude", "reviewer": "codex", "tester": "gemini"}
GONE_MINUTES = 5.0
DISK_MEGABYTES = 400
KEYS = {"ANTHROPIC_API_KEY": "sk-ant-night", "OPENAI_API_KEY": "sk-night", "GEMINI_API_KEY": "AIza-night"}
BASES = {"ANTHROPIC_BASE_URL": "", "OPENAI_BASE_URL": "/v1", "GOOGLE_GEMINI_BASE_URL": ""}


@dataclass(frozen=True)
class Script:
    """What is to be done in a night, and what goes wrong. Times are minutes after its begin.

    Args:
        tasks: how many tasks there are; of which some work as `liars`, `bunglers` and `silent` say (their numbers).
        turns, turn_minutes: how many turns a task takes, and how long one.
        places: how many worktrees, and so agents, each persona has.
        limits: `(provider, from, until)`.
        killed_workers, killed_servers, restarts: when; servers and machines are there again after `GONE_MINUTES`.
        full: from when until when the project's disk is full.
        silence_seconds: how long a program may say nothing before it is ended; after half of that it is silent.
    """

    tasks: int
    turns: int
    places: int
    turn_minutes: float = 3.0
    liars: Sequence[int] = ()
    bunglers: Sequence[int] = ()
    silent: Sequence[int] = ()
    limits: Sequence[tuple[str, float, float]] = ()
    killed_workers: Sequence[float] = ()
    killed_servers: Sequence[float] = ()
    restarts: Sequence[float] = ()
    full: Sequence[tuple[float, float]] = ()
    silence_seconds: float = 1_800.0

    @property
    def undisturbed(self) -> Script:
        """The same work on a night on which nothing goes wrong."""
        return Script(self.tasks, self.turns, self.places, self.turn_minutes)

    def plan(self) -> str:
        """The plan of the night."""
        tasks = []
        personas = list(CREWS)
        for number in range(self.tasks):
            persona = personas[number % len(personas)]
            place = f"{persona}-{number // len(personas) % self.places}"
            task: dict[str, Any] = {
                "name": f"n{number}",
                "title": f"Add up the part NIGHT-{number:03}",
                "persona": persona,
                "worktree": place,
                "check": f'test "$({_sum(number, self.tasks)})" = "$(cat {file_of(number)})"',
                "max_retries": 4,
            }
            if number % 5 == 4:
                task["after"] = [f"n{number - 3}"]
            tasks.append(task)
        return json.dumps({"plan": "night", "tasks": tasks})

    def models(self) -> dict[str, Any]:
        """The script of the models; see `model.py`."""
        tasks = {f"NIGHT-{number:03}": self._attempts(number) for number in range(self.tasks)}
        return {"tasks": tasks, "limits": [list(limit) for limit in self.limits]}

    def _attempts(self, number: int) -> list[list[list[Any]]]:
        pause = self.turn_minutes
        look = [[pause, "$ wc -l data/penguins_raw.csv"]] * (self.turns - 2)
        end = [[pause, "It is done."]]
        write = f"mkdir -p night && {_sum(number, self.tasks)} > {file_of(number)}"
        good = [*look, [pause, f"$ {write}"], *end]
        bad = [*look, [pause, f"$ mkdir -p night && echo wrong > {file_of(number)}"], *end]
        if number in self.liars:
            return [end, good]
        if number in self.bunglers:
            return [bad, bad, good]
        return [[[600.0, "…"]], good] if number in self.silent else [good]


def _sum(number: int, parts: int) -> str:
    return f"awk -F, 'NR % {parts} == {number} {{s += $13}} END {{print s + 0}}' data/penguins_raw.csv"


def file_of(number: int) -> str:
    """The file that a task writes."""
    return f"night/{number:03}.txt"


@dataclass
class Night:
    """A night on a project in a directory."""

    place: Path
    script: Script
    clock: NightClock
    project: Path = field(init=False)
    environment: dict[str, str] = field(init=False)
    processes: dict[str, subprocess.Popen[str]] = field(default_factory=dict)
    ended: list[tuple[str, float, int]] = field(default_factory=list)
    """The processes that ended by themselves, when, in minutes, and their exit statuses."""

    def __post_init__(self) -> None:
        self.project = self.place / "disk" / "project"
        shutil.copytree(shipped("data", "penguins"), self.project)
        for command in ("init -q -b main", "add -A", "commit -qm penguins"):
            git(*command.split(), cwd=self.project)
        (self.place / "plan.yaml").write_text(self.script.plan())
        (self.place / "models.json").write_text(json.dumps(self.script.models()))
        programs, home = self.place / "bin", self.place / "home"
        programs.mkdir()
        for name in CREWS.values():
            shutil.copy(HERE / "program.py", programs / name)
            (programs / name).chmod(0o755)
        (home / ".config" / "workbench").mkdir(parents=True)
        told = f'notify_command = "cat >> {self.place}/told && echo >> {self.place}/told"\n'
        read = f'confinement_read = "{programs}"\nprocess_sample_seconds = 30\n'
        silence = self.script.silence_seconds
        read += f"agent_silence_seconds = {silence}\nstall_seconds = {silence / 2}\n"
        (home / ".config" / "workbench" / "settings.toml").write_text(told + read)
        path = f"{programs}{os.pathsep}{os.environ['PATH']}"
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("WORKBENCH_", "PYTEST_"))}
        self.environment = kept | self.clock.environment | {"PATH": path, "HOME": str(home)} | KEYS

    @property
    def minutes(self) -> float:
        """Minutes since the night began."""
        return self.clock.passed / 60

    def start(self, name: str, *arguments: str) -> subprocess.Popen[str]:
        """Start a process with the clock's time, in a session of its own."""
        with (self.place / f"{name}.log").open("a") as log:
            self.processes[name] = process = subprocess.Popen(
                [self.clock.python, *arguments],
                cwd=self.project,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE if name == "model" else log,
                stderr=log,
                text=True,
                start_new_session=True,
            )
        return process

    def begin(self) -> None:
        """Start the models, the server and the execution of the plan."""
        model = self.start("model", "-m", "tests.night.model", str(self.place / "models.json"))
        assert model.stdout
        port = model.stdout.readline().strip()
        self.environment |= {name: f"http://127.0.0.1:{port}{path}" for name, path in BASES.items()}
        self.begin_again()

    def begin_again(self) -> None:
        """Start the server and the execution, as a machine does that has started."""
        self.serve()
        self.wait(lambda: (self.project / ".aiswarm" / "server.json").exists())
        staff = ",".join(f"{persona}={self.script.places}:{program}" for persona, program in CREWS.items())
        plan = str(self.place / "plan.yaml")
        self.start("run", "-m", "workbench.cli", "run", plan, f"--staff={staff}", "--integrate=auto-if-checked")

    def serve(self) -> None:
        """Start the server."""
        self.start("server", "-m", "workbench.cli", "serve", "--port=0")

    def wait(self, is_over: Callable[[], bool], most_minutes: float = 60.0) -> None:
        """Let time pass until something is so."""
        end = self.minutes + most_minutes
        while not is_over():
            self._tick()
            assert self.minutes < end, self.logs()

    def _tick(self) -> None:
        for name, process in list(self.processes.items()):
            if (status := process.poll()) is not None:
                self.ended.append((name, self.minutes, status))
                del self.processes[name]
        self.clock.tick({process.pid for process in self.processes.values()})

    def through(self, most_minutes: float) -> None:
        """Let the night pass, with all that happens in it, until the plan is done."""
        due = sorted(self._events(), key=lambda event: event[0])
        while due or "run" in self.processes:
            self._tick()
            assert self.minutes < most_minutes, self.logs()
            while due and due[0][0] <= self.minutes:
                due.pop(0)[1]()
        if "server" not in self.processes:
            self.serve()

    def _events(self) -> Iterator[tuple[float, Callable[[], None]]]:
        for at in self.script.killed_workers:
            yield at, self.kill_worker
        for at in self.script.killed_servers:
            yield at, self.kill_server
            yield at + GONE_MINUTES, self.serve_again
        for at in self.script.restarts:
            yield at, self.kill_all
            yield at + GONE_MINUTES, self.begin_again
        for since, until in self.script.full:
            yield since, lambda: fill(self.project.parent, 0)
            yield until, (self.project.parent / "filler").unlink

    def kill_worker(self) -> None:
        """Kill the supervisor of an agent whose program runs, as soon as one does."""
        self.wait(lambda: bool(self._busy()))
        self._busy()[0].kill()

    def _busy(self) -> list[psutil.Process]:
        return [worker for worker in self.workers() if worker.children()]

    def kill_server(self) -> None:
        """Kill the process that serves."""
        pid = json.loads((self.project / ".aiswarm" / "server.json").read_text())["pid"]
        for name in [name for name, process in self.processes.items() if process.pid == pid]:
            self.processes[name].kill()
            self.processes.pop(name).wait()

    def serve_again(self) -> None:
        """Have a server, and the execution of the plan, as who finds that one has ended."""
        self.begin_again() if "run" not in self.processes else self.serve()

    def workers(self) -> list[psutil.Process]:
        """The supervisors that run."""
        found = []
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                if (
                    "workbench.worker" in process.cmdline()
                    and process.environ().get("HOME") == self.environment["HOME"]
                ):
                    found.append(process)
        return sorted(found, key=lambda process: process.pid)

    def kill_all(self) -> None:
        """End all processes, but for the models, as a machine does that loses its power."""
        for name in [name for name in self.processes if name != "model"]:
            self.processes[name].kill()
        for process in self._below():
            with suppress(psutil.Error):
                process.kill()
        for name in [name for name in self.processes if name != "model"]:
            self.processes.pop(name).wait()

    def _below(self) -> Iterator[psutil.Process]:
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                here = process.environ().get("HOME") == self.environment["HOME"] or str(self.place) in process.cwd()
                if here and process.pid != os.getpid() and process.pid != self.processes["model"].pid:
                    yield process

    def ask(self, *arguments: str) -> Any:
        """What a command says, as JSON."""
        command = [self.clock.python, "-m", "workbench.cli", *arguments, "--json"]
        done = subprocess.run(command, cwd=self.project, env=self.environment, capture_output=True, text=True)
        assert done.stdout, done.stderr
        return json.loads(done.stdout)

    def told(self) -> list[Any]:
        """What the person was told."""
        told = self.place / "told"
        return [json.loads(line) for line in told.read_text().splitlines() if line] if told.exists() else []

    def logs(self) -> str:
        """The ends of all that was written."""
        return "\n".join(f"== {log.name}\n{log.read_text()[-3000:]}" for log in sorted(self.place.glob("*.log")))

    def end(self) -> None:
        """End everything."""
        self.kill_all()
        model = self.processes.pop("model")
        with model:
            model.kill()
        self.clock.close()


@contextmanager
def night(place: Path, script: Script) -> Iterator[Night]:
    """A night that has begun."""
    place.mkdir(exist_ok=True)
    with ExitStack() as opened:
        try:
            opened.enter_context(small_disk(place / "disk", DISK_MEGABYTES))
        except pytest.skip.Exception:
            script = replace(script, full=())
        begun = Night(place, script, NightClock(place / "clock"))
        try:
            begun.begin()
            yield begun
        finally:
            begun.end()
