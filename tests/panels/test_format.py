"""Times and durations as the panel writes them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent.parent
NOW = 1_700_000_000_000
"""November 14, 2023, 22:13:20 UTC."""
pytestmark = pytest.mark.node


def written(name: str, *values: Any) -> str:
    """What a function of the panel makes of values, in the time zone of Greenwich."""
    if shutil.which("node") is None:
        pytest.skip("Node.js is not installed; the panel's own code is tested in it")
    ran = subprocess.run(
        ["node", "tests/panels/format.mjs"], input=json.dumps([name, *values]), cwd=ROOT,
        env=os.environ | {"TZ": "UTC"}, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    return str(json.loads(ran.stdout))


def test_a_time_of_another_year_has_its_year() -> None:
    assert written("dateTime", "2023-11-14T10:05:00Z", NOW) == "Nov 14, 10:05"
    assert written("dateTime", "2021-11-14T10:05:00Z", NOW) == "Nov 14, 2021, 10:05"


def test_the_day_begins_at_0_hours() -> None:
    assert written("dateTime", "2023-11-14T00:05:00Z", NOW) == "Nov 14, 00:05"
    assert written("timeOfDay", "2023-11-14T00:05:07Z") == "00:05:07"
    assert written("hourMinute", NOW - NOW % 86_400_000) == "00:00"


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [(0, "0 ms"), (20.4, "20 ms"), (999.4, "999 ms"), (999.7, "1.0 s"), (1_500, "1.5 s"), (59_900, "59 s"),
     (60_000, "1 min"), (7_500_000, "2 h 5 min"), (-5, "0 ms")],
)  # fmt: skip
def test_a_duration_has_the_unit_that_fits_it(milliseconds: float, text: str) -> None:
    assert written("duration", milliseconds) == text
