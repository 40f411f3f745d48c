"""The memory of the model gateway: the keys that it uses for each agent, and what came of trying them.

It is lost with the server's process, and made again when it is needed.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from enum import Enum, auto
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from cachetools import LRUCache, TTLCache

from workbench.model import SECOND
from workbench.rules.models.prices import Prices
from workbench.rules.models.upstream import ProviderKey

T = TypeVar("T")

AGENTS = 10_000
KEYS_SECONDS = 60.0
"""How long the keys of an agent are used before they are read again."""
TRIALS = 1_000
PING_SECONDS = 10.0
"""How often a client that waits gets a sign of life."""
PROBE_SECONDS = 10.0
"""How long the answer to a probe is waited for before other requests are sent, too."""

AgentKeys = Mapping[str, ProviderKey]
"""The keys that answer for an agent, by provider."""


def fingerprint(key: ProviderKey) -> str:
    """An identifier of a key at an address, from which the key cannot be found."""
    return hashlib.blake2b(f"{key.base}\0{key.value}".encode(), digest_size=16).hexdigest()


class LimitedError(Exception):
    """A limit of a key lasts longer than a request may wait."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"for {seconds:g} s")
        self.seconds = seconds


class Came(Enum):
    """What came of a request: an answer; that the key is limited, without an end; with one, which is stored."""

    ANSWER = auto()
    REFUSAL = auto()
    LIMIT = auto()


class Patience:
    """How long a request waits for limits of its key to pass.

    Args:
        seconds: at most.
        silent: how long its client waits without a sign of life, which only an answer in events can give.
        is_streamed: whether the answer comes in events; asked once it has to wait.
    """

    def __init__(self, seconds: float, silent: float, is_streamed: Callable[[], bool]) -> None:
        self._began = time.monotonic()
        self._seconds, self._silent = seconds, silent
        self._asks = is_streamed

    @cached_property
    def _is_streamed(self) -> bool:
        return self._asks()

    @property
    def last(self) -> float:
        """Until when it waits, by `time.monotonic`."""
        return self._began + (self._seconds if self._is_streamed else min(self._seconds, self._silent))

    @property
    def quiet(self) -> float:
        """Until when its client needs no sign of life, by `time.monotonic`."""
        return self._began + self._silent if self._is_streamed else math.inf


class KeyTurns:
    """Lets the requests with one key through: none while it is limited, then one as a probe, then all.

    Until when it is limited is in the store, for all that works with the key; here is only what is under way.

    Args:
        limit: when the last limit passes or has passed, in microseconds UTC; None: there is none.
        now: the store's clock.
    """

    def __init__(self, limit: Callable[[], Awaitable[int | None]], now: Callable[[], int]) -> None:
        self._limit = limit
        self._now = now
        self._closings = 0
        self._passed: int | None = None
        """The limit after which a request got through."""
        self._news = asyncio.Event()

    def look_again(self) -> None:
        """Have the requests that wait look what is stored now."""
        news, self._news = self._news, asyncio.Event()
        news.set()

    @contextmanager
    def closed(self) -> Iterator[None]:
        """Let no request through while the block lasts."""
        self._closings += 1
        try:
            yield
        finally:
            self._closings -= 1
            self.look_again()

    async def answers(
        self, send: Callable[[], Awaitable[tuple[T, Came]]], patience: Patience
    ) -> AsyncGenerator[T | None]:
        """The answer that `send` returns, once no limit is in its way; of a limit that passes too late, the answer that
        tells it. Before it None, whenever the client needs a sign of life.

        Raises:
            LimitedError: the limit is known, and passes too late: nothing was sent.
        """
        quiet: float | None = None
        while True:
            while (turn := await self._turn(patience, quiet)) is None:
                yield None
                quiet = time.monotonic() + PING_SECONDS
            answer, came = await (self._probed(send, turn) if turn else send())
            if came is not Came.LIMIT or not await self._waits(patience):
                yield answer
                return

    async def _turn(self, patience: Patience, quiet: float | None) -> int | None:
        """Wait until a request may be sent: 0, or the limit that it is a probe after. None: it has to wait on.

        What the caller does until it sends must not await: another request could come between.

        Args:
            quiet: until when to wait, by `time.monotonic`; None: as patience says.
        """
        while True:
            news, until = self._news, await self._limit()
            is_limited = until is not None and until != self._passed
            left = max(0.0, (until - self._now()) / SECOND) if until is not None and is_limited else 0.0
            if not left and not self._closings:
                return until if until is not None and is_limited else 0
            now = time.monotonic()
            if now + left > patience.last:
                raise LimitedError(max(left, 1.0))
            moment = min(patience.quiet if quiet is None else quiet, patience.last)
            if moment <= now:
                return None
            with suppress(TimeoutError):
                await asyncio.wait_for(news.wait(), min(moment - now, left or math.inf))

    async def _probed(self, send: Callable[[], Awaitable[tuple[T, Came]]], limit: int) -> tuple[T, Came]:
        """What `send` returns; others wait for it, but not long: a limit is told at once."""
        with ExitStack() as closed:
            closed.enter_context(self.closed())

            def let_others_through() -> None:
                self._passed = limit
                closed.close()

            timer = asyncio.get_running_loop().call_later(PROBE_SECONDS, let_others_through)
            try:
                answer, came = await send()
            finally:
                timer.cancel()
            if came is Came.ANSWER:
                let_others_through()
            return answer, came

    async def _waits(self, patience: Patience) -> bool:
        """Whether the limit that was told is stored, and passes in time."""
        until = await self._limit()
        if until is None or until == self._passed:
            return False
        return time.monotonic() + (until - self._now()) / SECOND <= patience.last


