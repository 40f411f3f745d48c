"""The directory of one definition. It is read and changed as a whole, whatever is written to it meanwhile."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from workbench.definition_files.journal import Journal, check_no_link
from workbench.errors import BadInput, Conflict, NotFound, Unavailable
from workbench.present.inert import inert_line
from workbench.rules.definitions import layout
from workbench.rules.definitions.composition import content_hash
from workbench.rules.definitions.former_settings import is_former
from workbench.rules.definitions.model import Definition, DefinitionMetadata, normal
from workbench.rules.yaml_text import load
from workbench.system import atomic_file

READS = 20
"""How often a directory is read that changes meanwhile."""
PAUSE_SECONDS = 0.01
SETTLED_NANOSECONDS = 2_000_000_000
"""A file that changed so shortly before it was read can change again with the same print: that is how coarse the times
of some file systems are."""

Print = tuple[int, int, int, int]
"""Inode, size, and times of change of content and of anything (nanoseconds) of a file."""
Signature = tuple[tuple[str, Print], ...]
"""The path and print of each file of a definition."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A definition as it was at one moment.

    Args:
        hash: of what it says; see `content_hash`.
        signature: of its files.
        is_settled: whether files with the same signature have the same content.
    """

    path: Path
    definition: Definition
    hash: str
    signature: Signature
    is_settled: bool


class DefinitionDirectory:
    """The directory at `path`, which is real (no link leads there) and may not exist yet. Every method blocks."""

    _agent_file = layout.AGENT
    _folders: tuple[str, ...] = layout.FOLDERS
    _largest = atomic_file.LARGEST

    def __init__(self, path: str | Path) -> None:
        self.key = str(path)
        """Its path; thousands are listed, and a `Path` takes long to make."""
        self._agent_path = f"{path}/{layout.AGENT}"

    @cached_property
    def path(self) -> Path:
        """Its path."""
        return Path(self.key)

    @cached_property
    def _home(self) -> Path:
        """The directory of its files."""
        return self.path

    @cached_property
    def journal(self) -> Journal:
        """Its changes."""
        return Journal(self.path)

    # Reading.

    def read(self) -> Snapshot:
        """The definition as it is now.

        Raises:
            NotFound: ``AGENT_NOT_FOUND``. BadInput: ``INVALID_CONFIGURATION``, ``INVALID_PATH``.
            Unavailable: ``DEFINITION_BUSY``: its files change all the time.
        """
        return self._snapshot(self._read())

    def is_unfinished(self) -> bool:
        """Whether a change of several files is being made, or was left unfinished by a process that was killed."""
        return self.journal.is_open()

    def head(self) -> tuple[Print, DefinitionMetadata]:
        """What the definition is, of `agent.yaml` alone, and the print of that file.

        Raises:
            NotFound: ``AGENT_NOT_FOUND``. BadInput: ``INVALID_CONFIGURATION``, ``INVALID_PATH``.
        """
        found = self.print_of_agent()
        try:
            return found, layout.metadata(self._text(layout.AGENT))
        except FileNotFoundError:
            raise self._not_found() from None

    def print_of_agent(self) -> Print:
        """The print of the agent file.

        Raises:
            NotFound: ``AGENT_NOT_FOUND``.
        """
        try:
            return _print(os.lstat(self._agent_path))
        except OSError:
            raise self._not_found() from None

    def signature(self) -> Signature:
        """What changes when a file of the definition does.

        Raises:
            NotFound: ``AGENT_NOT_FOUND``. BadInput: ``INVALID_PATH``.
        """
        found = tuple(self._parts())
        if not any(name == self._agent_file for name, _ in found):
            raise self._not_found()
        return found

    def foreign(self) -> list[str]:
        """The files and directories in it that are not of the definition, harmless to show."""
        return [inert_line(name) for name, entry in self._listed() if not self._is_own(name, entry)]

    def _read(self) -> Content:
        if (found := self._attempt()) is None:
            with self.locked():  # after the change that is being made
                found = self._whole()
        return found

    def _whole(self) -> Content:
        """The files, all as they were at one moment; under the lock."""
        for _ in range(READS):
            if found := self._attempt():
                return found
            time.sleep(PAUSE_SECONDS)
        raise self._busy()

    def _attempt(self) -> Content | None:
        """The files, or None if they changed meanwhile."""
        if self.is_unfinished():
            return None
        now, before = time.time_ns(), self.signature()
        try:
            texts = {name: self._text(name) for name, _ in before}
        except FileNotFoundError:
            return None
        # In this order: a change that ends between the two changes the signature.
        if self.is_unfinished() or self.signature() != before:
            return None
        return Content(before, texts, all(is_settled(found, now) for _, found in before))

    def states_former_settings(self) -> bool:
        """Whether a former version wrote its block of settings; see `former_settings`."""
        text = self._read().texts.get(layout.AGENT)
        head = load(text) if text is not None else None
        return isinstance(head, dict) and is_former(head.get("settings"))

    def _snapshot(self, files: Content) -> Snapshot:
        definition = self._parse(files.texts)
        return Snapshot(self.path, definition, content_hash(definition), files.signature, files.is_settled)

    def _parts(self) -> Iterator[tuple[str, Print]]:
        """The files of the definition and their prints."""
        for name, entry in self._listed():
            if self._is_part(name):
                if not self._is_own(name, entry):
                    raise BadInput("INVALID_PATH", f"{self._home / name} is a link, or no file, so it is not used.")
                with suppress(FileNotFoundError):
                    yield name, _print(entry.stat(follow_symlinks=False))

    def _listed(self) -> Iterator[tuple[str, os.DirEntry[str]]]:
        """What is in the directory and its folders, by path below the directory; the folders are left out."""
        for folder in ("", *self._folders):
            for entry in self._entries(folder):
                name = f"{folder}/{entry.name}" if folder else entry.name
                if name not in self._folders or not entry.is_dir(follow_symlinks=False):
                    yield name, entry

    def _entries(self, folder: str) -> list[os.DirEntry[str]]:
        place = self._home / folder
        check_no_link(place)
        try:
            with os.scandir(place) as found:
                return sorted(found, key=lambda entry: entry.name)
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise _unreadable(folder or ".", error) from None

    def _text(self, name: str) -> str:
        try:
            return atomic_file.read(self._home / name, largest=self._largest)
        except FileNotFoundError:
            raise
        except (OSError, UnicodeDecodeError) as error:
            raise _unreadable(name, error) from None

    def _parse(self, texts: Mapping[str, str]) -> Definition:
        return layout.parse(texts)

    def _is_part(self, name: str) -> bool:
        return layout.is_part(name)

    def _is_own(self, name: str, entry: os.DirEntry[str]) -> bool:
        return self._is_part(name) and entry.is_file(follow_symlinks=False)

    # Changing.

    def change(self, edit: Callable[[Definition], Definition]) -> Snapshot:
        """Change the definition; others that change it at the same time wait.

        What an editor or git writes meanwhile is not lost: the edit is made again, of the definition as it is then.

        Args:
            edit: a pure function from the definition as it is to the one it shall be. An error that it raises changes
                nothing.

        Returns:
            What was written. It is not read again: others may have changed it since, and are not trusted alike.

        Raises:
            Unavailable: ``PROJECT_UNWRITABLE``, ``DEFINITION_BUSY``. NotFound, BadInput: see `read`.
        """
        with self.locked():
            for _ in range(READS):
                before = self._whole()
                changes = _changes(before.texts, edit(layout.parse(before.texts)))
                if self._write(changes, before.signature):
                    return self._written(_merged(before.texts, changes))
        raise self._busy()

    def create(self, definition: Definition) -> Snapshot:
        """Write a new definition; what was written.

        Raises:
            Conflict: ``AGENT_EXISTS``. Unavailable: see `change`.
        """
        with self.locked():
            self.require_empty()
            changes = _changes({}, definition)
            if not self._write(changes, ()):
                raise self._not_empty()
            return self._written(_merged({}, changes))

    def require_empty(self) -> None:
        """Refuse a directory that is not empty.

        Raises:
            Conflict: ``AGENT_EXISTS``.
        """
        if any(self._listed()):
            raise self._not_empty()

    def complete(self, definition: Definition) -> None:
        """Write a new definition among other files; of its own files only such with the same text may be there.

        Raises:
            Conflict: ``AGENT_EXISTS``. Unavailable: see `change`.
        """
        with self.locked():
            before = tuple(self._parts())
            texts = {name: self._text(name) for name, _ in before}
            changes = _changes({}, definition)
            same = {name for name, text in texts.items() if normal(text) == normal(changes.get(name) or "")}
            if in_the_way := sorted(texts.keys() - same):
                names = ", ".join(map(inert_line, in_the_way))
                raise Conflict("AGENT_EXISTS", f"{names} would be replaced, or added to the definition. Move them.")
            if not self._write({name: text for name, text in changes.items() if name not in same}, before):
                raise self._busy()

    def remove(self) -> list[str]:
        """Remove the definition; what is left there, because it is not of the definition.

        Raises:
            NotFound: ``AGENT_NOT_FOUND``. Unavailable: see `change`.
        """
        with self.locked():
            self.print_of_agent()
            own = [name for name, entry in self._listed() if self._is_own(name, entry)]
            self.journal.commit(dict.fromkeys(own), lambda: True)
            self.remove_empty()
            return self.foreign()

    def remove_empty(self) -> None:
        """Remove its folders and itself, as far as they are empty."""
        for folder in (*layout.FOLDERS, "."):
            with suppress(OSError):  # it is not empty, or was not there
                (self.path / folder).rmdir()

    def pending(self, before: Definition | None, after: Definition | None) -> Pending | None:
        """A change that is to be made, under the lock; None if the definition is not as it was `before`.

        Args:
            before: None: there is none, and no other file. after: None: it is removed.

        Raises:
            BadInput: ``VALIDATION_ERROR``: the files could not be read again.
        """
        if before is None:
            return None if any(self._listed()) or after is None else Pending((), _changes({}, after))
        try:
            found = self._whole()
        except NotFound:
            return None
        if self._parse(found.texts) != before:
            return None
        changes = dict.fromkeys(found.texts) if after is None else _changes(found.texts, after)
        return Pending(found.signature, changes)

    def is_at(self, before: Signature) -> bool:
        """Whether its files still have a signature; empty: whether there are none."""
        return tuple(self._parts()) == before

    def require_begun(self) -> None:
        """Refuse a place where nothing is, before a lock is made for it.

        Raises:
            NotFound: ``AGENT_NOT_FOUND``.
        """
        if not (os.path.lexists(self.path) or self.journal.is_open()):
            raise self._not_found()

    def locked(self) -> AbstractContextManager[None]:
        """Hold the definition's lock; see `Journal.locked`."""
        return self.journal.locked()

    def _written(self, texts: Mapping[str, str]) -> Snapshot:
        return self._snapshot(Content((), texts, is_settled=False))

    def _write(self, changes: Mapping[str, str | None], before: Signature) -> bool:
        """Make a change; False if the files are no longer as they were `before`."""
        return not changes or self.journal.commit(changes, lambda: self.is_at(before))

    def _not_found(self) -> NotFound:
        return NotFound("AGENT_NOT_FOUND", f"There is no agent in {self.path}.")

    def _not_empty(self) -> Conflict:
        return Conflict("AGENT_EXISTS", f"{self.path} exists and is not empty. Choose another path.")

    def _busy(self) -> Unavailable:
        return Unavailable("DEFINITION_BUSY", f"{self.path} is being changed all the time. Try again.")


