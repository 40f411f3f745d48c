"""Imports a worker's commits from a bundle that git wrote inside the worktree's box, or on another machine.

The bundle is not trusted. Its objects are unpacked outside the box into a quarantine, like that of
``git receive-pack``, where their ids are computed, every object is checked as by ``fsck``, and everything it refers to
must be present.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import BinaryIO

from workbench.errors import Conflict, NotFound, Unavailable
from workbench.git import lfs, submodules, unverified
from workbench.git.checkout import Checkout
from workbench.git.clones import quoted
from workbench.git.integration import checked_out, main_branches, refuse_checked_out
from workbench.git.names import is_name, is_object_id
from workbench.git.plumbing import Plumbing
from workbench.git.run import displayed
from workbench.git.submodules import AskGit

LINKS = "refs/workbench/links"
"""The references of the commits in submodules that the commits of worktrees link to."""
_LONGEST_LINE = 1 << 20
"""A line with a commit that the receiver must have includes the first line of its message."""
_MOST_LINES = 20_000
_FEW_OBJECTS = 100
"""Fewer objects are stored as loose objects, as by ``git fetch``."""
_UNPACK = ("unpack-objects", "-q", "--strict")
_INDEX = ("index-pack", "--stdin", "--fix-thin", "--strict")
_LOCAL_ERRORS = ("File too large", "Permission denied", "Read-only")
"""Errors that are not the fault of the bundle."""
_HOW = ("core.bigFileThreshold=32m", "pack.threads=1")
_LAST = (".idx",)
"""Files to move last: git sees a pack once its index exists."""


@dataclass(frozen=True, slots=True)
class Quarantine:
    """Objects below `place`; only git commands with `environment` see them, together with all other objects."""

    place: Path
    objects: Path

    @property
    def environment(self) -> dict[str, str]:
        """The variables that make git write objects here."""
        return {
            "GIT_OBJECT_DIRECTORY": str(self.place),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": quoted(str(self.objects), also=":"),
        }

    def release(self) -> None:
        """Move the objects into the repository's object directory."""
        files = [path for path in self.place.glob("*/*") if path.is_file()]
        for file in sorted(files, key=lambda path: (path.suffix in _LAST, path.name)):
            into = self.objects / file.parent.name
            if not into.is_dir():
                into.mkdir(exist_ok=True)
                into.chmod(file.parent.stat().st_mode & 0o7777)
            if not (into / file.name).exists():
                file.replace(into / file.name)


@contextmanager
def quarantine(repository: Plumbing) -> Iterator[Quarantine]:
    """Create a quarantine. Objects not released are deleted at the end; after a crash, ``git prune`` deletes them."""
    objects = (repository.git_dir / "objects").resolve()
    place = Path(tempfile.mkdtemp(prefix="tmp_objdir-workbench-", dir=objects))
    try:
        yield Quarantine(place, objects)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def branch(repository: Plumbing, checkout: Checkout, name: str, max_bytes: int) -> str:
    """See `Repository.import_branch`."""
    ref, old = f"refs/heads/{name}", repository.resolve(name)
    if old is not None and unverified.branch(checkout.git_dir, name) == old:
        return old
    commit = objects(repository, checkout, ref, max_bytes)
    if commit != old:
        # It may be checked out elsewhere once git's record of the worktree was removed.
        refuse_checked_out(repository, name, besides=checkout.path)
        _move(repository, ref, commit, old)
    return commit


def reference(repository: Plumbing, checkout: Checkout, ref: str, into: str, max_bytes: int) -> str:
    """See `Repository.import_ref`."""
    commit = objects(repository, checkout, ref, max_bytes)
    _move(repository, into, commit, repository.parse(into))
    return commit


def objects(repository: Plumbing, checkout: Checkout, ref: str, max_bytes: int) -> str:
    """Import the objects of the worktree's `ref` without moving any reference; return the commit.

    Raises:
        NotFound: ``BRANCH_NOT_FOUND``. Conflict: ``IMPORT_REFUSED``.
    """
    if not is_name(ref):
        raise _missing_error(ref)
    tips = set(repository.tips().values())
    with _os_errors(), tempfile.TemporaryFile(dir=repository.git_dir) as file, quarantine(repository) as unchecked:
        commit = _fetch(checkout, ref, tips, file, max_bytes)
        if file.tell():
            _unpack(repository, unchecked, file, ref, max_bytes)
        _check(repository, unchecked, commit, ref, tips)
        ask = partial(repository.write, env=unchecked.environment, limit=repository.checkout_limit)
        _bring_links(repository, ask, checkout, commit, tips, max_bytes)
        lfs.bring(ask, repository.git_dir, checkout.git_dir, commit, sorted(tips), max_bytes)
        unchecked.release()
    return commit


def sent_objects(repository: Plumbing, bundle: Path, branch: str, max_bytes: int) -> str:
    """See `Repository.import_bundle`."""
    ref, tips = f"refs/heads/{branch}", set(repository.tips().values())
    with _os_errors(), bundle.open("rb") as file, quarantine(repository) as unchecked:
        commit = _read_header(file, ref)
        _unpack(repository, unchecked, file, ref, max_bytes)
        _check(repository, unchecked, commit, ref, tips)
        unchecked.release()
    return commit


@contextmanager
def _os_errors() -> Iterator[None]:
    """Raise `Unavailable` for errors of the system, such as a full or read-only disk."""
    try:
        yield
    except OSError as error:
        raise Unavailable("GIT_FAILED", f"Cannot import: {error}.", stderr=str(error)) from error


