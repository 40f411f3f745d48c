"""Gives each digest to the person's own command and webhook, which she has set.

A webhook is called once for each digest. If it cannot be reached or answers 5xx, it is called again after a growing
pause; the call has the same id. Redirects are not followed, and what it answers is not read. A command is run once.
Neither waits for the other, and nothing waits for them. What the end of the server cuts off is not done again.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
from asyncio.subprocess import DEVNULL
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from tempfile import TemporaryFile
from typing import Literal

from workbench.definition_files.secret_sources import resolve
from workbench.errors import Unavailable, WorkbenchError
from workbench.model import SECOND, Level, Micros, Wire
from workbench.ops import SYSTEM, Ctx, op
from workbench.ops.duties import duty
from workbench.rules.definitions.secrets.references import parse
from workbench.services.notifications.digests import Notification, make, message, notification
from workbench.store.base import Row, Tx
from workbench.store.queries import beside

SQL = beside(__file__)

ID_HEADER = "Idempotency-Key"
"""The header with the id of a digest: the same when it is sent again."""
STOP_SECONDS = 2.0
"""How long a stop of the server lets a delivery end that is under way."""
LOOK_SECONDS = 0.1
"""The pause between looks at what is still to be delivered."""
BASE_SECONDS, CAP_SECONDS = 2.0, 300.0
"""The pause before a webhook is called again; it doubles each time."""
SERVER_ERROR = 500
TOO_MANY = 429
MAY_PASS = "WEBHOOK_UNREACHABLE"
"""The error after which a webhook is called again."""

log = logging.getLogger(__name__)

Channel = Literal["command", "webhook"]
Deliver = Callable[[Ctx, Notification], Awaitable[None]]


@duty("calling the person's webhook", 0.5, once=True)
async def call_webhook(ctx: Ctx) -> None:
    """Post the digests that wait for the webhook, each by itself."""
    await _deliver_due(ctx, "webhook", _post)


@duty("running the person's command", 0.5, once=True)
async def run_command(ctx: Ctx) -> None:
    """Run the command for the digests that wait for it, one after the other."""
    await _deliver_due(ctx, "command", _run)


class Flushed(Wire):
    """How many deliveries were not tried to their end in time."""

    waiting: int


@op(allow=Level.OPERATOR, tool=False)
async def flush_notifications(ctx: Ctx) -> Flushed:
    """Tell what is gathered at once, and wait until it was delivered, or could not be.

    For a server that ends with the piece of work that it was started for.
    """
    await make(ctx)

    async def waiting() -> int:
        return len(await ctx.read(lambda tx: tx.all(SQL.untried)))

    with suppress(TimeoutError):
        async with asyncio.timeout(ctx.settings.notify_seconds):
            while await waiting():
                await asyncio.sleep(LOOK_SECONDS)
    return Flushed(waiting=await waiting())


async def _give_up_cut_off(ctx: Ctx, channel: Channel) -> None:
    """Record what the end of a server cut off: it may have arrived, so it is not delivered again.

    This process delivers one after the other on a channel, and none now.
    """
    if not await ctx.store.read_inline(lambda tx: tx.all(SQL.cut_off, channel=channel)):
        return
    problem = Unavailable(
        "NOTIFY_INTERRUPTED",
        "The server ended while it delivered this; whether it arrived is not known. The panel and "
        "`workbench notifications` have it.",
    )

    def change(tx: Tx) -> None:
        for row in tx.all(SQL.cut_off, channel=channel):
            _note(tx, row, channel, problem, again_at=None)

    await ctx.of(SYSTEM).write(change)


async def _deliver_due(ctx: Ctx, channel: Channel, deliver: Deliver) -> None:
    await _give_up_cut_off(ctx, channel)
    for row in await ctx.store.read_inline(lambda tx: tx.all(SQL.due, channel=channel, now=tx.now)):
        told = notification({name: row[name] for name in Notification.model_fields})
        delivery = asyncio.create_task(_attempt(ctx, channel, row, partial(deliver, ctx, told)))
        try:
            await asyncio.shield(delivery)
        except asyncio.CancelledError:
            await asyncio.wait({delivery}, timeout=STOP_SECONDS)
            delivery.cancel()
            with suppress(asyncio.CancelledError):
                await delivery
            raise


async def _attempt(ctx: Ctx, channel: Channel, row: Row, deliver: Callable[[], Awaitable[None]]) -> None:
    """Deliver a digest, and record how that went; first that it is begun."""
    await ctx.of(SYSTEM).write(lambda tx: tx.run(SQL.begin, id=row["id"], channel=channel, now=tx.now))
    error: WorkbenchError | None = None
    try:
        await deliver()
    except WorkbenchError as problem:
        error = problem
        log.warning("notification %d, %s: %s: %s", row["id"], channel, error.code, error.message)
    again = error is not None and error.code == MAY_PASS and row["tries"] + 1 < ctx.settings.notify_tries
    pause = min(BASE_SECONDS * 2.0 ** min(row["tries"], 32), CAP_SECONDS)

    def change(tx: Tx) -> None:
        _note(tx, row, channel, error, again_at=tx.now + int(pause * SECOND) if again else None)

    await ctx.of(SYSTEM).write(change)


def _note(tx: Tx, row: Row, channel: Channel, error: WorkbenchError | None, *, again_at: Micros | None) -> None:
    """Record the end of one try.

    Args:
        again_at: when it is tried again; None: not.
    """
    state = "waiting" if again_at is not None else "failed" if error else "delivered"
    told = {"code": error.code if error else None, "error": error.message if error else None}
    times = {"not_before": again_at or tx.now, "ended_at": None if again_at is not None else tx.now}
    place = {"id": row["id"], "channel": channel, "tries": row["tries"] + 1}
    tx.run(SQL.note, place, state=state, **told, **times)
    subject, about = f"notification:{row['id']}", {"channel": channel, **told}
    if again_at is not None:
        tx.emit("notification.deferred", subject, **about)
    elif error is not None:
        tx.emit("notification.failed", subject, **about)
    else:
        tx.emit("notification.delivered", subject, channel=channel)


async def _post(ctx: Ctx, told: Notification) -> None:
    """Call the webhook with a digest.

    Raises:
        Unavailable: ``WEBHOOK_UNREACHABLE``, ``WEBHOOK_REFUSED``, ``SECRET_UNRESOLVED``, ``NOTIFY_UNSET``.
    """
    import httpx2

    from workbench.client.http import TRUST_IT, distrust

    settings = ctx.settings
    if not settings.notify_webhook:
        raise Unavailable("NOTIFY_UNSET", "The webhook was taken out of the settings before the message was sent.")
    headers = {ID_HEADER: f"workbench-{told.id}-{told.at}", **await asyncio.to_thread(_secret_header, ctx)}
    content = message(told, settings.project.name)
    try:
        async with (
            httpx2.AsyncClient(follow_redirects=False, timeout=settings.notify_seconds) as client,
            asyncio.timeout(settings.notify_seconds),
            client.stream("POST", settings.notify_webhook, json=content, headers=headers) as answer,
        ):
            status = answer.status_code
    except TimeoutError:
        raise _unreachable(f"did not answer within {settings.notify_seconds:g} s") from None
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError) as error:  # its text may have the address
        if why := distrust(error):
            text = f"Your webhook's certificate is not trusted: {why}. {TRUST_IT}"
            raise Unavailable("WEBHOOK_UNREACHABLE", text) from None
        raise _unreachable(f"could not be reached ({type(error).__name__})") from None
    if status >= SERVER_ERROR or status == TOO_MANY:
        raise _unreachable(f"answered {status}")
    if not httpx2.codes.is_success(status):
        redirects = ", a redirect, which is not followed" if httpx2.codes.is_redirect(status) else ""
        raise Unavailable(
            "WEBHOOK_REFUSED",
            f"Your webhook answered {status}{redirects}. Correct notify_webhook or notify_header.",
        )


def _unreachable(what: str) -> Unavailable:
    return Unavailable("WEBHOOK_UNREACHABLE", f"Your webhook {what}. Look at it, or correct notify_webhook.")


def _secret_header(ctx: Ctx) -> dict[str, str]:
    """The header with the person's secret, if she has set one. Blocks."""
    name, _, value = ctx.settings.notify_header.partition(":")
    reference = parse(value.strip())
    return {name: reference.scheme + resolve(reference, ctx.settings.project)} if reference else {}


