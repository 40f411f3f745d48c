"""The names of the metrics that runs have recorded."""

from __future__ import annotations

from collections.abc import Iterable

from workbench.errors import BadInput
from workbench.ops import Caller
from workbench.rules.naming import similar
from workbench.services.runs.run import SQL, scope
from workbench.store.base import Reader

NAMED = 10
"""How many metrics an error names."""


def require(tx: Reader, caller: Caller, names: Iterable[str]) -> None:
    """Refuse the name of a metric that no run has recorded: a misspelt condition would silently match nothing.

    While no run has recorded any metric, every name passes.

    Raises:
        BadInput: ``UNKNOWN_METRIC``.
    """
    for name in dict.fromkeys(names):
        if tx.one(SQL.has_metric, scope(caller), metric=name) is None:
            known = [row["name"] for row in tx.all(SQL.metric_names, scope(caller))]
            if known:
                raise BadInput("UNKNOWN_METRIC", f"No run has recorded the metric {name!r}. {_hint(name, known)}")


def _hint(name: str, known: list[str]) -> str:
    if meant := similar(name, known):
        return f"Did you mean {meant}?"
    more = ", …" if len(known) > NAMED else ""
    return f"Recorded are: {', '.join(known[:NAMED])}{more}."
