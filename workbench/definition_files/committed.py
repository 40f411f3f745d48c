"""The versions of a definition that git has: read only, and from whatever repository its directory is in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from workbench.errors import BadInput, Hint, NotFound, WorkbenchError
from workbench.git.commits import Commit, DirectoryHistory
from workbench.rules.definitions import layout
from workbench.rules.definitions.model import Definition


@dataclass(frozen=True, slots=True)
class Committed:
    """A commit, and what the definition said in it; None if that cannot be read."""

    revision: Commit
    definition: Definition | None


def versions(path: Path, limit: int) -> list[Committed]:
    """The last commits that changed the definition in a directory, newest first. Blocks.

    Raises:
        Unavailable: ``GIT_FAILED``, ``GIT_TIMEOUT``, ``GIT_MISSING``.
    """
    history = DirectoryHistory.of(path)
    if history is None:
        return []
    commits = history.last_commits(limit)
    contents = history.contents([commit.id for commit in commits], layout.is_part)
    return list(_with_definitions(commits, contents))


def version(path: Path, name: str) -> tuple[str, Definition]:
    """What the definition in a directory said in a commit, after the commit's full id. Blocks.

    Args:
        name: the commit's id, which may be abbreviated, or ``HEAD``.

    Raises:
        NotFound: ``VERSION_NOT_FOUND``. BadInput: ``INVALID_CONFIGURATION``.
        Unavailable: ``GIT_FAILED``, ``GIT_TIMEOUT``, ``GIT_MISSING``.
    """
    history = DirectoryHistory.of(path)
    if history is None:
        raise NotFound("VERSION_NOT_FOUND", f"There is no version {name}.", Hint("agent_history"))
    commit = history.find_commit(name)
    [content] = history.contents([commit], layout.is_part)
    return commit, _parsed(content)


def _with_definitions(commits: Sequence[Commit], contents: Sequence[Mapping[str, bytes]]) -> Iterator[Committed]:
    for commit, content in zip(commits, contents, strict=True):
        try:
            yield Committed(commit, _parsed(content))
        except WorkbenchError:
            yield Committed(commit, None)


def _parsed(content: Mapping[str, bytes]) -> Definition:
    """The definition in the files of a commit.

    Raises:
        NotFound: ``VERSION_NOT_FOUND``: it has none. BadInput: ``INVALID_CONFIGURATION``.
    """
    if layout.AGENT not in content:
        raise NotFound(
            "VERSION_NOT_FOUND", "The commit has no such agent.", Hint("agent_history", "{} lists those that have.")
        )
    try:
        return layout.parse({path: text.decode() for path, text in content.items()})
    except UnicodeDecodeError as error:
        raise BadInput("INVALID_CONFIGURATION", f"The files of the commit cannot be read: {error}.") from None
