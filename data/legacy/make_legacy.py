"""Create sample databases of the old server for `workbench migrate`: `python data/legacy/make_legacy.py OUTDIR`.

small.db             one ordinary project with two sessions
full.db              hundreds of rows with every known irregularity; always the same rows
without-contexts.db  the first schema, before contexts were added
registered.db        a database that the old server migrated itself and then continued to use
"""

from __future__ import annotations

import json
import re
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

_PARTS = re.compile(r"^-- part: (\w+)\n", re.MULTILINE)
_START = datetime(2024, 3, 1, 9, 0, 0)


def make(directory: Path) -> list[Path]:
    """Create every sample in a directory; return their paths."""
    makers = {"small": small, "full": full, "without-contexts": without_contexts, "registered": registered}
    directory.mkdir(parents=True, exist_ok=True)
    made = [directory / f"{name}.db" for name in makers]
    for path, maker in zip(made, makers.values(), strict=True):
        maker(path)
    return made


def small(path: Path) -> None:
    """One project, two sessions, a team in each, three agents and three contexts."""
    with database(path, "first", "contexts") as db:
        _few(db)
        for number, agent in enumerate(["a-ada", "a-ada", "a-bob"], 1):
            content = {"title": f"Finding {number}", "content": "Gentoo penguins are the heaviest."}
            where = {"project_id": "p-birds", "session_id": "s-field", "agent_id": agent, "sequence_number": number}
            insert(db, "contexts", id=f"c-{number}", **content, **where, created_at=f"2024-03-02T10:0{number}:00")


def without_contexts(path: Path) -> None:
    """The rows of `small`, before there were contexts."""
    with database(path, "first") as db:
        _few(db)


def registered(path: Path) -> None:
    """The rows of `small` after the old migration: one agent registered since, one waits, one was turned away."""
    with database(path, "first", "contexts") as db:
        _few(db)
        extend(db, "registration")
        asked = {"name": "Cyd", "selected_tool": "register", "registration_status": "pending", "status": "connected"}
        came = {**asked, "created_at": "2024-04-01 08:00:00.25", "capabilities": '{"nlp": true}', "connection_id": "c1"}
        assigned = {"registration_status": "assigned", "assigned_agent_id": "cyd", "session_id": "s-field"}
        insert(db, "agents", **{**came, **assigned}, id="pending_c1_20240401_080000")
        insert(db, "agents", **came, id="pending_c2_20240401_080100")
        insert(db, "agents", **came, id="pending_c3_20240401_080200", deleted_at="2024-04-01T09:00:00")
        insert(db, "contexts", id="c-1", title="A note", session_id="s-field", agent_id="cyd", created_at="2024-04-02")


def full(path: Path, seed: int = 1) -> None:
    """Some hundreds of rows: names that repeat, parents that are gone, times in every form, NULLs, odd ids."""
    random = Random(seed)
    with database(path, "first", "contexts") as db:
        _Oddities(db, random).add()


