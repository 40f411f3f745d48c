"""Runs git on the person's checkout and resolves names to commits: the basis of `Repository`."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO

from workbench.errors import NotFound
from workbench.git.names import is_name, is_object_id
from workbench.git.run import NOBODY, UNBOUND, Bound, GitResult, Start, run, start_alone

COMMITS_KNOWN = 10_000


@dataclass(frozen=True, slots=True)
class Plumbing:
    """Runs git on the person's checkout; see `Repository`."""

    root: Path
    git_dir: Path
    limit: float = 60.0
    checkout_limit: float = 600.0
    record: Path | None = None
    start_in_worktrees: Start = start_alone
    """What starts git in the worktrees of workers."""

    @property
    def own_dir(self) -> Path:
        """The git directory of this checkout: its record, if it is a linked worktree."""
        return self.record or self.git_dir

    def commit(self, name: str) -> str:
        """The commit of an object id, a branch or another plain name, in this order.

        Raises:
            NotFound: ``BRANCH_NOT_FOUND``.
        """
        if is_object_id(name):
            return _commit_of_id(self, name)
        commits = filter(None, map(self.parse, (f"refs/heads/{name}", name))) if is_name(name) else iter(())
        if (commit := next(commits, None)) is None:
            raise _no_commit(name)
        return commit

    def parse(self, name: str) -> str | None:
        """The commit that a full name refers to, or None."""
        options = ("--verify", "--quiet", "--end-of-options")
        return self.read("rev-parse", *options, f"{name}^{{commit}}", ok=(0, 1, 128)).text or None

    def follow(self, ref: str) -> str | None:
        """The branch a symbolic reference leads to, or None."""
        full = self.read("symbolic-ref", "--quiet", ref, ok=(0, 1)).text if is_name(ref) else ""
        return full.removeprefix("refs/heads/") if full.startswith("refs/heads/") else None

    def current_branch(self) -> str | None:
        """The branch of the person's checkout; None when HEAD is detached."""
        return self.follow("HEAD")

    def resolve(self, branch: str) -> str | None:
        """The commit a branch is at, or None."""
        return self.parse(f"refs/heads/{branch}") if is_name(branch) else None

    def contains(self, branch: str, commit: str) -> bool:
        """Whether `commit` is `branch` or one of its ancestors."""
        return self.read("merge-base", "--is-ancestor", commit, branch, ok=(0, 1)).code == 0

    def write(
        self,
        *arguments: str,
        ok: Container[int] | None = (0,),
        stdin: bytes | BinaryIO = b"",
        env: Mapping[str, str] | None = None,
        limit: float | None = None,
        settings: Sequence[str] = (),
        bound: Bound = UNBOUND,
    ) -> GitResult:
        """Run git on the person's checkout."""
        places = {"GIT_DIR": str(self.own_dir), "GIT_WORK_TREE": str(self.root)}
        extra = {**NOBODY, **places, **(env or {})}
        return run(arguments, self.root, extra, limit or self.limit, stdin, settings=settings, bound=bound).expect(ok)

    def read(self, *arguments: str, ok: Container[int] | None = (0,), stdin: bytes = b"") -> GitResult:
        """Run git on the person's checkout without taking optional locks."""
        return self.write(*arguments, ok=ok, stdin=stdin, env={"GIT_OPTIONAL_LOCKS": "0"})

    def tips(self, *kinds: str) -> dict[str, str]:
        """The commits of all references, or of those below `kinds`; references to anything else are left out."""
        references = self.references(*kinds)
        ids = "".join(f"{id_}^{{commit}}\n" for id_ in references.values()).encode()
        answers = self.read("cat-file", "--batch-check=%(objectname) %(objecttype)", stdin=ids).text.splitlines()
        pairs = zip(references, (answer.partition(" ") for answer in answers), strict=True)
        return {name: commit for name, (commit, _, kind) in pairs if kind == "commit"}

    def references(self, *kinds: str) -> dict[str, str]:
        """The objects that all references name, or those below `kinds`, whether they are here or not."""
        return self.read("for-each-ref", "--format=%(objectname) %(refname)", *kinds).references

    def unreadable_references(self, below: str) -> list[str]:
        """The references below a name whose files git cannot read, such as the empty ones that a crash leaves.

        Git does not list them, does not delete them, and fails beside them.
        """
        files = sorted(path for path in (self.git_dir / below).rglob("*") if path.suffix != ".lock")
        known = self.references(below)
        names = ((path.relative_to(self.git_dir).as_posix(), path) for path in files)
        return [name for name, path in names if name not in known and path.is_file()]

    def roots(self) -> list[str]:
        """The first commits of all that references name."""
        return self.read("rev-list", "--ignore-missing", "--max-parents=0", "--all", "HEAD").text.split()

    def has_object(self, object_id: str) -> bool:
        """Whether an object, by its full id, is here."""
        return is_object_id(object_id) and not self.read("cat-file", "-e", object_id, ok=(0, 1, 128)).code

    def merge_base(self, one: str, other: str) -> str | None:
        """One of the best common ancestors, or None."""
        return self.read("merge-base", one, other, ok=(0, 1)).text or None

    def empty_tree(self) -> str:
        """The id of the empty tree."""
        return self.read("hash-object", "-t", "tree", "--stdin").text


@lru_cache(maxsize=COMMITS_KNOWN)
def _commit_of_id(plumbing: Plumbing, object_id: str) -> str:
    """The commit of a full object id: itself, or the target of a tag with this id. It never changes."""
    if (commit := plumbing.parse(object_id)) is None:
        raise _no_commit(object_id)
    return commit


def _no_commit(name: str) -> NotFound:
    return NotFound("BRANCH_NOT_FOUND", f"There is no branch or commit {name[:80]!r}. `git branch` lists branches.")
