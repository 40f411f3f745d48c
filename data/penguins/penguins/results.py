"""What the analyses leave in `results/` and the report reads."""

import csv
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from penguins.chart import Chart
from penguins.script import Failed

RESULTS = Path("results")


@dataclass(frozen=True)
class Table:
    """Cells as they are to be read; the first column names the row."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]

    def markdown(self) -> str:
        rule = [":--"] + ["--:"] * (len(self.columns) - 1)
        return "\n".join(f"| {' | '.join(row)} |" for row in (self.columns, rule, *self.rows))


@dataclass(frozen=True)
class Finding:
    """One analysis: what it says, the numbers behind it, and a table to look them up."""

    title: str
    text: str
    figures: dict[str, Any]
    table: Table


def save(name: str, finding: Finding, chart: Chart) -> list[Path]:
    """Write NAME.json, NAME.csv and NAME.svg."""
    data, table, picture = (RESULTS / f"{name}.{kind}" for kind in ("json", "csv", "svg"))
    write_json(data, asdict(finding))
    write_csv(table, finding.table.columns, finding.table.rows)
    write_text(picture, chart.svg())
    return [data, table, picture]


def load(name: str) -> Finding:
    raw = read_json(RESULTS / f"{name}.json", made_by=name)
    return Finding(**{**raw, "table": Table(**raw["table"])})


def read_json(path: Path, *, made_by: str) -> Any:
    if not path.exists():
        raise Failed(f"{path} is missing: run `python scripts/{made_by}.py` first.")
    return json.loads(path.read_text(encoding="utf-8"))


def write_json(path: Path, data: Any) -> None:
    write_text(path, json.dumps(data, indent=2, ensure_ascii=False) + "\n")


def write_csv(path: Path, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    path.parent.mkdir(exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([columns, *rows])


def write_text(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8", newline="\n")
