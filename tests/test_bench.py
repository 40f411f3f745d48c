"""The benchmarks work; what they measure is not judged here."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.bench import report, results
from tests.bench.results import Section
from tests.bench.rows import Bar, Row, Samples, at_least, at_most, over, rows, take_turns, within

ROOT = Path(__file__).parents[1]


def test_every_row_has_its_work_its_counterpart_and_its_bar() -> None:
    assert [row.id for row in rows() if not (row.work and row.counterpart and row.bar)] == []


def test_rows_are_unique_and_in_order() -> None:
    numbers = [int(row.id[1:]) for row in rows()]
    assert [row.id for row in rows()] == [f"B{number}" for number in sorted(set(numbers))]


def imported(module: str, seen: set[str]) -> set[str]:
    """The packages that a module of the tests cannot be read without, itself or by way of others."""
    path = ROOT / module.replace(".", "/")
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    if module in seen or not file.exists():
        return set()
    seen.add(module)
    names = []
    for node in ast.parse(file.read_text("utf-8")).body:
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names += [str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)]
    others = {name.partition(".")[0] for name in names} - {"tests"}
    return others.union(*(imported(name, seen) for name in names if name.startswith("tests.")))


def test_the_rows_can_be_imported_with_the_packages_of_make_bench() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    packages = {extra: {re.split(r"[^\w-]", need)[0].replace("-", "_") for need in extras[extra]} for extra in extras}
    only_elsewhere = set().union(*packages.values()) - packages["demo"] - packages["bench"] - {"workbench_agents"}
    modules = [f"tests.bench.{path.stem}" for path in (ROOT / "tests" / "bench").glob("*.py")]
    needed = {module: imported(module, set()) & only_elsewhere for module in modules}
    assert {module: packages for module, packages in needed.items() if packages} == {}


@pytest.mark.long
def test_a_quick_run_prints_a_table_and_judges_and_keeps_nothing() -> None:
    kept = results.RESULTS
    before = kept.read_bytes() if kept.exists() else None
    command = [sys.executable, "-m", "tests.bench", "b2"]
    printed = subprocess.check_output(command, cwd=ROOT, env=os.environ | {"QUICK": "1"}, text=True)
    (line,) = [line for line in printed.splitlines() if line.startswith("| B2 ")]
    assert re.search(r"[\d,]+ tasks/s .* [\d.]+ × .*≥ 0.4 ×", line)
    assert "met" not in line
    assert "missed" not in line
    assert (kept.read_bytes() if kept.exists() else None) == before


def test_a_row_whose_peer_is_not_installed_says_so_instead_of_failing() -> None:
    row = Row("B99", "work", "peer", {"": at_least(2)}, lambda rounds, quick: {}, needs=("json", "no_such_peer"))
    assert row.missing == ["no_such_peer"]
    assert "peer not installed: no_such_peer" in report.table(report.absent(row))


@pytest.mark.parametrize(
    ("bar", "met", "samples"),
    [
        (at_least(2.0), True, Samples([20, 30, 10], [10, 10, 10])),
        (at_least(2.0), False, Samples([19, 30, 10], [10, 10, 10])),
        (at_most(1.5), True, Samples([15, 30, 10], [10, 10, 10])),
        (at_most(1.5), False, Samples([16, 30, 10], [10, 10, 10])),
        (over(5, "s"), True, Samples([15, 30], [30, 10])),
        (over(5, "s"), False, Samples([16, 30], [30, 10])),
        (within(5, "ms"), True, Samples([9, 5, 9])),
        (within(5, "ms"), False, Samples([9, 6, 9])),
    ],
)
def test_a_bar_is_met_by_the_median_of_ratios_or_by_the_best_round(bar: Bar, met: bool, samples: Samples) -> None:
    assert bar.met(samples) is met


def test_contestants_take_turns_and_warm_up_first() -> None:
    ran = []

    def contestant(name: str) -> float:
        ran.append(name)
        return len(ran)

    assert take_turns(2, a=lambda: contestant("a"), b=lambda: contestant("b")) == {"a": [3, 5], "b": [4, 6]}
    assert ran == ["a", "b"] * 3


def section(machine: str, *rows: str) -> Section:
    """The results of a machine: the name of a row, and a figure after a colon."""
    cells = [row.split(":") for row in rows]
    return Section(machine, "Python 3", [[row, "work", figure, *[""] * 8] for row, figure in cells])


def test_figures_of_another_machine_are_kept_until_their_row_is_measured_again() -> None:
    ids = ["B1", "B2", "B7"]
    saved = [section("old", "B1:first", "B2:first", "B2:second"), section("older", "B7:first")]
    first = results.merged(saved, section("new", "B2:third"), ids)
    assert first == [section("new", "B2:third"), section("old", "B1:first"), section("older", "B7:first")]
    again = results.merged(first, section("new", "B1:fourth"), ids)
    assert again == [section("new", "B1:fourth", "B2:third"), section("older", "B7:first")]
    last = results.merged(again, section("older", "B2:now"), ids)  # the machine of the last run comes first
    assert last == [section("older", "B2:now", "B7:first"), section("new", "B1:fourth")]


def test_the_file_of_results_is_read_as_it_was_written() -> None:
    found = [section("new, 2 cores", "B1:7,024 tasks/s"), section("old", "B2:0.4 ×", "B10:3 ms")]
    assert results.sections(results.text(found)) == found
    assert results.sections("") == []
    kept = results.RESULTS.read_text("utf-8")
    assert results.text(results.sections(kept)) == kept
