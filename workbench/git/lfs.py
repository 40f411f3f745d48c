"""Contents of files that Git LFS keeps beside the objects: those that a worker's commits point to come with them.

A pointer names its content by its SHA-256, which is computed here again: nothing else of a worker's store is believed,
and no program runs.
"""

from __future__ import annotations

import os
import re
import stat
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from hashlib import sha256
from pathlib import Path

from workbench.errors import Conflict
from workbench.git import unverified
from workbench.git.run import GitResult

_NAME = re.compile(r"[0-9a-f]{64}")
_POINTER = re.compile(rb"^oid sha256:([0-9a-f]{64})$", re.MULTILINE)
_LONGEST_POINTER = 1_024
_CHUNK = 1 << 20


def store(git_dir: Path) -> Path:
    """Where Git LFS keeps the contents of a repository's files."""
    return git_dir / "lfs" / "objects"


def bring(ask: Callable[..., GitResult], own: Path, git_dir: Path, commit: str, tips: Sequence[str], most: int) -> None:
    """Copy the contents that new commits point to from the store of a worktree's repository into the person's.

    Args:
        ask: git in the person's repository, as it sees the new objects.
        own: her git directory.
        most: how many bytes may be copied.

    Raises:
        Conflict: ``IMPORT_REFUSED``: they are larger together.
    """
    if not (found := {path.name: path for path in _files(store(git_dir)) if not _place(own, path.name).exists()}):
        return
    for name in _pointed_to(ask, commit, tips) & found.keys():
        if (most := most - _copy(git_dir, found[name], _place(own, name), most)) < 0:
            text = "The files of Git LFS in the worktree are larger than max_import_bytes allows."
            raise Conflict("IMPORT_REFUSED", f"{text} Make them smaller, or have the limit raised.")


def patterns(ask: Callable[..., GitResult], commit: str) -> list[str]:
    """The patterns of files whose contents Git LFS keeps, by the attributes in a commit."""
    found = ask("grep", "-h", "-e", "filter=lfs", commit, "--", ":(glob)**/.gitattributes", ok=(0, 1))
    lines = (line.split() for line in found.out.decode("utf-8", "replace").splitlines())
    return [words[0] for words in lines if "filter=lfs" in words and not words[0].startswith("#")]


def _files(directory: Path) -> Iterator[Path]:
    for here, _, names in os.walk(directory):
        yield from (Path(here) / name for name in names if _NAME.fullmatch(name))


def _place(git_dir: Path, name: str) -> Path:
    return store(git_dir) / name[:2] / name[2:4] / name


def _pointed_to(ask: Callable[..., GitResult], commit: str, tips: Sequence[str]) -> set[str]:
    """The contents that the files of new commits point to."""
    revisions = "".join(f"{line}\n" for line in (commit, *(f"^{tip}" for tip in tips)))
    options = ("--objects", "--no-object-names", f"--filter=blob:limit={_LONGEST_POINTER}", "--stdin")
    objects = ask("rev-list", *options, stdin=revisions.encode()).out
    return {name.decode() for name in _POINTER.findall(ask("cat-file", "--batch", stdin=objects).out)}


def _copy(git_dir: Path, source: Path, target: Path, most: int) -> int:
    """Copy a file whose content has its name; the bytes that were copied, or one more than `most` if it has more."""
    with ExitStack() as stack:
        try:
            file = stack.enter_context(unverified.opened(git_dir, source.relative_to(git_dir).parts))
        except OSError:  # it has gone, or a worker has put a link in its way
            return 0
        facts = os.fstat(file)
        if not stat.S_ISREG(facts.st_mode):
            return 0
        if facts.st_size > most:
            return most + 1
        target.parent.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=target.parent)
        try:
            with os.fdopen(descriptor, "wb") as copy:
                digest, left = sha256(), facts.st_size
                while left and (chunk := os.read(file, min(left, _CHUNK))):
                    digest.update(chunk)
                    copy.write(chunk)
                    left -= len(chunk)
            if digest.hexdigest() != source.name:
                return 0
            Path(temporary).chmod(0o444)
            Path(temporary).replace(target)
            return facts.st_size
        finally:
            Path(temporary).unlink(missing_ok=True)
