"""What an archive is being restored into a directory, noted there while what it brings is put in its places.

If that is cut off, the note stays: the project is refused until the same archive was restored again.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

from workbench.errors import Conflict
from workbench.present.inert import inert_line
from workbench.state.root import enclosing_repository
from workbench.system import atomic_file

PLACE = ".workbench-restoring"
"""The directory, at the top of the project or of its repository, where an archive is unpacked."""


@dataclass(frozen=True, slots=True)
class RestoreNote:
    """An archive that is being restored.

    Args:
        path: where it is.
        digest: tells it from others.
        is_new: whether it brings the repository.
    """

    path: str
    digest: str
    is_new: bool

    @staticmethod
    def file(directory: Path) -> Path:
        """The note of a directory into which an archive is restored."""
        return directory / PLACE / "note.json"

    @classmethod
    def of(cls, directory: Path) -> Self | None:
        """The note of a directory; None if no archive is being put in its place there."""
        try:
            note = cls(**json.loads(atomic_file.read(cls.file(directory), private=True)))
        except (OSError, ValueError, TypeError, RecursionError):
            return None
        return note if isinstance(note.path, str) and isinstance(note.digest, str) else None

    def write(self, directory: Path) -> None:
        """Note it for a directory, on the disk.

        Raises:
            Unavailable: ``PROJECT_UNWRITABLE``. OSError: it cannot be written.
        """
        file = self.file(directory)
        atomic_file.replace(file, json.dumps(asdict(self)), mode=0o600)
        for above in (file.parent, directory):
            atomic_file.sync(above)


def require_restored(project: Path) -> None:
    """Refuse a project that an archive has not become completely.

    Raises:
        Conflict: ``RESTORE_UNFINISHED``.
    """
    for directory in {project, enclosing_repository(project) or project}:
        if (note := RestoreNote.of(directory)) is not None:
            raise unfinished(directory, note)


def unfinished(directory: Path, note: RestoreNote) -> Conflict:
    """The error for a directory that an archive has not become completely."""
    return Conflict(
        "RESTORE_UNFINISHED",
        f"{directory} has only a part of what {inert_line(note.path)[:400]} brings. Wait if that is being restored "
        f"now; else run `workbench restore` with it again. To go on with what is there, remove {directory / PLACE}.",
    )
