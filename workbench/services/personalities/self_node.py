"""Which node this project's own one is, also while it takes no part in a network."""

from __future__ import annotations

import asyncio
from pathlib import Path

from workbench.koi.identity import load_or_create
from workbench.ops import Ctx
from workbench.settings import Settings


def key_file(settings: Settings) -> Path:
    """Where the node's private key is."""
    return settings.home / "koi" / "key.pem"


async def own_hash(ctx: Ctx) -> str | None:
    """The hash of the node's public key, which its RID ends with whatever its name; None if it has no key yet.

    Raises:
        Unavailable: ``KOI_KEY_UNREADABLE``.
    """
    if ctx.node.presence is not None:
        return str(ctx.node.presence.identity.rid.hash)
    path = key_file(ctx.settings)
    if not path.exists():
        return None
    identity = await asyncio.to_thread(load_or_create, path, "node")
    return str(identity.rid.hash)


def hash_of(node: str) -> str:
    """The hash in the RID of a node; empty if it has none."""
    return node.rpartition("+")[2]
