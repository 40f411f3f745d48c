"""Bundles of a whole repository: all references with all their commits."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from workbench.errors import Conflict, Unavailable
from workbench.git.plumbing import Plumbing
from workbench.git.run import NOBODY, GitResult, run

BEGIN_SECONDS = 600.0
_HEADER = 100
"""More bytes than the lines with the version of a bundle and how its objects are named."""
_ON_DISK = ("core.fsync=committed,reference",)
"""By default, git leaves it to the system when references come to the disk."""


def write(repository: Plumbing, path: Path) -> dict[str, str]:
    """Write a bundle of all references with all their commits; what each reference in it names.

    Raises:
        Conflict: ``REPOSITORY_SHALLOW``.
    """
    if repository.read("rev-parse", "--is-shallow-repository").text == "true":
        raise Conflict(
            "REPOSITORY_SHALLOW",
            f"{repository.root} has only the newest commits, so what refers to older ones could not be restored. Get "
            "the others: `git fetch --unshallow`.",
        )
    # A reference to an object that is not there is left out: git would refuse all for its sake.
    command = ("bundle", "create", "--quiet", str(path), "--ignore-missing", "--all", "HEAD")
    repository.write(*command, limit=repository.checkout_limit)
    return _heads(repository.read("bundle", "list-heads", str(path)))


def begin(place: Path, path: Path, head: str, limit: float = BEGIN_SECONDS) -> dict[str, str]:
    """Make a repository, in a new directory, with the references of a bundle, and check out one of them.

    Args:
        head: a branch by full name, or a commit.
    Returns: what each reference names.
    """
    place.mkdir()
    with path.open("rb") as file:
        hashed = "sha256" if b"@object-format=sha256\n" in file.read(_HEADER) else "sha1"
    run(["init", "--quiet", "--template=", f"--object-format={hashed}"], place, NOBODY, limit).expect((0,))
    repository = Plumbing(place, place / ".git", limit, limit)
    references = unbundle(repository, path)
    create(repository, references)
    if head.startswith("refs/"):
        repository.write("symbolic-ref", "HEAD", head)
    else:
        repository.write("update-ref", "--no-deref", "HEAD", repository.commit(head))
    repository.write("reset", "--quiet", "--hard")
    return references


def unbundle(repository: Plumbing, path: Path) -> dict[str, str]:
    """Add the objects of a bundle, and no reference; what each reference in it names."""
    return _heads(repository.write("bundle", "unbundle", str(path), limit=repository.checkout_limit))


def add_references(repository: Plumbing, refs: Mapping[str, str], aside: str) -> dict[str, str]:
    """Create references that are not here. What is in their places, such as one that has moved, stays.

    Returns: where what was asked for of the latter is: a reference below `aside`, by the name of the other.
    """
    refs, here = of_repository(refs), repository.references()
    moved = {name: f"{aside}/{name.removeprefix('refs/')}" for name, id_ in refs.items() if here.get(name, id_) != id_}
    missing = {name: id_ for name, id_ in refs.items() if name not in here}
    try:
        create(repository, missing)
    except Unavailable:  # such as `a` where a branch `a/b` is
        moved |= {
            name: f"{aside}/{name.removeprefix('refs/')}"
            for name, id_ in missing.items()
            if not _is_created(repository, name, id_)
        }
    wanted = {place: refs[name] for name, place in moved.items()}
    create(repository, {place: id_ for place, id_ in wanted.items() if here.get(place) != id_})
    return moved


def of_repository(refs: Mapping[str, str]) -> dict[str, str]:
    """The references that all worktrees share: git bundles the HEAD of each, too."""
    return {name: id_ for name, id_ in refs.items() if name.startswith("refs/")}


def create(repository: Plumbing, refs: Mapping[str, str]) -> None:
    """Create references on the disk, all or none."""
    lines = "".join(f"create {name} {id_}\n" for name, id_ in refs.items())
    repository.write("update-ref", "--stdin", stdin=os.fsencode(lines), settings=_ON_DISK)


def _is_created(repository: Plumbing, name: str, id_: str) -> bool:
    try:
        create(repository, {name: id_})
    except Unavailable:
        return False
    return True


def _heads(result: GitResult) -> dict[str, str]:
    """What each reference of a bundle names."""
    return of_repository(result.references)
