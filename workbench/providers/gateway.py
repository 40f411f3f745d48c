"""The memory of the model gateway: the keys that it uses for each agent, and what came of trying them.

It is lost with the server's process, and made again when it is needed.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping

from cachetools import LRUCache, TTLCache

from workbench.rules.models.upstream import ProviderKey

AGENTS = 10_000
KEYS_SECONDS = 60.0
"""How long the keys of an agent are used before they are read again."""
TRIALS = 1_000

AgentKeys = Mapping[str, ProviderKey]
"""The keys that answer for an agent, by provider."""


def fingerprint(key: ProviderKey) -> str:
    """An identifier of a key at an address, from which the key cannot be found."""
    return hashlib.blake2b(f"{key.base}\0{key.value}".encode(), digest_size=16).hexdigest()


class GatewayState:
    """The state of the model gateway in one process. Use it on one loop; its representation shows no key."""

    def __init__(self) -> None:
        self.keys: TTLCache[str, AgentKeys] = TTLCache(AGENTS, KEYS_SECONDS)
        """By agent (internal id)."""
        self.reading: TTLCache[str, asyncio.Lock] = TTLCache(AGENTS, KEYS_SECONDS)
        """Held while the keys of an agent are read."""
        self.trials: LRUCache[str, tuple[str, str]] = LRUCache(TRIALS)
        """The state of each key when it was last used, and a sentence about it, by fingerprint."""

    def note(self, key: ProviderKey, state: str, detail: str) -> None:
        """Note what a provider said about a key."""
        self.trials[fingerprint(key)] = (state, detail)

    def trial(self, key: ProviderKey) -> tuple[str, str]:
        """What a provider said last about a key."""
        return self.trials.get(fingerprint(key), ("untried", "It has not been used since the server started."))

    def __repr__(self) -> str:
        return f"<the model gateway, with the keys of {len(self.keys)} agents>"
