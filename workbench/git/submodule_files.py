"""Gives a worktree the files of its submodules, from the repositories that the person's git keeps in `.git/modules`.

Each gets a repository of its own inside that of the worktree, which borrows the objects of the person's. A worker may
have written to the worktree meanwhile: git runs in its box, and what is placed from outside follows no link.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex

from workbench.errors import Unavailable, WorkbenchError
from workbench.git import clones, submodules
from workbench.git.checkout import Checkout
from workbench.git.plumbing import Plumbing
from workbench.git.run import displayed
from workbench.git.submodules import MODULES, Submodule
from workbench.system.tree_removal import remove_tree

_FOLLOW_NOTHING = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_IN_THE_WAY = {errno.ENOTEMPTY, errno.EEXIST, errno.ELOOP, errno.ENOTDIR}


@dataclass(frozen=True, slots=True)
class _Level:
    """A repository of the person's, the checkout of it in a worktree, and where the worktree and its repository are."""

    repository: Plumbing
    checkout: Checkout
    top: Checkout

    def below(self, home: Plumbing, inner: Checkout) -> _Level:
        return _Level(home, inner, self.top)


def fill(repository: Plumbing, checkout: Checkout, commit: str, before: str | None) -> Iterator[str]:
    """See `Repository.fill_submodules`."""
    yield from _fill(_Level(repository, checkout, checkout), commit, before, "")


def repositories(repository: Plumbing | None, checkout: Checkout) -> Iterator[tuple[Checkout, Plumbing | None]]:
    """See `Repository.submodule_repositories`."""
    for place in submodules.kept_in(checkout.git_dir):
        name = str(place.relative_to(checkout.git_dir / MODULES))
        if inner := checkout.submodule(name, "."):
            home = submodules.home(repository, name) if repository else None
            yield inner, home
            yield from repositories(home, inner)


def _fill(level: _Level, commit: str, before: str | None, prefix: str) -> Iterator[str]:
    former = {old.path: old.commit for old in submodules.at(level.repository, before)} if before else {}
    for submodule in submodules.at(level.repository, commit):
        shown = prefix + displayed(os.fsencode(submodule.path))
        old = former.get(submodule.path)
        why = submodules.lacks(level.repository, submodule) or _place(level, submodule, old)
        if why:
            if old and (inner := _inner(level, submodule)) and _is_untouched(inner, old):
                # A commit of everything would set the link back.
                level.checkout.remove_submodule(submodule.path)
            if not _is_there(level, submodule):
                yield f"{shown} ({why})"
            continue
        home, inner = submodules.home(level.repository, submodule.name), _inner(level, submodule)
        if home is not None and inner is not None and inner.commit_of("HEAD") == submodule.commit:
            known = old if old and submodules.has(home, old) else None
            yield from _fill(level.below(home, inner), submodule.commit, known, f"{shown}/")


def _place(level: _Level, submodule: Submodule, old: str | None) -> str | None:
    """Give a submodule its files, or have them follow the link; the reason if that is not possible."""
    try:
        if _is_there(level, submodule):
            return _follow(level, submodule, old)
        _make(level, submodule)
        level.checkout.activate_submodule(submodule.name)
        return _write_files(level, submodule)
    except OSError as error:
        if error.errno in _IN_THE_WAY:
            return "something is in the way of its files or its repository"
        raise Unavailable("GIT_FAILED", f"Cannot write a submodule: {error}.", stderr=str(error)) from error
    except WorkbenchError as error:
        return error.message


def _follow(level: _Level, submodule: Submodule, old: str | None) -> str | None:
    """Switch a submodule that is still where it was to the new link."""
    inner = _inner(level, submodule)
    if inner is None or old is None or old == submodule.commit or not _is_untouched(inner, old):
        return None
    return None if inner.switch_to(submodule.commit) else "git cannot write its files"


def _is_untouched(inner: Checkout, old: str) -> bool:
    return inner.commit_of("HEAD") == old and not inner.uncommitted()


def _make(level: _Level, submodule: Submodule) -> None:
    """Make the repository of a submodule, and the `.git` file that names it."""
    home = submodules.home(level.repository, submodule.name)
    assert home is not None, "it has the commit"
    git_dir, path = _git_dir(level, submodule), level.checkout.path / submodule.path
    if level.checkout.submodule(submodule.name, submodule.path) is None:
        new = level.top.git_dir.with_name(f".{level.top.git_dir.name}-{token_hex(8)}")
        new.mkdir()
        try:
            clones.make(home, new, None, submodule.commit)
            (new / "objects" / "info" / "alternates").write_bytes(clones.alternates(home, git_dir))
            with _directory(level.top.git_dir, git_dir.parent) as parent:
                os.rename(new, git_dir.name, dst_dir_fd=parent)
        finally:
            remove_tree(new)
    with _directory(level.top.path, path) as directory:
        if os.listdir(directory):  # noqa: PTH208 (an open directory)
            raise OSError(errno.ENOTEMPTY, "there are files")
        pointer = os.open(".git", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666, dir_fd=directory)
        with os.fdopen(pointer, "wb") as file:
            file.write(b"gitdir: " + os.fsencode(git_dir) + b"\n")


@contextmanager
def _directory(top: Path, path: Path) -> Iterator[int]:
    """A directory below another, open; it is made if it is not there, and no link on the way is followed."""
    with ExitStack() as stack:
        directory = os.open(top, _FOLLOW_NOTHING)
        stack.callback(os.close, directory)
        for name in path.relative_to(top).parts:
            with suppress(FileExistsError):
                os.mkdir(name, dir_fd=directory)
            directory = os.open(name, _FOLLOW_NOTHING, dir_fd=directory)
            stack.callback(os.close, directory)
        yield directory


def _write_files(level: _Level, submodule: Submodule) -> str | None:
    """Write the files of a submodule; through the person's filters, if these work in the box."""
    inner = _inner(level, submodule)
    if inner is None:
        return "a link is in the way of its files"
    if inner.switch_to(submodule.commit):
        return None
    inner.disable_filters(clones.filters(level.repository))
    if inner.switch_to(submodule.commit):
        return None
    level.checkout.remove_submodule(submodule.path)
    return "git cannot write its files"


def _is_there(level: _Level, submodule: Submodule) -> bool:
    return os.path.lexists(level.checkout.path / submodule.path / ".git")


def _inner(level: _Level, submodule: Submodule) -> Checkout | None:
    inner = level.checkout.submodule(submodule.name, submodule.path)
    return inner if inner and inner.path != level.checkout.path else None


def _git_dir(level: _Level, submodule: Submodule) -> Path:
    return level.checkout.git_dir / MODULES / submodule.name
