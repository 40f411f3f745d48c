"""Several messages of a WebSocket at once, as an extension of ASGI.

ASGI sends each message by itself, with a system call. With hundreds of readers of a busy feed that takes most of the
time; here the messages that a reader has not got yet are written together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.exceptions import InvalidState

BATCHES = "workbench.websocket.batches"
"""The extension's name in the scope."""
PORTION = 65_536
"""Characters that are written at once, unless a single text has more."""
_TYPE = "websocket.send_batch"


def portions(texts: Sequence[str]) -> Iterator[list[str]]:
    """Texts in portions that a reader that stalls may keep in memory."""
    portion: list[str] = []
    size = 0
    for text in texts:
        if portion and size + len(text) > PORTION:
            yield portion
            portion, size = [], 0
        portion.append(text)
        size += len(text)
    if portion:
        yield portion


def batch(texts: Sequence[str]) -> dict[str, Any]:
    """The ASGI message that sends texts, each as a message of its own."""
    return {"type": _TYPE, "texts": texts}


class BatchingWebSockets(WebSocketsSansIOProtocol):
    """Uvicorn's WebSockets, with the extension."""

    async def run_asgi(self) -> None:
        """Announce the extension to the application."""
        self.scope["extensions"][BATCHES] = {}
        await super().run_asgi()

    async def send(self, message: Any) -> None:
        """Send an ASGI message.

        Raises:
            ClientDisconnected: the connection is being closed. Uvicorn notices that only later, and would leave out the
                handshake without a word.
        """
        if not self.handshake_complete and self.transport.is_closing():
            raise ClientDisconnected
        if message["type"] != _TYPE:
            await super().send(message)
            return
        await self.writable.wait()
        if self.disconnected or self.close_sent:
            raise ClientDisconnected
        try:
            for text in message["texts"]:
                self.conn.send_text(text.encode())
        except InvalidState:
            raise ClientDisconnected from None
        self.transport.write(b"".join(self.conn.data_to_send()))
