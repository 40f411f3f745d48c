"""Bring the raw table into a plain form: short names, one spelling, empty where unknown."""

from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

import _root  # noqa: F401
from penguins.data import CLEAN, RAW, SPECIES, Row, read_rows
from penguins.results import RESULTS, write_csv, write_json
from penguins.script import Failed, Outcome, run

CLEANING = RESULTS / "cleaning.json"
MISSING = ("", "NA")
CONSTANT = ("Region", "Stage")
MEASURED = ("bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g")


def species(text: str) -> str:
    """The common name: 'Adelie Penguin (Pygoscelis adeliae)' is an 'Adelie'."""
    name = text.split()[0]
    if name not in SPECIES:
        raise Failed(f"Unknown species {text!r} in {RAW}.")
    return name


def number(text: str) -> str:
    """Eight digits are more than was measured and less than a float's noise."""
    return f"{float(text):.8g}"


class Column(NamedTuple):
    name: str
    tidy: Callable[[str], str] = str.strip


COLUMNS = {
    "studyName": Column("study"),
    "Sample Number": Column("sample"),
    "Species": Column("species", species),
    "Island": Column("island"),
    "Individual ID": Column("individual"),
    "Clutch Completion": Column("clutch_complete", str.lower),
    "Date Egg": Column("egg_date"),
    "Culmen Length (mm)": Column("bill_length_mm", number),
    "Culmen Depth (mm)": Column("bill_depth_mm", number),
    "Flipper Length (mm)": Column("flipper_length_mm", number),
    "Body Mass (g)": Column("body_mass_g", number),
    "Sex": Column("sex", str.lower),
    "Delta 15 N (o/oo)": Column("delta_15n_permil", number),
    "Delta 13 C (o/oo)": Column("delta_13c_permil", number),
    "Comments": Column("comments"),
}


def tidy(row: Row) -> Row:
    return {
        column.name: "" if row[raw] in MISSING else column.tidy(row[raw])
        for raw, column in COLUMNS.items()
    }


def without_duplicates(rows: list[Row]) -> list[Row]:
    return list({tuple(row.items()): row for row in rows}.values())


def describe(raw: list[Row], clean: list[Row]) -> dict[str, Any]:
    """What was read, kept, missing and changed."""
    return {
        "rows_read": len(raw),
        "rows_kept": len(clean),
        "rows_complete": sum(all(row[name] for name in (*MEASURED, "sex")) for row in clean),
        "missing": {c.name: sum(not row[c.name] for row in clean) for c in COLUMNS.values()},
        "values_changed": dict(sorted(_changes(raw).items())),
        "species_names": {text: species(text) for text in sorted({r["Species"] for r in raw})},
        "columns_renamed": {raw_name: column.name for raw_name, column in COLUMNS.items()},
        "columns_dropped": {name: _constant(raw, name) for name in CONSTANT},
    }


def _changes(raw: list[Row]) -> Counter[str]:
    """How many values that are not missing are spelt differently now, by column."""
    return Counter(
        column.name
        for row in raw
        for raw_name, column in COLUMNS.items()
        if row[raw_name] not in MISSING and column.tidy(row[raw_name]) != row[raw_name]
    )


def _constant(rows: list[Row], name: str) -> str:
    values = {row[name] for row in rows}
    if len(values) != 1:
        raise Failed(f"{name!r} was to be dropped as constant, but has {len(values)} values.")
    return values.pop()


def work() -> Outcome:
    raw = read_rows(RAW)
    clean = without_duplicates([tidy(row) for row in raw])
    report = describe(raw, clean)
    write_csv(CLEAN, list(clean[0]), [list(row.values()) for row in clean])
    write_json(CLEANING, report)
    figures = {key: report[key] for key in ("rows_read", "rows_kept", "rows_complete", "missing")}
    line = "Cleaned {rows_read} rows, kept {rows_kept}, of which {rows_complete} are complete."
    return Outcome(line.format(**figures), figures, [CLEAN, CLEANING])


if __name__ == "__main__":
    run(work)
