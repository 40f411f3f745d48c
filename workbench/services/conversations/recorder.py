"""Stores the frames of an answer as they come, those of one moment together, before any reader gets them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from workbench.errors import WorkbenchError
from workbench.ops import Ctx
from workbench.providers.running import RunningAnswer
from workbench.rules.chat.transcript import FrameKind, Transcript
from workbench.rules.secrets.mask import StreamMask
from workbench.services.conversations import frames
from workbench.services.conversations.frames import NewFrame

GATHER_SECONDS = 0.03
_TEXT = (FrameKind.TOKEN, FrameKind.THINKING)


class FrameRecorder:
    """The frames of one answer. `add` stores nothing itself, so it never waits.

    If frames cannot be stored, the answer is cancelled, and `error` says why.
    """

    def __init__(self, ctx: Ctx, running: RunningAnswer) -> None:
        self.transcript = Transcript()
        self.error: WorkbenchError | None = None
        self._ctx = ctx
        self._running = running
        self._pending: list[NewFrame] = []
        self._masks = StreamMask(ctx.secrets.masked)
        self._kind = FrameKind.TOKEN
        """Of the text that is being written."""
        self._news = asyncio.Event()

    def add(self, kind: FrameKind, **data: Any) -> None:
        """Add a frame; text that follows text that is not stored yet belongs to the same frame."""
        last = self._pending[-1] if self._pending else None
        if last is not None and kind in _TEXT and last.kind is kind:
            self._pending[-1] = NewFrame(kind, {"content": last.data["content"] + data["content"]})
        else:
            self._pending.append(NewFrame(kind, data))
        self._news.set()

    def take(self, *, ended: bool = True) -> list[NewFrame]:
        """The frames that are not stored yet, without secrets; the caller stores them.

        Args:
            ended: whether no text follows; if it does, the word that is being written is not taken.
        """
        pending, self._pending, taken = self._pending, [], list[NewFrame]()
        for frame in pending:
            if frame.kind is not self._kind:
                taken += self._text(self._masks.rest())
                self._kind = frame.kind
            taken += self._text(self._masks(frame.data["content"])) if frame.kind in _TEXT else [frame]
        taken += self._text(self._masks.rest()) if ended else []
        for frame in taken:
            self.transcript.add(frame.kind, frame.data)
        return taken

    def _text(self, content: str) -> list[NewFrame]:
        return [NewFrame(self._kind, {"content": content})] if content else []

    @asynccontextmanager
    async def storing(self) -> AsyncIterator[None]:
        """Store the frames while the block runs. What comes last is left to `take`."""
        task = asyncio.create_task(self._store())
        try:
            yield
        finally:
            self._news.set()
            task.cancel()
            await asyncio.wait([task])

    async def _store(self) -> None:
        try:
            while True:
                await self._news.wait()
                await asyncio.sleep(GATHER_SECONDS)
                self._news.clear()
                if pending := self.take(ended=False):
                    await self._ctx.local.repositories.shielded(self._append(pending))
        except WorkbenchError as error:
            self.error = error
            self._running.cancel()

    async def _append(self, pending: list[NewFrame]) -> None:
        conversation_id, turn_id = self._running.conversation_id, self._running.turn_id
        await self._ctx.write(lambda tx: frames.append(tx, conversation_id, turn_id, pending))
        self._ctx.local.answers.wake(conversation_id)
