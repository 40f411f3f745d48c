"""Predicts the results of merges, one by one or many in one process."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

from workbench.errors import NotFound, Unavailable
from workbench.git import notebooks
from workbench.git.names import is_object_id
from workbench.git.plumbing import Plumbing
from workbench.git.run import GitResult, displayed

_SAME_EVERY_TIME = {f"GIT_{role}_DATE": "@0 +0000" for role in ("AUTHOR", "COMMITTER")}
_HOW = ("--name-only", "--no-messages", "-z")
_AT_ONCE = 4
_MOVED_ASIDE = re.compile(rb"~(?:[0-9a-f]{40}|[0-9a-f]{64})(?:_\d+)?\Z")


@dataclass(frozen=True, slots=True)
class MergePreview:
    """The result of a merge: a tree, or None and the files in conflict.

    Neither a tree nor conflicts: the two have no common ancestor.
    """

    tree: str | None
    conflicts: tuple[str, ...]


UNRELATED = MergePreview(None, ())


def merge(repository: Plumbing, ours: str, theirs: str) -> MergePreview:
    """The result of merging two commits. Writes objects, but moves no branch."""
    if repository.merge_base(ours, theirs) is None:
        return UNRELATED
    result = _merge_trees(repository, "--write-tree", *_HOW, ours, theirs, ok=(0, 1))
    if not result.fields:
        raise result.failure()
    tree, *names = result.fields
    return MergePreview(displayed(tree), ()) if result.code == 0 else MergePreview(None, paths(names))


def trial_commit(repository: Plumbing, ours: str, theirs: str) -> str | None:
    """A commit with the result of merging `theirs` into `ours`, to predict further merges; None if they conflict.

    No branch refers to it, and it is the same commit every time.
    """
    if repository.contains(theirs, ours):
        return theirs
    if (tree := merge(repository, ours, theirs).tree) is None:
        return None
    return repository.write("commit-tree", "-p", ours, "-p", theirs, "-m", "Trial", tree, env=_SAME_EVERY_TIME).text


def merges(repository: Plumbing, pairs: Sequence[tuple[str, str]]) -> list[MergePreview]:
    """See `Repository.predict_merges`."""
    commits = _resolve(repository, list(dict.fromkeys(name for pair in pairs for name in pair)))
    commit_pairs = list(dict.fromkeys((commits[ours], commits[theirs]) for ours, theirs in pairs))
    related = _keep_related(repository, commit_pairs)
    previews = dict.fromkeys(commit_pairs, UNRELATED) | dict(zip(related, _predict(repository, related), strict=True))
    return [previews[commits[ours], commits[theirs]] for ours, theirs in pairs]


def _resolve(repository: Plumbing, names: list[str]) -> dict[str, str]:
    ids = [name for name in names if is_object_id(name)]
    request = "".join(f"{name}^{{commit}}\n" for name in ids).encode()
    shape = "--batch-check=%(objectname) %(objecttype)"
    lines = repository.read("cat-file", shape, stdin=request).text.splitlines() if ids else []
    commits = {}
    for name, line in zip(ids, lines, strict=True):
        commit, _, kind = line.partition(" ")
        if kind != "commit":
            raise NotFound("BRANCH_NOT_FOUND", f"There is no commit {name[:80]!r}.")
        commits[name] = commit
    return commits | {name: repository.commit(name) for name in names if name not in commits}


def _keep_related(repository: Plumbing, pairs: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """The pairs that have a common ancestor. Usually all do, which one command tells."""
    commits = list(dict.fromkeys(commit for pair in pairs for commit in pair))
    if len(commits) > 1 and repository.read("merge-base", "--octopus", *commits, ok=(0, 1)).code == 0:
        return pairs
    return [pair for pair in pairs if repository.merge_base(*pair) is not None]


def _predict(repository: Plumbing, pairs: list[tuple[str, str]]) -> list[MergePreview]:
    if not pairs:
        return []
    lines = "".join(f"{ours} {theirs}\n" for ours, theirs in pairs).encode()
    result = _merge_trees(repository, "--stdin", *_HOW, stdin=lines, ok=None)
    if result.code == 0:
        previews = list(_parse(iter(result.fields)))
        if len(previews) == len(pairs):
            return previews
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(pool.map(partial(_merge_pair, repository), pairs))


def _merge_trees(repository: Plumbing, *arguments: str, ok: Container[int] | None, stdin: bytes = b"") -> GitResult:
    """Run `git merge-tree`, which merges notebooks by Workbench's driver."""
    env, limit = {"GIT_OPTIONAL_LOCKS": "0"}, repository.checkout_limit
    with notebooks.prepared(repository) as (place, settings):
        return place.write("merge-tree", *arguments, ok=ok, stdin=stdin, env=env, limit=limit, settings=settings)


def _merge_pair(repository: Plumbing, pair: tuple[str, str]) -> MergePreview:
    return merge(repository, *pair)


def _parse(fields: Iterator[bytes]) -> Iterator[MergePreview]:
    """Parse the fields of each merge: 1 if it is clean else 0, its tree, the files in conflict, an empty field."""
    for clean in fields:
        tree, names = displayed(next(fields)), list[bytes]()
        while name := next(fields, b""):
            names.append(name)
        if clean not in (b"0", b"1"):
            raise Unavailable("GIT_FAILED", "The output of git merge-tree has an unknown format.")
        yield MergePreview(tree, ()) if clean == b"1" else MergePreview(None, paths(names))


def paths(names: Sequence[bytes]) -> tuple[str, ...]:
    """The files in conflict. git renames a file where the other side has a directory; its own name is shown."""
    return tuple(dict.fromkeys(displayed(_MOVED_ASIDE.sub(b"", name)) for name in names))
