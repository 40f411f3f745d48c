"""How far a plan is: one line that changes in a terminal, however narrow; lines where nothing can be erased."""

from __future__ import annotations

import os
import sys
from collections import Counter

import pytest

from workbench.cli.execution import showing
from workbench.execution.execution import Standing

STANDINGS = [
    Standing(Counter(pending=3, in_progress=1), {}, [], [], None),
    Standing(Counter(completed=4), {}, [7], [], None),
    Standing(Counter(completed=4), {}, [7], [], None),
]
BEGUN, ENDED = "0 of 4 tasks completed, 1 in progress, 3 pending", "4 of 4 tasks completed, 1 waiting for you"


@pytest.mark.parametrize(
    ("columns", "kind", "begins", "ends"),
    [
        (
            "100",
            "xterm",
            f"\r\x1b[K[....................] {BEGUN}, 0 min",
            f"[####################] {ENDED}, 0 min\r\x1b[K",
        ),
        ("30", "xterm", f"\r\x1b[K{BEGUN[:29]}\r", f"\r\x1b[K{ENDED[:29]}\r\x1b[K"),
        ("30", "dumb", f"{BEGUN}\r\n", f"{ENDED}\r\n"),
    ],
)
def test_the_progress_fits_the_terminal(
    monkeypatch: pytest.MonkeyPatch, columns: str, kind: str, begins: str, ends: str
) -> None:
    above, below = os.openpty()
    with os.fdopen(below, "w") as terminal, monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", terminal)
        patch.setenv("COLUMNS", columns)
        patch.setenv("TERM", kind)
        with showing() as show:
            for standing in STANDINGS:
                show(standing)
        written = ""
        while not written.endswith(ends):  # it comes in parts
            written += os.read(above, 10_000).decode()
    os.close(above)
    assert written.startswith(begins)
    if kind == "dumb":
        assert written == begins + ends, "a line for each change"


def test_a_file_gets_a_line_for_each_change(capsys: pytest.CaptureFixture[str]) -> None:
    with showing() as show:
        for standing in STANDINGS:
            show(standing)
    assert capsys.readouterr().err == f"{BEGUN}\n{ENDED}\n"
