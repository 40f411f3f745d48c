"""Publishes a project's tables to a panel: a snapshot, then the changes, a few times a second.

The kernel sends all rows as a `snapshot`, then each change as a `diff` with the version that it applies to. A page that
missed a message requests a new snapshot (`resync`). Everything here runs on the host's loop and calls operations by
name, so it works the same when another process serves the project.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from kernel_ext.panels import Host, PanelClosed, Send, internal_error, try_to_send
from kernel_ext.panels.rows import Change, Row, Tables, diff, task_row
from kernel_ext.panels.sources import (
    CLOCK,
    EVENT_KINDS,
    MOST_SINGLE,
    SINGLE_ROWS,
    SLOW,
    SOURCES,
    UNSENT,
    changed_rows,
    concerns_unsent,
    stale_tables,
)
from workbench.errors import BadInput, WorkbenchError
from workbench.system.loop_thread import until_one_fails


class Stale:
    """Collects what has changed until it is taken. Use it on one loop."""

    def __init__(self) -> None:
        self._news = asyncio.Event()
        self._ids: set[str] | None = set()

    def note(self, ids: set[str] | None) -> None:
        """Note changed rows by their ids; None: it may be any."""
        self._ids = None if ids is None or self._ids is None else self._ids | ids
        self._news.set()

    async def taken(self) -> set[str] | None:
        """Wait until something has changed; the rows since the last time, None: it may be any."""
        await self._news.wait()
        self._news.clear()
        ids, self._ids = self._ids, set()
        return ids


PACE_SECONDS = 0.125
"""Least time between two messages: at most eight a second."""
REFRESH_SECONDS = 10.0
"""How often to read tables that change without an event, such as when an agent was last active."""
LOOK_SECONDS = 150.0
"""So long after a page has said that it is looked at, such tables are read. A page in front says so every minute.
Otherwise an idle worker would keep the kernel active for ever, and a hub would never end it."""
RETRY_SECONDS = 1.0
TASK_COST = 20
"""Reading one task alone costs as much as this many in a list."""
KEEP_SECONDS = 5.0
"""Least time between two calls of `keep`."""
MOST_SUBJECTS = 1_000
"""The most subjects sent to a page; if there are more, it is told that anything may have changed."""

log = logging.getLogger(__name__)


async def newest_event(host: Host) -> int:
    """The id of the newest event, 0 when there is none."""
    page = await host.acall("list_events", after=None)
    return int(page["next_after"])


class Publisher:
    """Keeps one panel up to date: one task on the host's loop, from the first `resync` until `stop`.

    Its messages: `snapshot` and `diff` (`ver`, `base`, and rows as JSON in a buffer; a diff also has `touched`, the
    subjects of the events behind it, or null), `retrying` (after an error), `stopped`. The first snapshot
    comes without the tables of `SLOW`, which follow as they are read.

    After a message that cannot be sent, it pauses and starts again with a snapshot. A closed panel ends the publisher.

    Args:
        keep: takes the tables when they have changed, with those of `UNSENT`, on the host's loop.
    """

    def __init__(
        self, host: Host, send: Send, keep: Callable[[Tables], None] = lambda _: None, *, pace: float = PACE_SECONDS
    ) -> None:
        self._host = host
        self._send = send
        self._keep = keep
        self._pace = pace
        self._task: asyncio.Task[None] | None = None
        self._tables: Tables | None = None
        self._unsent: Tables = {}
        self._version = 0
        self._paused_until = 0.0
        self._refresh_at = 0.0
        self._looked_at = 0.0
        self._stale = {name: Stale() for name in SLOW}
        self._snapshot_wanted = asyncio.Event()
        self._changed = asyncio.Event()
        self._stop_reason: dict[str, Any] | None = None

    @property
    def tables(self) -> Tables | None:
        """What the page has, and those of `UNSENT` as they were kept last; None before the first snapshot."""
        return None if self._tables is None else {**self._tables, **self._unsent}

    def note_look(self) -> None:
        """Note that somebody looks at the page; callable from any thread."""
        self._looked_at = time.monotonic()

    def resync(self) -> None:
        """Send a snapshot, and start following the project if necessary; callable from any thread."""
        self.note_look()
        try:
            self._host.submit(self._resync())
        except WorkbenchError as error:
            try_to_send(self._send, {"kind": "stopped", "error": error.as_dict()})

    def stop(self, reason: WorkbenchError | None = None) -> None:
        """Stop following, and send the reason to the page; callable from any thread, and twice."""
        task, self._stop_reason = self._task, reason.as_dict() if reason else None
        if task is not None and not task.done():
            with contextlib.suppress(RuntimeError):  # the loop was closed, and the task with it
                task.get_loop().call_soon_threadsafe(task.cancel)

    async def _resync(self) -> None:
        if self._task is None or self._task.done():
            self._tables = None
            self._stale = {name: Stale() for name in SLOW}  # of this loop: the last one may have been closed
            self._snapshot_wanted = asyncio.Event()
            self._changed = asyncio.Event()
            self._task = asyncio.create_task(self._run())
        else:
            self._snapshot_wanted.set()

    async def _run(self) -> None:
        try:
            while await self._follow_once():
                await asyncio.sleep(RETRY_SECONDS)
        finally:
            try_to_send(self._send, {"kind": "stopped", "error": self._stop_reason})

    async def _follow_once(self) -> bool:
        """Follow the project until something fails; whether to try again."""
        try:
            await self._follow()
        except PanelClosed:
            return False
        except WorkbenchError as error:
            if error.code == "NOT_STARTED":
                return False
            problem = error
        except Exception:
            log.exception("the publisher of a panel failed; starting again")
            problem = internal_error()
        try_to_send(self._send, {"kind": "retrying", "error": problem.as_dict()})
        return True

    async def _follow(self) -> None:
        cursor = await newest_event(self._host)
        self._snapshot_wanted.clear()
        self._send_snapshot(await self._read_fast())
        await until_one_fails(
            self._follow_events(cursor),
            self._send_wanted_snapshots(),
            self._keep_changes(),
            *(self._follow_slow(name) for name in SLOW),
        )

    async def _follow_events(self, cursor: int) -> None:
        while True:
            page = await self._events(cursor, max(0.0, self._refresh_at - _now()))
            cursor, subjects = page["next_after"], set[str]()
            if page["events"]:
                subjects, cursor = await self._gather(page["events"], cursor)
            await self._publish(subjects)

    async def _send_wanted_snapshots(self) -> None:
        while True:
            await self._snapshot_wanted.wait()
            self._snapshot_wanted.clear()
            self._send_snapshot(self._tables or {})

    async def _keep_changes(self) -> None:
        """Hand on the tables after changes; a failure is logged, and the page is kept up to date all the same."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            try:
                self._unsent = {name: await source.read(self._host.acall) for name, source in UNSENT.items()}
                self._keep(self.tables or {})
            except Exception:
                log.exception("the last state of a panel could not be kept")
            await asyncio.sleep(KEEP_SECONDS)

    async def _gather(self, events: list[dict[str, Any]], cursor: int) -> tuple[set[str], int]:
        """Collect events until the next message may be sent: their subjects, and the cursor after them."""
        await asyncio.sleep(max(0.0, self._paused_until - _now()))
        subjects = {event["subject"] for event in events}
        while True:
            page = await self._events(cursor, 0)
            if page["next_after"] == cursor:
                return subjects, cursor
            cursor = page["next_after"]
            subjects |= {event["subject"] for event in page["events"]}

    async def _events(self, cursor: int, wait_seconds: float) -> dict[str, Any]:
        return await self._host.acall(
            "list_events", after=cursor, kinds=EVENT_KINDS, limit=1_000, wait_seconds=wait_seconds
        )

    async def _publish(self, subjects: set[str]) -> None:
        began = _now()
        self._send_diff(await self._reread(subjects), subjects)
        # Reading takes at most a quarter of the loop's time, so many tasks are read less often.
        self._paused_until = _now() + max(self._pace, 3 * (_now() - began))

    def _send_diff(self, fresh: Tables, subjects: Iterable[str] = ()) -> None:
        """Send the differences in tables that were read again."""
        before = self._tables or {}
        self._tables = {**before, **fresh}
        added: Change = {name: {"set": [], "removed": []} for name in fresh if name not in before}
        change, touched = added | diff(before, self._tables), sorted(subjects)
        if change or concerns_unsent(touched):
            self._changed.set()
        if change or touched:
            base, self._version = self._version, self._version + 1
            affected = touched if len(touched) <= MOST_SUBJECTS else None
            self._send({"kind": "diff", "base": base, "ver": self._version, "touched": affected}, [_json(change)])

    async def _follow_slow(self, name: str) -> None:
        """Read one table of `SLOW`, and again when it may have changed; reading takes at most half of the time."""
        ids: set[str] | None = None
        while True:
            began = _now()
            self._send_diff({name: await self._read_slow(name, ids)})
            await asyncio.sleep(max(self._pace, _now() - began))
            ids = await self._stale[name].taken()

    async def _read_slow(self, name: str, ids: set[str] | None) -> Mapping[Any, Row]:
        """The table; after an error the rows known so far, and a row with the empty id that holds the error.

        Args:
            ids: the rows that have changed; None: it may be any.
        """
        before = (self._tables or {}).get(name, {})
        try:
            if ids is None or len(ids) > MOST_SINGLE or "" in before:
                return await SOURCES[name].read(self._host.acall)
            fresh = await SINGLE_ROWS[name].read(self._host.acall, ids)
            return {key: row for key, row in before.items() if key not in ids} | dict(fresh)
        except WorkbenchError as problem:
            error = problem
        except Exception:
            log.exception("the table of %s could not be read; trying again", name)
            error = internal_error()
        if not isinstance(error, BadInput):  # such as: there is no repository
            asyncio.get_running_loop().call_later(RETRY_SECONDS, self._stale[name].note, None)
        return {**before, "": {"id": "", "error": error.as_dict()}}

    def _send_snapshot(self, tables: Tables) -> None:
        self._tables = tables
        self._changed.set()
        self._version += 1
        rows = {name: list(table.values()) for name, table in tables.items()}
        self._send({"kind": "snapshot", "ver": self._version}, [_json(rows)])

    async def _read_fast(self) -> Tables:
        """Every table that is not in `SLOW`."""
        self._refresh_at = _now() + REFRESH_SECONDS
        return {name: await source.read(self._host.acall) for name, source in SOURCES.items() if name not in SLOW}

    async def _reread(self, subjects: set[str]) -> dict[str, Mapping[Any, Row]]:
        """The tables that events about these subjects, or time alone, may have changed."""
        nouns = {noun for noun, _, _ in map(_split, subjects)}
        if _now() >= self._refresh_at:
            self._refresh_at = _now() + REFRESH_SECONDS
            if time.monotonic() - self._looked_at < LOOK_SECONDS:
                nouns.add(CLOCK)
        fresh: dict[str, Mapping[Any, Row]] = {}
        for name in stale_tables(nouns):
            if name in SLOW:
                self._stale[name].note(changed_rows(name, nouns, subjects))
            elif name != "tasks":
                fresh[name] = await SOURCES[name].read(self._host.acall)
        if tasks := {int(number) for noun, _, number in map(_split, subjects) if noun == "task"}:
            fresh["tasks"] = await self._reread_tasks(tasks)
        return fresh

    async def _reread_tasks(self, changed: set[int]) -> Mapping[Any, Row]:
        """All tasks. A few are read one by one, with those that depend on them."""
        before = (self._tables or {})["tasks"]
        dependents = {row["id"] for row in before.values() if not changed.isdisjoint(row["dependencies"])}
        if TASK_COST * len(changed | dependents) > len(before):
            return await SOURCES["tasks"].read(self._host.acall)
        rows = dict(before)
        for task_id in sorted(changed | dependents):
            task = await self._host.acall("get_task", task_id=task_id)
            rows[task_id] = task_row(task, task["dependencies"])
        return rows


def _split(subject: str) -> tuple[str, str, str]:
    return subject.partition(":")


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def _now() -> float:
    return asyncio.get_running_loop().time()
