import csv
from pathlib import Path

import pytest

from penguins.script import Outcome, hand_over

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def raw() -> list[dict[str, str]]:
    with (ROOT / "data/penguins_raw.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    counts = {
        kind: len(terminalreporter.getreports(kind)) for kind in ("passed", "failed", "skipped")
    }
    hand_over(Outcome("", counts))
