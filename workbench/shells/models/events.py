"""The events of an answer that streams through, bounded: one that never ends would fill the memory of who reads it."""

from __future__ import annotations


class TooLongEventError(Exception):
    """A single event, or an answer without events, is longer than the limit."""


class EventLimit:
    """Counts the bytes of the event, or of an answer without events, that is under way.

    Args:
        most: the bytes that one may have.
        is_stream: whether the answer comes in events, with a line between two of them.
    """

    def __init__(self, most: int, *, is_stream: bool) -> None:
        self._most = most
        self._is_stream = is_stream
        self._size = 0

    def take(self, chunk: bytes) -> None:
        """Count what has come.

        Raises:
            TooLongEventError: the event is too long by now.
        """
        last = max(chunk.rfind(b"\n\n"), chunk.rfind(b"\r\n\r\n")) if self._is_stream else -1
        self._size = len(chunk) - last if last >= 0 else self._size + len(chunk)
        if self._size > self._most:
            raise TooLongEventError
