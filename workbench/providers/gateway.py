"""The memory of the model gateway: the keys that it uses for each agent, and what came of trying them.

It is lost with the server's process, and made again when it is needed.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

from cachetools import LRUCache, TTLCache

from workbench.rules.models.prices import Prices
from workbench.rules.models.upstream import ProviderKey

T = TypeVar("T")

AGENTS = 10_000
KEYS_SECONDS = 60.0
"""How long the keys of an agent are used before they are read again."""
TRIALS = 1_000

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


class KeyTurns:
    """Lets the requests of one key through: none before a limit passes, then one after another, the first as a probe.

    `until` is when the limit passes, by `time.monotonic`; None: there is none.
    """

    def __init__(self) -> None:
        self.until: float | None = None
        self._turn = asyncio.Lock()

    async def send(self, send: Callable[[], Awaitable[T]], limit: Callable[[T], float | None], last: float) -> T:
        """What `send` returns, once no limit is in its way; of a limit that passes too late, the answer that tells it.

        Args:
            limit: the seconds until the limit that an answer tells passes; None: it tells none.
            last: until when it may wait, by `time.monotonic`.

        Raises:
            LimitedError: the limit is known, and passes too late: nothing was sent.
        """
        if self.until is None:
            answer = await send()
            if (seconds := limit(answer)) is None or not self._waits(seconds, last):
                return answer
        async with self._turn:
            while True:
                if self.until is not None and (left := self.until - time.monotonic()) > 0:
                    if self.until > last:
                        raise LimitedError(left)
                    await asyncio.sleep(left)
                answer = await send()
                if (seconds := limit(answer)) is None:
                    self.until = None
                    return answer
                if not self._waits(seconds, last):
                    return answer

    def _waits(self, seconds: float, last: float) -> bool:
        """Note a limit; whether it passes in time."""
        self.until = time.monotonic() + seconds
        return self.until <= last


class GatewayState:
    """The state of the model gateway in one process. Use it on one loop; its representation shows no key."""

    def __init__(self) -> None:
        self.keys: TTLCache[str, AgentKeys] = TTLCache(AGENTS, KEYS_SECONDS)
        """By agent (internal id)."""
        self.reading: TTLCache[str, asyncio.Lock] = TTLCache(AGENTS, KEYS_SECONDS)
        """Held while the keys of an agent are read."""
        self.trials: LRUCache[str, tuple[str, str]] = LRUCache(TRIALS)
        """The state of each key when it was last used, and a sentence about it, by fingerprint."""

        self.prices: tuple[int | None, Prices] | None = None
        """The prices of models, and when the person's table of them was changed last."""

        self.turns: LRUCache[str, KeyTurns] = LRUCache(TRIALS)
        """The turns of each key, by fingerprint."""

    def turns_of(self, key: ProviderKey) -> KeyTurns:
        """The turns of the requests with a key, of all agents together."""
        return self.turns.setdefault(fingerprint(key), KeyTurns())

    def begin_anew(self) -> None:
        """Read the keys of all agents again, which the person may have changed, and let the requests with all keys
        through: a limit that still holds is told again by the next one."""
        self.keys.clear()
        for turns in self.turns.values():
            turns.until = None

    def note(self, key: ProviderKey, state: str, detail: str) -> None:
        """Note what a provider said about a key."""
        self.trials[fingerprint(key)] = (state, detail)

    def trial(self, key: ProviderKey) -> tuple[str, str]:
        """What a provider said last about a key."""
        return self.trials.get(fingerprint(key), ("untried", "It has not been used since the server started."))

    def __repr__(self) -> str:
        return f"<the model gateway, with the keys of {len(self.keys)} agents>"
