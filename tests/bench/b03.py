"""B3: claim and complete by eight processes on one file, beside three peers that do the same.

The bar is for a disk whose fsync takes a millisecond; see B1.
"""

from __future__ import annotations

import contextlib
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from tests.bench import disk, peers
from tests.bench.b01 import FSYNC_SECONDS, USUAL
from tests.bench.child import Child, heard, play, say
from tests.bench.project import check, drain, fill, identify, opened, prepare, running, scratch
from tests.bench.rows import Row, Samples, at_least, take_turns

PROCESSES = 8
FEW = 2
"""Processes of a quick run."""
AGENTS = 8
"""In each process."""


class Team:
    """Processes that wait on one file; `fill` gives them something to do."""

    def __init__(self, children: Sequence[Child], fill: Callable[[int, int], None], tasks: int) -> None:
        self._children = children
        self._fill = fill
        self._tasks = tasks
        self.given = 0
        self.done: list[int] = []
        for child in children:
            child.hear()

    def rate(self) -> float:
        """Tasks a second, from the word go until the last process finds nothing more."""
        self._fill(self._tasks, self.given)
        self.given += self._tasks
        started = time.perf_counter()
        for child in self._children:
            child.tell("go")
        for child in self._children:
            self.done += child.hear()
        return self._tasks / (time.perf_counter() - started)

    @property
    def doubled(self) -> int:
        """How many tasks were done more than once."""
        return len(self.done) - len(set(self.done))


@contextlib.contextmanager
def teams(
    directory: Path, processes: int, tasks: int, peer_tasks: int, environment: Mapping[str, str]
) -> Iterator[dict[str, Team]]:
    """All contestants, ready; at the end nothing of ours may be lost or doubled."""
    directory.mkdir()
    seed = prepare(directory / "ours", agents=processes * AGENTS, tasks=0)
    with running(seed.root, []) as project, contextlib.ExitStack() as stack:

        def team(arguments: Sequence[Sequence[str]], fill: Callable[..., None], tasks: int) -> Team:
            children = [stack.enter_context(Child("b03", *argument, extra=environment)) for argument in arguments]
            return Team(children, fill, tasks)

        shares = [seed.tokens[n::processes] for n in range(processes)]

        def more(count: int, given: int) -> None:
            project.run(project.workbench.store.write(lambda tx: fill(tx, count)))

        made = {"ours": team([("ours", str(seed.root), *share) for share in shares], more, tasks)}
        for peer in peers.PEERS:
            place = directory / peer
            place.mkdir()
            peers.fill(peer, place, 0)
            made[peer] = team([(peer, str(place))] * processes, partial(peers.fill, peer, place), peer_tasks)
        yield made
        project.run(check(project.workbench, made["ours"].done))


def run(rounds: int, quick: bool) -> Mapping[str, Samples]:
    """Tasks a second, by all processes together."""
    sizes = (FEW, 200, 40) if quick else (PROCESSES, 4_000, 800)
    with scratch() as directory:
        measured = {"this machine's disk": _measure(rounds, directory / "own", sizes, {})}
        slowed = disk.slowed(directory, FSYNC_SECONDS)
        if slowed is not None:
            measured[USUAL] = _measure(rounds, directory / "slowed", sizes, slowed)
        return measured


def _measure(rounds: int, directory: Path, sizes: tuple[int, int, int], environment: Mapping[str, str]) -> Samples:
    with teams(directory, *sizes, environment) as contestants:
        rates = take_turns(rounds, **{name: contestant.rate for name, contestant in contestants.items()})
        notes = [_note(name, contestants[name], rates[name]) for name in peers.PEERS]
    best = max(peers.PEERS, key=lambda name: statistics.median(rates[name]))
    return Samples(rates["ours"], rates[best], "tasks/s", f"{best}, {sizes[0]} processes", "; ".join(notes))


def _note(name: str, contestant: Team, rates: Sequence[float]) -> str:
    doubled = f", {contestant.doubled} of {contestant.given} doubled" if contestant.doubled else ""
    return f"{name} {statistics.median(rates):,.0f}{doubled}"


async def _ours(root: str, *tokens: str) -> None:
    async with opened(Path(root)) as workbench:
        callers = await identify(workbench, tokens)
        say("ready")
        for _ in heard():
            say(await drain(workbench, callers))


def _theirs(peer: str, directory: str) -> None:
    queue = peers.PEERS[peer](Path(directory))
    say("ready")
    for _ in heard():
        say(peers.drain(queue))


ROW = Row(
    "B3",
    f"claim + complete, {PROCESSES} processes on one file, {AGENTS} agents in each",
    f"best of {', '.join(peers.PEERS)}, {PROCESSES} processes each",
    {USUAL: at_least(3)},
    run,
    needs=("huey", "litequeue", "persistqueue"),
)

if __name__ == "__main__":
    play(ours=_ours, **{peer: partial(_theirs, peer) for peer in peers.PEERS})
