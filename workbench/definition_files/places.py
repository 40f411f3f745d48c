"""Where definitions may be: below some directories. Nothing else is read or written, whatever a path says."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath

from workbench.definition_files.directory import DefinitionDirectory
from workbench.definition_files.journal import PRIVATE
from workbench.definition_files.older import OlderDefinition, definition_at, is_listed
from workbench.errors import BadInput, Conflict
from workbench.present.inert import inert_line
from workbench.rules.definitions.names import DEVICES

DEPTH = 8
"""How deep definitions are searched below a directory."""
_SHOWN = 200


class Places:
    """The directories that hold definitions.

    Args:
        base: relative paths begin here.
        roots: definitions are below these directories. One that is below `base` must not be a link.
    """

    def __init__(self, base: Path, roots: Sequence[Path]) -> None:
        self.base = Path(os.path.realpath(base))
        self.roots = tuple(self._real(base, root) for root in roots)

    def _real(self, base: Path, root: Path) -> Path:
        if root.is_relative_to(base):
            return self.base / root.relative_to(base)
        return Path(os.path.realpath(root))

    def display(self, path: str | Path) -> str:
        """A path as it is shown: from the base, if it is below it."""
        text, base = str(path), f"{self.base}/"
        return f"./{text[len(base) :]}" if text.startswith(base) else text

    def resolve(self, path: str, *, or_root: bool = False) -> Path:
        """The directory that a path names, which need not exist.

        Args:
            or_root: it may also be one of the roots.

        Raises:
            BadInput: ``INVALID_PATH``.
        """
        if problem := flaw(path):
            raise _invalid(path, problem)
        # The real path is compared, by component: a link may lead there only from within the same roots.
        place = Path(os.path.realpath(self.base / path))
        if not any((or_root or place != root) and place.is_relative_to(root) for root in self.roots):
            raise _invalid(path, f"it is not below {', '.join(map(self.display, self.roots))}, where agents are")
        if any(step.is_symlink() for step in self._steps(place)):
            raise _invalid(path, "it leads through a link that ends nowhere")
        if PRIVATE in place.parts:
            raise _invalid(path, "it is a directory of Workbench itself")
        return place

    def vacant(self, path: str) -> Path:
        """A place for a new definition: not in another one, and not one that differs from another by case only.

        Raises:
            BadInput: ``INVALID_PATH``. Conflict: ``AGENT_EXISTS``.
        """
        place = self.resolve(path)
        for step in self._steps(place):
            if not step.exists() and (problem := flaw_of_name(step.name)):
                raise _invalid(path, f"{step.name!r}: {problem}")
            if definition_at(step):
                other = "exists already. Choose another name or path"
                within = "is another agent. Choose a path outside of it"
                raise Conflict("AGENT_EXISTS", f"{self.display(step)} {other if step == place else within}.")
            if twin := _twin(step):
                raise Conflict("AGENT_EXISTS", f"{self.display(twin)} exists: only upper and lower case differ.")
        return place

    def _steps(self, place: Path) -> list[Path]:
        """A place and the directories between it and its root, the uppermost first."""
        root = next(root for root in self.roots if place.is_relative_to(root))
        return [step for step in reversed((place, *place.parents)) if step != root and step.is_relative_to(root)]

    def search(self, below: Path | None = None) -> Iterator[DefinitionDirectory]:
        """The definitions, or those below a directory, sorted by path."""
        for root in self.roots if below is None else (below,):
            if not root.is_symlink():
                yield from _search(str(root), DEPTH)


def _search(root: str, depth: int) -> Iterator[DefinitionDirectory]:
    """The definitions below a directory; nothing below those is searched, and no link is followed."""
    try:
        with os.scandir(root) as found:
            entries = sorted(found, key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        if not entry.name.startswith("."):
            yield from _in_entry(entry, depth)


def _in_entry(entry: os.DirEntry[str], depth: int) -> Iterator[DefinitionDirectory]:
    if entry.is_dir(follow_symlinks=False):
        if found := definition_at(entry.path):
            yield found
        elif depth:
            yield from _search(entry.path, depth - 1)
    elif entry.is_file(follow_symlinks=False) and is_listed(path := Path(entry.path)):
        yield OlderDefinition(path, path.name)


def _twin(place: Path) -> Path | None:
    """What differs from a path by upper and lower case only: some file systems do not tell them apart."""
    with suppress(OSError):
        for one in place.parent.iterdir():
            if one.name != place.name and one.name.lower() == place.name.lower():
                return one
    return None


def _invalid(path: str, problem: str) -> BadInput:
    return BadInput("INVALID_PATH", f"{inert_line(path[:_SHOWN])}: {problem}.")


PATH_LIMIT = 4_000
PART_LIMIT = 255
"""What file systems hold."""
NAME_LIMIT = 100
_NAME = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9 ._-]*[A-Za-z0-9_-])?")


def flaw(path: str) -> str | None:
    """What is wrong with a path, wherever it leads; None if nothing is."""
    flaws = {
        "it is empty": not path,
        f"it is longer than {PATH_LIMIT:,} characters": len(path) > PATH_LIMIT,
        f"one of its parts is longer than {PART_LIMIT} bytes": any(
            len(part.encode("utf-8", "surrogatepass")) > PART_LIMIT for part in path.split("/")
        ),
        "it contains characters that cannot be shown": not path.isprintable(),
        "its parts are separated by '/'": "\\" in path,
        "it must not contain '..'": ".." in PurePosixPath(path).parts,
    }
    return next((reason for reason, found in flaws.items() if found), None)


def flaw_of_name(name: str) -> str | None:
    """What is wrong with the name of a new directory; None if nothing is.

    Letters of other alphabets look like those of this one, and some file systems do not have all characters and names.
    """
    if len(name) > NAME_LIMIT:
        return f"it is longer than {NAME_LIMIT} characters"
    if not _NAME.fullmatch(name):
        return "it consists of letters without accents, digits, '-', '_', and, inside, '.' and spaces"
    if name.partition(".")[0].rstrip().lower() in DEVICES:
        return "it is the name of a device on Windows"
    return None
