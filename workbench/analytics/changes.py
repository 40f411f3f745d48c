"""What has changed in a store since it was copied: the events after a position, and the rows they are about."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from workbench.analytics.mirrors import EVENT_COLUMNS, MIRRORS, NUMBERED, Mirror, Numbered
from workbench.store import rolled_up
from workbench.store.base import Reader
from workbench.store.feed import last_event_id
from workbench.store.queries import beside

SQL = beside(__file__)
KIND, SUBJECT, DATA = (list(EVENT_COLUMNS).index(name) for name in ("kind", "subject", "data"))
KINDS = frozenset([*(mirror.restart for mirror in NUMBERED), *(mirror.deleted for mirror in MIRRORS)]) - {None}
"""The kinds of events after which rows are read anew, or are no longer there."""
PAGE = 50_000
"""The most events that are read at once."""

Keys = Mapping[str, frozenset[str]]
"""Keys of rows, by the noun of their mirror, or by one of `KINDS`."""
Rows = Sequence[tuple[Any, ...]]
NAMED: Mapping[str, tuple[str, Callable[[Mapping[str, Any]], Iterable[Any]]]] = {
    "agent": ("message", lambda data: data.get("messages", ())),
    "plan": ("task", lambda data: data.get("tasks", {}).values()),
    "conversation": ("turn", lambda data: [data[name] for name in ("turn_id", "replaces") if name in data]),
}
"""Events about a noun that name rows of another mirror in their data: its noun, and what the keys are."""


@dataclass(frozen=True)
class Position:
    """How far a copy follows its store.

    Attributes:
        cursor: the id of the last event that the copy has.
        mark: this event, so that another store in the place of this one is noticed; empty before the first event.
        stale: the rows that events in the copy are about, but that are still to be read; None: all.
        newest: of each numbered table, the id of the last row that the copy has.
    """

    cursor: int = 0
    mark: Rows = ()
    stale: Keys | None = None
    newest: Mapping[str, int] = field(default_factory=dict)

    def fits(self, tx: Reader) -> bool:
        """Whether the store has the event that this position is after."""
        return _mark(tx, self.cursor) == self.mark


START = Position()


@dataclass(frozen=True, repr=False)
class Update:
    """Events, rows by table, and the keys whose rows they replace (None: all).

    It has no `repr` of its rows: `asyncio.run` makes one of the result of its task, whatever that takes.

    Attributes:
        position: that of a copy which has applied this.
    """

    events: Rows
    rows: Mapping[str, Rows]
    keys: Keys | None
    position: Position

    @property
    def is_last(self) -> bool:
        """Whether the copy is then as the store was when this was read."""
        return self.position.stale is not None and not self.position.stale


def after_event(tx: Reader, cursor: int) -> Position:
    """The position of a copy that has all events up to this one, and rows that are not older."""
    return Position(cursor, _mark(tx, cursor), {})


def read_update(tx: Reader, position: Position) -> Update:
    """The next changes after a position, in one snapshot: some events, or the last ones with the rows."""
    old = rolled_up.events_after(tx, position.cursor)
    events = old or tx.tuples(SQL.events, after=position.cursor, limit=PAGE)
    keys = None if position.stale is None else _merged(position.stale, _changed_keys(events))
    cursor = events[-1][0] if events else position.cursor
    if cursor < last_event_id(tx):
        return Update(events, {}, {}, Position(cursor, _mark(tx, cursor), keys, position.newest))
    rows = {mirror.table: _rows(tx, mirror, keys) for mirror in MIRRORS}
    numbered = {mirror.table: _numbered(tx, mirror, keys, position) for mirror in NUMBERED}
    newest = {**position.newest, **{table: found[-1][0] for table, found in numbered.items() if found}}
    return Update(events, rows | numbered, keys, replace(after_event(tx, cursor), newest=newest))


def _mark(tx: Reader, cursor: int) -> Rows:
    return tx.tuples(SQL.mark, id=cursor)


def _changed_keys(events: Rows) -> Keys:
    found: dict[str, set[str]] = {}
    for subject in {event[SUBJECT] for event in events}:
        noun, _, key = subject.partition(":")
        found.setdefault(noun, set()).add(key)
    for event in events:
        noun, _, key = event[SUBJECT].partition(":")
        if noun in NAMED:
            other_noun, keys_in = NAMED[noun]
            found.setdefault(other_noun, set()).update(map(str, keys_in(json.loads(event[DATA]))))
        if event[KIND] in KINDS:
            found.setdefault(event[KIND], set()).add(key)
    return {noun: frozenset(keys) for noun, keys in found.items()}


def _merged(*all_keys: Keys) -> Keys:
    nouns: Iterable[str] = {noun for keys in all_keys for noun in keys}
    return {noun: frozenset().union(*(keys.get(noun, ()) for keys in all_keys)) for noun in nouns}


def _rows(tx: Reader, mirror: Mirror, keys: Keys | None) -> Rows:
    if keys is None:
        return tx.tuples(mirror.rows, keys=None)
    changed_keys = keys.get(mirror.noun)
    return tx.tuples(mirror.changed_rows, keys=json.dumps(sorted(changed_keys))) if changed_keys else ()


def _numbered(tx: Reader, mirror: Numbered, keys: Keys | None, position: Position) -> Rows:
    """The rows that a copy at a position lacks, and all of the keys that are read anew."""
    anew = (keys or {}).get(mirror.restart or "", ())
    return tx.tuples(mirror.rows, after=position.newest.get(mirror.table, 0), keys=json.dumps(sorted(anew)))
