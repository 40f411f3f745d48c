"""How the agents of a definition have done, by version: what the store has of their processes and attempts."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from statistics import median
from typing import Annotated

from pydantic import AwareDatetime, Field

from workbench.model import SECOND, Micros
from workbench.ops import Command, Ctx
from workbench.services.definitions import changes
from workbench.services.definitions.operation import AgentTarget, DefinitionAnswer, definition_op
from workbench.store.base import Reader, Row
from workbench.store.queries import beside

SQL = beside(__file__)


class Failures(DefinitionAnswer):
    """Failed attempts with one error class; null: they have none."""

    error_class: str | None
    count: int


class Figures(DefinitionAnswer):
    """What agents have done.

    `starts`: of their processes. `given_up`: attempts that were released or whose lease ran out; `running`: those that
    have not ended. `median_seconds` and `total_seconds`: how long ended attempts took; null without one. `tool_calls`:
    those of its agents and its conversations; `tool_seconds`: how long they took together.
    """

    starts: int
    agents: int
    tasks: int
    attempts: int
    completed: int
    failed: int
    given_up: int
    running: int
    median_seconds: float | None
    total_seconds: float
    tool_calls: int
    failed_tool_calls: int
    tool_seconds: float
    failures: list[Failures]
    first_at: Micros | None
    last_at: Micros | None


class VersionFigures(Figures):
    """What agents have done with one version. `hash` is null for those that Workbench did not start."""

    hash: str | None
    is_current: bool


class Analytics(Figures):
    """What all agents of a definition have done, and by version, oldest first."""

    id: str
    name: str
    versions: list[VersionFigures]


@definition_op(
    reads=True,
    command=Command(
        "define analytics AGENT",
        help="Show what the agents of a definition have done, by version: attempts, failures, durations.",
    ),
)
async def agent_analytics(
    ctx: Ctx,
    agentTarget: AgentTarget,
    since: Annotated[AwareDatetime | None, Field(description="Only what was begun from then on (ISO 8601).")] = None,
) -> Analytics:
    """Count what the agents of a definition have done, by version: starts, tasks, attempts, failures, durations."""
    snapshot = await changes.read(ctx, agentTarget)
    metadata = snapshot.definition.metadata
    begun = int(since.timestamp() * SECOND) if since else 0
    attempts, starts, calls = await ctx.read(lambda tx: _read_rows(tx, metadata.id, begun))
    versions = dict.fromkeys([*(row["hash"] for row in attempts), *starts, *(row["hash"] for row in calls)])
    return Analytics(
        **dict(_figures(attempts, len(starts), calls)),
        id=metadata.id,
        name=metadata.name,
        versions=[
            VersionFigures(
                **dict(_figures(_with_hash(attempts, version), starts.count(version), _with_hash(calls, version))),
                hash=version,
                is_current=version == snapshot.hash,
            )
            for version in versions
        ],
    )


def _with_hash(rows: Iterable[Row], version: str | None) -> list[Row]:
    return [row for row in rows if row["hash"] == version]


def _read_rows(tx: Reader, definition_id: str, since: int) -> tuple[list[Row], list[str | None], list[Row]]:
    """The attempts that were made with a definition, the version of each start with it, and its calls of tools."""
    rows = tx.all(SQL.starts, id=definition_id, since=since)
    starts = [
        data["definition_hash"] for row in rows if (data := json.loads(row["data"])).get("definition") == definition_id
    ]
    values = {"id": definition_id, "since": since}
    return tx.all(SQL.attempts, values), starts, tx.all(SQL.tool_calls, values)


def _figures(attempts: Sequence[Row], starts: int, calls: Sequence[Row]) -> Figures:
    outcomes = Counter(row["outcome"] for row in attempts if row["ended_at"] is not None)
    seconds = [_seconds(row) for row in attempts if row["ended_at"] is not None]
    return Figures(
        starts=starts,
        agents=_distinct(attempts, "agent_id"),
        tasks=_distinct(attempts, "task_id"),
        attempts=len(attempts),
        completed=outcomes["completed"],
        failed=outcomes["failed"],
        given_up=outcomes.total() - outcomes["completed"] - outcomes["failed"],
        running=len(attempts) - outcomes.total(),
        median_seconds=round(median(seconds), 3) if seconds else None,
        total_seconds=round(sum(seconds), 3),
        tool_calls=len(calls),
        failed_tool_calls=sum(row["state"] == "failed" for row in calls),
        tool_seconds=round(sum((row["ended_at"] - row["started_at"]) / SECOND for row in calls if _has_run(row)), 3),
        failures=_failures(row["error_class"] for row in attempts if row["outcome"] == "failed"),
        first_at=attempts[0]["claimed_at"] if attempts else None,
        last_at=attempts[-1]["claimed_at"] if attempts else None,
    )


def _failures(classes: Iterable[str | None]) -> list[Failures]:
    return [Failures(error_class=name, count=count) for name, count in Counter(classes).most_common()]


def _has_run(call: Row) -> bool:
    return call["started_at"] is not None and call["ended_at"] is not None


def _distinct(rows: Iterable[Row], column: str) -> int:
    return len({row[column] for row in rows})


def _seconds(row: Row) -> float:
    begun = row["claimed_at"] if row["started_at"] is None else row["started_at"]
    return float(row["ended_at"] - begun) / SECOND
