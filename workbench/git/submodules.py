"""Links to commits of other repositories: submodules, listed in a file, and others, whose files no clone has."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from functools import lru_cache
from typing import Protocol

from workbench.git.plumbing import COMMITS_KNOWN, Plumbing
from workbench.git.run import PATCH_FREE, GitResult, displayed

LIST = ".gitmodules"
_PATHS = ("--get-regexp", r"^submodule\..*\.path$")
_LINK = "160000"


class AskGit(Protocol):
    """Runs git; any exit code is accepted with `ok=None`."""

    def __call__(self, *arguments: str, ok: Container[int] | None = ...) -> GitResult: ...


def paths(ask: AskGit, *source: str) -> set[str]:
    """The paths of the submodules that a list names.

    Args:
        source: where git reads it: ``--file <path>`` or ``--blob <commit>:<path>``.
    """
    result = ask("config", "-z", *source, *_PATHS, ok=None)
    if result.was_disturbed:
        raise result.failure()
    return {displayed(row.partition(b"\n")[2]).rstrip("/") for row in result.fields}


@lru_cache(maxsize=COMMITS_KNOWN)
def at(repository: Plumbing, commit: str) -> tuple[str, ...]:
    """The paths of the submodules of a commit (a full id): links that its list names."""
    if not (listed_paths := paths(repository.read, "--blob", f"{commit}:{LIST}")):
        return ()
    rows = repository.read("ls-tree", "-z", "--full-tree", commit, "--", *sorted(listed_paths)).fields
    links = {displayed(row.partition(b"\t")[2]) for row in rows if row.startswith(_LINK.encode())}
    return tuple(sorted(listed_paths & links))


def bare_links(repository: Plumbing, base: str, commit: str) -> list[str]:
    """The paths of links that `commit` changes from `base` and that its list of submodules does not name."""
    changed = list(_links(repository.read("diff-tree", "-r", "--raw", *PATCH_FREE, base, commit).fields))
    return sorted(set(changed) - paths(repository.read, "--blob", f"{commit}:{LIST}")) if changed else []


def _links(fields: Sequence[bytes]) -> Iterator[str]:
    """The paths that are links after a change, from the output of ``--raw -z``."""
    for facts, path in zip(fields[::2], fields[1::2], strict=True):
        if facts.split(b" ")[1] == _LINK.encode():
            yield displayed(path)
