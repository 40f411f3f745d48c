"""How far a running call is: passed on to its caller, and the last report stored with the call."""

from __future__ import annotations

import asyncio
import logging
import math
from functools import partial

from workbench.errors import WorkbenchError
from workbench.ops import Ctx
from workbench.present.inert import inert_line
from workbench.rules.tools.results import shortened
from workbench.rules.tools.surroundings import ProgressReceiver, ProgressReport
from workbench.store.base import Tx
from workbench.store.queries import beside

SQL = beside(__file__)
STORE_SECONDS = 1.0
"""The least time between two reports of a call that are stored."""
LONGEST_MESSAGE = 500

log = logging.getLogger(__name__)


class CallProgress:
    """Receives the reports of a call. It waits for the caller, never for the store.

    Args:
        passed_on: takes each report for the caller; None: the caller does not follow the call.
    """

    def __init__(self, ctx: Ctx, call_id: str, passed_on: ProgressReceiver | None) -> None:
        self.last: ProgressReport | None = None
        """The last report, with secrets masked."""
        self._ctx = ctx
        self._call_id = call_id
        self._passed_on = passed_on
        self._stored: ProgressReport | None = None
        self._storing: asyncio.Task[None] | None = None

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None:
        """See `Progress`. What is no number is not stored."""
        if math.isfinite(progress) and (total is None or math.isfinite(total)):
            self.last = ProgressReport(progress, total, self._shorten(message))
            if self._storing is None:
                self._storing = asyncio.create_task(self._store())
        if self._passed_on is not None:
            await self._passed_on(progress, total, message)

    def close(self) -> None:
        """Store no more: the end of the call stores the last report."""
        if self._storing is not None:
            self._storing.cancel()

    def _note(self, report: ProgressReport, tx: Tx) -> None:
        values = {"progress": report.progress, "total": report.total, "message": report.message}
        tx.run(SQL.note, values, id=self._call_id)

    def _shorten(self, message: str | None) -> str | None:
        if not message:
            return None
        return shortened(inert_line(str(self._ctx.secrets.masked(message))), LONGEST_MESSAGE)

    async def _store(self) -> None:
        """Store the last report until there is no new one. A failure ends nothing: the next report is tried."""
        try:
            while self.last is not self._stored and self.last is not None:
                report = self.last
                await self._ctx.write(partial(self._note, report), durable=False)
                self._stored = report
                await asyncio.sleep(STORE_SECONDS)
        except WorkbenchError:
            log.warning("the progress of the call %s could not be stored", self._call_id, exc_info=True)
        finally:
            self._storing = None
