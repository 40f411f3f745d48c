"""Linked worktrees made and removed from outside, without running or believing anything in them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.errors import BadInput, Conflict, Unavailable
from workbench.git.names import check_branch_name
from workbench.git.run import run, shown

if TYPE_CHECKING:
    from workbench.git.repository import Repository


def add(repository: Repository, path: Path, branch: str, start: str) -> str:
    """See `Repository.add_worktree`."""
    check_branch_name(branch)
    commit, path = repository.commit(start), _spot(repository.root / path)
    with ExitStack() as undo:
        _make_directory(path)
        undo.callback(remove, repository, path)
        _create_branch(repository, branch, commit, start)
        undo.callback(repository.write, "update-ref", "-d", f"refs/heads/{branch}", commit)
        _check_out(repository, path, branch)
        undo.pop_all()
    return commit


def remove(repository: Repository, path: Path) -> None:
    """See `Repository.remove_worktree`."""
    path = _spot(repository.root / path)
    if any(_real(mine).is_relative_to(path) for mine in (repository.root, repository.git_dir)):
        raise BadInput("NOT_A_WORKTREE", f"{path} holds the main checkout and stays.")
    for victim in (path, *_records(repository, path)):
        _delete(victim)


def uncommitted(repository: Repository, path: Path) -> list[str]:
    """See `Repository.uncommitted`."""
    path = _spot(repository.root / path)
    for record in _records(repository, path):
        places = {
            "GIT_DIR": str(record),
            "GIT_COMMON_DIR": str(repository.git_dir),
            "GIT_WORK_TREE": str(path),
        }
        how = ("--porcelain=v1", "-z", "--no-renames", "--untracked-files=normal")
        done = run(("status", *how), repository.root, places, repository.limit)
        return [shown(row[3:]) for row in done.expect((0,)).fields]
    return []


def _make_directory(path: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.mkdir()
    except (FileExistsError, NotADirectoryError):
        raise Conflict("WORKTREE_PATH_TAKEN", f"{path} is there already. Choose another name.") from None
    except OSError as error:
        raise Unavailable("WORKTREE_PATH_UNUSABLE", f"No worktree at {path}: {error}.") from error


def _create_branch(repository: Repository, branch: str, commit: str, start: str) -> None:
    made = ("--create-reflog", "-m", f"branch: Created from {start}")
    new = (f"refs/heads/{branch}", commit, "0" * len(commit))
    try:
        repository.write("update-ref", *made, *new)
    except Unavailable:
        if rival := _rival(repository, branch):
            raise Conflict(
                "BRANCH_EXISTS",
                f"There is a branch {rival!r} already. Choose another name than {branch!r}.",
                branch=rival,
            ) from None
        raise


def _rival(repository: Repository, branch: str) -> str | None:
    """A branch that keeps `branch` from being made: itself, one above or one below it."""
    above = [branch[:end] for end, letter in enumerate(f"{branch}/") if letter == "/"]
    patterns = [f"refs/heads/{name}" for name in above]
    listed = repository.read("for-each-ref", "--format=%(refname)", *patterns).text.splitlines()
    names = [name.removeprefix("refs/heads/") for name in listed]
    return next((n for n in names if n in above or n.startswith(f"{branch}/")), None)


def _check_out(repository: Repository, path: Path, branch: str) -> None:
    # Twice --force: what is recorded of an earlier worktree here gives way, locked or not.
    how = ("--force", "--force", "--quiet", "--checkout", "--")
    limit = repository.checkout_limit
    repository.write("worktree", "add", *how, str(path), branch, limit=limit)


def _records(repository: Repository, path: Path) -> Iterator[Path]:
    """Git's records (`.git/worktrees/<id>`) of the worktree at `path`.

    Not `git worktree remove` or `prune`: where a record says its worktree is was written there,
    and may name another. So the record that git named after `path` goes too, unless what it
    names is gone (then it is some other worktree's, on a disk that is away) or confirms it.
    """
    for record in (repository.git_dir / "worktrees").glob("*"):
        claimed = _pointee(record / "gitdir")
        astray = claimed is None or (claimed.exists() and _pointee(claimed) != _real(record))
        if claimed == path / ".git" or (record.name == path.name and astray):
            yield record


def _pointee(pointer: Path) -> Path | None:
    """Where a `gitdir` or `.git` file points; None if it is no such file."""
    if not pointer.is_file():
        return None
    text = pointer.read_bytes()[:8192].removeprefix(b"gitdir: ").removesuffix(b"\n")
    return _real(pointer.parent / os.fsdecode(text)) if text and b"\0" not in text else None


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _spot(path: Path) -> Path:
    """Where `path` itself is; it may be a symbolic link, or not be there."""
    return _real(path) if path.name in ("", "..") else _real(path.parent) / path.name


def _delete(path: Path) -> None:
    try:
        with suppress(OSError, RecursionError):
            return _remove(path)
        if path.is_dir():
            _open_up(path)
        _remove(path)
    except (OSError, RecursionError) as error:
        raise Unavailable("WORKTREE_NOT_REMOVED", f"{path} cannot be removed: {error}.") from error


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _open_up(directory: Path) -> None:
    """Let the owner delete what is below `directory`, whose modes a worker chose."""
    directory.chmod(0o700)
    for entry in directory.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            _open_up(entry)
