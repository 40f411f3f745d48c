"""Creates and removes worktrees from outside, without running or trusting anything in them."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from secrets import token_hex

from workbench.errors import BadInput, Conflict, Unavailable, WorkbenchError
from workbench.git import clones
from workbench.git.integration import refuse_checked_out
from workbench.git.names import check_branch_name, is_object_id
from workbench.git.opening import common_dir
from workbench.git.plumbing import Plumbing
from workbench.git.submodules import MODULES
from workbench.system import atomic_file
from workbench.system.tree_removal import remove_tree

_LARGEST = 1 << 20
"""Bytes of the largest file of a worktree's own repository that is read."""


def add(repository: Plumbing, path: Path, git_dir: Path, branch: str | None, start: str, existing: bool = False) -> str:
    """See `Repository.add_worktree`."""
    if branch is not None:
        check_branch_name(branch)
        if existing:
            start = branch
            refuse_checked_out(repository, branch)
    commit, path, git_dir = (
        repository.commit(start),
        _locate(repository.root / path),
        _locate(repository.root / git_dir),
    )
    with ExitStack() as undo:
        _make_directory(path)
        undo.callback(_delete, path)
        _make_directory(git_dir)
        undo.callback(_delete, git_dir)
        if branch is not None and not existing:
            _create_branch(repository, branch, commit, start)
            undo.callback(repository.write, "update-ref", "-d", f"refs/heads/{branch}", commit)
        undo.callback(_forget, repository, path)
        _register(repository, path, branch or commit)
        clones.make(repository, git_dir, branch, commit)
        (path / ".git").write_bytes(_pointer(git_dir))
        clones.fill(repository, path, git_dir, commit)
        undo.pop_all()
    return commit


def remove(repository: Plumbing, path: Path, git_dir: Path) -> None:
    """See `Repository.remove_worktree`."""
    path, git_dir = _locate(repository.root / path), _locate(repository.root / git_dir)
    main = [_resolve(place) for place in (repository.root, repository.git_dir)]
    if any(place.is_relative_to(removed) for place in main for removed in (path, git_dir)):
        raise BadInput("NOT_A_WORKTREE", f"{path} or {git_dir} contains the main checkout and is not removed.")
    _anchor_record(repository, path)
    _delete(path)
    _delete(git_dir)
    _forget(repository, path)


def anchor(repository: Plumbing, path: Path, git_dir: Path, ignored: Iterable[str] = ()) -> None:
    """See `Repository.anchor_worktree`."""
    path, git_dir = _locate(repository.root / path), _locate(repository.root / git_dir)
    if not path.is_dir() or not git_dir.is_dir() or path.is_symlink() or git_dir.is_symlink():
        return
    _anchor_record(repository, path)
    pointer, borrowed = _pointer(git_dir), os.fsdecode(clones.alternates(repository, git_dir))
    was_moved = _rewrite(
        path, [".git"], lambda text: os.fsdecode(pointer) if _leads(text, "gitdir: ", git_dir) else text
    )
    _rewrite(git_dir, ["objects", "info", "alternates"], lambda _: borrowed)
    if was_moved:
        _anchor_submodules(path, git_dir)

    def settings(text: str) -> str:
        """Without the worktree's path, which earlier versions wrote."""
        return "\n".join(line for line in text.split("\n") if not _leads(line.strip(), "worktree = ", path))

    rules = [f"/{_literal(name)}" for name in ignored]

    def exclude(text: str) -> str:
        missing = [rule for rule in rules if rule not in text.split("\n")]
        return "".join(
            (text, "\n" if missing and text and not text.endswith("\n") else "", *(f"{rule}\n" for rule in missing))
        )

    _rewrite(git_dir, ["config"], settings)
    _rewrite(git_dir, ["info", "exclude"], exclude)


def _anchor_submodules(path: Path, git_dir: Path) -> None:
    """Update the paths to the repositories of submodules in a worktree that was moved."""
    within = f"/{git_dir.name}/{MODULES}/"

    def pointer(text: str) -> str:
        _, found, rest = text.partition(within)
        return f"gitdir: {git_dir}/{MODULES}/{rest}" if text.startswith("gitdir: ") and found else text

    for directory, _, files in os.walk(path):
        if ".git" in files and directory != str(path):
            _rewrite(path, [*Path(directory).relative_to(path).parts, ".git"], pointer)


def _literal(name: str) -> str:
    """A path as a rule of git for what it ignores."""
    return re.sub(r"([\\*?\[\] ])", r"\\\1", name)


def _rewrite(place: Path, names: Sequence[str], change: Callable[[str], str]) -> bool:
    """Change a regular file below a directory that a worker may write to, without following links; whether it was."""
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    temporary = f".{names[-1]}.{token_hex(8)}.tmp"
    with suppress(OSError), ExitStack() as stack:
        directory: int | None = None
        for name in (str(place), *names[:-1]):
            directory = os.open(name, flags | os.O_DIRECTORY, dir_fd=directory)
            stack.callback(os.close, directory)
        file = os.open(names[-1], flags, dir_fd=directory)
        stack.callback(os.close, file)
        before = os.read(file, _LARGEST) if stat.S_ISREG(os.fstat(file).st_mode) else None
        if before is None or len(before) == _LARGEST or (after := os.fsencode(change(os.fsdecode(before)))) == before:
            return False
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666, dir_fd=directory)
        with os.fdopen(descriptor, "wb") as output:
            output.write(after)
        os.replace(temporary, names[-1], src_dir_fd=directory, dst_dir_fd=directory)
        return True
    return False


