"""Maps each row of a legacy database to a new one: pure, from the old rows and what the project has.

A row keeps its id unless something else has it here. A row that the project has already is left unchanged, so
that the same database can be imported again after the old server has added to it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from uuid import UUID, uuid5

from workbench.legacy.source import TABLES, Legacy, Old
from workbench.model import Access, GrantedAccess, Registration
from workbench.rules import access
from workbench.store.base import Values

_IDS = UUID("5f1c8f0e-6a0b-5d43-9a52-3f5f0f1f3c11")
"""New ids are derived from the row, so that the next import makes the same ones."""


@dataclass(frozen=True)
class Present:
    """What the project has."""

    made: Mapping[str, Mapping[str, int]]
    """When each row was created, by table and id."""
    names: frozenset[tuple[str, str, str]]
    """Table, parent ('' for none) and name of each row that is not deleted."""
    agent_ids: frozenset[str]
    numbers: frozenset[tuple[str, int]]
    """The sequence numbers in use, with their session."""
    last: Mapping[str, int]
    """The last sequence number by session."""
    projects: Mapping[str, str]
    """The project of each session."""


@dataclass(frozen=True)
class MigrationPlan:
    """The rows to add, as parameters of the queries that add them."""

    rows: Mapping[str, list[Values]] = field(default_factory=lambda: {table: [] for table in TABLES})
    last: list[Values] = field(default_factory=list)
    """The last sequence number of each session that gets contexts."""
    notes: list[str] = field(default_factory=list)
    """What differs from the legacy database, one sentence each."""

    @property
    def adds(self) -> bool:
        """Whether there is anything to add."""
        return any(self.rows.values())


def decide(legacy: Legacy, present: Present, now: int) -> MigrationPlan:
    """Plan the import; `now` replaces unknown times."""
    planner = _Planner(legacy, present, now)
    planner.projects()
    planner.sessions()
    planner.teams()
    planner.agents()
    planner.contexts()
    return planner.plan


class _Planner:
    """Goes through the tables in order, and records the ids, names and numbers it has assigned."""

    def __init__(self, legacy: Legacy, present: Present, now: int) -> None:
        self.plan = MigrationPlan()
        self._legacy = legacy
        self._present = present
        self._now = now
        self._ids: dict[str, dict[str, str]] = {table: {} for table in TABLES}  # old -> new
        self._given: dict[str, set[str]] = {table: set() for table in TABLES}
        self._names = set(present.names)
        self._agent_ids = set(present.agent_ids)
        self._project_of = dict(present.projects)
        self._numbers = _Numbers(present)

    def projects(self) -> None:
        """Projects, unchanged."""
        for old, here in self._new("projects"):
            self._add(old, here, name=self._name(old, here), description=old.text("description"))

    def sessions(self) -> None:
        """Sessions in their projects; one without a project gets a new one."""
        for old, here in self._new("sessions"):
            project = self._here("projects", old.ref("project_id")) or self._stand_in(old)
            self._project_of[here] = project
            name = self._name(old, here, project)
            self._add(old, here, project_id=project, name=name, description=old.text("description"))

    def teams(self) -> None:
        """Teams in their sessions, or in none."""
        for old, here in self._new("teams"):
            session = self._reference(old, "sessions", "session_id")
            name = self._name(old, here, session or "")
            self._add(old, here, session_id=session, name=name, description=old.text("description"))

    def agents(self) -> None:
        """Agents, admitted under their old ids, with which alone they can authenticate until they get a token."""
        rows = list(self._new("agents"))
        self._ids["agents"] |= self._by_assigned_id()
        fit = {wanted for old, here in rows if _may_be_called(old, wanted := _wanted_id(old, here))}
        for old, here in rows:
            session, team = self._reference(old, "sessions", "session_id"), self._reference(old, "teams", "team_id")
            self._add(
                old,
                here,
                agent_id=self._agent_id(old, here, fit),
                name=old.text("name").strip() or here,
                registration_status=self._registration(old, here),
                id_only=int(not old.waits),
                tool=GrantedAccess.READ if old.row.get("selected_tool") == GrantedAccess.READ else GrantedAccess.WRITE,
                # The old server let an agent read all of its session.
                access_level=Access.SESSION_LEVEL if session else Access.SELF_ONLY,
                capabilities=old.object("capabilities"),
                session_id=session,
                team_id=team,
                last_heartbeat=_first(old.time("last_active"), old.created, old.time("updated_at"), self._now),
            )

    def contexts(self) -> None:
        """Contexts in the order in which they were written, with their numbers if these are unique."""
        rows = list(self._new("contexts"))
        sessions = [self._reference(old, "sessions", "session_id") for old, _ in rows]
        kept = [self._numbers.keep(session, old.number) for session, (old, _) in zip(sessions, rows, strict=True)]
        renumbered: Counter[str] = Counter()
        for (old, here), session, number in zip(rows, sessions, kept, strict=True):
            if session and number is None:
                number = self._numbers.following(session)
                renumbered[session] += old.row.get("sequence_number") is not None
            self._context(old, here, session, number)
        self.plan.last.extend(self._numbers.last(sessions))
        self._note_renumbered(renumbered)

    def _context(self, old: Old, here: str, session: str | None, number: int | None) -> None:
        project = self._reference(old, "projects", "project_id")
        self._add(
            old,
            here,
            project_id=project or (self._project_of.get(session) if session else None),
            session_id=session,
            agent_id=self._reference(old, "agents", "agent_id"),
            sequence_number=number,
            title=old.text("title"),
            content=old.text("content"),
            metadata=old.object("metadata"),
        )

    def _note_renumbered(self, renumbered: Counter[str]) -> None:
        for session, times in renumbered.items():
            if times:
                self._note(
                    f"Session {session!r}: {times} of its contexts had a number already in use, or none; renumbered."
                )

    # Which rows, with which ids.

    def _new(self, table: str) -> Iterator[tuple[Old, str]]:
        """The rows that the project does not have yet, with their new ids; deleted ones last, then by age."""
        for old in sorted(self._legacy.rows[table], key=_order):
            here = next(c for c in _candidates(old) if c not in self._given[table] and self._may_be(old, c))
            self._given[table].add(here)
            if old.id is not None:
                self._ids[table].setdefault(old.id, here)
            if here not in self._present.made[table]:
                if old.id is not None and here != old.id:
                    self._note(f"{_called(old)}: its id is in use here; its new id is {here}.")
                yield old, here

    def _may_be(self, old: Old, here: str) -> bool:
        """Whether an id is free, or belongs to this row: created at the same time, if that is known."""
        made = self._present.made[old.table].get(here)
        return made is None or old.created is None or made == old.created

    def _here(self, table: str, there: str | None) -> str | None:
        return self._ids[table].get(there) if there is not None else None

    def _reference(self, old: Old, table: str, column: str) -> str | None:
        there = old.ref(column)
        here = self._here(table, there)
        if there is not None and here is None:
            self._note(f"{_called(old)}: its {column} {there!r} does not exist and is omitted.")
        return here

    def _by_assigned_id(self) -> dict[str, str]:
        """Agents by the id in contexts: the old server wrote the assigned id there, and earlier the internal one."""
        rows = sorted(self._legacy.rows["agents"], key=_order, reverse=True)  # an id could be reused
        assigned = ((old.ref("assigned_agent_id"), self._here("agents", old.id)) for old in rows)
        return {there: here for there, here in assigned if there and here}

    def _stand_in(self, session: Old) -> str:
        """A project for sessions whose own does not exist."""
        there = session.ref("project_id")
        here = str(uuid5(_IDS, f"the project of sessions in {there}"))
        if here in self._present.made["projects"] or here in self._given["projects"]:
            return here
        self._given["projects"].add(here)
        missing = Old("projects", {"id": here, "name": there or "Sessions without a project"})
        self._note(f"{_called(session)}: its project_id {there!r} does not exist; a project was created for it.")
        description = "Created by the import for sessions whose project did not exist."
        self._add(missing, here, name=self._name(missing, here), description=description)
        return here

    # What the rows hold.

    def _add(self, old: Old, here: str, **values: object) -> None:
        updated, deleted = old.time("updated_at"), old.time("deleted_at")
        created = _first(old.created, old.time("last_active"), updated, deleted, self._now)
        times = {
            "created_at": created,
            "updated_at": _first(updated, created),
            "deleted_at": _first(deleted, updated, created) if old.is_deleted else None,
        }
        for column in old.unreadable_times:
            self._note(
                f"{_called(old)}: its {column} {old.text(column)!r} is not a time; another of its times is used."
            )
        self.plan.rows[old.table].append({"id": here, **values, **times})

    def _name(self, old: Old, here: str, parent: str = "") -> str:
        """Its name, numbered if another row that is not deleted has it."""
        wanted = old.text("name").strip() or here
        if old.is_deleted:
            return wanted
        name = next(n for n in _numbered(wanted) if (old.table, parent, n) not in self._names)
        self._names.add((old.table, parent, name))
        if name != wanted:
            self._note(f"{_called(old)}: its name {wanted!r} is in use here; its new name is {name!r}.")
        return name

    def _agent_id(self, old: Old, here: str, fit: set[str]) -> str:
        wanted = chosen = _wanted_id(old, here)
        if wanted not in fit or wanted in self._agent_ids:
            chosen = access.free_id(access.id_from_name(wanted), self._agent_ids | fit)
            self._note(f"Agent {wanted!r}: its id is in use here or not allowed; its new id is {chosen!r}.")
        self._agent_ids.add(chosen)
        return chosen

    def _registration(self, old: Old, here: str) -> Registration:
        if not old.waits:
            return Registration.ASSIGNED
        self._note(f"Agent {here!r} was still pending: it is rejected, and can register again.")
        return Registration.REJECTED

    def _note(self, text: str) -> None:
        self.plan.notes.append(text)


class _Numbers:
    """Assigns sequence numbers, each once in a session."""

    def __init__(self, present: Present) -> None:
        self._taken = set(present.numbers)
        self._last = dict(present.last)

    def keep(self, session: str | None, number: int | None) -> int | None:
        """The number itself, if no other context of the session has it."""
        if session is None or number is None:
            return number
        if (session, number) in self._taken:
            return None
        self._taken.add((session, number))
        self._last[session] = max(number, self._last.get(session, 0))
        return number

    def following(self, session: str) -> int:
        """The number after the last."""
        self._last[session] = self._last.get(session, 0) + 1
        return self._last[session]

    def last(self, sessions: list[str | None]) -> list[Values]:
        """The last numbers of some sessions."""
        return [{"id": session, "last": self._last[session]} for session in sorted({s for s in sessions if s})]


def _order(old: Old) -> tuple[bool, float]:
    """Sort key: rows that are not deleted come first, to keep their names and ids; contexts by time alone."""
    deleted = old.is_deleted and old.table != "contexts"
    return deleted, old.created if old.created is not None else math.inf


def _candidates(old: Old) -> Iterator[str]:
    if old.id is not None:
        yield old.id
    known = [old.id, old.created] if old.id is not None else sorted(old.row.items())
    for number in count():
        yield str(uuid5(_IDS, f"{old.table} {known} {number}"))


def _numbered(name: str) -> Iterator[str]:
    yield name
    for number in count(2):
        yield f"{name} ({number})"


def _wanted_id(old: Old, here: str) -> str:
    if old.waits:
        return f"pending_{here.removeprefix('pending_')}"
    return old.ref("assigned_agent_id") or old.id or here


def _may_be_called(old: Old, wanted: str) -> bool:
    return old.waits or access.may_keep_id(wanted)


def _called(old: Old) -> str:
    name = old.ref("name") or old.ref("title")
    return f"{old.table.removesuffix('s').capitalize()} {old.id!r}" + (f" ({name})" if name else "")


def _first(*times: int | None) -> int:
    """The first known time; the last argument is always known."""
    return next(at for at in times if at is not None)