@dataclass(frozen=True, slots=True)
class Content:
    """The files of a definition, all as they were at one moment; see `Snapshot`."""

    signature: Signature
    texts: Mapping[str, str]
    is_settled: bool


@dataclass(frozen=True, slots=True)
class Pending:
    """A change that is to be made: the signature of the files before it, and the text of each, or None to remove it."""

    before: Signature
    changes: Mapping[str, str | None]


def _changes(texts: Mapping[str, str], wanted: Definition) -> dict[str, str | None]:
    """The files that have to change to contain a definition; see `layout.change`.

    Raises:
        BadInput: ``VALIDATION_ERROR``: they could not be read again.
    """
    changes = layout.change(texts, wanted)
    after = _merged(texts, changes)
    for name, text in after.items():
        if len(text.encode()) > atomic_file.LARGEST:
            raise BadInput("VALIDATION_ERROR", f"{name} would be larger than {atomic_file.LARGEST:,} bytes.", file=name)
    layout.parse(after)
    return changes


def _merged(texts: Mapping[str, str], changes: Mapping[str, str | None]) -> dict[str, str]:
    return {name: text for name, text in {**texts, **changes}.items() if text is not None}


def _print(info: os.stat_result) -> Print:
    return info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns


def is_settled(found: Print, now: int) -> bool:
    """Whether a file with this print, read at that time (nanoseconds), cannot change without another print."""
    return now - max(found[2:]) > SETTLED_NANOSECONDS


def _unreadable(name: str, error: Exception) -> BadInput:
    return BadInput("INVALID_CONFIGURATION", f"{name} cannot be read: {error}.", file=name)
