"""The person's repository: branches, differences and merges, read from its git directory."""

from __future__ import annotations

from collections.abc import Container, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from workbench.errors import BadInput, NotFound
from workbench.git import integration, worktrees
from workbench.git.integration import Integration
from workbench.git.names import check_branch_name, is_name, is_object_id
from workbench.git.run import NOBODY, PATCH_FREE, Done, Identity, check_version, run, shown

_YEAR_9999 = 253_402_300_799


@dataclass(frozen=True, slots=True)
class FileChange:
    """Lines added to and removed from one file; None for a binary one. A rename is two changes."""

    path: str
    added: int | None
    removed: int | None


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit; `at_us` is the time its author claims, in microseconds since the epoch."""

    id: str
    author: str
    at_us: int
    subject: str


@dataclass(frozen=True, slots=True)
class MergePreview:
    """What a merge would give: a tree, or None and the files in conflict.

    Without a tree and without conflicts the two have no commit in common.
    """

    tree: str | None
    conflicts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Repository:
    """The person's repository, seen from its main checkout.

    `root` is the top level of the main checkout and `git_dir` its git directory, the one all
    worktrees share. Limits are in seconds; `checkout_limit` is for what writes a working tree.
    Where a branch is asked for, a name under ``refs/heads`` is meant; where a branch or commit is
    asked for, also a commit id, a tag or a remote branch will do, but no revision expression.
    """

    root: Path
    git_dir: Path
    limit: float = 60.0
    checkout_limit: float = 600.0

    @classmethod
    def open(cls, path: Path, *, limit: float = 60.0, checkout_limit: float = 600.0) -> Repository:
        """The repository that `path` is in; from inside a linked worktree, the main one.

        Raises:
            BadInput: ``NOT_A_REPOSITORY``, ``BARE_REPOSITORY``, ``NO_COMMITS``.
            Unavailable: ``GIT_MISSING``, ``GIT_TOO_OLD``.
        """
        check_version(limit)
        git_dir = _common_dir(path, limit)
        repository = cls(_top(path, git_dir, limit), git_dir, limit, checkout_limit)
        if repository.parse("HEAD") is None:
            raise BadInput("NO_COMMITS", f"{repository.root} has no commit yet. Make one with `git commit`.")
        return repository

    @staticmethod
    def check_branch_name(name: str) -> None:
        """Refuse what git or a file system would not take as the name of a new branch.

        Raises:
            BadInput: ``BAD_BRANCH_NAME``.
        """
        check_branch_name(name)

    # -- reading

    def current_branch(self) -> str | None:
        """The branch of the main checkout; None when HEAD is detached."""
        return self.follow("HEAD")

    def resolve(self, branch: str) -> str | None:
        """The commit a branch is at, or None."""
        return self.parse(f"refs/heads/{branch}") if is_name(branch) else None

    def is_ancestor(self, commit: str, branch: str) -> bool:
        """Whether `branch` contains `commit`; both may be either. False if one does not exist."""
        with suppress(NotFound):
            return self.contains(self.commit(branch), self.commit(commit))
        return False

    def ahead_behind(self, branch: str, target: str) -> tuple[int, int]:
        """How many commits only `branch` has, and how many only `target` has.

        Raises:
            NotFound: ``BRANCH_NOT_FOUND``.
        """
        span = f"{self.commit(branch)}...{self.commit(target)}"
        ahead, behind = self.read("rev-list", "--left-right", "--count", span).text.split()
        return int(ahead), int(behind)

    def diff_stat(self, target: str, branch: str) -> list[FileChange]:
        """What `branch` changed since it left `target`, by path.

        Raises:
            NotFound: ``BRANCH_NOT_FOUND``.
        """
        ours, theirs = self.commit(target), self.commit(branch)
        base = self._merge_base(ours, theirs) or self._empty_tree()
        rows = self.read("diff-tree", "-r", "--numstat", *PATCH_FREE, base, theirs).fields
        return [_file_change(row) for row in rows]

    def commits(self, target: str, branch: str, limit: int) -> list[Commit]:
        """The commits that only `branch` has, newest first, at most `limit`.

        Raises:
            NotFound: ``BRANCH_NOT_FOUND``.
        """
        span = (self.commit(branch), f"^{self.commit(target)}")
        shape = ("--no-commit-header", "--encoding=UTF-8", "--format=%H%x00%at%x00%an%x00%s")
        found = self.read("rev-list", f"--max-count={max(limit, 0)}", *shape, *span)
        return [_commit(row) for row in found.out.split(b"\n") if row]

    def uncommitted(self, path: Path) -> list[str]:
        """Files of a linked worktree that no commit holds: changed, staged or new, but not ignored.

        The worktree's own idea of where its repository is, is not believed.
        """
        return worktrees.uncommitted(self, path)

    def preview_merge(self, target: str, source: str) -> MergePreview:
        """What merging `source` into `target` would give. Writes objects, moves nothing.

        Raises:
            NotFound: ``BRANCH_NOT_FOUND``.
        """
        return self.merge_trees(self.commit(target), self.commit(source))

    def dirty_files(self, branch: str) -> list[str]:
        """The tracked files with uncommitted changes, if the main checkout is on `branch`."""
        here = branch in integration.main_branches(self)
        return integration.uncommitted(self) if here else []

    # -- changing

    def add_worktree(self, path: Path, branch: str, start: str) -> str:
        """Make the new branch `branch` at `start` (branch or commit), checked out at `path`.

        `path` must not exist. Whatever fails, neither branch nor directory is left behind, and
        those that another call made are kept. Returns the commit.

        Raises:
            BadInput: ``BAD_BRANCH_NAME``. NotFound: ``BRANCH_NOT_FOUND``.
            Conflict: ``BRANCH_EXISTS``, ``WORKTREE_PATH_TAKEN``.
            Unavailable: ``WORKTREE_PATH_UNUSABLE``.
        """
        return worktrees.add(self, path, branch, start)

    def remove_worktree(self, path: Path) -> None:
        """Delete the worktree at `path` with all that is in it; its branch stays.

        Also what is left of one: the directory or git's record of it. Others are not pruned.

        Raises:
            BadInput: ``NOT_A_WORKTREE``: the main checkout is there.
            Unavailable: ``WORKTREE_NOT_REMOVED``.
        """
        worktrees.remove(self, path)

    def integrate(
        self,
        source_commit: str,
        target_branch: str,
        message: str,
        author: Identity,
        *,
        fast_forward: bool = False,
    ) -> Integration:
        """Merge a commit into a branch, never touching uncommitted work; on error nothing changed.

        A merge commit is made even where the branch could just move on, unless `fast_forward`.
        If the main checkout is on the branch, its files follow; untracked and ignored ones stay.

        Raises:
            NotFound: ``BRANCH_NOT_FOUND``.
            Conflict: ``MERGE_CONFLICT``, ``UNRELATED_HISTORIES``; ``TARGET_DIRTY`` (uncommitted or
                untracked files in the way, or an unfinished merge or rebase); ``TARGET_MOVED``
                (another commit came first: try again); ``TARGET_CHECKED_OUT`` (in a linked
                worktree). `details.files` lists files where there are any.
        """
        task = integration.Merge(self, message, author, fast_forward)
        return task.into(target_branch, source_commit)

    # -- parts for this package

    def commit(self, name: str) -> str:
        """The commit of an object id, a branch or another plain name, in this order.

        Raises:
            NotFound: ``BRANCH_NOT_FOUND``.
        """
        names = [name] if is_object_id(name) else [f"refs/heads/{name}", name]
        found = filter(None, map(self.parse, names)) if is_name(name) else iter(())
        if (commit := next(found, None)) is None:
            raise NotFound(
                "BRANCH_NOT_FOUND",
                f"There is no branch or commit {name[:80]!r}. `git branch` lists branches.",
            )
        return commit

    def parse(self, name: str) -> str | None:
        """The commit that a full name means to git, or None."""
        how = ("--verify", "--quiet", "--end-of-options")
        return self.read("rev-parse", *how, f"{name}^{{commit}}", ok=(0, 1, 128)).text or None

    def follow(self, ref: str) -> str | None:
        """The branch a symbolic reference leads to, or None."""
        full = self.read("symbolic-ref", "--quiet", ref, ok=(0, 1)).text if is_name(ref) else ""
        return full.removeprefix("refs/heads/") if full.startswith("refs/heads/") else None

    def contains(self, branch: str, commit: str) -> bool:
        """Whether one commit is another or an ancestor of it."""
        return self.read("merge-base", "--is-ancestor", commit, branch, ok=(0, 1)).code == 0

    def merge_trees(self, ours: str, theirs: str) -> MergePreview:
        """What merging two commits would give."""
        if self._merge_base(ours, theirs) is None:
            return MergePreview(None, ())
        how = ("--write-tree", "--name-only", "--no-messages", "-z")
        merge = self.read("merge-tree", *how, ours, theirs, ok=(0, 1))
        tree, *conflicts = (shown(field) for field in merge.fields)
        return MergePreview(None if merge.code else tree, tuple(conflicts))

    def write(
        self,
        *arguments: str,
        ok: Container[int] | None = (0,),
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        limit: float | None = None,
    ) -> Done:
        """Run git on the main checkout."""
        places = {"GIT_DIR": str(self.git_dir), "GIT_WORK_TREE": str(self.root)}
        extra = {**NOBODY, **places, **(env or {})}
        return run(arguments, self.root, extra, limit or self.limit, stdin).expect(ok)

    def read(self, *arguments: str, ok: Container[int] | None = (0,)) -> Done:
        """Run git on the main checkout without any lock of its own."""
        return self.write(*arguments, ok=ok, env={"GIT_OPTIONAL_LOCKS": "0"})

    def _merge_base(self, one: str, other: str) -> str | None:
        return self.read("merge-base", one, other, ok=(0, 1)).text or None

    def _empty_tree(self) -> str:
        return self.read("hash-object", "-t", "tree", "--stdin").text


def _common_dir(path: Path, limit: float) -> Path:
    if not path.is_dir():
        raise BadInput("NOT_A_REPOSITORY", f"{path} is no directory. Make it, then run `git init`.")
    found = run(["rev-parse", "--path-format=absolute", "--git-common-dir"], path, {}, limit)
    if found.code and "not a git repository" in found.err:
        raise BadInput(
            "NOT_A_REPOSITORY",
            f"{path} is in no git repository. Run `git init` there and make a first commit.",
        )
    return Path(found.expect((0,)).text)


def _top(path: Path, git_dir: Path, limit: float) -> Path:
    """The top level of the main checkout, from anywhere in the repository."""
    # Without core.worktree (submodules have it), git takes the current directory as the top.
    from_git_dir = (git_dir.parent, {"GIT_DIR": str(git_dir)})
    if run(["rev-parse", "--is-bare-repository"], *from_git_dir, limit).text == "true":
        raise BadInput("BARE_REPOSITORY", f"{git_dir} is bare. Open a clone with files in it.")
    for where, env in ((path, {}), from_git_dir):
        top = Path(run(["rev-parse", "--show-toplevel"], where, env, limit).text)
        if top.is_absolute() and _git_dir(top, limit) == git_dir:
            return top
    raise BadInput("NOT_A_REPOSITORY", f"Open the main checkout of {git_dir} instead.")


def _git_dir(top: Path, limit: float) -> Path:
    if (top / ".git").is_dir():
        return (top / ".git").resolve()
    return Path(run(["rev-parse", "--absolute-git-dir"], top, {}, limit).text)


def _file_change(row: bytes) -> FileChange:
    added, removed, path = row.split(b"\t", 2)
    if added == b"-":
        return FileChange(shown(path), None, None)
    return FileChange(shown(path), int(added), int(removed))


def _commit(row: bytes) -> Commit:
    commit, at, author, subject = (shown(part) for part in row.split(b"\0", 3))
    seconds = min(max(int(at or 0), 0), _YEAR_9999)
    return Commit(commit, author, seconds * 1_000_000, subject)
