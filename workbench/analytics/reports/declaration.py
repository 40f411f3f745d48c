"""What a standard report declares."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import altair
    import pandas


@dataclass(frozen=True)
class Standard:
    """A standard report. Its query is the file of its name in `queries/`.

    Args:
        about: what it shows, for lists of reports.
        empty: the sentence when the query has no rows.
        sentence: says what the rows show, with their numbers; called with at least one row.
        picture: draws the rows; called with at least one row.
        groups_by: the column of the view `tasks` by which it compares groups, unless another is given. The query has
            ``{{by}}`` in its place.
    """

    name: str
    about: str
    empty: str
    sentence: Callable[[pandas.DataFrame], str]
    picture: Callable[[pandas.DataFrame], altair.Chart] | None = None
    groups_by: str | None = None
