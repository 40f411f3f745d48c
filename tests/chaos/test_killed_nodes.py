"""KOI nodes that are killed at random moments: both sides agree again, and nothing that was acknowledged is lost."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.chance import SOAK, chance
from tests.conftest import NewDatabase, in_environment

pytestmark = [pytest.mark.anyio, pytest.mark.chaos]

SCRIPT = Path(__file__).with_name("koi_node.py")
ROUNDS = 50 * SOAK or 2
CONVERGED = 15.0
"""Seconds within which both sides agree."""
LONGEST_LINE = 1_048_576
LOG_LINES = 40
"""Of each node's log that the report of a failure has."""


@dataclass
class Node:
    """A node that is killed and started again.

    Args:
        database: see `new_database`.
        own: what it has published and is acknowledged, by name.
        doubtful: names of changes that were not acknowledged.
    """

    name: str
    project: Path
    contact: str
    database: dict[str, Any]
    url: str = ""
    own: dict[str, int] = field(default_factory=dict)
    doubtful: set[str] = field(default_factory=set)
    _process: Process | None = None

    @property
    def names(self) -> list[str]:
        """The names that it may publish."""
        return [f"{self.name}-{number}" for number in range(8)]

    @property
    def log(self) -> Path:
        """The text that it has written to stderr."""
        return self.project.with_suffix(".log")

    async def start(self) -> None:
        """Start it, at the port that it had."""
        port, root = self.url.rpartition(":")[2] or "0", Path(__file__).parents[2]
        contact = [self.contact] if self.contact else []
        with self.log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, str(SCRIPT), str(self.project), self.name, port, *contact),
                stdin=PIPE,
                stdout=PIPE,
                stderr=log,
                env={**os.environ, **in_environment(self.database), "PYTHONPATH": str(root)},
                limit=LONGEST_LINE,
            )
        self.url = await self._answer()

    async def kill(self) -> None:
        """Kill it."""
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            await self._process.wait()

    async def ask(self, **command: Any) -> dict[str, Any]:
        """Have it do something; what it knows then."""
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(command).encode() + b"\n")
        found: dict[str, Any] = await self._answer()
        return found

    async def story(self) -> str:
        """Its knowledge, its exchange with its peer, and the end of its log."""
        parts = await self.ask(story=True)
        parts["log"] = self.log.read_text(errors="replace").splitlines()[-LOG_LINES:]
        told = ["\n    ".join([f"  {subject}", *lines]) for subject, lines in parts.items()]
        return "\n".join([f"{self.name} has published {self.own}", *told])

    async def change(self, random: Random) -> None:
        """Publish, change or withdraw a personality."""
        name = random.choice(self.names)
        self.doubtful.add(name)
        if name in self.own and random.random() < 0.4:
            await self.ask(forget=name)
            del self.own[name]
        else:
            value = random.randrange(1_000_000)
            await self.ask(put=name, value=value)
            self.own[name] = value
        self.doubtful.discard(name)

    async def settle(self) -> None:
        """Learn what has become of the changes that were not acknowledged."""
        known = await self.ask(own=self.names)
        for name in self.doubtful:
            self.own.pop(name, None)
            if name in known:
                self.own[name] = known[name]
        self.doubtful.clear()
        assert known == self.own

    async def _answer(self) -> Any:
        assert self._process is not None
        assert self._process.stdout is not None
        line = await self._process.stdout.readline()
        if not line:
            raise BrokenPipeError
        return json.loads(line)


@pytest.fixture
async def nodes(tmp_path: Path, new_database: NewDatabase) -> AsyncIterator[tuple[Node, Node]]:
    """Two nodes, of which the second contacts the first."""
    async with AsyncExitStack() as stack:
        made: list[Node] = []
        for name in ("hub", "ada"):
            project = tmp_path / name
            project.mkdir()
            node = Node(name, project, f"{made[0].url}/koi-net" if made else "", new_database())
            stack.push_async_callback(node.kill)
            await node.start()
            made.append(node)
        yield made[0], made[1]


@pytest.mark.timeout(60 + 60 * ROUNDS)
async def test_registries_agree_again_after_either_side_was_killed(nodes: tuple[Node, Node]) -> None:
    random = chance()
    for number in range(ROUNDS):
        victim, other = nodes if number % 2 else reversed(nodes)
        stop = asyncio.Event()
        busy = [asyncio.create_task(_change(node, random, stop)) for node in nodes]
        await asyncio.sleep(random.random() * 0.3)  # the moment of the kill
        await victim.kill()
        stop.set()
        await asyncio.gather(*busy)
        await other.change(random)
        await victim.start()
        await victim.settle()
        await victim.change(random)
        await _converge(nodes, f"after kill {number + 1}, of {victim.name}")


async def _change(node: Node, random: Random, stop: asyncio.Event) -> None:
    """Change what a node publishes until it is killed, or told to stop."""
    with suppress(BrokenPipeError, ConnectionResetError):
        while not stop.is_set():
            await node.change(random)


async def _converge(nodes: tuple[Node, Node], when: str) -> None:
    """Return once both agree; if they do not in time, the test fails with what both know."""
    try:
        async with asyncio.timeout(CONVERGED):
            await _agree(nodes)
    except TimeoutError:
        stories = [await node.story() for node in nodes]
        pytest.fail("\n\n".join([f"The nodes do not agree {when}.", *stories]), pytrace=False)


async def _agree(nodes: tuple[Node, Node]) -> None:
    """Return once both know what both have published, and nothing else."""
    expected = nodes[0].own | nodes[1].own
    while [await node.ask() for node in nodes] != [expected, expected]:
        await asyncio.sleep(0.02)