async def _run(ctx: Ctx, told: Notification) -> None:
    """Run the command with a digest on its standard input, and end what it has started if it takes too long.

    Raises:
        Unavailable: ``NOTIFY_COMMAND_FAILED``, ``NOTIFY_UNSET``.
    """
    settings = ctx.settings
    if not settings.notify_command:
        raise Unavailable("NOTIFY_UNSET", "The command was taken out of the settings before it was run.")
    content = json.dumps(message(told, settings.project.name)).encode()
    env = {**os.environ, "WORKBENCH_MESSAGE": told.sentence}
    try:
        with TemporaryFile() as given:  # not a pipe, which breaks if the command does not read it
            given.write(content)
            given.seek(0)
            process = await asyncio.create_subprocess_exec(
                *settings.notify_command,
                stdin=given,
                stdout=DEVNULL,
                stderr=DEVNULL,
                cwd=settings.project,
                env=env,
                start_new_session=True,
            )
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is no command"
        raise _command_failed(f"cannot be started: {reason}") from None
    try:
        async with asyncio.timeout(settings.notify_seconds):
            await process.wait()
    except BaseException as error:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
        if isinstance(error, TimeoutError):
            raise _command_failed(f"was ended after {settings.notify_seconds:g} s") from None
        raise
    if process.returncode:
        raise _command_failed(f"ended with status {process.returncode}")


def _command_failed(what: str) -> Unavailable:
    return Unavailable("NOTIFY_COMMAND_FAILED", f"Your command for notifications {what}. Correct notify_command.")
