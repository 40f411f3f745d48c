"""The marks of processes stay what they are: those of a sweep that runs are looked for after an update."""

from __future__ import annotations

from workbench.rules.sweeps.marks import run_mark, sweep_mark


def test_marks_are_those_of_the_sweep_and_of_the_run_in_their_project() -> None:
    assert sweep_mark("one", "/p") == "sweep-889fbbb2f6583a0f9d4fe3e41ae95cc9"
    assert run_mark("one", "/p") == "run-889fbbb2f6583a0f9d4fe3e41ae95cc9"
