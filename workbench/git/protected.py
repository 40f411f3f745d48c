"""A fingerprint of what no worker may change in the person's repository."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from workbench.git.plumbing import Plumbing

_FILES = ("config", "config.worktree", "HEAD", "shallow", "objects/info/alternates")
_TREES = ("hooks", "info", "worktrees")
_GENERATED = frozenset({"info/refs"})
"""Written anew by ``git gc``, from the references."""
_OWN_OF_RECORDS = frozenset({"index", "index.lock", "ORIG_HEAD", "FETCH_HEAD", "COMMIT_EDITMSG", "logs"})


def fingerprint(repository: Plumbing) -> dict[str, str]:
    """See `Repository.protected`."""
    found = {name: print_ for name in _FILES if (print_ := _print(repository.git_dir / name)) is not None}
    for name in _TREES:
        found.update(_below(repository.git_dir, repository.git_dir / name))
    return found | _refs(repository)


def changed(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """What differs between two fingerprints, by name, in order."""
    return sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))


def _refs(repository: Plumbing) -> dict[str, str]:
    """References by what they point at: packing them away changes nothing."""
    shape = "--format=%(refname)%00%(objectname)%00%(symref)"
    rows = (os.fsdecode(row).split("\0") for row in repository.read("for-each-ref", shape).out.split(b"\n") if row)
    return {name: f"ref: {target}" if target else commit for name, commit, target in rows}


def _below(top: Path, directory: Path) -> Iterator[tuple[str, str]]:
    for entry in sorted(directory.iterdir()) if directory.is_dir() else ():
        in_record = directory.parent.name == "worktrees" and entry.name in _OWN_OF_RECORDS
        if entry.is_dir() and not entry.is_symlink():
            if not in_record:
                yield from _below(top, entry)
        elif not in_record and (print_ := _print(entry)) is not None:
            name = str(entry.relative_to(top))
            yield from () if name in _GENERATED else ((name, print_),)


def _print(path: Path) -> str | None:
    """A digest of a file, where a link leads, or what else is there."""
    try:
        mode = path.lstat().st_mode
        if stat.S_ISLNK(mode):
            inside = _print(path.resolve()) if path.is_file() else None
            return f"link to {path.readlink()}: {inside}"
        if not stat.S_ISREG(mode):
            return f"mode {stat.S_IFMT(mode):o}"
        runs = "x" if mode & 0o111 else "-"
        with path.open("rb") as file:
            return f"{runs}{hashlib.file_digest(file, 'sha256').hexdigest()}"
    except FileNotFoundError:
        return None
