"""B33: what it costs to mask the secrets that commands were given in what they print: processor time of 30 workers.

Both contestants run the same commands, which print the same lines: ordinary ones, and one in ten with a secret. Only
one of them was given the secrets. What is secret by its form alone is looked for by both.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.bench.project import scratch
from tests.bench.rows import Row, Samples, at_most, take_turns
from tests.worker.runner import Runner
from workbench.worker.progress import ProgressReporter, log

WORKERS = 30
LINES_PER_SECOND = 200
SECRETS = 20
SECONDS = 10.0
ONE_IN = 10
LINES = Path(__file__).parents[1] / "rules" / "secrets" / "ordinary.txt"
PRINT = """
import itertools, sys, time
lines, every, end = itertools.cycle(open(sys.argv[1])), 1 / int(sys.argv[2]), int(sys.argv[3])
began = time.monotonic()
for number, line in zip(range(end), lines):
    sys.stdout.write(line)
    if number % 20 == 19:
        sys.stdout.flush()
        time.sleep(max(0, began + number * every - time.monotonic()))
"""


def run(rounds: int, quick: bool) -> Mapping[str, Samples]:
    """Processor seconds of this process, which is that of all workers; the commands are others."""
    workers, seconds = (3, 1.0) if quick else (WORKERS, SECONDS)
    given = {f"SECRET_{number}": secrets.token_urlsafe(24) for number in range(SECRETS)}
    with scratch() as directory, logged(directory / "log"):
        bench = Bench(directory, workers, round(seconds * LINES_PER_SECOND), printed(directory, list(given.values())))
        times = take_turns(rounds, ours=lambda: bench.turn(given), other=lambda: bench.turn({}))
    note = f"{min(times['ours']) / (workers * bench.lines) * 1e6:.0f} µs a line"
    return {"": Samples(times["ours"], times["other"], "s", note=note)}


def printed(directory: Path, values: list[str]) -> Path:
    """The file of what each command prints, again and again."""
    texts = LINES.read_text("utf-8").splitlines()
    told = (f"connected as {value}" if number % ONE_IN == 0 else text for number, text, value in _beside(texts, values))
    (file := directory / "lines").write_text("".join(f"{line}\n" for line in told), "utf-8")
    return file


def _beside(texts: list[str], values: list[str]) -> Iterator[tuple[int, str, str]]:
    for number, text in enumerate(texts):
        yield number, text, values[number // ONE_IN % len(values)]


@contextmanager
def logged(file: Path) -> Iterator[None]:
    """The lines go to a log file, as in a worker."""
    handler, before = logging.FileHandler(file, encoding="utf-8"), log.level
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.setLevel(before)
        log.removeHandler(handler)
        handler.close()


@dataclass
class Reporting(Runner):
    """A worker that reports what its command prints."""

    reporter: ProgressReporter | None = None

    def on_line(self, line: str) -> None:
        assert self.reporter is not None
        self.reporter.add(line)


@dataclass
class Bench:
    """Workers of one process whose commands print at the same time."""

    directory: Path
    workers: int
    lines: int
    file: Path
    count: int = 0

    def turn(self, environment: Mapping[str, str]) -> float:
        """The processor seconds of one turn."""
        self.count += 1
        began = time.process_time()
        asyncio.run(self._all(self.directory / f"turn{self.count}", environment))
        return time.process_time() - began

    async def _all(self, place: Path, environment: Mapping[str, str]) -> None:
        await asyncio.gather(*(self._one(place / str(number), environment) for number in range(self.workers)))

    async def _one(self, place: Path, environment: Mapping[str, str]) -> None:
        reporter = ProgressReporter(_sent)
        for directory in (place / "work", place / "scratch"):
            directory.mkdir(parents=True)
        worker = Reporting(place / "work", place / "scratch", reporter=reporter)
        command = [sys.executable, "-SEc", PRINT, str(self.file), str(LINES_PER_SECOND), str(self.lines)]
        async with reporter.sending():
            outcome = await worker(command, **environment)
        assert outcome.ok, outcome.error


async def _sent(note: str) -> None:
    """Notes are the server's work."""


ROW = Row(
    "B33",
    f"{WORKERS} workers whose commands print {LINES_PER_SECOND} lines a second, of {SECRETS} secrets: processor time",
    "the same lines, without secrets that are known",
    {"": at_most(1.1)},
    run,
)
