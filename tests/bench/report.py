"""The table, and what it was measured on; `results` keeps it."""

from __future__ import annotations

import os
import platform
import sqlite3
import statistics
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import psutil

from tests.bench.rows import Bar, Row, Samples

PACKAGES = ("mcp", "uvicorn", "pydantic", "ipython", "huey", "litequeue", "persist-queue", "fastmcp")
HEADINGS = ("Row", "Work", "Workbench", "Counterpart", "Figure", "Bar", "Verdict", "Rounds", "Load", "Date", "Note")


@dataclass(frozen=True)
class Circumstances:
    """When a row was measured, and how busy the machine was: its load before and after."""

    before: float
    after: float
    judged: bool

    @property
    def load(self) -> str:
        """Both loads."""
        return f"{self.before:.1f} → {self.after:.1f}"


def load() -> float:
    """How many processes wanted to run, over the last minute."""
    return os.getloadavg()[0]


def lines(row: Row, measured: Mapping[str, Samples], now: Circumstances) -> list[list[str]]:
    """The lines of a row."""
    made = []
    for name, samples in measured.items():
        bar = row.bars.get(name)
        figure = _figure(samples, bar)
        verdict = "" if bar is None or not now.judged else ("met" if bar.met(samples) else "**missed**")
        work = f"{row.work}: {name}" if name else row.work
        ours, other = (_median(values, samples.unit) for values in (samples.ours, samples.other))
        against = samples.against or (row.counterpart if other else "–")
        counterpart = f"{against}: {other}" if other else against
        date = datetime.now(UTC).date().isoformat()
        cells = [row.id, work, ours, counterpart, figure, str(bar or ""), verdict, str(len(samples.ours)), now.load]
        made.append([*cells, date, samples.note])
    return made


def _figure(samples: Samples, bar: Bar | None) -> str:
    if bar is None:
        return f"{samples.ratio:.3g} ×" if samples.other else ""
    return f"{bar.figure(samples):.3g} {bar.unit}"


def absent(row: Row) -> list[list[str]]:
    """The line of a row whose peers are not installed."""
    why = f"peer not installed: {', '.join(row.missing)}"
    return [[row.id, row.work, "", row.counterpart, "", row.bar, why, "", "", "", ""]]


def table(body: Iterable[Sequence[str]]) -> str:
    """A Markdown table that can be read as it is."""
    rows = [HEADINGS, *body]
    widths = [max(len(row[i]) for row in rows) for i in range(len(HEADINGS))]
    text = ["| " + " | ".join(cell.ljust(width) for cell, width in zip(r, widths, strict=True)) + " |" for r in rows]
    text.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(text)


def machine() -> str:
    """The machine of this run."""
    memory = psutil.virtual_memory().total / 2**30
    disk = _filesystem(Path(tempfile.gettempdir()))
    return f"{_processor()}, {os.cpu_count()} cores, {memory:.0f} GiB, {platform.system()} {platform.release()}, {disk}"


def versions() -> str:
    """The versions of the measured programs."""
    found = [f"Python {platform.python_version()}", f"SQLite {sqlite3.sqlite_version}"]
    for package in ("workbench-agents", *PACKAGES):
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    return ", ".join(found)


def _median(values: Sequence[float], unit: str) -> str:
    if not values:
        return ""
    median = statistics.median(values)
    return f"{median:,.0f} {unit}" if median >= 100 else f"{median:.3g} {unit}"


def _processor() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text("utf-8")
    except OSError:
        return platform.machine()
    names = [line.partition(":")[2].strip() for line in text.splitlines() if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _filesystem(path: Path) -> str:
    mounted = [p for p in psutil.disk_partitions(all=True) if path.resolve().is_relative_to(p.mountpoint)]
    return max(mounted, key=lambda p: len(p.mountpoint)).fstype if mounted else "disk"
