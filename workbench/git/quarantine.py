"""A quarantine directory for untrusted objects until they are checked, like that of ``git receive-pack``."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from workbench.git.clones import quoted
from workbench.git.plumbing import Plumbing

_LAST = (".idx",)
"""Files to move last: git sees a pack once its index exists."""


@dataclass(frozen=True, slots=True)
class Quarantine:
    """Objects below `place`; only git commands with `environment` see them, together with all other objects."""

    place: Path
    objects: Path

    @property
    def environment(self) -> dict[str, str]:
        """The variables that make git write objects here."""
        return {
            "GIT_OBJECT_DIRECTORY": str(self.place),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": quoted(str(self.objects), also=":"),
        }

    def release(self) -> None:
        """Move the objects into the repository's object directory."""
        files = [path for path in self.place.glob("*/*") if path.is_file()]
        for file in sorted(files, key=lambda path: (path.suffix in _LAST, path.name)):
            into = self.objects / file.parent.name
            if not into.is_dir():
                into.mkdir(exist_ok=True)
                into.chmod(file.parent.stat().st_mode & 0o7777)
            if not (into / file.name).exists():
                file.replace(into / file.name)


@contextmanager
def quarantine(repository: Plumbing) -> Iterator[Quarantine]:
    """Create a quarantine. Objects not released are deleted at the end; after a crash, ``git prune`` deletes them."""
    objects = (repository.git_dir / "objects").resolve()
    place = Path(tempfile.mkdtemp(prefix="tmp_objdir-workbench-", dir=objects))
    try:
        yield Quarantine(place, objects)
    finally:
        shutil.rmtree(place, ignore_errors=True)
