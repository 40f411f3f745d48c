"""Deletes branches, finds the commits that would be lost with them, and bundles those, a branch, or all references."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from workbench.errors import Conflict, NotFound, Unavailable
from workbench.git.plumbing import Plumbing
from workbench.git.run import NOBODY, GitResult, run

BEGIN_SECONDS = 600.0
_HEADER = 100
"""More bytes than the lines with the version of a bundle and how its objects are named."""


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


def write_whole(repository: Plumbing, path: Path) -> dict[str, str]:
    """See `Repository.write_whole_bundle`."""
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
    """See `Repository.add_objects`."""
    return _heads(repository.write("bundle", "unbundle", str(path), limit=repository.checkout_limit))


def add_refs(repository: Plumbing, refs: Mapping[str, str], aside: str) -> dict[str, str]:
    """See `Repository.add_references`."""
    here = repository.references()
    moved = {name: f"{aside}/{name.removeprefix('refs/')}" for name, id_ in refs.items() if here.get(name, id_) != id_}
    wanted = {moved.get(name, name): id_ for name, id_ in refs.items()}
    create(repository, {name: id_ for name, id_ in wanted.items() if here.get(name) != id_})
    return moved


def create(repository: Plumbing, refs: Mapping[str, str]) -> None:
    """Create references, all or none."""
    lines = "".join(f"create {name} {id_}\n" for name, id_ in refs.items())
    repository.write("update-ref", "--stdin", stdin=os.fsencode(lines))


def _heads(result: GitResult) -> dict[str, str]:
    """What each reference of a bundle names."""
    return {name: id_ for name, id_ in result.references.items() if name != "HEAD"}


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
