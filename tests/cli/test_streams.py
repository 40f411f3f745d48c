"""Commands whose standard streams are closed, or of an encoding that lacks characters."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

COMMAND = f"{sys.executable} -m workbench.cli sql \"SELECT 'za\u017c\u00f3\u0142\u0107' AS word\""


@pytest.mark.parametrize(
    ("redirection", "encoding", "shown"),
    [("", "latin-1", "za?\u00f3??"), ("2>&-", "utf-8", "za\u017c\u00f3\u0142\u0107"), ("<&- >&- 2>&-", "utf-8", "")],
)
def test_no_closed_or_narrow_stream_ends_a_command(redirection: str, encoding: str, shown: str, tmp_path: Path) -> None:
    done = subprocess.run(
        ["/bin/sh", "-c", f"{COMMAND} {redirection}"],
        env={**os.environ, "PYTHONIOENCODING": encoding, "WORKBENCH_PROJECT": str(tmp_path)},
        capture_output=True,
        check=False,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.decode(encoding).split() == (["word", shown] if shown else [])
