"""The user's repository: branches, differences, merges and worktrees."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from workbench.errors import BadInput, NotFound, Unavailable
from workbench.git import (
    bundles,
    clones,
    commits,
    diff,
    imports,
    included,
    integration,
    lfs,
    opening,
    predict,
    protected,
    submodule_files,
    submodules,
    unverified,
    worktrees,
)
from workbench.git.checkout import Checkout
from workbench.git.commits import Commit
from workbench.git.diff import FileDiff
from workbench.git.included import IncludedFile
from workbench.git.integration import Integration
from workbench.git.names import check_branch_name
from workbench.git.plumbing import Plumbing
from workbench.git.predict import MergePreview
from workbench.git.run import PATCH_FREE, Bound, CommitIdentity, GitResult, check_version, displayed, machine_faults
from workbench.system import file_lock


@dataclass(frozen=True, slots=True)
class FileChange:
    """Lines added to and removed from a file; None for a binary file. A rename is two changes."""

    path: str
    added: int | None
    removed: int | None


@dataclass(frozen=True, slots=True)
class FileContent:
    """A file as a branch has it: how many bytes, and whether git takes it for binary."""

    path: str
    bytes: int
    binary: bool


@dataclass(frozen=True, slots=True)
class Size:
    """Commits, changed files, and the bytes that their objects take on the disk."""

    commits: int
    files: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Repository(Plumbing):
    """The user's repository, seen from her checkout: the main one, or a linked worktree.

    `root` is the top level of the checkout and `git_dir` the git directory that all worktrees share. `record` is what a
    linked worktree has for itself, below that; None for the main checkout.
    Limits are in seconds; `checkout_limit` is for commands that write a working tree. A branch is a name under
    ``refs/heads``; a parameter that takes a branch or commit also accepts a commit id, a tag or a remote branch, but
    no revision expression.
    """

    @classmethod
    def open(cls, path: Path, *, limit: float = 60.0, checkout_limit: float = 600.0) -> Repository:
        """The repository that `path` is in, with the checkout that `path` is in.

        Raises:
            BadInput: ``NOT_A_REPOSITORY``, ``BARE_REPOSITORY``, ``NO_COMMITS``.
            Unavailable: ``GIT_MISSING``, ``GIT_TOO_OLD``.
        """
        check_version(limit)
        git_dir = opening.common_dir(path, limit)
        top, record = opening.checkout(path, git_dir, limit)
        repository = cls(top, git_dir, limit, checkout_limit, record)
        if repository.parse("HEAD") is None:
            raise BadInput("NO_COMMITS", f"{repository.root} has no commit yet. Make one with `git commit`.")
        return repository

    @classmethod
    def create(cls, path: Path, object_format: str, *, limit: float = 60.0) -> Repository:
        """The repository at `path` for copies of branches; a new one is on no branch, at a commit without files.

        Raises:
            Unavailable: ``GIT_MISSING``, ``GIT_TOO_OLD``, ``GIT_FAILED``.
        """
        check_version(limit)
        with suppress(BadInput):  # there is none, or one whose first commit was not made
            return cls.open(path, limit=limit)
        opening.create(path, object_format, limit)
        return cls.open(path, limit=limit)

    @staticmethod
    def check_branch_name(name: str) -> None:
        """Refuse a name for a new branch that git or a file system would not accept.

        Raises:
            BadInput: ``BAD_BRANCH_NAME``.
        """
        check_branch_name(name)

    # -- reading

    def branches(self) -> dict[str, str]:
        """The commits of all branches, by name."""
        return {name.removeprefix("refs/heads/"): commit for name, commit in self.references("refs/heads").items()}

    def heads(self, branches: Iterable[str]) -> dict[str, str]:
        """The commits of some branches; those that do not exist are left out.

        One command finds all that have no file of their own. Those that have one are read: this is done all the time.
        """
        files = {name: unverified.branch(self.git_dir, name) for name in sorted(set(branches))}
        names = [name for name, commit in files.items() if commit is None]
        commits = self.references(*(f"refs/heads/{name}" for name in names)) if names else {}
        found = {name: commit or commits.get(f"refs/heads/{name}") for name, commit in files.items()}
        return {name: commit for name, commit in found.items() if commit is not None}

    def is_ancestor(self, commit: str, branch: str) -> bool:
        """Whether `branch` contains `commit`; each may be a branch or a commit. False if one does not exist."""
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

    def count_since(self, head: str, others: Iterable[str]) -> dict[str, int]:
        """How many commits `head` has beyond each of `commits`; commits that do not exist are left out."""
        return commits.count_since(self, head, others)

    def diff_stat(self, target: str, branch: str) -> list[FileChange]:
        """The changes of `branch` since it forked from `target`, by path.

        Raises:
            NotFound: ``BRANCH_NOT_FOUND``.
        """
        ours, theirs = self.commit(target), self.commit(branch)
        base = self.merge_base(ours, theirs) or self.empty_tree()
        rows = self.read("diff-tree", "-r", "--numstat", *PATCH_FREE, base, theirs).fields
        return [_file_change(row) for row in rows]

    def contents(self, target: str, branch: str) -> list[FileContent]:
        """The files that `branch` added or changed since it forked from `target`; links to other commits are left out.

        Raises:
            NotFound: ``BRANCH_NOT_FOUND``.
        """
        ours, theirs = self.commit(target), self.commit(branch)
        base = self.merge_base(ours, theirs) or self.empty_tree()
        shape = ("--raw", "--numstat", "--no-abbrev", "--diff-filter=AMT", *PATCH_FREE)
        fields = self.read("diff-tree", "-r", *shape, base, theirs).fields
        blobs = {path: facts.split(b" ")[3] for facts, path in _pairs(fields)}
        counts = (row.split(b"\t", 2) for row in fields[2 * len(blobs) :])
        binary = {path for added, _, path in counts if added == b"-"}
        sizes = self.read("cat-file", "--batch-check=%(objecttype) %(objectsize)", stdin=b"\n".join(blobs.values()))
        answers = zip(blobs, sizes.text.splitlines(), strict=True)
        return [
            FileContent(displayed(path), int(answer.removeprefix("blob ")), path in binary)
            for path, answer in answers
            if answer.startswith("blob ")
        ]

    def bare_links(self, target: str, branch: str) -> list[str]:
        """The paths that `branch` made links to commits of other repositories since it forked, without a submodule.

        Merging it would lose the files that are there.

        Raises:
            NotFound: ``BRANCH_NOT_FOUND``.
        """
        ours, theirs = self.commit(target), self.commit(branch)
        return submodules.bare_links(self, self.merge_base(ours, theirs) or self.empty_tree(), theirs)

    def has_submodules(self, commit: str) -> bool:
        """Whether a commit (a full id) has submodules."""
        return bool(submodules.at(self, commit))

    def beside_bundles(self, commit: str) -> tuple[list[str], list[str]]:
        """What of a commit (a full id) no bundle has: the patterns of files of Git LFS, and the paths of submodules."""
        return lfs.patterns(self.read, commit), [one.path for one in submodules.at(self, commit)]

    def empty_submodules(self, path: Path, commit: str, because: str | None = None) -> list[str]:
        """The submodules of a commit, at any depth, whose files a worktree at `path` does not have, and why.

        Args:
            because: the reason, if it is known.

        Raises:
            NotFound: ``BRANCH_NOT_FOUND``.
        """
        return list(submodules.empty(self, path, self.commit(commit), because))

    @machine_faults()
    def fill_submodules(self, checkout: Checkout, commit: str, before: str | None = None) -> list[str]:
        """Give a worktree the files of the submodules of `commit`, which it is at, from this repository's modules.

        Nothing is fetched, and no URL is used. Files of a worker's own stay as they are.

        Args:
            before: the commit that the worktree was at: submodules still at its links follow to those of `commit`.

        Returns: what is left out, and why; see `empty_submodules`.
        """
        return list(submodule_files.fill(self, checkout, commit, before))

    def submodule_repositories(self, checkout: Checkout) -> list[tuple[Checkout, Repository | None]]:
        """The repositories of submodules that a worktree's has, at any depth, without their files; and this person's
        repository of each, None if she has none."""
        return [
            (inner, Repository(home.root, home.git_dir, home.limit, home.checkout_limit) if home else None)
            for inner, home in submodule_files.repositories(self, checkout)
        ]

    def commits(self, target: str, branch: str, limit: int) -> list[Commit]:
        """The commits that only `branch` has, newest first, at most `limit`.

        Raises:
            NotFound: ``BRANCH_NOT_FOUND``.
        """
        span = (self.commit(branch), f"^{self.commit(target)}")
        return commits.parse_commits(self.read("rev-list", f"--max-count={max(limit, 0)}", *commits.SHAPE, *span))

    @machine_faults()
    def preview_merge(self, target: str, source: str) -> MergePreview:
        """The result of merging `source` into `target`. Writes objects, but moves no branch.

        Raises:
            NotFound: ``BRANCH_NOT_FOUND``.
        """
        return predict.merge(self, self.commit(target), self.commit(source))

    @machine_faults()
    def trial_merge(self, target: str, source: str) -> str | None:
        """A commit with the result of merging the commit `source` into the commit `target`; None if they conflict.

        It serves to predict what would follow the merge: no branch refers to it.
        """
        return predict.trial_commit(self, target, source)

    @machine_faults()
    def predict_merges(self, pairs: Sequence[tuple[str, str]]) -> list[MergePreview]:
        """The results of merging the second of each pair into the first, in order.

        Like `preview_merge` for each, in one process.

        Raises:
            NotFound: ``BRANCH_NOT_FOUND``.
        """
        return predict.merges(self, pairs)

    def diff(self, target: str, branch: str, *, path: str | None = None, max_bytes: int) -> list[FileDiff]:
        """The changes of `branch` since it forked from `target`, as unified diffs, optionally only below `path`.

        All files are listed, with as many patches, in the same order, as fit into `max_bytes`.

        Raises:
            NotFound: ``BRANCH_NOT_FOUND``.
        """
        ours, theirs = self.commit(target), self.commit(branch)
        base = self.merge_base(ours, theirs) or self.empty_tree()
        return diff.between(self.ask, base, theirs, max_bytes, path)

    def notebook_versions(
        self, target: str, branch: str, path: str, old_path: str | None, max_bytes: int
    ) -> tuple[str, str] | None:
        """A notebook where `branch` forked from `target`, and as it is there; see `diff.read_versions`.

        Raises:
            NotFound: ``BRANCH_NOT_FOUND``.
        """
        ours, theirs = self.commit(target), self.commit(branch)
        base = self.merge_base(ours, theirs) or self.empty_tree()
        return diff.read_versions(self.ask, base, theirs, path, old_path, max_bytes)

    def text_at(self, commit: str, path: str, max_bytes: int) -> str | None:
        """The text of a file at a commit, as `diff` shows it; None if there is none, or it is binary or too large."""
        result = self.ask("cat-file", "blob", f"{commit}:{path}", bound=Bound(max_bytes))
        if result.cut or result.code or b"\0" in result.out:
            return None
        return displayed(result.out)

    def copy_blob(self, commit: str, path: str, into: BinaryIO, max_bytes: int) -> bool:
        """Write a file's content at a commit; False, perhaps after writing a part, if it is missing or larger."""
        result = self.ask("cat-file", "blob", f"{commit}:{path}", bound=Bound(max_bytes, into))
        return not result.cut and not result.code

    def only_in(self, branch: str, *, besides: Sequence[str] = ()) -> int:
        """How many commits would be unreachable without `branch` and the branches `besides`.

        Raises:
            NotFound: ``BRANCH_NOT_FOUND``.
        """
        return bundles.only_in(self, branch, besides)

    def filters(self) -> list[str]:
        """The names of the filters in the user's configuration; see `Checkout.apply_filters`."""
        return clones.filters(self)

    def object_directories(self) -> list[Path]:
        """This repository's object directories: its own first, then those it borrows from, then those of submodules;
        then the stores of Git LFS beside them."""
        places = (self.git_dir, *submodules.homes(self))
        directories = list(dict.fromkeys(path for place in places for path in clones.object_directories(place)))
        return [*directories, *clones.lfs_stores(directories)]

    def unverified_branch(self, git_dir: Path, branch: str) -> str | None:
        """The commit of `branch` according to a worktree's own repository, read without running git.

        It is an unverified hint whether there is something to import. None: unknown; import to find out.
        """
        return unverified.branch(git_dir, branch)

    def protected(self) -> dict[str, str]:
        """A fingerprint of what no worker may change: the state of each path in the git directory and each reference.

        It covers settings, hooks, ``info``, HEAD, alternates, records of worktrees, and all references. Compare two
        with `workbench.git.changed`.
        """
        return protected.fingerprint(self)

    def dirty_files(self, branch: str) -> list[str]:
        """The tracked files with uncommitted changes, if the person's checkout is on `branch`."""
        here = branch in integration.main_branches(self)
        return integration.uncommitted(self) if here else []

    def is_dirty(self) -> bool:
        """Whether tracked files of the person's checkout differ from its last commit."""
        return bool(integration.uncommitted(self))

    def is_untracked(self, file: Path) -> bool:
        """Whether a file is in the person's checkout and git does not track it; False for an impossible name."""
        try:
            path = file.resolve()
            if not path.is_file() or not path.is_relative_to(self.root):
                return False
        except (OSError, RuntimeError):  # too long; a loop of links, before Python 3.13
            return False
        return not self.read("--literal-pathspecs", "ls-files", "-z", "--", str(path.relative_to(self.root))).fields

    def absent(self, commit: str, paths: Sequence[str]) -> list[str]:
        """Those of some paths, relative to the top, at which a commit has nothing."""
        options = ("--literal-pathspecs", "ls-tree", "-z", "--full-tree", "--name-only")
        there = set(map(os.fsdecode, self.read(*options, commit, "--", *paths).fields))
        return [path for path in paths if path not in there]

    def ignored(self) -> list[str]:
        """Ignored paths in the person's checkout: files, and directories that are ignored as a whole."""
        options = ("--others", "--ignored", "--exclude-standard", "--directory", "--no-empty-directory", "-z")
        return [displayed(row).rstrip("/") for row in self.read("ls-files", *options).fields]

    def find_included(self, patterns: Sequence[str], most_bytes: int) -> list[IncludedFile]:
        """The ignored files of the person's checkout that patterns as in ``.gitignore`` select.

        Raises:
            BadInput: ``INCLUDE_REFUSED``, ``INCLUDE_TOO_LARGE``.
        """
        return included.find(self, patterns, most_bytes)

    # -- changing

    @machine_faults()
    def copy_included(self, path: Path, files: Sequence[IncludedFile]) -> list[str]:
        """Copy such files into the worktree at `path`, where it has nothing; the paths of the copies.

        Raises:
            Conflict: ``INCLUDE_IN_THE_WAY``. Unavailable: ``INCLUDE_FAILED``.
        """
        return included.copy(self.root, path, files)

    @contextmanager
    def lock(self, limit: float | None = None) -> Iterator[None]:
        """Keep other processes from creating, importing, integrating or removing worktrees here.

        No method takes the lock itself, and it is not reentrant.

        Args:
            limit: how many seconds to wait for it.

        Raises:
            Unavailable: ``GIT_BUSY``, ``PROJECT_UNWRITABLE``.
        """
        wait = self.limit if limit is None else limit
        with file_lock.held(self.git_dir / "workbench.flock", wait) as held:
            if not held:
                raise Unavailable(
                    "GIT_BUSY", f"Another change to this repository did not end within {wait:g} s. Try again."
                )
            yield

    @machine_faults()
    def add_worktree(self, path: Path, git_dir: Path, branch: str | None, start: str, *, existing: bool = False) -> str:
        """Create the branch `branch` at `start` (a branch or commit), check it out at `path`, and return its commit.

        With `existing`, the branch exists and is checked out where it is; `start` is ignored.

        The worktree gets a repository of its own in `git_dir`, with the same objects, branches and tags. Its files are
        written without the user's filters; see `Checkout.apply_filters`. Neither directory may exist. Without a branch,
        HEAD is detached. After an error, nothing of this call is left behind, and nothing of another call is removed.

        Raises:
            BadInput: ``BAD_BRANCH_NAME``. NotFound: ``BRANCH_NOT_FOUND``.
            Conflict: ``BRANCH_EXISTS``, ``WORKTREE_PATH_TAKEN``; with `existing`, ``TARGET_CHECKED_OUT``.
            Unavailable: ``WORKTREE_PATH_UNUSABLE``.
        """
        return worktrees.add(self, path, git_dir, branch, start, existing)

    @machine_faults()
    def anchor_worktree(self, path: Path, git_dir: Path, ignored: Iterable[str] = ()) -> None:
        """Update the paths in a worktree that an earlier version made, or whose project was moved or copied: to its own
        repository, this repository, and git's record of it here. What a worker wrote there is not trusted.

        Args:
            ignored: paths in the worktree that git ignores from now on.
        """
        worktrees.anchor(self, path, git_dir, ignored)

    @machine_faults()
    def remove_worktree(self, path: Path, git_dir: Path) -> None:
        """Delete the worktree at `path` with all its files, and its own repository; its branch stays.

        Also deletes the remains of one: directories, or git's record of it. Records of other worktrees are not
        pruned. Work that was not imported is lost.

        Raises:
            BadInput: ``NOT_A_WORKTREE``: one of the directories contains the main checkout.
            Unavailable: ``WORKTREE_NOT_REMOVED``.
        """
        worktrees.remove(self, path, git_dir)

    def unlist_worktree(self, path: Path) -> None:
        """Remove git's record of the worktree at `path`, so that git does not list it. Its files stay."""
        worktrees.unlist(self, path)

    @machine_faults()
    def import_branch(self, checkout: Checkout, branch: str, *, max_bytes: int) -> str:
        """Import a branch of a worktree: move the branch of the same name here to its commit, and return the commit.

        The branch may have been rewritten; its old commit stays in the reflog. Git runs in the worktree only through
        its `wrap`, and its output is checked.

        Raises:
            NotFound: ``BRANCH_NOT_FOUND``. Conflict: ``IMPORT_REFUSED`` (too large, or invalid),
                ``TARGET_CHECKED_OUT`` (the branch is checked out elsewhere).
        """
        return imports.branch(self, checkout, branch, max_bytes)

    @machine_faults()
    def import_ref(self, checkout: Checkout, ref: str, *, into: str, max_bytes: int) -> str:
        """Import any reference of the worktree, by its full name, as the reference `into` (a full name) here."""
        return imports.reference(self, checkout, ref, into, max_bytes)

    def return_branch(self, branch: str, commit: str) -> None:
        """Put the branch of a worktree back to one of its earlier commits; its reflog keeps the others.

        Raises:
            Conflict: ``TARGET_CHECKED_OUT``. Unavailable: ``GIT_BUSY``.
        """
        imports.put_back(self, branch, commit)

    def size_of(self, base: str, commit: str) -> Size:
        """How many commits, changed files and bytes on the disk `commit` has beyond `base`."""
        span = (commit, f"^{base}")
        commits = int(self.read("rev-list", "--count", *span).text)
        bytes_ = int(self.read("rev-list", "--disk-usage", "--objects", *span).text)
        files = self.read("diff-tree", "-r", "--name-only", *PATCH_FREE, base, commit).fields
        return Size(commits, len(files), bytes_)

    @machine_faults()
    def write_bundle(self, path: Path, refs: Sequence[str]) -> None:
        """Write a bundle of branches (or other references, by full name) that are about to be deleted.

        It holds the commits that no other reference reaches. Restore it with `git fetch` into this repository or a
        clone of it.

        Raises:
            NotFound: ``BRANCH_NOT_FOUND``. Unavailable: ``BUNDLE_NOT_WRITTEN``.
        """
        bundles.write(self, path, refs)

    @machine_faults()
    def bundle_branch(self, path: Path, branch: str, *, known: Sequence[str]) -> str | None:
        """Write a bundle of a branch, without what the commits `known` reach; its commit, or None if they reach all.

        Args:
            known: full ids; those that are no commits here are left out.

        Raises:
            NotFound: ``BRANCH_NOT_FOUND``. Unavailable: ``BUNDLE_NOT_WRITTEN``.
        """
        return bundles.of_branch(self, path, branch, known)

    @machine_faults()
    def import_bundle(self, path: Path, branch: str, *, max_bytes: int) -> str:
        """Import the objects of a bundle, which is not trusted, without moving any branch; the commit that it offers.

        Every object is checked, as those of worktrees are.

        Args:
            branch: what the bundle is of, for errors.

        Raises:
            Conflict: ``IMPORT_REFUSED``.
        """
        return imports.sent_objects(self, path, branch, max_bytes)

    def delete_branch(self, branch: str, commit: str) -> None:
        """Delete a branch (or another reference, by full name) if it is at `commit`.

        Raises:
            Conflict: ``BRANCH_MOVED``.
        """
        bundles.delete_branch(self, branch, commit)

    @machine_faults()
    def merge_commit(
        self, source: str, target: str, message: str, author: CommitIdentity, *, fast_forward: bool = False
    ) -> str:
        """Make the commit that `integrate` would make, without moving a branch, so that it can be tested first.

        Raises:
            NotFound: ``BRANCH_NOT_FOUND``. Conflict: ``MERGE_CONFLICT``, ``UNRELATED_HISTORIES``.
        """
        return integration.Merge(self, message, author, fast_forward).commit(target, source)

    @machine_faults()
    def integrate(
        self,
        source_commit: str,
        target_branch: str,
        message: str,
        author: CommitIdentity,
        *,
        fast_forward: bool = False,
        merged: str | None = None,
    ) -> Integration:
        """Merge a commit into a branch without touching uncommitted work; an error changes nothing.

        A merge commit is made even if a fast-forward is possible, unless `fast_forward`. If the person's checkout is on
        the branch, its files are updated; untracked and ignored ones stay, and so do edits of files that the merge
        does not change, such as a notebook that runs. With `merged`, from `merge_commit`, the
        branch moves to exactly this commit or not at all.

        Raises:
            NotFound: ``BRANCH_NOT_FOUND``.
            Conflict: ``MERGE_CONFLICT``, ``UNRELATED_HISTORIES``; ``TARGET_DIRTY`` (staged or untracked files or edits
                in the way, or an unfinished merge or rebase); ``TARGET_MOVED`` (the target moved meanwhile, or `merged`
                was not made from its current commit: try again); ``TARGET_CHECKED_OUT`` (in another worktree).
                `details.files` lists the files, if any.
        """
        task = integration.Merge(self, message, author, fast_forward)
        return task.into(target_branch, source_commit, merged)

    def ask(self, *arguments: str, bound: Bound) -> GitResult:
        """Run git without optional locks and accept any exit code; for other modules of this package."""
        return self.write(*arguments, ok=None, env={"GIT_OPTIONAL_LOCKS": "0"}, bound=bound)


def _pairs(fields: Sequence[bytes]) -> Iterator[tuple[bytes, bytes]]:
    """The facts and the path of each change at the beginning of the output of ``--raw -z``."""
    rows = iter(fields)
    for facts in rows:
        if not facts.startswith(b":"):
            return
        yield facts, next(rows)


def _file_change(row: bytes) -> FileChange:
    added, removed, path = row.split(b"\t", 2)
    if added == b"-":
        return FileChange(displayed(path), None, None)
    return FileChange(displayed(path), int(added), int(removed))
