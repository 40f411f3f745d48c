"""Handles a panel's requests: runs each one once and answers it by its id.

A panel acts as the operator and may call every operation; `dispatch` decides whether a call is allowed, as for every
caller. A list of operations for panels would protect nothing: a page that can send these messages can also run code in
the kernel, and one that cannot could still admit agents and issue tokens, which panels are for, and act through those.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any, NamedTuple

from kernel_ext.panels import STATIC, Host, PanelClosed, Send, internal_error, try_to_send
from workbench.errors import BadInput, WorkbenchError
from workbench.ops import Catalogue, Op, collect
from workbench.services import SERVICES

ACCEPTED_SECONDS = 5.0
"""A request that takes longer is reported as accepted: it continues, and the page waits for it without a limit."""
KEPT_ANSWERS = 256

log = logging.getLogger(__name__)


class Action(NamedTuple):
    """What a page asks for: an operation, and who of several asks, as the Jupyter server told the page."""

    op: str
    arguments: dict[str, Any]
    person: str | None


class RequestHandler:
    """Runs the requests of one panel.

    A request is `{"kind": "action", "request", "op", "arguments"}`, in a shared notebook with the `person`. It is
    answered with `{"kind": "answer", "request", "ok", "outcome" | "error"}`, after `{"kind": "accepted", "request"}` if
    it takes long. The id in `request` is an idempotency key: a repeated request is answered again but not run again.
    Answers of operations that only read are not kept: a repeated request reads again. Nor are answers with a token,
    which is sent only once.

    `{"kind": "asset", "request", "name"}` asks for a bundle of `static/`; the answer holds it in a buffer.
    """

    def __init__(self, host: Host, send: Send, *, accepted_after: float = ACCEPTED_SECONDS) -> None:
        self._host = host
        self._send = send
        self._accepted_after = accepted_after
        self._operations: Catalogue = collect(SERVICES)
        self._running: dict[str, asyncio.Task[dict[str, Any]]] = {}
        self._kept: dict[str, dict[str, Any]] = {}

    def take(self, message: Mapping[str, Any]) -> None:
        """Check a request and hand it to the host's loop; callable from any thread, returns at once."""
        request = message.get("request")
        if not isinstance(request, str) or not 1 <= len(request) <= 64:
            return  # it cannot be answered
        try:
            if message["kind"] == "asset":
                self._send({"kind": "answer", "request": request, "ok": True}, [_asset(message.get("name"))])
            else:
                self._submit(request, _parse(message))
        except WorkbenchError as error:
            try_to_send(self._send, _failure(request, error))
        except PanelClosed:
            return

    def _submit(self, request: str, action: Action) -> None:
        self._host.submit(self._answer(request, action)).add_done_callback(_log_failure)

    async def _answer(self, request: str, action: Action) -> None:
        answer = self._kept.get(request)
        if answer is None:
            task = self._running.get(request) or self._start(request, action)
            done, _ = await asyncio.wait({task}, timeout=self._accepted_after)
            if not done:
                try_to_send(self._send, {"kind": "accepted", "request": request})
            answer = await asyncio.shield(task)
        try:
            self._send(answer, [])
        except PanelClosed:
            return
        except Exception:
            log.exception("the answer of %s could not be sent", action.op)
            try_to_send(self._send, _failure(request, internal_error()))

    def _start(self, request: str, action: Action) -> asyncio.Task[dict[str, Any]]:
        task = asyncio.create_task(self._run(request, action))
        self._running[request] = task
        task.add_done_callback(lambda _: self._running.pop(request, None))
        return task

    async def _run(self, request: str, action: Action) -> dict[str, Any]:
        try:
            outcome = await self._host.acall(action.op, action.person, **action.arguments)
        except WorkbenchError as error:
            answer = _failure(request, error)
        except Exception:
            log.exception("%s failed", action.op)
            answer = _failure(request, internal_error())
        else:
            answer = {"kind": "answer", "request": request, "ok": True, "outcome": outcome}
        if action.op in self._operations and _is_kept(self._operations[action.op]):
            self._keep(request, answer)
        return answer

    def _keep(self, request: str, answer: dict[str, Any]) -> None:
        self._kept[request] = answer
        if len(self._kept) > KEPT_ANSWERS:
            del self._kept[next(iter(self._kept))]


def _is_kept(op: Op) -> bool:
    return not op.reads and "token" not in op.output_schema.get("properties", {})


def _asset(name: Any) -> bytes:
    """A bundle that is not sent with the widget.

    Raises:
        BadInput: ``BAD_MESSAGE``.
    """
    assets = {path.stem: path for path in STATIC.glob("*.js")}
    if name not in assets:
        raise BadInput("BAD_MESSAGE", f"There is no asset {name!r}. Available: {', '.join(sorted(assets))}.")
    return assets[name].read_bytes()


def _parse(message: Mapping[str, Any]) -> Action:
    op, arguments, person = (message.get(key) for key in ("op", "arguments", "person"))
    if not isinstance(op, str) or not isinstance(arguments, dict):
        raise BadInput("BAD_MESSAGE", "A request needs the name of an operation in `op` and an object in `arguments`.")
    by = person if isinstance(person, str) and person else None
    return Action(op, {str(key): value for key, value in arguments.items()}, by)


def _failure(request: str, error: WorkbenchError) -> dict[str, Any]:
    return {"kind": "answer", "request": request, "ok": False, "error": error.as_dict()}


def _log_failure(done: Future[None]) -> None:
    """Log a failure to answer. If the host stopped meanwhile, the publisher reports that instead."""
    if not done.cancelled() and (error := done.exception()) is not None:
        log.error("a request of a panel failed", exc_info=error)
