"""What a standard report declares."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

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
            ``{{by}}`` in its place, and ``$groups`` for those that were chosen.
        compares: what it compares, if one may choose. The query of projects is made once for each, with ``{{name}}``
            and, before the names of views, ``{{project}}``.
        arrange: makes the frame of the rows of the query.
    """

    name: str
    about: str
    empty: str
    sentence: Callable[[pandas.DataFrame], str]
    picture: Callable[[pandas.DataFrame], altair.Chart] | None = None
    groups_by: str | None = None
    compares: Literal["groups", "runs", "projects"] | None = None
    arrange: Callable[[pandas.DataFrame], pandas.DataFrame] | None = None
