"""Changes of several files in a directory: all of them are made, or none, whatever is killed meanwhile.

New texts are staged in files beside the directory. A journal then lists which of them replace which file, and which
files are removed, and then that is done. A process that finds the journal of one that was killed does the rest.

Staged files, the journal and a lock are in `.workbench/<name>/` beside the directory, which git ignores.
"""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, Field

from workbench.errors import BadInput, Unavailable
from workbench.rules.definitions import layout
from workbench.system import atomic_file, file_lock

PRIVATE = ".workbench"
LOCK_SECONDS = 30.0
_LOCK = "lock"
_JOURNAL = "journal.json"
_NOT_OURS = frozenset({errno.EPERM, errno.EINVAL, errno.ELOOP, errno.EFBIG})
"""Why `atomic_file.read` refuses what Workbench did not write."""


def _is_part(path: str) -> str:
    if not layout.is_part(path):
        raise ValueError("is no file of a definition")
    return path


_PartPath = Annotated[str, AfterValidator(_is_part)]
_Staged = Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]


class StagedChange(BaseModel):
    """A change that is staged.

    Args:
        replace: for each file, by its path below the directory, the name of the staged one that replaces it.
        remove: the files to be removed.
        mark: the plan counts only if this file exists, by its path from the journal's directory; None: it counts.
    """

    replace: dict[_PartPath, _Staged]
    remove: list[_PartPath]
    mark: str | None = None


class Journal:
    """The changes of the directory at `path`, which may not exist yet. Every method blocks."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._home = path.parent / PRIVATE / path.name
        self._file = self._home / _JOURNAL
        self._is_held = False

    def is_open(self) -> bool:
        """Whether a change is being made, or was left unfinished by a process that was killed."""
        return os.path.lexists(self._file)  # False if it is another user's

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock of the directory; what a killed process left is finished or removed first.

        If it is held through this object, it is held on. Another thread may release it.

        Raises:
            Unavailable: ``PROJECT_UNWRITABLE``, ``DEFINITION_BUSY``. BadInput: ``INVALID_PATH``.
        """
        if self._is_held:
            yield
            return
        self._make_home()
        with file_lock.held(self._home / _LOCK, LOCK_SECONDS) as is_held:
            if not is_held:
                raise Unavailable("DEFINITION_BUSY", f"Another process has locked {self._path}. Try again.")
            self._recover()
            self._is_held = True
            try:
                yield
            finally:
                self._is_held = False

    def commit(self, changes: Mapping[str, str | None], is_current: Callable[[], bool]) -> bool:
        """Make a change, under the lock: the new text of each file, or None to remove it.

        Args:
            is_current: called last, when everything is prepared; if it returns False, nothing is changed.

        Returns:
            Whether the change was made.

        Raises:
            Unavailable: ``PROJECT_UNWRITABLE``: nothing is changed, or, if the disk fails in between, the next process
                that can write there makes the rest of the change. BadInput: ``INVALID_PATH``: nothing is changed.
        """
        try:
            with _unwritable(self._path):
                plan = self._stage(changes)
                entry = self._staged(plan.model_dump_json(), 0o600) if len(changes) > 1 else None
                if not is_current():
                    return False
                if entry:
                    entry.replace(self._file)
                self._finish(plan)
            return True
        finally:
            if not self.is_open():
                self._tidy()

    # A change of several directories, each under its lock; see `group`.

    def new_mark(self) -> Path:
        """A file that does not exist, for the mark of a change of several directories."""
        return self._home.with_name(f"group-{secrets.token_hex(8)}")

    def prepare(self, changes: Mapping[str, str | None], mark: Path) -> StagedChange:
        """Prepare a change that counts once the file `mark` exists; until then `withdraw` undoes it.

        Raises:
            Unavailable: ``PROJECT_UNWRITABLE``. BadInput: ``INVALID_PATH``.
        """
        with _unwritable(self._path):
            plan = self._stage(changes, os.path.relpath(mark, self._home))
            self._staged(plan.model_dump_json(), 0o600).replace(self._file)
        return plan

    def carry_out(self, plan: StagedChange) -> None:
        """Make a change that is prepared and counts.

        Raises:
            Unavailable: ``PROJECT_UNWRITABLE``: the next process that can write there makes the rest.
        """
        with _unwritable(self._path):
            self._finish(plan)

    def withdraw(self) -> None:
        """Undo `prepare`. If the disk fails, the next process does it."""
        self._tidy()

    def _stage(self, changes: Mapping[str, str | None], mark: str | None = None) -> StagedChange:
        """Write what replaces files."""
        plan = StagedChange(replace={}, remove=[name for name, text in changes.items() if text is None], mark=mark)
        for name, text in changes.items():
            if text is not None:
                plan.replace[name] = self._staged(text, _mode(self._target(name))).name
        return plan

    def _staged(self, text: str, mode: int) -> Path:
        path = self._home / secrets.token_hex(8)
        atomic_file.replace(path, text, mode)
        return path

    def _finish(self, plan: StagedChange) -> None:
        """Carry out a plan, from its beginning if it was carried out in part.

        The agent's file, by which a definition is found, is the first that is there and the last that goes: whoever
        finds it after a kill finds the journal too.
        """
        for name, staged in sorted(plan.replace.items(), key=lambda item: item[0] != layout.AGENT):
            with suppress(FileNotFoundError):  # it was done before
                (self._home / staged).replace(self._target(name))
        for name in sorted(plan.remove, key=lambda name: name == layout.AGENT):
            check_no_link((self._path / name).parent)
            (self._path / name).unlink(missing_ok=True)
        self._file.unlink(missing_ok=True)

    def _target(self, name: str) -> Path:
        """Where a file is; the directory for it is made."""
        target = self._path / name
        check_no_link(target.parent)
        target.parent.mkdir(parents=True, exist_ok=True)
        return target

    def _recover(self) -> None:
        if (plan := self._unfinished()) and (plan.mark is None or (self._home / plan.mark).exists()):
            with _unwritable(self._path):
                self._finish(plan)
        self._tidy()

    def _unfinished(self) -> StagedChange | None:
        try:
            return StagedChange.model_validate_json(atomic_file.read(self._file, private=True))
        except (FileNotFoundError, ValueError):  # there is none, or Workbench did not write it
            return None
        except OSError as error:
            if error.errno in _NOT_OURS:
                return None
            raise Unavailable("PROJECT_UNWRITABLE", f"{self._file} cannot be read: {error.strerror}.") from None

    def _tidy(self) -> None:
        for path in self._home.iterdir():
            if path.name != _LOCK:
                with suppress(OSError):
                    path.unlink()

    def _make_home(self) -> None:
        check_no_link(self._home)
        with _unwritable(self._path):
            self._home.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not (ignored := self._home.parent / ".gitignore").exists():
                atomic_file.replace(ignored, "*\n")


def check_no_link(path: Path) -> None:
    """Refuse a path that leads through a link; it need not exist.

    Raises:
        BadInput: ``INVALID_PATH``.
    """
    if os.path.realpath(path) != str(path):
        raise BadInput("INVALID_PATH", f"{path} is a link, or leads through one, so it is not used.")


def _mode(path: Path) -> int:
    """The mode for what replaces a file."""
    try:
        return path.lstat().st_mode & atomic_file.EVERYBODY
    except FileNotFoundError:
        return atomic_file.EVERYBODY


@contextmanager
def _unwritable(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise Unavailable("PROJECT_UNWRITABLE", f"{path} cannot be written: {error.strerror}.") from None
