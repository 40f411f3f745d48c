"""What workers wrote is shown in the panel as on a terminal: without anything that is obeyed."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from workbench.inert import inert

ROOT = Path(__file__).parent.parent.parent
pytestmark = pytest.mark.node

CHARACTERS = [chr(number) for number in (*range(0x20000), *range(0xDFFF0, 0xE1010))]


def test_the_panel_shows_every_character_as_a_terminal_does() -> None:
    if shutil.which("node") is None:
        pytest.skip("Node.js is not installed; the panel's own code is tested in it")
    ran = subprocess.run(
        ["node", "tests/panels/make_inert.mjs"],
        input=json.dumps(CHARACTERS),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    shown = json.loads(ran.stdout)
    assert [a for a, b in zip(CHARACTERS, shown, strict=True) if inert(a) != b] == []
