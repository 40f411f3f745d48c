"""Periodic work, and how much of the time it takes."""

from __future__ import annotations

import pytest

from workbench.app import Duty
from workbench.services.worktrees import conflicts


@pytest.mark.parametrize(("took", "pause"), [(0.0, 1.0), (0.05, 1.0), (0.1, 1.9), (0.2, 3.8), (60.0, 10.0)])
def test_costly_work_pauses_for_longer_but_not_for_ever(took: float, pause: float) -> None:
    assert Duty(1.0, conflicts.watch, share=0.05).pause(took) == pytest.approx(pause)


def test_other_work_pauses_as_long_as_it_is_told() -> None:
    assert Duty(0.25, conflicts.watch).pause(60.0) == 0.25
