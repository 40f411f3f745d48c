"""Files that an attempt on a machine without a clone has made outside of git: sent in pieces, for its task's artifacts.

An attempt's are in `Settings.artifacts`, in ``TASK/ATTEMPT/``, by the hash of the name that its agent gave them.
"""

from __future__ import annotations

import hashlib
import json
from asyncio import to_thread
from pathlib import Path
from typing import Annotated

from pydantic import Field

from workbench.errors import Conflict, Unavailable
from workbench.model import Level, Wire
from workbench.ops import Ctx, op
from workbench.ops.duties import on_event
from workbench.ops.parameters import TaskId
from workbench.services.attempts.work import AttemptNumber
from workbench.services.tasks import attempts, progress
from workbench.services.tasks.attempts import Key
from workbench.services.worktrees.pieces import FileBytes, Offset, Piece, Sha256, decoded
from workbench.store.base import Reader, Row
from workbench.system import file_pieces
from workbench.system.tree_removal import remove_tree

CONTENT = "content"
"""The name of the whole file; of what has arrived of it until then, its hash."""
MOST_FILES = 1_000


class ReceivedArtifact(Wire):
    """How many bytes of a file have arrived: the next piece begins there. `whole`: it is complete, with its hash."""

    received: int
    whole: bool


@op(allow=Level.WORKER, tool=False)
async def send_artifact(
    ctx: Ctx,
    task_id: TaskId,
    attempt: AttemptNumber,
    key: Key,
    name: Annotated[
        str, Field(min_length=1, max_length=4_096, description="Its name among the artifacts of the task.")
    ],
    sha256: Sha256,
    bytes: FileBytes,
    offset: Offset = 0,
    data: Piece = "",
) -> ReceivedArtifact:
    """Send a piece of a file that your attempt has made outside of git, for get_task_artifact.

    Send the next piece at `received`: a transfer that was cut off goes on there.
    """
    piece = decoded(data)

    def question(tx: Reader) -> None:
        attempts.require_supervisor(tx, task_id, attempt, key)
        progress.held(tx, ctx.caller, task_id, attempt)

    await ctx.read(question)
    return await to_thread(
        _receive, ctx, place_of(ctx.settings.artifacts, task_id, attempt, name), sha256, bytes, offset, piece
    )


def place_of(home: Path, task_id: int, attempt: int, name: str) -> Path:
    """The directory of a file that an attempt sends under a name."""
    return home / str(task_id) / str(attempt) / hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()


def _receive(ctx: Ctx, place: Path, sha256: str, size: int, offset: int, piece: bytes) -> ReceivedArtifact:
    """Take a piece in. Blocks.

    Raises:
        Conflict: ``ARTIFACT_TOO_LARGE``, ``ARTIFACT_DAMAGED``. Unavailable: ``ARTIFACT_NOT_WRITTEN``.
    """
    try:
        whole, part = place / CONTENT, place / sha256
        if whole.exists() and whole.stat().st_size == size and file_pieces.has_hash(whole, sha256):
            return ReceivedArtifact(received=size, whole=True)
        if not part.exists():
            _require_room(ctx, place, size)
            remove_tree(place)  # what was sent before under the name
        if offset + len(piece) > size:
            raise _damaged(part, f"has more than the {size:,} bytes that you have said")
        received = file_pieces.write(part, offset, piece)
        if received < size:
            return ReceivedArtifact(received=received, whole=False)
        if not file_pieces.has_hash(part, sha256):
            raise _damaged(part, "has another hash")
        part.replace(whole)
    except OSError as error:
        raise Unavailable("ARTIFACT_NOT_WRITTEN", f"The artifact cannot be written: {error}.") from error
    return ReceivedArtifact(received=size, whole=True)


def _damaged(part: Path, why: str) -> Conflict:
    part.unlink(missing_ok=True)
    return Conflict("ARTIFACT_DAMAGED", f"What has arrived of the artifact {why}. Send it again from its beginning.")


def _require_room(ctx: Ctx, place: Path, size: int) -> None:
    """Refuse a file with which an attempt would have sent more than it may."""
    others = [path for path in place.parent.glob("*/*") if path.parent != place]
    total, most = sum(path.stat().st_size for path in others) + size, ctx.settings.max_artifact_bytes
    if total > most or len(others) >= MOST_FILES:
        text = f"An attempt may send {MOST_FILES:,} artifacts of {most:,} bytes in sum (max_artifact_bytes)"
        raise Conflict("ARTIFACT_TOO_LARGE", f"{text}, and these would have {total:,}. Send less.", limit=most)


@on_event("task.completed", "task.failed", "task.cancelled")
def clear(ctx: Ctx, event: Row) -> None:
    """Remove what the attempts have sent that did not complete the task, once it has ended."""
    home = ctx.settings.artifacts / event["subject"].partition(":")[2]
    kept = json.loads(event["data"]).get("attempt") if event["kind"] == "task.completed" else None
    for place in home.glob("*"):
        if place.name != str(kept):
            remove_tree(place)
