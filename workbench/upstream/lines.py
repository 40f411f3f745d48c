"""A stream of bytes split into lines, of which each is a JSON-RPC message. Pure: bytes in, lines out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

EDGE = 512
"""Bytes that are kept of each end of a line that is too long."""

_ID = rb'"id"\s*:\s*(\d{1,18})'
_ID_AT_START = re.compile(rb'\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?' + _ID + rb"\s*,")
_ID_AT_END = re.compile(_ID + rb'(?:\s*,\s*"jsonrpc"\s*:\s*"2\.0")?\s*\}\s*$')


@dataclass(frozen=True, slots=True)
class TooLong:
    """A line that is longer than the limit, of which only the ends are kept."""

    start: bytes
    end: bytes

    @property
    def answers(self) -> int | None:
        """The id of the request that the line answers, read from its start or end; None if it is at neither."""
        match = _ID_AT_START.match(self.start) or _ID_AT_END.search(self.end)
        return int(match[1]) if match else None


class LineSplitter:
    """Splits a stream into lines, and never holds more than the limit.

    Args:
        longest: bytes of a line.
    """

    def __init__(self, longest: int) -> None:
        self._longest = longest
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> Iterator[bytes | TooLong]:
        """The lines that end in the next bytes of the stream, without their ends; empty ones are left out."""
        *lines, rest = chunk.split(b"\n")
        for part in lines:
            self._add(part)
            if self._size:
                yield self._take_line()
        self._add(rest)

    def _add(self, part: bytes) -> None:
        if not part:
            return
        self._size += len(part)
        self._parts.append(part)
        if self._size > self._longest:
            line = b"".join(self._parts)
            self._parts = [line[:EDGE], line[EDGE:][-EDGE:]]

    def _take_line(self) -> bytes | TooLong:
        line = b"".join(self._parts)
        whole = line if self._size <= self._longest else TooLong(line[:EDGE], line[EDGE:])
        self._parts, self._size = [], 0
        return whole
