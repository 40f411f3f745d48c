"""The expiry of a grant, as it is typed."""

from __future__ import annotations

from typing import Any

import click
import pytest

from workbench.cli.grants import Expiry


@pytest.mark.parametrize(
    ("typed", "choices"),
    [
        ("30m", {"expires_in_seconds": 1_800}),
        ("2h", {"expires_in_seconds": 7_200}),
        ("7d", {"expires_in_seconds": 604_800}),
        ("never", {"expires_at": None}),
        ("2030-01-31T18:00:00Z", {"expires_at": "2030-01-31T18:00:00Z"}),
    ],
)
def test_an_expiry_is_a_duration_a_date_or_never(typed: str, choices: dict[str, Any]) -> None:
    assert Expiry().convert(typed, None, None) == choices


@pytest.mark.parametrize("typed", ["soon", "2x", "-1h", "", "1h30m"])
def test_a_malformed_expiry_is_refused(typed: str) -> None:
    with pytest.raises(click.BadParameter, match="is not a time"):
        Expiry().convert(typed, None, None)
