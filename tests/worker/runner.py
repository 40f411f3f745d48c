"""Runs attempts in a directory.

Run as a program, this file runs one: a process that adopts orphans ends all of its children, also those that other
tests have started.
"""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import anyio
import psutil

from workbench.confinement import Box, BoxLimits, abilities
from workbench.drivers import AgentSetup
from workbench.process import adopt_orphans
from workbench.rules.profile import Profile
from workbench.worker import attempt
from workbench.worker.attempt import AttemptOutcome, Worker
from workbench.worker.listening import Call, Listener
from workbench.worker.messages import Mailbox
from workbench.worker.startup import WorkerConfig, WorktreePlace

SCRIPT = Profile(name="script", summary="Runs the task's command.")
ROOT = Path(__file__).parents[2]
Run = str | list[str] | None


@dataclass
class BegunListener(Listener):
    """Judges a program from its first words on: how long its start takes is the machine's matter."""

    has_begun: bool = False

    def hear(self, line: str) -> None:
        self.has_begun = True
        super().hear(line)

    def verdict(self) -> str | None:
        return super().verdict() if self.has_begun else None


@dataclass
class Runner:
    """Runs attempts in a directory and keeps what they say."""

    place: Path
    scratch: Path
    lines: list[str] = field(default_factory=list)
    has_output: asyncio.Event = field(default_factory=asyncio.Event)
    profile: Profile = SCRIPT
    function: str | None = None
    limits: BoxLimits = field(default_factory=BoxLimits)
    grace: float = 3.0
    adopts_orphans: bool = False
    confined: bool = False
    hosts: tuple[str, ...] = ()
    definition: AgentSetup | None = None
    secret_variables: tuple[str, ...] = ()
    calls: list[Call] = field(default_factory=list)
    attempts: list[dict[str, Any]] = field(default_factory=list)
    sessions: Path | None = None
    silence: float = 60.0
    mailbox: Mailbox | None = None

    async def __call__(self, run: Run, description: str = "", **extra: str) -> AttemptOutcome:
        task: dict[str, Any] = {"id": 7, "attempt": 2, "title": "t", "description": description, "run": run}
        config = WorkerConfig(
            url="http://127.0.0.1:1",
            token="wba_secret",
            scratch=self.scratch,
            box=Box(
                write=(self.place,) if self.confined else (),
                read=(),
                scratch=self.scratch,
                hosts=self.hosts,
                enforce=self.confined,
                namespaces=abilities().namespaces if self.hosts else frozenset(),
            ),
            worktree=WorktreePlace("lab", self.place, self.place / ".git", "lab", self.scratch / "writer"),
            project=self.place,
            profile=self.profile,
            function=self.function,
            limits=self.limits,
            environment=extra,
            secret_variables=self.secret_variables,
            grace_seconds=self.grace,
            definition=self.definition,
            sessions=self.sessions,
            silence_seconds=self.silence,
        )
        token = "wba_of_the_attempt" if self.profile.token else None
        worker = Worker(config, "ada", "You are thorough.", self.adopts_orphans, token)
        if self.attempts:
            task["attempts"] = self.attempts
        return await attempt.run(worker, task, self.place, self.on_line, self.calls.append, self.mailbox)

    async def alone(self, run: Run) -> AttemptOutcome:
        """Run an attempt in a separate process, as a supervisor is one; it leaves no children.

        Of the fields, it gets the directories and the limits.
        """
        asked = {"place": str(self.place), "scratch": str(self.scratch), "limits": asdict(self.limits), "run": run}
        argv = [sys.executable, "-m", "tests.worker.runner"]
        done = await anyio.run_process(argv, input=json.dumps(asked).encode(), stderr=None, cwd=ROOT)
        found = json.loads(done.stdout)
        self.lines += found["lines"]
        assert found["children"] == []
        return AttemptOutcome(**found["outcome"])

    def on_line(self, line: str) -> None:
        self.lines.append(line)
        self.has_output.set()

    @property
    def env(self) -> dict[str, str]:
        """The variables that `env` printed."""
        return dict(line.partition("=")[::2] for line in self.lines)


if __name__ == "__main__":
    asked = json.load(sys.stdin)
    runner = Runner(
        Path(asked["place"]),
        Path(asked["scratch"]),
        limits=BoxLimits(**asked["limits"]),
        adopts_orphans=adopt_orphans(),
    )
    outcome = asyncio.run(runner(asked["run"]))
    children = [child.pid for child in psutil.Process().children()]
    print(json.dumps({"outcome": asdict(outcome), "lines": runner.lines, "children": children}))
