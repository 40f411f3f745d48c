"""B32: what it costs to hear a program: the share of a core for 100 events a second, by driver.

A command prints the lines of a normal day of each program again and again; they are masked and reported as in a worker.
The sending of notes is left out: that is the server's work.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.bench.b33 import Reporting, _sent, logged
from tests.bench.project import scratch
from tests.bench.rows import Row, Samples, within
from tests.drivers.days import DAYS
from workbench.rules.profile import Profile
from workbench.worker.progress import ProgressReporter

EVENTS_PER_SECOND = 100
SECONDS = 10.0
PRINT = """
import sys, time
began, every = time.monotonic(), 1 / int(sys.argv[2])
for number, line in enumerate(open(sys.argv[1])):
    print(line, end="", flush=True)
    time.sleep(max(0, began + number * every - time.monotonic()))
"""


def run(rounds: int, quick: bool) -> Mapping[str, Samples]:
    """Processor time of this process, which is a worker's, while the command runs."""
    seconds = 1.0 if quick else SECONDS
    with scratch() as directory, logged(directory / "log"):
        turns = [
            {driver: asyncio.run(_share(directory / f"{number}-{driver}", driver, seconds)) for driver in DAYS}
            for number in range(rounds)
        ]
    return {driver: Samples([turn[driver] for turn in turns], unit="% of a core") for driver in DAYS}


async def _share(place: Path, driver: str, seconds: float) -> float:
    for directory in (place / "work", place / "scratch"):
        directory.mkdir(parents=True)
    printed = itertools.islice(_lines(driver), round(seconds * EVENTS_PER_SECOND))
    (file := place / "lines").write_text("".join(f"{json.dumps(line)}\n" for line in printed), "utf-8")
    command = [sys.executable, "-SEc", PRINT, str(file), str(EVENTS_PER_SECOND)]
    profile = Profile(name="p", summary="A script.", command=command, driver=driver)
    reporter = ProgressReporter(_sent)
    worker = Reporting(place / "work", place / "scratch", profile=profile, reporter=reporter)
    began, used = time.monotonic(), time.process_time()
    async with reporter.sending():
        await worker(None)
    assert worker.calls, "it was heard"
    return 100 * (time.process_time() - used) / (time.monotonic() - began)


def _lines(driver: str) -> Iterator[Any]:
    """The lines of a day; what begins it comes once, and it does not end."""
    begins = 2 if driver == "acp" else 1
    return itertools.chain(DAYS[driver][:begins], itertools.cycle(DAYS[driver][begins:-1]))


ROW = Row(
    "B32",
    f"a program whose output has {EVENTS_PER_SECOND} events a second is heard: processor time of its worker",
    "–",
    {driver: within(3, "% of a core") for driver in DAYS},
    run,
)
