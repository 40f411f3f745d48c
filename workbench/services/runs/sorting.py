"""The orders of lists of runs, each read page by page along an index.

First come the runs that have what is sorted by; then those that have not, such as runs without a metric, newest first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from workbench.errors import BadInput
from workbench.model import LARGEST_INT
from workbench.rules.wire import paging
from workbench.services.runs.run import SQL
from workbench.store.base import Reader, Row
from workbench.store.queries import Query

NEWEST = "newest"
METRIC, PARAMETER = "metric:", "parameter:"
"""Before the name of a metric or parameter that is called like something else that is sorted by."""
Value = str | int | float


@dataclass(frozen=True)
class Order:
    """One thing that runs are sorted by.

    Args:
        ascending, descending: the queries of its pages.
        value: of a row.
        lowest, highest: where the first page begins: below and above all values.
        rest: the query of the runs that have no value; None: there are none.
    """

    ascending: Query
    descending: Query
    value: Callable[[Row], Value]
    lowest: Value
    highest: Value
    rest: Query | None = None


ORDERS = {
    "name": Order(SQL.by_name, SQL.by_name_descending, lambda row: row["name"], "", "\U0010ffff" * 101),
    "state": Order(SQL.by_state, SQL.by_state_descending, lambda row: row["state"], "", "zz"),
    "started": Order(SQL.by_start, SQL.by_start_descending, lambda row: row["started_at"], -1, LARGEST_INT),
    "duration": Order(
        SQL.by_duration,
        SQL.by_duration_descending,
        lambda row: row["ended_at"] - row["started_at"],
        -LARGEST_INT,
        LARGEST_INT,
        SQL.unended,
    ),
}
MEASURED = Order(
    SQL.by_metric,
    SQL.by_metric_descending,
    lambda row: row["measured"],
    float("-inf"),
    float("inf"),
    SQL.unmeasured,
)
GIVEN = Order(
    SQL.by_parameter,
    SQL.by_parameter_descending,
    lambda row: row["measured"],
    float("-inf"),
    float("inf"),
    SQL.without_parameter,
)


def page(
    tx: Reader, values: dict[str, Any], sort: str, limit: int, cursor: str | None
) -> tuple[Sequence[Row], str | None]:
    """The rows of a page, and the cursor of the next one; None if it is the last.

    Args:
        values: the filters, as parameters of queries.
        sort: `NEWEST`, the name of an order, of a metric, or of a parameter after `PARAMETER`; with ``-`` before it,
            from the largest down.

    Raises:
        BadInput: ``BAD_CURSOR``.
    """
    values = values | {"limit": limit + 1}
    if sort == NEWEST:
        [after] = paging.decode(cursor, int) if cursor else (LARGEST_INT,)
        return paging.cut(tx.all(SQL.newest, values, after=after), limit, "id")
    field = sort.removeprefix("-")
    order = GIVEN if field.startswith(PARAMETER) else ORDERS.get(field, MEASURED)
    values["metric"] = field.removeprefix(METRIC).removeprefix(PARAMETER)
    is_rest, value, after = _start(order, sort, cursor)
    rows: list[Row] = []
    if not is_rest:
        query = order.descending if sort.startswith("-") else order.ascending
        with_value = tx.all(query, values, value=value, after=after)
        rows = [{**row, "rest": 0, "key": _encode(type(order.lowest)(order.value(row)))} for row in with_value]
        after = LARGEST_INT
    if len(rows) <= limit and order.rest is not None:
        rest = tx.all(order.rest, values | {"limit": limit + 1 - len(rows)}, after=after)
        rows += [{**row, "rest": 1, "key": ""} for row in rest]
    return paging.cut([{**row, "sort": sort} for row in rows], limit, "sort", "rest", "key", "id")


def value_of(sort: str) -> str | None:
    """The metric or parameter by which runs are to be sorted, with what is before its name; None: by something else."""
    field = sort.removeprefix("-")
    return None if field in (NEWEST, *ORDERS) else field


def _start(order: Order, sort: str, cursor: str | None) -> tuple[bool, Value, int]:
    """Where a page begins: whether among the runs that have no value, and after which value and id."""
    first, after = (order.highest, LARGEST_INT) if sort.startswith("-") else (order.lowest, 0)
    if not cursor:
        return False, first, after
    of_sort, rest, key, last = paging.decode(cursor, str, int, str, int)
    try:
        if of_sort != sort:
            raise ValueError(of_sort)
        return bool(rest), first if rest else _decode(key, order), last
    except (ValueError, OverflowError):
        raise BadInput(
            "BAD_CURSOR", "This cursor is not from this list. Send next_cursor unchanged, or none."
        ) from None


def _encode(value: Value) -> str:
    return value.hex() if isinstance(value, float) else str(value)


def _decode(key: str, order: Order) -> Value:
    """The value of a text that `_encode` made.

    Raises:
        ValueError: it made none such. OverflowError: the number is too large.
    """
    if isinstance(order.lowest, str):
        return key
    if isinstance(order.lowest, float):
        return float.fromhex(key)
    if abs(value := int(key)) > LARGEST_INT:
        raise OverflowError(key)
    return value