class _Oddities:
    """Rows as no program should have written them, and many did."""

    SIZES = {"projects": 12, "sessions": 40, "teams": 60, "agents": 150, "contexts": 300}
    AGENT_IDS = ("Ada Lovelace", "Ada-Lovelace", "ada/1", "é", "system", "Operator", "x" * 70, "-", "pending_9", " ")
    NAMES = ("Birds", "Penguins", "penguins", "Team", "Ünïcødé ✓", "", None)
    TIMES = (
        *("%Y-%m-%dT%H:%M:%S.%f", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%d %H:%M:%S.%f+00:00"),
        *("%Y-%m-%dT%H:%M:%S+02:00", "%Y-%m-%d", "%Y-%m-%d %H:%M:%S UTC", "%s", "yesterday", None),
    )
    DOCUMENTS = (None, "", "{}", '{"tags": ["a"]}', "[1, 2]", "not JSON", '{"n": NaN}', '"text"')

    def __init__(self, db: sqlite3.Connection, random: Random) -> None:
        self.db = db
        self.random = random

    def add(self) -> None:
        """Add them all."""
        for number in range(self.SIZES["projects"]):
            self._row("projects", number)
        for number in range(self.SIZES["sessions"]):
            self._row("sessions", number, project_id=self._parent("projects"))
        for number in range(self.SIZES["teams"]):
            self._row("teams", number, session_id=self._parent("sessions"))
        for number in range(self.SIZES["agents"]):
            where = {"session_id": self._parent("sessions"), "team_id": self._parent("teams")}
            status = self.random.choice(["connected", "disconnected", None])
            self._row("agents", number, **where, status=status, last_active=self._time())
        for number in range(self.SIZES["contexts"]):
            self._context(number)

    def _context(self, number: int) -> None:
        text = {"title": f"Finding {number}", "content": self.random.choice(["Heavy.", "", None, "a\0b", b"\xff\xfe"])}
        where = {f"{noun}_id": self._parent(f"{noun}s") for noun in ("project", "session", "agent")}
        sequence = self.random.choice([None, number, number, number % 7, 0, -1, 2**63 - 1, "third"])
        more = {"sequence_number": sequence, "metadata": self.random.choice(self.DOCUMENTS)}
        insert(self.db, "contexts", id=f"contexts-{number}", **text, **where, **more, **self._times())

    def _row(self, table: str, number: int, **values: Any) -> None:
        named = {"id": self._id(table, number), "name": self.random.choice(self.NAMES)}
        described = {} if table == "agents" else {"description": self.random.choice(["Some text.", "", None])}
        insert(self.db, table, **named, **described, **values, **self._times())

    def _id(self, table: str, number: int) -> str | None:
        if table == "agents" and number < len(self.AGENT_IDS):
            return self.AGENT_IDS[number]
        return None if number == self.SIZES[table] - 1 else f"{table}-{number}"

    def _parent(self, table: str) -> str | None:
        """The id of a row that is there, or was there once, or nothing."""
        number = self.random.randrange(self.SIZES[table] + 3)
        return self.random.choice([None, *(7 * [f"{table}-{number}"])])

    def _times(self) -> dict[str, Any]:
        deleted = self._time() if self.random.random() < 0.2 else None
        return {"created_at": self._time(), "updated_at": self._time(), "deleted_at": deleted}

    def _time(self) -> str | float | None:
        at = _START + timedelta(microseconds=self.random.randrange(10**13))
        form = self.random.choice(self.TIMES)
        return (at - datetime(1970, 1, 1)).total_seconds() if form == "%s" else form and at.strftime(form)


def _few(db: sqlite3.Connection) -> None:
    day = {"created_at": "2024-03-01 09:00:00", "updated_at": "2024-03-01T09:30:00.5"}
    insert(db, "projects", id="p-birds", name="Birds", description="Penguins, mostly.", **day)
    for place in ("field", "lab"):
        insert(db, "sessions", id=f"s-{place}", name=place.title(), project_id="p-birds", **day)
        insert(db, "teams", id=f"t-{place}", name="Counters", session_id=f"s-{place}", **day)
    for name, where in {"Ada": "field", "Bob": "field", "Eve": None}.items():
        inside = {"session_id": f"s-{where}", "team_id": f"t-{where}"} if where else {}
        seen = {"status": "disconnected", "last_active": "2024-03-02T17:00:00.125"}
        insert(db, "agents", id=f"a-{name.lower()}", name=name, **inside, **seen, **day)


@contextmanager
def database(path: Path, *parts: str) -> Iterator[sqlite3.Connection]:
    """A new database with some parts of the layout; what is done to it in the block is committed."""
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as db, db:
        for part in parts:
            extend(db, part)
        yield db


def extend(db: sqlite3.Connection, part: str) -> None:
    """Add a part of the layout, as the next age of the old server did."""
    _, *parts = _PARTS.split(Path(__file__).with_name("schema.sql").read_text("utf-8"))
    db.executescript(dict(zip(parts[::2], parts[1::2], strict=True))[part])


def insert(db: sqlite3.Connection, table: str, **values: Any) -> None:
    """Add a row."""
    columns = ", ".join(values)
    marks = ", ".join(f":{column}" for column in values)
    db.execute(f"INSERT INTO {table} ({columns}) VALUES ({marks})", values)


if __name__ == "__main__":
    made = make(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
    sys.stdout.write(json.dumps([str(path) for path in made]) + "\n")
