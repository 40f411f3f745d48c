"""The clock of a PostgreSQL server, as its clients know it without asking each time."""

from __future__ import annotations

import time


class ServerClock:
    """Microseconds UTC. It follows the server's clock, and never goes backwards.

    Where that clock is set back, this one runs at half its speed until they agree again.
    """

    def __init__(self) -> None:
        self._offset: int | None = None
        self._set_at = 0

    def __call__(self) -> int:
        """The time."""
        assert self._offset is not None
        return time.monotonic_ns() // 1_000 + self._offset

    def set(self, server_time: int) -> None:
        """Note the time that the server has just told. Only one thread does."""
        here = time.monotonic_ns() // 1_000
        offset = server_time - here
        if self._offset is not None:
            offset = max(offset, self._offset - (here - self._set_at) // 2)
        self._offset, self._set_at = offset, here
