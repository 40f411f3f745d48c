"""Between a panel and the operations: feed -> versioned messages, coalesced; panel message -> operation.

What a panel shows is a few tables of rows. The kernel sends them whole once (`snapshot`) and then
only what changed (`diff`, with the version it applies to); a front end that missed something asks
for the whole again (`resync`). Everything here runs on the host's loop and calls operations by
name, so it does the same when another process serves the project. It decides nothing: rules and
permission are behind the operations.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, Protocol, TypeVar

from kernel_ext.panels.rows import Change, Row, Tables, diff, task_row
from kernel_ext.panels.sources import ASIDE, CLOCK, FOLLOWED, READERS, stale
from workbench.errors import BadInput, WorkbenchError

T = TypeVar("T")

Send = Callable[[dict[str, Any], list[bytes]], None]
"""Sends a message with its buffers to the front end; callable from any thread, never raises."""

PACE_SECONDS = 0.125
"""Least time between two messages: at most 8 in a second."""
REFRESH_SECONDS = 10.0
"""How often what changes without an event is read: when agents were heard of."""
RETRY_SECONDS = 1.0
ONE_BY_ONE = 20
"""Reading one task by itself costs as much as so many in a list."""
REMEMBERED_ANSWERS = 256

READS = frozenset({
    "get_agent", "list_agents", "list_projects", "list_sessions", "list_teams", "list_events",
    "get_task", "get_task_logs", "get_performance", "connection_instructions", "export",
    "get_worktree_diff", "get_managed_agents", "get_agent_process_info",
})  # fmt: skip
"""What a panel may look at. Asking again reads again: the answers are not remembered."""
ACTIONS = READS | {
    "approve", "reject", "approve_many", "reject_many",
    "update_agent", "assign_agents", "issue_token", "revoke_agent", "delete_agent", "restore_agent",
    "create_worktree", "integrate_worktree", "update_worktree", "discard_worktree",
    "terminate_agent", "restart_agent",
    "cancel_task", "retry_task", "set_priority", "reassign_task",
    "create_project", "update_project", "delete_project", "restore_project",
    "create_session", "update_session", "delete_session", "restore_session",
    "create_team", "update_team", "move_team", "delete_team", "restore_team",
    "add_admission_rule", "remove_admission_rule", "allow_agent", "disallow_agent", "update_agent_tool",
}  # fmt: skip
"""What a panel may ask for."""
SECRETS = frozenset({"issue_token"})
"""Answers that are sent once and not remembered; asking again makes a new secret, and only the last one counts."""

log = logging.getLogger(__name__)


class Host(Protocol):
    """What is needed of `KernelHost`."""

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Run a coroutine on the host's loop. Raises `WorkbenchError` when there is none."""
        ...

    async def acall(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        """Run an operation as the operator, on the host's loop."""
        ...


async def newest_event(host: Host) -> int:
    """The id of the newest event, 0 when there is none."""
    page = await host.acall("list_events", after=None)
    return int(page["next_after"])


class Publisher:
    """Keeps one panel up to date: one task on the host's loop, from `resync` until `stop`.

    Messages sent: `snapshot` and `diff` (`ver`, `base`; one buffer of JSON; `touched`, the tasks that
    something happened to, whether or not their rows changed), `trouble` (an error; it is tried again)
    and `stopped`. The first snapshot comes without the tables of `ASIDE`; they follow as soon as they are read.
    """

    def __init__(self, host: Host, send: Send, *, pace: float = PACE_SECONDS) -> None:
        self._host = host
        self._send = send
        self._pace = pace
        self._task: asyncio.Task[None] | None = None
        self._tables: Tables | None = None
        self._version = 0
        self._rest_until = 0.0
        self._refresh_at = 0.0
        self._wanted = {name: asyncio.Event() for name in ASIDE}
        self._farewell: dict[str, Any] | None = None

    def resync(self) -> None:
        """Send everything, and follow the feed if that is not done yet; callable from any thread."""
        try:
            self._host.submit(self._resync())
        except WorkbenchError as error:
            self._send({"kind": "stopped", "error": error.as_dict()}, [])

    def stop(self, why: WorkbenchError | None = None) -> None:
        """Stop following, and say why; callable from any thread, and twice."""
        task, self._farewell = self._task, why.as_dict() if why else None
        if task is not None and not task.done():
            with contextlib.suppress(RuntimeError):  # the loop has just closed, and the task with it
                task.get_loop().call_soon_threadsafe(task.cancel)

    async def _resync(self) -> None:
        if self._task is None or self._task.done():
            self._tables = None
            self._task = asyncio.create_task(self._run())
        elif self._tables is not None:
            self._send_snapshot(self._tables)

    async def _run(self) -> None:
        try:
            while True:
                try:
                    await self._follow()
                except WorkbenchError as error:
                    if error.code == "NOT_STARTED":
                        return
                    self._send({"kind": "trouble", "error": error.as_dict()}, [])
                except Exception:
                    log.exception("a panel's publisher failed; it is tried again")
                    self._send({"kind": "trouble", "error": _internal().as_dict()}, [])
                await asyncio.sleep(RETRY_SECONDS)
        finally:
            self._send({"kind": "stopped", "error": self._farewell}, [])

    async def _follow(self) -> None:
        cursor = await newest_event(self._host)
        self._send_snapshot(await self._read_all())
        beside = [asyncio.create_task(self._read_beside(name)) for name in ASIDE]
        try:
            await self._follow_from(cursor)
        finally:
            for task in beside:
                task.cancel()
            await asyncio.wait(beside)

    async def _follow_from(self, cursor: int) -> None:
        while True:
            page = await self._news(cursor, max(0.0, self._refresh_at - _now()))
            cursor, subjects = page["next_after"], set[str]()
            if page["events"]:
                subjects, cursor = await self._gather(page["events"], cursor)
            await self._publish(subjects)

    async def _gather(self, events: list[dict[str, Any]], cursor: int) -> tuple[set[str], int]:
        """What happened until the next message may be sent: subjects, and the cursor after them."""
        await asyncio.sleep(max(0.0, self._rest_until - _now()))
        subjects = {event["subject"] for event in events}
        while True:
            page = await self._news(cursor, 0)
            if page["next_after"] == cursor:
                return subjects, cursor
            cursor = page["next_after"]
            subjects |= {event["subject"] for event in page["events"]}

    async def _news(self, cursor: int, wait_seconds: float) -> dict[str, Any]:
        return await self._host.acall(
            "list_events", after=cursor, kinds=FOLLOWED, limit=1_000, wait_seconds=wait_seconds
        )

    async def _publish(self, subjects: set[str]) -> None:
        began = _now()
        assert self._tables is not None, "a snapshot was read first"
        touched = sorted(int(number) for noun, _, number in map(_split, subjects) if noun == "task")
        self._show(await self._reread(self._tables, subjects, touched), touched)
        # Many tasks are read less often: reading takes at most a quarter of the loop's time.
        self._rest_until = _now() + max(self._pace, 3 * (_now() - began))

    def _show(self, made: Tables, touched: Sequence[int] = ()) -> None:
        """Send what differs in tables that were read anew."""
        before = self._tables or {}
        self._tables = {**before, **made}
        new: Change = {name: {"set": [], "gone": []} for name in made if name not in before}
        change = new | diff(before, self._tables)
        if change or touched:
            base, self._version = self._version, self._version + 1
            told = {"kind": "diff", "base": base, "ver": self._version, "touched": list(touched)}
            self._send(told, [_json(change)])

    async def _read_beside(self, name: str) -> None:
        """Read one of `ASIDE`, and again when it may have changed, at most half of the time."""
        while True:
            self._wanted[name].clear()
            began = _now()
            await self._read_aside(name)
            await asyncio.sleep(max(self._pace, _now() - began))
            await self._wanted[name].wait()

    async def _read_aside(self, name: str) -> None:
        try:
            self._show({name: await READERS[name](self._host.acall)})
            return
        except WorkbenchError as problem:
            error = problem
        except Exception:
            log.exception("the table of %s could not be read; it is tried again", name)
            error = _internal()
        known = (self._tables or {}).get(name, {})
        self._show({name: {**known, "": {"id": "", "error": error.as_dict()}}})
        if not isinstance(error, BadInput):  # such as: there is no repository
            asyncio.get_running_loop().call_later(RETRY_SECONDS, self._wanted[name].set)

    def _send_snapshot(self, tables: Tables) -> None:
        self._tables = tables
        self._version += 1
        rows = {name: list(table.values()) for name, table in tables.items()}
        self._send({"kind": "snapshot", "ver": self._version}, [_json(rows)])

    async def _read_all(self) -> Tables:
        self._refresh_at = _now() + REFRESH_SECONDS
        return {name: await read(self._host.acall) for name, read in READERS.items() if name not in ASIDE}

    async def _reread(self, before: Tables, subjects: set[str], touched: Sequence[int]) -> dict[str, Mapping[Any, Row]]:
        """The tables that events about `subjects`, or time alone, may have changed."""
        nouns = {noun for noun, _, _ in map(_split, subjects)}
        if _now() >= self._refresh_at:
            self._refresh_at = _now() + REFRESH_SECONDS
            nouns.add(CLOCK)
        made: dict[str, Mapping[Any, Row]] = {}
        for name in stale(nouns):
            if name in ASIDE:
                self._wanted[name].set()
            elif name != "tasks":
                made[name] = await READERS[name](self._host.acall)
        if touched:
            made["tasks"] = await self._some_tasks(before["tasks"], set(touched))
        return made

    async def _some_tasks(self, before: Mapping[Any, Row], touched: set[int]) -> Mapping[Any, Row]:
        """All tasks; only those that something happened to are read, and those that wait for them."""
        waiting = {row["id"] for row in before.values() if not touched.isdisjoint(row["dependencies"])}
        if ONE_BY_ONE * len(touched | waiting) > len(before):
            return await READERS["tasks"](self._host.acall)
        made = dict(before)
        for task_id in sorted(touched | waiting):
            task = await self._host.acall("get_task", task_id=task_id)
            made[task_id] = task_row(task, task["dependencies"])
        return made


class Actions:
    """Runs what a person does in a panel, each request once, and answers it by its id.

    A request is `{"kind": "action", "id", "op", "arguments"}`; its answer
    `{"kind": "answer", "id", "ok", "outcome" | "error"}`. The id is the idempotency key: a request
    that comes again is answered again and not run again, but for `READS` and `SECRETS`.
    """

    def __init__(self, host: Host, send: Send) -> None:
        self._host = host
        self._send = send
        self._answers: dict[str, asyncio.Task[dict[str, Any]]] = {}

    def take(self, message: Mapping[str, Any]) -> None:
        """Check a request and hand it to the host's loop; callable from any thread, returns at once."""
        request_id = message.get("id")
        if not isinstance(request_id, str) or not 1 <= len(request_id) <= 64:
            return  # nobody could be answered
        try:
            name, arguments = _checked(message)
            self._host.submit(self._answer(request_id, name, arguments))
        except WorkbenchError as error:
            self._send(_failed(request_id, error), [])

    async def _answer(self, request_id: str, name: str, arguments: dict[str, Any]) -> None:
        if name in READS | SECRETS:
            self._send(await self._perform(request_id, name, arguments), [])
            return
        if request_id not in self._answers:
            self._forget_old()
            self._answers[request_id] = asyncio.create_task(self._perform(request_id, name, arguments))
        self._send(await asyncio.shield(self._answers[request_id]), [])

    async def _perform(self, request_id: str, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        try:
            outcome = await self._host.acall(name, **arguments)
        except WorkbenchError as error:
            return _failed(request_id, error)
        except Exception:
            log.exception("%s failed", name)
            return _failed(request_id, _internal())
        return {"kind": "answer", "id": request_id, "ok": True, "outcome": outcome}

    def _forget_old(self) -> None:
        done = [key for key, task in self._answers.items() if task.done()]
        for key in done[: max(0, len(self._answers) + 1 - REMEMBERED_ANSWERS)]:
            del self._answers[key]


def _checked(message: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    name, arguments = message.get("op"), message.get("arguments")
    if not isinstance(name, str) or name not in ACTIONS or not isinstance(arguments, dict):
        raise BadInput("BAD_MESSAGE", f"A panel may not ask for {name!r}. It may: {', '.join(sorted(ACTIONS))}.")
    return name, {str(key): value for key, value in arguments.items()}


def _failed(request_id: str, error: WorkbenchError) -> dict[str, Any]:
    return {"kind": "answer", "id": request_id, "ok": False, "error": error.as_dict()}


def _internal() -> WorkbenchError:
    return WorkbenchError("INTERNAL_ERROR", "Workbench failed; .aiswarm/logs/server.log says how.")


def _split(subject: str) -> tuple[str, str, str]:
    return subject.partition(":")


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def _now() -> float:
    return asyncio.get_running_loop().time()
