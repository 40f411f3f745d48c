"""Definitions in older layouts: read as they are, changed only after they have been converted."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from contextlib import AbstractContextManager, suppress
from pathlib import Path

from workbench.definition_files.directory import Content, DefinitionDirectory, Print
from workbench.errors import Conflict, Hint, Unavailable
from workbench.present.inert import inert_line
from workbench.rules.definitions import layout, older
from workbench.rules.definitions.conversion import Converted
from workbench.rules.definitions.model import Definition, DefinitionMetadata
from workbench.rules.definitions.names import fitting

LARGEST = 16 << 20
"""Bytes of the largest file that is read: these files also contain vectors of their texts."""
_METADATA = re.compile(rb"^metadata:", re.MULTILINE)
_BEGINNING = 65_536
"""Bytes in which `metadata` must begin."""


class OlderDefinition(DefinitionDirectory):
    """A definition in an older layout. Its changes are refused.

    Args:
        path: a directory with an agent file, or a single YAML file.
        agent_file: the name of that file.
    """

    _largest = LARGEST

    def __init__(self, path: Path, agent_file: str) -> None:
        super().__init__(path)
        self._agent_file = agent_file
        self._folders = tuple(older.FOLDERS) if agent_file == older.JSON_AGENT else ()
        self.is_single_file = path.name == agent_file
        if self.is_single_file:
            self._home = path.parent
        self._agent_path = f"{self._home}/{agent_file}"

    def convert(self) -> Converted:
        """The definition as it is now, and what is not the same in the current layout.

        Raises:
            WorkbenchError: see `read`.
        """
        return self._converted(self._read().texts)

    def head(self) -> tuple[Print, DefinitionMetadata]:
        """What the definition is, and the print of its agent file; see `DefinitionDirectory.head`."""
        found = self.print_of_agent()
        return found, self.read().definition.metadata

    def foreign(self) -> list[str]:
        """What is in its directory and not of the definition; nothing beside a single file is in its directory."""
        return [] if self.is_single_file else super().foreign()

    def locked(self) -> AbstractContextManager[None]:
        """Refuse a change.

        Raises:
            Conflict: ``OLDER_LAYOUT``.
        """
        raise Conflict(
            "OLDER_LAYOUT",
            f"{inert_line(self.path.name)} has an older layout.",
            Hint("agent_migrate", "Convert it with {} first."),
        )

    def discard(self, *, is_converted_here: bool) -> None:
        """Remove its files.

        Args:
            is_converted_here: the same directory has the converted definition, which shares the prompt's file.

        Raises:
            Unavailable: ``PROJECT_UNWRITABLE``.
        """
        try:
            for name, _ in list(self._parts()):
                if not (is_converted_here and layout.is_part(name)):
                    (self._home / name).unlink(missing_ok=True)
        except OSError as error:
            raise Unavailable("PROJECT_UNWRITABLE", f"{self.path} cannot be removed: {error.strerror}.") from None
        for folder in self._folders if self.is_single_file else (*self._folders, "."):
            with suppress(OSError):  # it is not empty, or was not there
                (self._home / folder).rmdir()

    def _read(self) -> Content:
        if self.is_unfinished():
            with self.journal.locked():  # which finishes the conversion that a killed process has begun
                pass
        return self._whole()  # no lock: others do not change it through Workbench

    def _parse(self, texts: Mapping[str, str]) -> Definition:
        return self._converted(texts).definition

    def _converted(self, texts: Mapping[str, str]) -> Converted:
        return older.parse(self._agent_file, texts, fitting(self.path.stem))

    def _is_part(self, name: str) -> bool:
        return older.is_part(self._agent_file, name)


def definition_at(path: str | Path) -> DefinitionDirectory | None:
    """The definition in a directory or single file, in any layout; None if there is none.

    Args:
        path: a real path: no link leads there.
    """
    if os.path.lexists(f"{path}/{layout.AGENT}"):
        return DefinitionDirectory(path)
    path = Path(path)
    if path.suffix in older.YAML_SUFFIXES and path.is_file():
        return OlderDefinition(path, path.name) if path.name != layout.AGENT else None
    names = [name for name in (*older.YAML_AGENTS, older.JSON_AGENT) if os.path.lexists(f"{path}/{name}")]
    agent_file = older.agent_file(names)
    return None if agent_file is None else OlderDefinition(path, agent_file)


def is_listed(path: Path) -> bool:
    """Whether a file is a definition, by its first lines, and has not been converted."""
    if path.suffix not in older.YAML_SUFFIXES or path.name == layout.AGENT:
        return False
    if os.path.lexists(path.with_suffix("") / layout.AGENT):
        return False
    with suppress(OSError), os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
        return _METADATA.search(file.read(_BEGINNING)) is not None
    return False
