"""The logs of workers on machines without a clone, which send them: kept and read like those of processes."""

from __future__ import annotations

import os
from asyncio import to_thread
from pathlib import Path
from typing import Annotated

from pydantic import Field

from workbench.errors import Refused, Unavailable
from workbench.model import Int64, Level, Wire
from workbench.ops import Ctx, op
from workbench.services.processes.processes import SQL, log_of
from workbench.system import atomic_file


class ReceivedLog(Wire):
    """How many bytes the log has now. `taken`: what you have sent is at its end."""

    received: int
    taken: bool


@op(allow=Level.WORKER, tool=False)
async def send_process_log(
    ctx: Ctx,
    offset: Annotated[Int64, Field(ge=0, description="How many bytes the log has, as the last answer says.")] = 0,
    text: Annotated[str, Field(max_length=1_000_000, description="Its next lines; empty: ask how much it has.")] = "",
) -> ReceivedLog:
    """Send the next lines of your log, as a worker of a machine without a clone, for get_agent_process_info.

    Sent again after a lost answer, they are taken once. If the log is full, the older half of it goes.
    """
    agent_uid = ctx.caller.agent or ""
    if await ctx.read(lambda tx: tx.one(SQL.elsewhere, agent=agent_uid)) is None:
        whose = "Only a worker that a machine without a clone has started sends its log."
        raise Refused("FORBIDDEN", f"{whose} That of others is here already.")
    lines = str(ctx.secrets.masked(text)).encode(errors="replace")
    return await to_thread(_append, log_of(ctx, agent_uid), offset, lines, ctx.settings.max_sent_log_bytes)


def _append(log: Path, offset: int, lines: bytes, most: int) -> ReceivedLog:
    """Add lines to a log that has `offset` bytes, unless they are there. Blocks.

    Raises:
        Unavailable: ``LOG_NOT_WRITTEN``.
    """
    try:
        log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with os.fdopen(os.open(log, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600), "r+b") as file:
            size = file.seek(0, os.SEEK_END)
            if offset != size:
                is_there = size - offset == len(lines) and file.seek(offset) == offset and file.read() == lines
                return ReceivedLog(received=size, taken=is_there)
            if size + len(lines) <= most:
                file.write(lines)
                return ReceivedLog(received=size + len(lines), taken=True)
            file.seek(max(0, size - most // 2))
            newer = (file.read() + lines)[-(most // 2) :]
        kept = (newer.partition(b"\n")[2] or newer).decode(errors="replace")
        atomic_file.replace(log, kept, 0o600)
        return ReceivedLog(received=len(kept.encode()), taken=True)
    except OSError as error:
        raise Unavailable("LOG_NOT_WRITTEN", f"The log cannot be written: {error.strerror}.") from error
