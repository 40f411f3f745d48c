"""Measures one request that the gateway passes on, and books it when its answer has ended, however it ended."""

from __future__ import annotations

import asyncio
import time

from starlette.requests import Request

from workbench.app import Workbench
from workbench.rules.models.transcript import session_of
from workbench.rules.models.upstream import UpstreamProvider
from workbench.rules.models.usage import ModelUsage, UsageReader
from workbench.services.models.transcripts import Exchange
from workbench.services.spending.ledger import ModelSpending
from workbench.shells.http.endpoints import caller_of

OK = 200
FREE = ("v1/models", "v1beta/models", "v1/messages/count_tokens")
"""Paths whose requests cost nothing, and the method of Gemini that counts."""


class Meter:
    """The measure of one request, from when its body has come. Only one that `counts` may cost something."""

    def __init__(
        self, workbench: Workbench, request: Request, provider: UpstreamProvider, path: str, body: bytes
    ) -> None:
        self._workbench = workbench
        self._caller = caller_of(request)
        self._session = session_of(request.headers)
        self._request = body
        self._said = bytearray()
        self._provider = provider
        self.counts = path not in FREE and not path.endswith(":countTokens")
        self._reader = UsageReader(provider.id, False, body)
        if provider.id == "gemini" and ":" in path:
            self._reader.model = path.rpartition("/")[2].partition(":")[0]
        self._at, self._began = workbench.store.now(), time.monotonic()
        self._first: float | None = None
        self._error: str | None = None
        self._is_cut = False
        self._is_sent = False
        self._is_booked = False

    @property
    def is_stream(self) -> bool:
        """Whether the answer comes in events."""
        return self._reader.is_stream

    @property
    def asked_model(self) -> str | None:
        """The model that was asked."""
        return self._reader.asked_model

    def sent(self) -> None:
        """Note that the request goes to the provider."""
        self._is_sent = True

    def begin(self, *, is_stream: bool) -> None:
        """Note that the answer begins."""
        self._reader.is_stream = is_stream
        self._first = time.monotonic() - self._began

    def take(self, chunk: bytes) -> None:
        """Take a piece of the answer."""
        self._reader.take(chunk)
        if len(self._said) < self._workbench.settings.max_model_event_bytes:
            self._said += chunk

    def cut(self, code: str) -> None:
        """Note that the answer was cut, and why."""
        self._is_cut, self._error = True, code

    async def failed(self, status: int | None, code: str | None) -> None:
        """Book a request without an answer of a model."""
        self._is_booked = True
        await self._book(ModelUsage(), status, code)

    async def ended(self, *, is_complete: bool) -> None:
        """Book the request, now that nothing more comes of its answer; only once, and if it was sent at all.

        Args:
            is_complete: whether the box has got all of it.
        """
        if self._is_booked or not self._is_sent:
            return
        if self._first is None:
            await self.failed(None, "CLIENT_LEFT")
            return
        reader, self._is_booked = self._reader, True
        reader.close()
        is_whole = not self._is_cut and (reader.is_ended or (is_complete and self._ends_by_itself))
        self._is_cut = not is_whole
        if not (is_complete or is_whole) and self._error is None:  # programs leave once they are told that it is all
            self._error = "CLIENT_LEFT"
        code = self._error or reader.error
        said = Exchange(self._provider.id, self._session, self._request, bytes(self._said), self.is_stream)
        usage = reader.usage if is_whole else reader.estimated()
        await self._book(usage, OK, code, is_estimated=not is_whole, said=said)

    @property
    def _ends_by_itself(self) -> bool:
        """Whether usage says all that there is, though no event said that the answer is complete."""
        return self._reader.usage.output is not None and self._provider.id != "anthropic"

    async def _book(
        self,
        usage: ModelUsage,
        status: int | None,
        code: str | None,
        *,
        is_estimated: bool = False,
        said: Exchange | None = None,
    ) -> None:
        """Book the request, and record what was said; both to their end, though the program leaves meanwhile."""
        if not self.counts:
            return
        spent = ModelSpending(
            at=self._at,
            source="gateway",
            provider=self._provider.id,
            model=self._reader.asked_model,
            usage=usage,
            status=status,
            error_code=code,
            seconds=time.monotonic() - self._began,
            first_byte_seconds=self._first,
            is_cut=self._is_cut,
            is_estimated=is_estimated,
        )

        async def record() -> None:
            await self._workbench.book(self._caller, spent)
            if said is not None:
                await self._workbench.transcribe(self._caller, said)

        await asyncio.shield(asyncio.ensure_future(record()))
