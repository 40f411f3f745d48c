"""Deletes branches, finds the commits that would be lost with them, saves those as bundles, and bundles branches."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from workbench.errors import Conflict, NotFound, Unavailable
from workbench.git.plumbing import Plumbing

MOST_KNOWN = 1_000
"""The most commits that a machine says it has when it asks for a bundle."""


def only_in(repository: Plumbing, branch: str, besides: Sequence[str]) -> int:
    """See `Repository.only_in`."""
    commit = repository.commit(branch)
    revisions = [commit, *(f"^{other}" for other in _others(repository, [branch, *besides]))]
    return int(repository.read("rev-list", "--count", "--stdin", stdin=_lines(revisions)).text)


def write(repository: Plumbing, path: Path, refs: Sequence[str]) -> None:
    """See `Repository.write_bundle`."""
    names = [_full_name(ref) for ref in refs]
    tips = {name: repository.parse(name) for name in names}
    for name, commit in tips.items():
        if commit is None:
            raise NotFound("BRANCH_NOT_FOUND", f"There is no branch {name.removeprefix('refs/heads/')[:80]!r}.")
    others = [other for other in _others(repository, names) if other not in tips.values()]
    with _replaced(path) as temporary:
        _bundle(repository, temporary, names, others)
        repository.read("bundle", "verify", "--quiet", str(temporary))


def of_branch(repository: Plumbing, path: Path, branch: str, known: Sequence[str]) -> str | None:
    """See `Repository.bundle_branch`."""
    ref = _full_name(branch)
    commit = repository.commit(branch)
    answers = repository.read("cat-file", "--batch-check=%(objectname) %(objecttype)", stdin=_lines(known))
    pairs = (line.partition(" ")[::2] for line in answers.text.splitlines())
    limits = [f"^{name}" for name, kind in pairs if kind == "commit"]
    if not int(repository.read("rev-list", "--count", "--stdin", stdin=_lines([commit, *limits])).text):
        return None
    with _replaced(path) as temporary:
        command = ("bundle", "create", "--quiet", str(temporary), "--stdin")
        repository.write(*command, stdin=_lines([ref, *limits]), limit=repository.checkout_limit)
    return commit


@contextmanager
def _replaced(path: Path) -> Iterator[Path]:
    """A temporary file that replaces a bundle at the end of the block.

    Raises:
        Unavailable: ``BUNDLE_NOT_WRITTEN``.
    """
    temporary = path.with_name(f".{path.name}.new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        temporary.replace(path)
    except OSError as error:
        raise Unavailable("BUNDLE_NOT_WRITTEN", f"{path} cannot be written: {error}.") from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def delete_branch(repository: Plumbing, branch: str, commit: str) -> None:
    """See `Repository.delete_branch`."""
    ref = _full_name(branch)
    try:
        repository.write("update-ref", "--no-deref", "-d", ref, commit)
    except Unavailable:
        tip = repository.parse(ref)
        if tip not in (None, commit):
            raise Conflict("BRANCH_MOVED", f"{branch} has moved to {str(tip)[:12]} and is kept.", commit=tip) from None
        if tip is not None:
            raise


def _bundle(repository: Plumbing, path: Path, names: list[str], others: list[str]) -> None:
    command = ("bundle", "create", "--quiet", str(path), "--stdin")
    revisions = [*names, *(f"^{other}" for other in others)]
    result = repository.write(*command, stdin=_lines(revisions), limit=repository.checkout_limit, ok=None)
    if result.code:
        # git refuses an empty bundle: if other references reach every commit, write the last commits alone.
        limits = [f"^{parent}" for name in names for parent in repository.read("rev-parse", f"{name}^@").text.split()]
        repository.write(*command, stdin=_lines([*names, *limits]), limit=repository.checkout_limit)


def _others(repository: Plumbing, without: Sequence[str]) -> list[str]:
    """The commits of all other references, and of a detached HEAD."""
    excluded = {_full_name(name) for name in without}
    commits = [commit for name, commit in repository.tips().items() if name not in excluded]
    if repository.current_branch() is None and (head := repository.parse("HEAD")):
        commits.append(head)
    return list(dict.fromkeys(commits))


def _full_name(name: str) -> str:
    return name if name.startswith("refs/") else f"refs/heads/{name}"


def _lines(words: Sequence[str]) -> bytes:
    return os.fsencode("".join(f"{word}\n" for word in words))
