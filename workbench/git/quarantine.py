"""A place where objects of strangers wait until they are checked, as ``git receive-pack`` has one."""

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
"""A pack is seen once its index is there."""


@dataclass(frozen=True, slots=True)
class Quarantine:
    """Objects below `place`, which only git commands with `environment` see besides all others."""

    place: Path
    objects: Path

    @property
    def environment(self) -> dict[str, str]:
        """The variables that make git write here."""
        return {
            "GIT_OBJECT_DIRECTORY": str(self.place),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": quoted(str(self.objects), also=":"),
        }

    def release(self) -> None:
        """Move what is here to where all objects are."""
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
    """A new one. What is not released is gone afterwards; after a crash, ``git prune`` takes it."""
    objects = (repository.git_dir / "objects").resolve()
    place = Path(tempfile.mkdtemp(prefix="tmp_objdir-workbench-", dir=objects))
    try:
        yield Quarantine(place, objects)
    finally:
        shutil.rmtree(place, ignore_errors=True)