def _pointer(git_dir: Path) -> bytes:
    """What leads from a worktree to its repository, by whichever of its paths it is reached."""
    return b"gitdir: " + os.fsencode(git_dir) + b"\n"


def _leads(line: str, before: str, place: Path) -> bool:
    """Whether a line holds a path that ends in the name of `place`, which it has wherever the project is."""
    target = line.removeprefix(before).strip().strip('"')
    return line.startswith(before) and Path(target).name == place.name


def _anchor_record(repository: Plumbing, path: Path) -> None:
    """Point git's record of a worktree to its current path, if it names the path before a move or a copy."""
    records = {record: _pointee(record / "gitdir") for record in (repository.git_dir / "worktrees").glob("*")}
    if any(pointee is not None and _is_same(pointee.parent, path) for pointee in records.values()):
        return
    for record, pointee in records.items():
        if pointee and pointee.parts[-4:] == (path / ".git").parts[-4:] and not _is_of(repository, pointee.parents[3]):
            atomic_file.replace(record / "gitdir", f"{path}/.git\n")
            return


def _is_same(one: Path, other: Path) -> bool:
    with suppress(OSError):
        return one == other or one.samefile(other)
    return False


def _is_at(one: Path, other: Path) -> bool:
    """Whether two paths name the same directory entry, which need not exist; the directory may have two paths."""
    return one.name == other.name and _is_same(one.parent, other.parent)


def _is_of(repository: Plumbing, project: Path) -> bool:
    """Whether a directory is a checkout of this repository, such as another linked worktree of it."""
    with suppress(WorkbenchError):
        return _is_same(common_dir(project, repository.limit), repository.git_dir)
    return False


def unlist(repository: Plumbing, path: Path) -> None:
    """See `Repository.unlist_worktree`."""
    _forget(repository, _locate(repository.root / path))


def _forget(repository: Plumbing, path: Path) -> None:
    """Remove git's records of the worktree at `path`."""
    for record in _records(repository, path):
        _delete(record)


def _make_directory(path: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.mkdir()
    except (FileExistsError, NotADirectoryError):
        raise Conflict("WORKTREE_PATH_TAKEN", f"{path} already exists. Choose another name.") from None
    except OSError as error:
        raise Unavailable("WORKTREE_PATH_UNUSABLE", f"Cannot create a worktree at {path}: {error}.") from error


def _create_branch(repository: Plumbing, branch: str, commit: str, start: str) -> None:
    options = ("--create-reflog", "-m", f"branch: Created from {start}")
    new = (f"refs/heads/{branch}", commit, "0" * len(commit))
    try:
        repository.write("update-ref", *options, *new)
    except Unavailable:
        if existing := _find_clashing_branch(repository, branch):
            raise Conflict(
                "BRANCH_EXISTS",
                f"The branch {existing!r} already exists. Choose another name than {branch!r}.",
                branch=existing,
            ) from None
        raise


def _find_clashing_branch(repository: Plumbing, branch: str) -> str | None:
    """An existing branch that prevents `branch` from being created: itself, one above or one below it."""
    above = [branch[:end] for end, letter in enumerate(f"{branch}/") if letter == "/"]
    patterns = [f"refs/heads/{name}" for name in above]
    refs = repository.read("for-each-ref", "--format=%(refname)", *patterns).text.splitlines()
    names = [name.removeprefix("refs/heads/") for name in refs]
    return next((n for n in names if n in above or n.startswith(f"{branch}/")), None)


def _register(repository: Plumbing, path: Path, start: str) -> None:
    """Register the worktree with git, which then lists it and keeps its branch from being checked out elsewhere."""
    # Twice --force: this replaces the record of an earlier worktree here, even if it is locked.
    options = ("--force", "--force", "--quiet", "--no-checkout", *(("--detach",) if is_object_id(start) else ()))
    repository.write("worktree", "add", *options, "--", str(path), start)


def _records(repository: Plumbing, path: Path) -> Iterator[Path]:
    """Git's records (`.git/worktrees/<id>`) of the worktree at `path`, including an unfinished one.

    Not `git worktree remove`, which trusts files in the worktree, nor `prune`, which also removes the records of
    worktrees that are only temporarily away.
    """
    for record in (repository.git_dir / "worktrees").glob("*"):
        pointee = _pointee(record / "gitdir")
        if _is_at(pointee.parent, path) if pointee is not None else record.name == path.name:
            yield record


def _pointee(pointer: Path) -> Path | None:
    """The `.git` that a record's `gitdir` file names; None if the file is missing or invalid."""
    if not pointer.is_file():
        return None
    text = pointer.read_bytes()[:8192].removesuffix(b"\n")
    if not text or b"\0" in text:
        return None
    target = pointer.parent / os.fsdecode(text)
    return _locate(target.parent) / target.name


def _resolve(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _locate(path: Path) -> Path:
    """`path` with its parent resolved; it may itself be a symbolic link, or not exist."""
    return _resolve(path) if path.name in ("", "..") else _resolve(path.parent) / path.name


def _delete(path: Path) -> None:
    if not remove_tree(path):
        raise Unavailable("WORKTREE_NOT_REMOVED", f"{path} cannot be removed. Check its permissions and attributes.")
