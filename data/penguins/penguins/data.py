"""The tables: the raw one as it was published, the clean one as `scripts/clean.py` writes it."""

import csv
from collections.abc import Iterable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Self

from penguins.script import Failed

RAW = Path("data/penguins_raw.csv")
CLEAN = Path("results/clean.csv")
SPECIES = ("Adelie", "Chinstrap", "Gentoo")
TEXT = ("species", "island", "sex")

Row = dict[str, str]


@dataclass(frozen=True)
class Penguin:
    """One bird of the clean table; None is a missing value."""

    species: str
    island: str
    sex: str | None
    bill_length_mm: float | None
    bill_depth_mm: float | None
    flipper_length_mm: float | None
    body_mass_g: float | None

    @classmethod
    def from_row(cls, row: Row) -> Self:
        return cls(**{f.name: _value(f.name, row[f.name]) for f in fields(cls)})


def read_rows(path: Path) -> list[Row]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def read_penguins() -> list[Penguin]:
    if not CLEAN.exists():
        raise Failed(f"{CLEAN} is missing: run `python scripts/clean.py` first.")
    return [Penguin.from_row(row) for row in read_rows(CLEAN)]


def complete(penguins: Iterable[Penguin], *columns: str) -> list[Penguin]:
    """The penguins of which all these columns are known."""
    return [p for p in penguins if all(getattr(p, c) is not None for c in columns)]


def column(penguins: Iterable[Penguin], name: str) -> list[float]:
    """A measurement of penguins that are complete in it."""
    return [getattr(p, name) for p in penguins]


def _value(name: str, text: str) -> Any:
    if not text:
        return None
    return text if name in TEXT else float(text)
