"""Which node this project's own one is, also while it takes no part in a network."""

from __future__ import annotations

import asyncio
from pathlib import Path

from workbench.errors import Conflict, Hint
from workbench.koi.identity import load_or_create
from workbench.ops import Ctx
from workbench.present.inert import inert_line
from workbench.state.settings import Settings
from workbench.trust.state_directory import NODE_OF_ANOTHER


def key_file(settings: Settings) -> Path:
    """Where the node's private key is."""
    return settings.home / "koi" / "key.pem"


def require_own_key(settings: Settings) -> None:
    """Refuse the key of another project's node, which a copy of that project has. Blocks.

    Raises:
        Conflict: ``KOI_NODE_COPIED``.
    """
    note = settings.home / NODE_OF_ANOTHER
    if note.exists():
        raise Conflict(
            "KOI_NODE_COPIED",
            f"This project is a copy of {inert_line(note.read_text())}, and would be the same node.",
            Hint(
                "leave_network",
                "With {} it gives up the key of that node, and with join_network it becomes a node of its own.",
                "With {} it gives up the key of that node, and with `workbench koi join` it becomes a node of its own.",
            ),
        )


def give_up_copied_key(settings: Settings) -> None:
    """Remove the key of another project's node, if this project has it. Blocks."""
    note = settings.home / NODE_OF_ANOTHER
    if note.exists():
        key_file(settings).unlink(missing_ok=True)
        note.unlink()


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
