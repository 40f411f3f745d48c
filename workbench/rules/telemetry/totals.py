"""What requests to models used, summed up since a time: the series of the metrics that a collector gets.

The sums are kept with the place up to which requests are in them, and are sent whole. So a restart, or sending them
twice, changes nothing.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from workbench.rules.telemetry.spans import Attribute, input_of, provider

TOKENS = "gen_ai.client.token.usage"
SECONDS = "gen_ai.client.operation.duration"
COST = "workbench.cost"
BOUNDS: Mapping[str, tuple[float, ...]] = {
    TOKENS: tuple(float(4**n) for n in range(14)),
    SECONDS: tuple(0.01 * 2**n for n in range(14)),
    COST: (),
}
"""The bounds of the buckets that the conventions advise; of the cost only the sum is told."""
MOST = 500
"""Series that are kept; of more models than these, what they use is that of `OTHER`."""
OTHER = "other"


@dataclass(frozen=True, slots=True)
class Series:
    """One series of a metric: how many values, their sum, the least, the most, and how many are in each bucket."""

    metric: str
    attributes: Mapping[str, Attribute]
    count: int
    sum: float
    least: float
    most: float
    buckets: tuple[int, ...]


class Totals:
    """The sums, read from JSON and written as it."""

    def __init__(self, text: str = "{}") -> None:
        self._series: dict[str, list[Any]] = json.loads(text)

    def add(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Count rows of the ledger."""
        for row in rows:
            about = [provider(row["provider"]), row["model"] or "unknown"]
            self._count(TOKENS, [*about, "input"], input_of(row))
            self._count(TOKENS, [*about, "output"], row["output_tokens"])
            self._count(SECONDS, [*about, row["error_code"] or ""], row["seconds"])
            self._count(COST, [*about, ""], row["cost_usd"])

    def series(self) -> list[Series]:
        """All series."""
        return [
            Series(name, _attributes(name, *about), values[0], values[1], values[2], values[3], tuple(values[4:]))
            for name, about, values in ((*json.loads(key), values) for key, values in self._series.items())
        ]

    def text(self) -> str:
        """The sums as JSON."""
        return json.dumps(self._series, separators=(",", ":"))

    def _count(self, metric: str, about: list[str], value: float | None) -> None:
        if value is None:
            return
        key = json.dumps([metric, about])
        if key not in self._series and len(self._series) >= MOST:
            key = json.dumps([metric, [OTHER, OTHER, about[2] if metric == TOKENS else ""]])
        bounds = BOUNDS[metric]
        values = self._series.setdefault(key, [0, 0, value, value] + [0] * (len(bounds) + 1))
        values[:4] = values[0] + 1, values[1] + value, min(values[2], value), max(values[3], value)
        values[4 + bisect_left(bounds, value)] += 1


def _attributes(metric: str, provider_name: str, model: str, last: str) -> dict[str, Attribute]:
    about: dict[str, Attribute] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": provider_name,
        "gen_ai.request.model": model,
    }
    if last:
        about["gen_ai.token.type" if metric == TOKENS else "error.type"] = last
    return about