class GatewayState:
    """The state of the model gateway in one process. Use it on one loop; its representation shows no key."""

    def __init__(self) -> None:
        self.keys: TTLCache[str, AgentKeys] = TTLCache(AGENTS, KEYS_SECONDS)
        """By agent (internal id)."""
        self.reading: TTLCache[str, asyncio.Lock] = TTLCache(AGENTS, KEYS_SECONDS)
        """Held while the keys of an agent are read."""
        self.trials: LRUCache[str, tuple[str, str]] = LRUCache(TRIALS)
        """The state of each key when it was last used, and a sentence about it, by fingerprint."""

        self._fresh: TTLCache[str, None] = TTLCache(TRIALS, KEYS_SECONDS)
        self._read: Mapping[Path, tuple[int, ...] | None] = {}
        """The files that keys were read from, as they were then."""

        self.prices: tuple[int | None, Prices] | None = None
        """The prices of models, and when the person's table of them was changed last."""

        self.turns: LRUCache[str, KeyTurns] = LRUCache(TRIALS)
        """The turns of each key, by the name of its account."""

    def look_again(self) -> None:
        """Have the requests that wait for a limit look what is stored now."""
        for turns in self.turns.values():
            turns.look_again()

    def note(self, key: ProviderKey, state: str, detail: str) -> None:
        """Note what a provider said about a key."""
        self.trials[fingerprint(key)] = (state, detail)
        self._fresh[fingerprint(key)] = None

    def trial(self, key: ProviderKey) -> tuple[str, str]:
        """What a provider said last about a key."""
        return self.trials.get(fingerprint(key), ("untried", "It has not been used since the server started."))

    def is_fresh(self, key: ProviderKey) -> bool:
        """Whether a provider has said something about a key within the last minute."""
        return fingerprint(key) in self._fresh

    def watch(self, files: Iterable[Path]) -> None:
        """Note what keys are about to be read from. Blocks."""
        self._read = {file: _stamp(file) for file in files}

    def forget_changed(self) -> None:
        """Have keys read again if what they were read from has changed: the next request gets the new ones."""
        if any(_stamp(file) != stamp for file, stamp in self._read.items()):
            self._read = {}
            self.keys.clear()

    def __repr__(self) -> str:
        return f"<the model gateway, with the keys of {len(self.keys)} agents>"


def _stamp(file: Path) -> tuple[int, ...] | None:
    """What changes with a file; None: there is none."""
    try:
        status = file.stat()
    except (OSError, ValueError):
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size
