"""What a worker on a machine without a clone does with bundles: it takes its branch, and sends its commits."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from typing import Any

from tests.conftest import git
from workbench.client import HttpClient


async def fetch(ada: HttpClient, file: Path, *known: str, **more: str) -> dict[str, Any]:
    """Take the bundle of a branch, by default its own, piece by piece; what was offered."""
    offer = await ada.call("offer_worktree_bundle", known=list(known), **more)
    offset: int | None = 0
    with file.open("wb") as into:
        while offset is not None:
            piece = await ada.call("read_worktree_bundle", sha256=offer["sha256"], offset=offset)
            into.write(base64.b64decode(piece["data"]))
            offset = piece["next_offset"]
    assert hashlib.sha256(file.read_bytes()).hexdigest() == offer["sha256"]
    return offer


async def clone(ada: HttpClient, at: Path) -> Path:
    """A repository elsewhere with the branch."""
    bundle = at / "down.bundle"
    offer = await fetch(ada, bundle)
    git("clone", "-q", "--branch", offer["branch_name"], str(bundle), "there", cwd=at)
    assert git("rev-parse", "HEAD", cwd=at / "there") == offer["commit"]
    return at / "there"


def bundle_of(there: Path, *since: str) -> tuple[bytes, dict[str, Any]]:
    """The new commits elsewhere as a bundle, and how `import_worktree_bundle` names it."""
    git(
        "bundle",
        "create",
        "-q",
        "up.bundle",
        git("branch", "--show-current", cwd=there),
        *(f"^{one}" for one in since),
        cwd=there,
    )
    data = (there / "up.bundle").read_bytes()
    (there / "up.bundle").unlink()
    return data, {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}


async def send(ada: HttpClient, data: bytes, sha256: str, offset: int = 0) -> dict[str, Any]:
    """Send a piece."""
    return await ada.call("send_worktree_bundle", sha256=sha256, offset=offset, data=base64.b64encode(data).decode())
