"""Links to commits of other repositories: submodules, listed in a file, and others, whose files no clone has.

A list may come from a worker, so nothing in it is believed: a submodule's URL is never used, and its name leads only to
a repository that the person's git has made below her `.git/modules`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Protocol

from workbench.git.plumbing import COMMITS_KNOWN, Plumbing
from workbench.git.run import PATCH_FREE, GitResult, displayed

LIST = ".gitmodules"
MODULES = "modules"
OFFLINE = {"GIT_ALLOW_PROTOCOL": "none", "GIT_NO_LAZY_FETCH": "1"}
"""Variables with which git fetches nothing, not even what a partial clone lacks."""
LEFT_OUT = "it was made with submodules = false, or before your repository had this commit"
"""Why a worktree does not have the files of a submodule that the person's repository has."""
_PATHS = ("--get-regexp", r"^submodule\..*\.path$")
_LEADS_OUT = {"", ".", ".."}
_LINK = "160000"
_LONGEST_NAME = 1_000


@dataclass(frozen=True, slots=True)
class Submodule:
    """A link of a commit that its list of submodules names."""

    name: str
    path: str
    commit: str


class AskGit(Protocol):
    """Runs git; any exit code is accepted with `ok=None`."""

    def __call__(self, *arguments: str, ok: Container[int] | None = ..., stdin: bytes = ...) -> GitResult: ...


def names(ask: AskGit, *source: str) -> dict[str, str]:
    """The names of the submodules in a list, by path; one whose path leads out of the repository is left out.

    Args:
        source: where git reads it: ``--file <path>`` or ``--blob <commit>:<path>``.
    """
    result = ask("config", "-z", *source, *_PATHS, ok=None)
    if result.was_disturbed:
        raise result.failure()
    rows = (os.fsdecode(row).partition("\n")[::2] for row in result.fields)
    listed = {path.rstrip("/"): key.removeprefix("submodule.").removesuffix(".path") for key, path in rows}
    return {path: name for path, name in listed.items() if _LEADS_OUT.isdisjoint(path.split("/"))}


@lru_cache(maxsize=COMMITS_KNOWN)
def at(repository: Plumbing, commit: str) -> tuple[Submodule, ...]:
    """The submodules of a commit (a full id): links that its list names."""
    if not (listed := names(repository.read, "--blob", f"{commit}:{LIST}")):
        return ()
    options = ("--literal-pathspecs", "ls-tree", "-z", "--full-tree")
    rows = repository.read(*options, commit, "--", *sorted(listed)).fields
    parts = (os.fsdecode(row).partition("\t") for row in rows if row.startswith(_LINK.encode()))
    return tuple(Submodule(listed[path], path, facts.split(" ")[2]) for facts, _, path in parts if path in listed)


def bare_links(repository: Plumbing, base: str, commit: str) -> list[str]:
    """The paths of links that `commit` changes from `base` and that its list of submodules does not name."""
    rows = repository.read("diff-tree", "-r", "--raw", *PATCH_FREE, base, commit).fields
    changed = {path for path, _ in _links(rows)}
    listed = names(repository.read, "--blob", f"{commit}:{LIST}") if changed else {}
    return sorted(displayed(os.fsencode(path)) for path in changed - listed.keys())


def new_links(ask: AskGit, commit: str, known: Sequence[str]) -> list[Submodule]:
    """The links that the commits of `commit` make which are not in `known`, if the list of `commit` names them."""
    if not (listed := names(ask, "--blob", f"{commit}:{LIST}")):
        return []
    revisions = "".join(f"{line}\n" for line in (commit, *(f"^{tip}" for tip in known)))
    commits = ask("rev-list", "--stdin", stdin=revisions.encode()).out
    options = ("--stdin", "-r", "-m", "--root", "--raw", "--no-commit-id", *PATCH_FREE)
    found = dict.fromkeys(_links(ask("diff-tree", *options, stdin=commits).fields))
    return [Submodule(listed[path], path, link) for path, link in found if path in listed]


def _links(fields: Sequence[bytes]) -> Iterator[tuple[str, str]]:
    """The path and the commit of each link that a change makes, from the output of ``--raw -z``."""
    for facts, path in zip(fields[::2], fields[1::2], strict=True):
        _, mode, _, commit, _ = facts.decode("ascii").split(" ")
        if mode == _LINK:
            yield os.fsdecode(path), commit


def is_name(name: str) -> bool:
    """Whether the name of a submodule leads to a directory of its own, as git requires it."""
    parts = re.split(r"[/\\]", name)
    if not _LEADS_OUT.isdisjoint(parts) or name.startswith("-") or "\0" in name:
        return False
    return len(os.fsencode(name)) <= _LONGEST_NAME


def home(repository: Plumbing, name: str) -> Plumbing | None:
    """The repository of a submodule that the person's git keeps in hers; None if there is none."""
    for directory in dict.fromkeys((repository.own_dir, repository.git_dir)):
        place = directory / MODULES / name
        if is_name(name) and _is_repository(place) and place.resolve() == (directory / MODULES).resolve() / name:
            return Plumbing(repository.root, place, repository.limit, repository.checkout_limit)
    return None


def homes(repository: Plumbing) -> Iterator[Path]:
    """The git directories of all submodules that the person's git keeps, at any depth."""
    waiting = list(dict.fromkeys((repository.own_dir, repository.git_dir)))
    while waiting:
        for place in kept_in(waiting.pop()):
            yield place
            waiting.append(place)


def kept_in(git_dir: Path) -> Iterator[Path]:
    """The git directories of submodules that one repository keeps; not those that these keep in turn."""
    waiting = [git_dir / MODULES]
    while waiting:
        place = waiting.pop()
        if place.is_symlink() or not place.is_dir():
            continue
        if _is_repository(place):
            yield place
        else:
            waiting.extend(place.iterdir())


def _is_repository(place: Path) -> bool:
    return (place / "HEAD").is_file() and (place / "objects").is_dir()


def has(repository: Plumbing, commit: str) -> bool:
    """Whether a repository has a commit. Nothing is fetched."""
    return repository.write("cat-file", "-e", f"{commit}^{{commit}}", ok=None, env=OFFLINE).code == 0


def lacks(repository: Plumbing, submodule: Submodule) -> str | None:
    """Why the files of a submodule cannot be had from the person's repository; None: they can."""
    if not is_name(submodule.name):
        return "its name is not allowed"
    if (place := home(repository, submodule.name)) is None:
        return "it is not initialised in your checkout"
    if not has(place, submodule.commit):
        return f"its commit {submodule.commit[:12]} is not in your repository of it: fetch it there"
    return None


def empty(repository: Plumbing, path: Path, commit: str, because: str | None = None, prefix: str = "") -> Iterator[str]:
    """The submodules of a commit, at any depth, whose files are not below `path`, each with the reason.

    Args:
        because: the reason, if no other is looked for.
    """
    for submodule in at(repository, commit):
        shown = prefix + displayed(os.fsencode(submodule.path))
        why = because or lacks(repository, submodule) or LEFT_OUT
        if not os.path.lexists(path / submodule.path / ".git"):
            yield f"{shown} ({why})"
        elif (inner := home(repository, submodule.name)) and has(inner, submodule.commit):
            yield from empty(inner, path / submodule.path, submodule.commit, because, f"{shown}/")
