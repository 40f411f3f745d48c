"""Taking in what a worker committed, from a bundle that git wrote where the worker has its say.

Not a byte of the bundle is believed. Its objects are unpacked on this side, where every name is
computed anew, every object is checked as ``fsck`` does, and everything it builds on must be here.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from workbench.errors import Conflict, NotFound, Unavailable
from workbench.git import unverified_refs
from workbench.git.checkout import Checkout
from workbench.git.integration import check_worktrees, checked_out, main_branches
from workbench.git.names import is_name, is_object_id
from workbench.git.plumbing import Plumbing
from workbench.git.quarantine import Quarantine, quarantine
from workbench.git.run import displayed

_LONGEST_LINE = 1 << 20
"""What the receiver must have comes with the first line of its message."""
_MOST_LINES = 20_000
_FEW_OBJECTS = 100
"""Fewer objects are kept one by one, as git does when it fetches."""
_UNPACK = ("unpack-objects", "-q", "--strict")
_INDEX = ("index-pack", "--stdin", "--fix-thin", "--strict")
_FULL = ("No space left on device", "Disk quota exceeded")
_NOT_ITS_FAULT = (*_FULL, "File too large", "Permission denied", "Read-only")
_HOW = ("core.bigFileThreshold=32m", "pack.threads=1")


def branch(repository: Plumbing, checkout: Checkout, name: str, max_bytes: int) -> str:
    """See `Repository.import_branch`."""
    ref, old = f"refs/heads/{name}", repository.resolve(name)
    if old is not None and unverified_refs.branch(checkout.git_dir, name) == old:
        return old
    commit = objects(repository, checkout, ref, max_bytes)
    if commit != old:
        _refuse_elsewhere(repository, checkout, name)
        _move(repository, ref, commit, old)
    return commit


def reference(repository: Plumbing, checkout: Checkout, ref: str, into: str, max_bytes: int) -> str:
    """See `Repository.import_ref`."""
    commit = objects(repository, checkout, ref, max_bytes)
    _move(repository, into, commit, repository.parse(into))
    return commit


def objects(repository: Plumbing, checkout: Checkout, ref: str, max_bytes: int) -> str:
    """Bring what `ref` of the worktree has, without pointing anything at it; the commit.

    Raises:
        NotFound: ``BRANCH_NOT_FOUND``. Conflict: ``IMPORT_REFUSED``.
    """
    if not is_name(ref):
        raise _missing(ref)
    known = set(repository.tips().values())
    with _told(), tempfile.TemporaryFile(dir=repository.git_dir) as file, quarantine(repository) as waiting:
        commit = _fetch(checkout, ref, known, file, max_bytes)
        if file.tell():
            _unpack(repository, waiting, file, ref, max_bytes)
        _check(repository, waiting, commit, ref, known)
        waiting.release()
    return commit


@contextmanager
def _told() -> Iterator[None]:
    """Tell of a disk that is full, or read-only, with a code."""
    try:
        yield
    except OSError as error:
        raise Unavailable("GIT_FAILED", f"Nothing can be imported: {error}.", stderr=str(error)) from error


def _fetch(checkout: Checkout, ref: str, known: set[str], file: BinaryIO, max_bytes: int) -> str:
    """Have a bundle written into `file`, which is left at its pack; the commit that is offered."""
    try:
        written = checkout.bundle(ref, sorted(known), file, max_bytes)
        commit = None if written else checkout.commit_of(ref)
    except Unavailable as error:
        if any(reason in str(error) for reason in _FULL):
            raise
        raise refused(ref, f"cannot be read ({error.message})", **error.details) from error
    file.seek(0)
    if written:
        return _header(file, ref)
    if commit is None:
        raise _missing(ref)
    return commit


def _header(bundle: BinaryIO, ref: str) -> str:
    """Read a bundle up to its pack; the one commit it offers.

    The format is gitformat-bundle(5): a line that tells the version, capabilities that begin with
    an ``@``, what the receiver must have (with a ``-``), references, an empty line, the pack.
    """
    first = bundle.readline(_LONGEST_LINE)
    if first not in (b"# v2 git bundle\n", b"# v3 git bundle\n"):
        raise refused(ref, "is not in a bundle")
    offered = []
    for _ in range(_MOST_LINES):
        line = bundle.readline(_LONGEST_LINE)
        if line == b"\n":
            break
        if not line.startswith((b"@", b"-")):
            offered.append(line)
    if len(offered) != 1:
        raise refused(ref, "is not the one thing in its bundle")
    commit = offered[0].partition(b" ")[0].decode("ascii", "replace")
    if not is_object_id(commit):
        raise refused(ref, "has no commit")
    return commit


def _unpack(repository: Plumbing, waiting: Quarantine, bundle: BinaryIO, ref: str, max_bytes: int) -> None:
    """Unpack what follows; nothing is kept of a pack in which anything is wrong."""
    start = bundle.tell()
    head = bundle.read(12)
    few = head[:4] == b"PACK" and int.from_bytes(head[8:], "big") < _FEW_OBJECTS
    bundle.seek(start)
    how = (*(_UNPACK if few else _INDEX), f"--max-input-size={max_bytes + 1}")
    limit, env = repository.checkout_limit, waiting.environment
    done = repository.write(*how, settings=_HOW, stdin=bundle, env=env, limit=limit, ok=None)
    if done.code:
        failure = done.failure()
        if any(reason in done.err for reason in _NOT_ITS_FAULT):
            raise failure
        raise refused(ref, f"is not sound ({failure.message})", **failure.details)


def _check(repository: Plumbing, waiting: Quarantine, commit: str, ref: str, known: set[str]) -> None:
    """Require a commit, and that all it is made of and builds on is here, as ``git fetch`` does."""
    env = waiting.environment
    kind = repository.write("cat-file", "-t", commit, env=env, ok=None).text
    if kind != "commit":
        raise refused(ref, f"is no commit, but {kind or 'nothing that came'}")
    how, ends = ("rev-list", "--objects", "--quiet", "--stdin"), [commit, *(f"^{tip}" for tip in known)]
    walk = repository.write(*how, stdin="\n".join(ends).encode(), env=env, ok=None, limit=repository.checkout_limit)
    if walk.code:
        raise refused(ref, "builds on what is missing", stderr=walk.err[-4000:])


def _refuse_elsewhere(repository: Plumbing, checkout: Checkout, name: str) -> None:
    """Refuse to move a branch under the person's feet: git's record keeps them off it, if it is there."""
    if name in main_branches(repository):
        raise checked_out(name, displayed(os.fsencode(repository.root)))
    check_worktrees(repository, name, besides=checkout.path)


def _move(repository: Plumbing, ref: str, commit: str, old: str | None) -> None:
    why = ("--no-deref", "--create-reflog", "-m", f"workbench: import {commit[:12]}")
    try:
        repository.write("update-ref", *why, ref, commit, old or "0" * len(commit))
    except Unavailable:
        now = repository.parse(ref)
        if now == commit:
            return
        if now != old:
            raise Unavailable("GIT_BUSY", f"{ref} was moved at the same time. Try again.") from None
        raise


def _missing(ref: str) -> NotFound:
    text = f"The worktree has no branch {ref.removeprefix('refs/heads/')[:80]!r} (any more)."
    return NotFound("BRANCH_NOT_FOUND", text)


def refused(ref: str, why: str, **details: object) -> Conflict:
    """The error that tells why nothing was taken in."""
    name = ref.removeprefix("refs/heads/")[:80]
    text = f"What the worktree offers as {name!r} {why}. Nothing was imported; see what happened there."
    return Conflict("IMPORT_REFUSED", text, **details)
