"""What counts as a clock that was set."""

from __future__ import annotations

import pytest

from workbench.model import SECOND
from workbench.rules.clocks import was_set


@pytest.mark.parametrize(
    ("seconds", "noticed"),
    [(0, False), (0.4, False), (-2, False), (2, False), (2.001, True), (-3_600, True), (10**9, True)],
)
def test_a_clock_that_moved_on_its_own_was_set_unless_it_is_a_matter_of_seconds(seconds: float, noticed: bool) -> None:
    assert was_set(5 * SECOND, int((5 + seconds) * SECOND)) is noticed
