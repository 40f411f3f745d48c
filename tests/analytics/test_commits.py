"""The view `commits` gives each commit to the attempt that made it, also when another worktree merged it first."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

import duckdb
import pytest

from workbench.analytics import mirrors, views

SECOND = 1_000_000


class Recorded:
    """Attempts and requests to merge, as rows."""

    def __init__(self, db: duckdb.DuckDBPyConnection) -> None:
        self._db = db

    def attempt(self, task: int, agent: str, worktree: str, seconds: tuple[float, float], base: str = "root") -> None:
        """The only attempt at a task.

        Args:
            base: the commit that it began at.
        """
        claimed, ended = (int(second * SECOND) for second in seconds)
        self._insert("raw_tasks", id=task, worktree=worktree)
        self._insert("raw_attempts", task_id=task, attempt=1, agent_uid=agent, claimed_us=claimed, ended_us=ended)
        self._db.execute("UPDATE raw_attempts SET base_commit = ? WHERE task_id = ?", [base, task])
        if not self._db.execute("SELECT 1 FROM raw_agents WHERE id = ?", [agent]).fetchall():
            self._insert("raw_agents", id=agent, agent=agent)

    def request(self, approval: int, worktree: str, commits: Sequence[tuple[str, str, int]], merge: str | None) -> None:
        """A request to merge.

        Args:
            commits: id, author and second of each, the newest first.
            merge: the commit that merged them.
        """
        made = [{"id": id, "author": author, "at_us": at * SECOND, "subject": id} for id, author, at in commits]
        asked = {"kind": "integration", "subject": f"worktree:{worktree}", "payload": json.dumps({"commits": made})}
        decided = {"status": "approved" if merge else "pending", "outcome": json.dumps({"commit": merge})}
        self._insert("raw_approvals", id=approval, **asked, **decided)

    def owners(self) -> dict[str, tuple[str, int | None, str | None]]:
        """Worktree, task and merge of each commit."""
        rows = self._db.execute("SELECT commit_id, worktree, task_id, merge_commit FROM commits").fetchall()
        assert len({commit for commit, *_ in rows}) == len(rows)
        return {commit: (worktree, task, merge) for commit, worktree, task, merge in rows}

    def _insert(self, table: str, **values: object) -> None:
        marks = ", ".join("?" * len(values))
        self._db.execute(f"INSERT INTO {table} ({', '.join(values)}) VALUES ({marks})", list(values.values()))


@pytest.fixture
def recorded() -> Iterator[Recorded]:
    with duckdb.connect() as db:
        mirrors.create(db)
        views.create(db)
        yield Recorded(db)


def test_a_commit_that_another_worktree_merged_is_of_its_authors_task(recorded: Recorded) -> None:
    recorded.attempt(1, "ada", "report", (10.4, 11.2))
    recorded.attempt(2, "bob", "bills", (11.3, 14), base="cleaned")
    recorded.request(1, "bills", [("compared", "bob", 12), ("cleaned", "ada", 11)], merge="first")
    recorded.request(2, "report", [("written", "ada", 20), ("cleaned", "ada", 11)], merge=None)
    assert recorded.owners() == {
        "cleaned": ("report", 1, "first"),
        "compared": ("bills", 2, "first"),
        "written": ("report", None, None),
    }


def test_a_commit_that_an_attempt_began_with_is_not_of_that_attempt(recorded: Recorded) -> None:
    recorded.attempt(1, "ada", "report", (10.4, 11.2))
    recorded.attempt(2, "ada", "report", (11.3, 14), base="written")
    recorded.request(1, "report", [("tested", "ada", 13), ("written", "ada", 11), ("read", "ada", 11)], merge=None)
    tasks = {commit: task for commit, (_, task, _) in recorded.owners().items()}
    assert tasks == {"tested": 2, "written": 1, "read": 1}


def test_a_commit_of_somebody_else_in_a_worktree_is_of_the_task_that_was_done_there(recorded: Recorded) -> None:
    recorded.attempt(1, "ada", "report", (10.4, 15))
    recorded.attempt(2, "bob", "bills", (10.4, 15))
    recorded.request(1, "report", [("by hand", "Ann Lee", 12)], merge="first")
    assert recorded.owners() == {"by hand": ("report", 1, "first")}
