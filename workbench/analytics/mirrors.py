"""The tables of the store that DuckDB has a copy of."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from workbench.rules.secrets.executed import with_masks
from workbench.store.queries import Query, beside

if TYPE_CHECKING:
    import duckdb

SQL = beside(__file__)
ALL_ROWS = "CAST(:keys AS TEXT) IS NULL OR "


@dataclass(frozen=True)
class Mirror:
    """A table copied into DuckDB: its columns there, and the query that reads its rows.

    Events with the subject ``<noun>:<key>`` mean that the rows with this value in the column `key` changed. Events
    about another noun may say so, too: see `changes.NAMED`.

    Attributes:
        deleted: the kind of event, with the subject ``<noun>:<key>``, after which the rows with this value in the
            column `owner` are no longer there; None: there is none.
        masks: of columns that the store has as they were given, what masks the secrets in a value.
    """

    table: str
    columns: dict[str, str]
    rows: Query
    noun: str
    key: str
    deleted: str | None = None
    owner: str = ""
    masks: Mapping[str, Callable[[str], str]] = field(default_factory=dict)

    @cached_property
    def changed_rows(self) -> Query:
        """`rows` for keys only: as long as all rows may be wanted, SQLite looks at each of them."""
        return Query(f"changed_{self.rows.name}", self.rows.text.replace(ALL_ROWS, ""))


def _masked_json(text: str) -> str:
    masked = with_masks(given := json.loads(text))
    return text if masked == given else json.dumps(masked, ensure_ascii=False)


@dataclass(frozen=True)
class Numbered:
    """A table copied into DuckDB whose rows are too many for an event each: it is followed by the ids of its rows.

    The first column is this id. It rises from commit to commit, and a row that changes gets a new one. Rows that the
    store deletes stay in a copy, unless an event says that all with their key are read anew.

    Attributes:
        rows: the query of the rows after an id, and of all with some keys.
        unique: columns in which no two rows of the store are equal: a row takes the place of an older one.
        restart: the kind of event, with the subject ``<noun>:<key>``, after which the rows with this value in the
            column `key` are read anew; None: there is none.
    """

    table: str
    columns: dict[str, str]
    rows: Query
    unique: tuple[str, ...] = ()
    restart: str | None = None
    key: str = ""


MIRRORS = (
    Mirror(
        "raw_tasks",
        {
            "id": "BIGINT",
            "title": "VARCHAR",
            "plan": "VARCHAR",
            "name": "VARCHAR",
            "persona": "VARCHAR",
            "worktree": "VARCHAR",
            "parent_id": "BIGINT",
            "priority": "BIGINT",
            "due": "VARCHAR",
            "session_id": "VARCHAR",
            "on_failure": "VARCHAR",
            "created_by": "VARCHAR",
            "status": "VARCHAR",
            "agent_uid": "VARCHAR",
            "attempt": "BIGINT",
            "retry_count": "BIGINT",
            "progress": "BIGINT",
            "created_us": "BIGINT",
            "claimed_us": "BIGINT",
            "started_us": "BIGINT",
            "completed_us": "BIGINT",
            "result": "VARCHAR",
            "artifacts": "VARCHAR",
            "error": "VARCHAR",
            "evidence": "VARCHAR",
            "needs": "VARCHAR",
            "approval_id": "BIGINT",
        },
        SQL.tasks,
        "task",
        "id",
        masks={"title": with_masks},
    ),
    Mirror(
        "raw_attempts",
        {
            "task_id": "BIGINT",
            "attempt": "BIGINT",
            "machine": "VARCHAR",
            "agent_uid": "VARCHAR",
            "claimed_us": "BIGINT",
            "started_us": "BIGINT",
            "ended_us": "BIGINT",
            "outcome": "VARCHAR",
            "error": "VARCHAR",
            "error_class": "VARCHAR",
            "definition": "VARCHAR",
            "definition_hash": "VARCHAR",
            "prompt_hash": "VARCHAR",
            "include": "VARCHAR",
            "base_commit": "VARCHAR",
            "kept_commit": "VARCHAR",
            "profile": "VARCHAR",
            "input_tokens": "BIGINT",
            "output_tokens": "BIGINT",
            "cost_usd": "DOUBLE",
            **dict.fromkeys(("plan", "session_id", "persona"), "VARCHAR"),
            "run_id": "BIGINT",
            "leased": "VARCHAR",
        },
        SQL.attempts,
        "task",
        "task_id",
    ),
    Mirror(
        "raw_checks",
        {
            "task_id": "BIGINT",
            "attempt": "BIGINT",
            **dict.fromkeys(("command", "commit_id", "state"), "VARCHAR"),
            "tries": "BIGINT",
            "exit_code": "BIGINT",
            **dict.fromkeys(("asked_us", "started_us", "ended_us"), "BIGINT"),
            "metrics": "VARCHAR",
            "output": "VARCHAR",
        },
        SQL.checks,
        "task",
        "task_id",
        masks={"command": _masked_json},
    ),
    Mirror(
        "raw_resources",
        {
            **dict.fromkeys(("machine", "name", "device"), "VARCHAR"),
            **dict.fromkeys(("amount", "vram"), "BIGINT"),
            "problem": "VARCHAR",
        },
        SQL.resources,
        "resource",
        "name",
    ),
    Mirror(
        "raw_messages",
        {
            "id": "BIGINT",
            **dict.fromkeys(("kind", "sender", "recipient"), "VARCHAR"),
            **dict.fromkeys(("task_id", "attempt"), "BIGINT"),
            "body": "VARCHAR",
            **dict.fromkeys(("approval_id", "sent_us", "seen_us", "acted_us"), "BIGINT"),
        },
        SQL.messages,
        "message",
        "id",
    ),
    Mirror(
        "raw_dependencies",
        {"task_id": "BIGINT", "depends_on": "BIGINT"},
        SQL.dependencies,
        "task",
        "task_id",
    ),
    Mirror(
        "raw_agents",
        {
            "id": "VARCHAR",
            "agent": "VARCHAR",
            "name": "VARCHAR",
            "status": "VARCHAR",
            "persona": "VARCHAR",
            "role": "VARCHAR",
            "tool": "VARCHAR",
            "worktree": "VARCHAR",
            "parent": "VARCHAR",
            "session_id": "VARCHAR",
            "definition": "VARCHAR",
            "definition_hash": "VARCHAR",
            "registered_us": "BIGINT",
        },
        SQL.agents,
        "agent",
        "id",
    ),
    Mirror(
        "raw_sessions",
        {"id": "VARCHAR", "name": "VARCHAR", "project_id": "VARCHAR", "created_us": "BIGINT"},
        SQL.sessions,
        "session",
        "id",
    ),
    Mirror("raw_projects", {"id": "VARCHAR", "name": "VARCHAR"}, SQL.projects, "project", "id"),
    Mirror(
        "raw_processes",
        {
            "agent_uid": "VARCHAR",
            "machine": "VARCHAR",
            "profile": "VARCHAR",
            "pid": "BIGINT",
            "spawned_us": "BIGINT",
            "ended_us": "BIGINT",
            "exit_code": "BIGINT",
            "reason": "VARCHAR",
        },
        SQL.processes,
        "agent",
        "agent_uid",
    ),
    Mirror(
        "raw_approvals",
        {
            "id": "BIGINT",
            "kind": "VARCHAR",
            "status": "VARCHAR",
            "requester": "VARCHAR",
            "subject": "VARCHAR",
            "created_us": "BIGINT",
            "decided_us": "BIGINT",
            "decided_by": "VARCHAR",
            "reason": "VARCHAR",
            "requester_uid": "VARCHAR",
            "payload": "VARCHAR",
            "outcome": "VARCHAR",
        },
        SQL.approvals,
        "approval",
        "id",
        masks={"payload": _masked_json, "outcome": _masked_json},
    ),
    Mirror(
        "raw_worktrees",
        {
            "name": "VARCHAR",
            "branch": "VARCHAR",
            "target": "VARCHAR",
            "status": "VARCHAR",
            "machine": "VARCHAR",
            "commit_id": "VARCHAR",
            "created_by": "VARCHAR",
            "created_us": "BIGINT",
            "closed_us": "BIGINT",
        },
        SQL.worktrees,
        "worktree",
        "name",
    ),
    Mirror(
        "raw_tool_calls",
        {
            "id": "VARCHAR",
            "tool_name": "VARCHAR",
            "source": "VARCHAR",
            "kind": "VARCHAR",
            "server": "VARCHAR",
            "offered_by": "VARCHAR",
            "offerer_name": "VARCHAR",
            "configuration": "VARCHAR",
            "version": "VARCHAR",
            "caller": "VARCHAR",
            "agent_uid": "VARCHAR",
            "task_id": "BIGINT",
            "attempt": "BIGINT",
            "conversation_id": "VARCHAR",
            "definition_id": "VARCHAR",
            "definition_hash": "VARCHAR",
            "origin_node": "VARCHAR",
            "origin_call": "VARCHAR",
            "origin_caller": "VARCHAR",
            "state": "VARCHAR",
            "error_code": "VARCHAR",
            "approval_id": "BIGINT",
            "requested_us": "BIGINT",
            "started_us": "BIGINT",
            "ended_us": "BIGINT",
            "progress": "DOUBLE",
            "progress_total": "DOUBLE",
            "progress_message": "VARCHAR",
            "input_tokens": "BIGINT",
            "output_tokens": "BIGINT",
            "cost_usd": "DOUBLE",
            "arguments": "VARCHAR",
            "result": "VARCHAR",
        },
        SQL.tool_calls,
        "tool_call",
        "id",
    ),
    Mirror(
        "raw_conversations",
        {"id": "VARCHAR", "title": "VARCHAR", "definition": "VARCHAR"},
        SQL.conversations,
        "conversation",
        "id",
    ),
    Mirror(
        "raw_turns",
        {
            "id": "VARCHAR",
            "conversation_id": "VARCHAR",
            "number": "BIGINT",
            "role": "VARCHAR",
            "state": "VARCHAR",
            "content": "VARCHAR",
            "model": "VARCHAR",
            "definition_hash": "VARCHAR",
            "prompt_hash": "VARCHAR",
            "include": "VARCHAR",
            "end_reason": "VARCHAR",
            "cut_at": "BIGINT",
            "error_code": "VARCHAR",
            "input_tokens": "BIGINT",
            "output_tokens": "BIGINT",
            "requests": "BIGINT",
            "unmeasured": "BIGINT",
            "cost_usd": "DOUBLE",
            "replaced": "BOOLEAN",
            "created_us": "BIGINT",
            "ended_us": "BIGINT",
        },
        SQL.turns,
        "turn",
        "id",
        deleted="conversation.deleted",
        owner="conversation_id",
    ),
    Mirror(
        "raw_model_requests",
        {
            **{"turn_id": "VARCHAR", "number": "BIGINT", "conversation_id": "VARCHAR", "purpose": "VARCHAR"},
            **{"model": "VARCHAR", "started_us": "BIGINT", "seconds": "DOUBLE", "first_token_seconds": "DOUBLE"},
            **dict.fromkeys(("input_tokens", "cached_tokens", "cache_write_tokens"), "BIGINT"),
            **{"output_tokens": "BIGINT", "thinking_tokens": "BIGINT", "cost_usd": "DOUBLE"},
            **{"end_reason": "VARCHAR", "error_code": "VARCHAR"},
        },
        SQL.model_requests,
        "turn",
        "turn_id",
        deleted="conversation.deleted",
        owner="conversation_id",
    ),
    Mirror(
        "raw_personalities",
        {
            **dict.fromkeys(("reference", "rid", "name", "version", "owner", "origin", "sha256"), "VARCHAR"),
            "tools": "BIGINT",
            "contents": "VARCHAR",
            **dict.fromkeys(("published_us", "first_seen_us", "changed_us"), "BIGINT"),
        },
        SQL.personalities,
        "personality",
        "reference",
    ),
    Mirror(
        "raw_runs",
        {
            **{"id": "BIGINT", "key": "VARCHAR", "name": "VARCHAR", "sweep_id": "BIGINT", "parent_id": "BIGINT"},
            **dict.fromkeys(("sweep", "notebook", "state", "error_code", "error"), "VARCHAR"),
            **{"tries": "BIGINT", "session_id": "VARCHAR", "git_commit": "VARCHAR", "git_dirty": "BIGINT"},
            **dict.fromkeys(("output", "created_by", "notes", "tags"), "VARCHAR"),
            **dict.fromkeys(("parameters", "definitions", "environment"), "VARCHAR"),
            **dict.fromkeys(("archived_us", "started_us", "ended_us"), "BIGINT"),
        },
        SQL.runs,
        "run",
        "id",
    ),
    Mirror(
        "raw_budgets",
        {
            **{"scope": "VARCHAR", "tokens": "BIGINT", "usd": "DOUBLE", "attempts": "BIGINT", "seconds": "DOUBLE"},
            **{"stopped": "BIGINT", "stated_by": "VARCHAR", "set_us": "BIGINT"},
        },
        SQL.budgets,
        "budget",
        "scope",
    ),
)
NUMBERED = (
    Numbered(
        "raw_process_samples",
        {
            **{"id": "BIGINT", "kind": "VARCHAR", "owner": "VARCHAR", "pid": "BIGINT", "at_us": "BIGINT"},
            **{"cpu_seconds": "DOUBLE", "memory_bytes": "BIGINT", "processes": "BIGINT"},
        },
        SQL.process_samples,
    ),
    Numbered(
        "raw_spending",
        {
            **{"id": "BIGINT", "at_us": "BIGINT"},
            **dict.fromkeys(("source", "provider", "model", "agent_uid"), "VARCHAR"),
            **{"task_id": "BIGINT", "attempt": "BIGINT"},
            **dict.fromkeys(("plan", "session_id", "definition", "definition_hash"), "VARCHAR"),
            **{"run_id": "BIGINT", "conversation_id": "VARCHAR", "status": "BIGINT", "error_code": "VARCHAR"},
            **{"seconds": "DOUBLE", "first_byte_seconds": "DOUBLE"},
            **dict.fromkeys(("input_tokens", "cached_tokens", "cache_write_tokens"), "BIGINT"),
            **dict.fromkeys(("cache_write_hour_tokens", "output_tokens", "reasoning_tokens"), "BIGINT"),
            **{"is_cut": "BIGINT", "is_estimated": "BIGINT", "cost_usd": "DOUBLE", "persona": "VARCHAR"},
        },
        SQL.spending,
    ),
    Numbered(
        "raw_transcripts",
        {
            **{"id": "BIGINT", "task_id": "BIGINT", "attempt": "BIGINT", "at_us": "BIGINT"},
            **dict.fromkeys(("role", "chain", "node", "content"), "VARCHAR"),
        },
        SQL.transcripts,
    ),
    Numbered(
        "raw_run_metrics",
        {
            **{"id": "BIGINT", "run_id": "BIGINT", "name": "VARCHAR", "step": "BIGINT", "at_us": "BIGINT"},
            **{"value": "DOUBLE", "text": "VARCHAR"},
        },
        SQL.run_metrics,
        unique=("run_id", "name", "step"),
        restart="run.started",
        key="run_id",
    ),
)
EVENT_COLUMNS = {
    "id": "BIGINT",
    "at_us": "BIGINT",
    "kind": "VARCHAR",
    "actor": "VARCHAR",
    "subject": "VARCHAR",
    "session": "VARCHAR",
    "data": "JSON",
}


TABLES: Mapping[str, Mapping[str, str]] = {
    "raw_events": EVENT_COLUMNS,
    **{mirror.table: mirror.columns for mirror in (*MIRRORS, *NUMBERED)},
}
"""All of them: their columns, with their types in DuckDB."""


def create(db: duckdb.DuckDBPyConnection) -> None:
    """Create the tables, empty."""
    for table, columns in TABLES.items():
        db.execute(f"CREATE TABLE {table} ({', '.join(f'{name} {kind}' for name, kind in columns.items())})")


def newest(db: duckdb.DuckDBPyConnection) -> dict[str, int]:
    """The ids of the last rows of the numbered tables, by table."""
    rows = {mirror.table: db.execute(f"SELECT max(id) FROM {mirror.table}").fetchone() for mirror in NUMBERED}
    return {table: row[0] for table, row in rows.items() if row is not None and row[0] is not None}


def mask(db: duckdb.DuckDBPyConnection) -> None:
    """Mask the secrets in the tables as they were given."""
    for mirror in MIRRORS:
        for column, masked in mirror.masks.items():
            rows = db.execute(f"SELECT DISTINCT {column} FROM {mirror.table} WHERE {column} IS NOT NULL").fetchall()
            for value, shown in ((value, masked(value)) for (value,) in rows):
                if shown != value:
                    db.execute(f"UPDATE {mirror.table} SET {column} = ? WHERE {column} = ?", [shown, value])
