"""Which PostgreSQL database has a project's store, noted in its state directory when the store is first opened there.

So a shell in which `database_url` is not set, or another one, does not begin an empty store beside the project's own.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

from workbench.system import atomic_file


@dataclass(frozen=True, slots=True)
class DatabaseNote:
    """A database.

    Args:
        url: its address, without secrets.
        created: when its store was created, microseconds UTC: so it is recognised at other addresses.
    """

    url: str
    created: int

    @staticmethod
    def file(home: Path) -> Path:
        """The note of the project with this state directory."""
        return home / "database.json"

    @classmethod
    def of(cls, home: Path) -> Self | None:
        """The note of a project; None if its store is on SQLite, or was not opened yet."""
        try:
            note = cls(**json.loads(atomic_file.read(cls.file(home), private=True)))
        except (OSError, ValueError, TypeError, RecursionError):
            return None
        return note if isinstance(note.url, str) and isinstance(note.created, int) else None

    def write(self, home: Path) -> None:
        """Note it for a project, unless it is noted already.

        Raises:
            Unavailable: ``PROJECT_UNWRITABLE``.
        """
        if self.of(home) != self:
            atomic_file.replace(self.file(home), json.dumps(asdict(self)), mode=0o600)