def _fetch(checkout: Checkout, ref: str, tips: set[str], file: BinaryIO, max_bytes: int) -> str:
    """Have git write a bundle into `file`, and read it up to its pack; return the commit it offers."""
    try:
        written = checkout.bundle(ref, sorted(tips), file, max_bytes)
        commit = None if written else checkout.commit_of(ref)
    except Unavailable as error:
        if error.code == "GIT_TIMEOUT" or error.details.get("try_again"):
            raise
        raise refused(ref, f"cannot be read ({error.message})", **error.details) from error
    file.seek(0)
    if written:
        return _read_header(file, ref)
    if commit is None:
        raise _missing_error(ref)
    return commit


def _read_header(bundle: BinaryIO, ref: str) -> str:
    """Read a bundle up to its pack; return the one commit it offers.

    The format is gitformat-bundle(5): a line with the version, capabilities (with an ``@``), commits that the receiver
    must have (with a ``-``), references, an empty line, the pack.
    """
    first = bundle.readline(_LONGEST_LINE)
    if first not in (b"# v2 git bundle\n", b"# v3 git bundle\n"):
        raise refused(ref, "is not in a bundle")
    references = []
    for _ in range(_MOST_LINES):
        line = bundle.readline(_LONGEST_LINE)
        if line == b"\n":
            break
        if not line.startswith((b"@", b"-")):
            references.append(line)
    if len(references) != 1:
        raise refused(ref, "is not the only reference in its bundle")
    commit = references[0].partition(b" ")[0].decode("ascii", "replace")
    if not is_object_id(commit):
        raise refused(ref, "has no commit")
    return commit


def _unpack(repository: Plumbing, unchecked: Quarantine, bundle: BinaryIO, ref: str, max_bytes: int) -> None:
    """Unpack the pack of a bundle into quarantine.

    Raises:
        Conflict: ``IMPORT_REFUSED``: an object is invalid, or the pack too large.
    """
    start = bundle.tell()
    head = bundle.read(12)
    few = head[:4] == b"PACK" and int.from_bytes(head[8:], "big") < _FEW_OBJECTS
    bundle.seek(start)
    options = (*(_UNPACK if few else _INDEX), f"--max-input-size={max_bytes + 1}")
    limit, env = repository.checkout_limit, unchecked.environment
    result = repository.write(*options, settings=_HOW, stdin=bundle, env=env, limit=limit, ok=None)
    if result.code:
        failure = result.failure()
        if result.was_disturbed or any(reason in result.err for reason in _LOCAL_ERRORS):
            raise failure
        raise refused(ref, f"is invalid ({failure.message})", **failure.details)


def _check(repository: Plumbing, unchecked: Quarantine, commit: str, ref: str, tips: set[str]) -> None:
    """Require that it is a commit and that everything it refers to is present, as ``git fetch`` does."""
    env = unchecked.environment
    result = repository.write("cat-file", "-t", commit, env=env, ok=None)
    kind = result.text
    if result.was_disturbed:
        raise result.failure()
    if kind != "commit":
        raise refused(ref, f"is a {kind}, not a commit" if kind else "has no commit")
    options, revisions = ("rev-list", "--objects", "--quiet", "--stdin"), [commit, *(f"^{tip}" for tip in tips)]
    walk = repository.write(
        *options, stdin="\n".join(revisions).encode(), env=env, ok=None, limit=repository.checkout_limit
    )
    if walk.was_disturbed:
        raise walk.failure()
    if walk.code:
        raise refused(ref, "refers to missing objects", stderr=walk.err[-4000:])


def _bring_links(
    repository: Plumbing, ask: AskGit, checkout: Checkout, commit: str, tips: set[str], max_bytes: int
) -> None:
    """Import the commits that new links lead to into the person's repositories of these submodules.

    A link to a commit that nobody has stays what it is, like one to a submodule of which she has no repository.
    """
    for link in submodules.new_links(ask, commit, sorted(tips)):
        home, inner = submodules.home(repository, link.name), checkout.submodule(link.name, link.path)
        if home is None or inner is None or submodules.has(home, link.commit) or not inner.commit_of(link.commit):
            continue
        ref = f"{LINKS}/{link.commit}"
        inner.refer(ref, link.commit)
        reference(home, inner, ref, ref, max_bytes)


def put_back(repository: Plumbing, name: str, commit: str) -> None:
    """See `Repository.return_branch`."""
    old = repository.resolve(name)
    if old != commit:
        if name in main_branches(repository):
            raise checked_out(name, displayed(os.fsencode(repository.root)))
        _move(repository, f"refs/heads/{name}", commit, old, "return to")


def _move(repository: Plumbing, ref: str, commit: str, old: str | None, why: str = "import") -> None:
    options = ("--no-deref", "--create-reflog", "-m", f"workbench: {why} {commit[:12]}")
    try:
        repository.write("update-ref", *options, ref, commit, old or "0" * len(commit))
    except Unavailable:
        current = repository.parse(ref)
        if current == commit:
            return
        if current != old:
            raise Unavailable("GIT_BUSY", f"{ref} moved meanwhile. Try again.") from None
        raise


def _missing_error(ref: str) -> NotFound:
    text = f"The worktree has no branch {ref.removeprefix('refs/heads/')[:80]!r} (any more)."
    return NotFound("BRANCH_NOT_FOUND", text)


def refused(ref: str, why: str, **details: object) -> Conflict:
    """The error for a reference that is not imported."""
    name = ref.removeprefix("refs/heads/")[:80]
    text = f"{name!r} of the worktree {why}. Nothing was imported; check the worktree."
    return Conflict("IMPORT_REFUSED", text, **details)
