"""The samples of legacy databases that come with the project."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from data.legacy import make_legacy
from tests.legacy.conftest import SAMPLES, dump
from workbench.legacy.source import read


def test_the_samples_are_the_same_each_time_and_the_full_one_has_hundreds_of_rows(
    samples: Path, tmp_path: Path
) -> None:
    again = make_legacy.make(tmp_path / "again")
    assert [dump(path) for path in again] == [dump(samples / path.name) for path in again]
    assert sum(read(samples / "full.db").found.values()) == 562


def test_the_script_makes_them_and_says_where(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, make_legacy.__file__, tmp_path / "out"], check=True, capture_output=True)
    assert json.loads(done.stdout) == [str(tmp_path / "out" / f"{name}.db") for name in SAMPLES]
