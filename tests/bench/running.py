"""Measuring rows: one after the other, or only proving that they work, several at once."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from tests.bench import report
from tests.bench.rows import Row, rows

PROVED_AT_ONCE = 3
"""Rows mostly wait, and nothing is judged of those that are only proved."""


def measure(row: Row, rounds: int, *, quick: bool = False) -> list[list[str]]:
    """The lines of a row in the table."""
    print(f"{row.id}: {row.work} …", file=sys.stderr, flush=True)
    if row.missing:
        return report.absent(row)
    before = report.load()
    measured = row.run(rounds, quick)
    return report.lines(row, measured, report.Circumstances(before, report.load(), judged=not quick))


def prove(wanted: Sequence[Row]) -> list[list[str]]:
    """The lines of rows that are run once, each in a process of its own."""
    with ProcessPoolExecutor(PROVED_AT_ONCE, get_context("spawn"), max_tasks_per_child=1) as pool:
        return [line for lines in pool.map(_prove_one, [row.id for row in wanted]) for line in lines]


def _prove_one(name: str) -> list[list[str]]:
    [row] = [row for row in rows() if row.id == name]
    return measure(row, 1, quick=True)
