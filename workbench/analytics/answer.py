"""The DataFrame that a query of a notebook gives: it can draw itself."""

from __future__ import annotations

from typing import Any

import pandas

from workbench.analytics.reports import Report
from workbench.analytics.reports.drawing import Drawing, draw


class QueryAnswer(pandas.DataFrame):
    """The rows of a query: a DataFrame in every way. What is computed from it is a DataFrame of pandas."""

    @property
    def _constructor(self) -> Any:
        return pandas.DataFrame

    def chart(
        self, mark: str | None = None, x: str | None = None, y: str | None = None, color: str | None = None
    ) -> Report:
        """A picture of the rows, which follows the theme; `.chart` of it is Altair's, `.save(path)` saves it.

        Args:
            mark: bar, line, area or point; by default, the types of the columns decide, as for the others.
            x, y, color: columns. Without `y`, rows are counted.

        Raises:
            BadInput: ``UNKNOWN_CHART``, ``NO_PICTURE``.
        """
        return draw(pandas.DataFrame(self), Drawing(mark, x, y, color))
