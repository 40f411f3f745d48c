"""Legacy databases to bring, and what is in a database."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from data.legacy import make_legacy
from workbench.legacy import LegacyImport
from workbench.model import SECOND

SAMPLES = ["small", "full", "without-contexts", "registered"]

NOW = 1_800_000_000 * SECOND


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with every sample, to be copied."""
    directory = tmp_path_factory.mktemp("legacy")
    make_legacy.make(directory)
    return directory


@pytest.fixture
def samples(made: Path, tmp_path: Path) -> Path:
    """A directory with every sample, which a test may change."""
    return Path(shutil.copytree(made, tmp_path / "samples"))


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """The path of a test's own legacy database."""
    return tmp_path / "legacy.db"


def asked(path: Path, question: str) -> list[dict[str, Any]]:
    with closing(sqlite3.connect(path)) as db:
        db.row_factory = sqlite3.Row
        return [dict(row) for row in db.execute(question)]


def rows(path: Path, question: str) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in asked(path, question)]


def column(path: Path, question: str) -> list[Any]:
    return [one for (one,) in rows(path, question)]


def dump(path: Path) -> list[str]:
    """Everything that is in a database; in what order its parts were made does not count."""
    with closing(sqlite3.connect(path)) as db:
        return sorted(db.iterdump())


def added(imported: LegacyImport) -> dict[str, int]:
    """How many rows were added, where any were."""
    return {table: counted.added for table, counted in imported.tables.items() if counted.added}
