"""The events of an answer that streams through: bounded, as one that never ends would fill the memory of who reads it,
and without the key, which some providers repeat in what they say of it."""

from __future__ import annotations

from workbench.rules.secrets.forms import MASK


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


class KeyFilter:
    """Masks a key in a stream, whatever pieces it comes in. What may be its beginning waits for the next piece."""

    def __init__(self, key: str) -> None:
        self._key = key.encode()
        self._rest = b""

    def take(self, chunk: bytes) -> bytes:
        """What can be passed on by now."""
        text = (self._rest + chunk).replace(self._key, MASK.encode())
        end = text[max(0, len(text) - len(self._key) + 1) :]
        begins = next((n for n in range(len(end), 0, -1) if end[-n:] == self._key[:n]), 0) if self._key[0] in end else 0
        self._rest = text[len(text) - begins :]
        return text[: len(text) - begins]

    def close(self) -> bytes:
        """What was held back; nothing follows."""
        rest, self._rest = self._rest, b""
        return rest
