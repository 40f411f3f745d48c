"""Git inside a worktree, confined to what its worker may do."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from secrets import token_hex
from typing import BinaryIO

from workbench.errors import Conflict, Unavailable
from workbench.git import clones, diff, notebooks, predict, submodules, unverified
from workbench.git.diff import FileDiff
from workbench.git.names import is_object_id
from workbench.git.run import (
    NOBODY,
    Bound,
    CommitIdentity,
    GitResult,
    Start,
    Wrap,
    as_message,
    displayed,
    run,
    start_alone,
)

_COMMIT = ("--quiet", "--no-verify", "--allow-empty-message", "--cleanup=whitespace", "--file=-")
_ABORT = (("rebase", "--abort"), ("am", "--abort"), ("cherry-pick", "--quit"))
_MERGE = ("--quiet", "--no-stat", "--no-verify", "--no-autostash", "--no-overwrite-ignore", "--ff")
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_-]+")
_BUSY = ("MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "REBASE_HEAD")
_DEEPEST = 20
"""How many levels of repositories in repositories are looked into."""
_NO_FILE = b".workbench-no-file"
_WORKBENCH = CommitIdentity("Workbench", "workbench@localhost")
_MAX_OUTPUT = 64 << 20
"""How many bytes of output are accepted from a command in a worktree."""


@dataclass(frozen=True, slots=True)
class Checkout:
    """A worktree at `path` with its own repository `git_dir`, both controlled by a worker.

    So every git command goes through `wrap`, which confines it to what the worker may do anyway, and its output is not
    trusted; `start` starts it. `environment` holds its variables, besides those of git (None: those of this process);
    `limit` is in seconds. `seen_at` is the path of the worktree in its box (None: the same), and `told` changes paths
    there in messages to those here.
    """

    path: Path
    git_dir: Path
    wrap: Wrap = list
    environment: Mapping[str, str] | None = None
    limit: float = 600.0
    seen_at: Path | None = None
    told: Callable[[str], str] = str
    start: Start = start_alone

    def head(self) -> tuple[str | None, str | None]:
        """The branch (None: detached HEAD) and the commit (None: no commit yet)."""
        full = self._git("symbolic-ref", "--quiet", "HEAD", ok=(0, 1)).text
        branch = full.removeprefix("refs/heads/") if full.startswith("refs/heads/") else None
        return branch, self.commit_of("HEAD")

    def uncommitted(self) -> list[str]:
        """Uncommitted files: changed, staged or new, but not ignored."""
        options = ("--porcelain=v1", "-z", "--no-renames", "--untracked-files=normal", "--ignore-submodules=none")
        return [displayed(row[3:]) for row in self._git("status", *options).fields]

    def nested(self) -> list[str]:
        """Repositories created inside the worktree whose files are in no commit; submodules are left out."""
        return [displayed(os.fsencode(path)) for path in self._find_nested({})]

    def commit_all(self, message: str, author: CommitIdentity) -> str | None:
        """Commit everything but ignored files; return the commit, or None if nothing has changed.

        Files of a repository that was made inside the worktree are committed as files; its history is not.
        An unfinished merge is concluded, even with conflict markers in its files. What submodules have is committed in
        them first.
        """
        self._unlock()
        for _, inner in self.submodules():
            inner.commit_all(message, author)
        self._open_nested({})
        then, text = (("commit", *_COMMIT), ("rev-parse", "HEAD^{commit}")), as_message(message)
        result = self._git("add", "--all", then=then, ok=(0, 1), stdin=text, env=author.environment())
        if result.code == 0:
            return result.text if is_object_id(result.text) else None
        if self._has_staged() or self._has_uncommitted() or self._has("MERGE_HEAD"):
            raise result.failure()
        return None

    def discard_changes(self) -> None:
        """Return to the last commit.

        Changes, untracked files and unfinished merges and rebases are discarded; ignored files stay.
        """
        self._unlock()
        for abort in _ABORT:
            self._git(*abort, ok=None)
        self._git("reset", "--hard", "--quiet")
        self._git("clean", "-ffd", "--quiet")
        self.return_submodules()

    def apply_filters(self, names: Sequence[str]) -> None:
        """Write the files to which filters apply anew, through the filters of these names.

        If a filter fails, all files are written as they are stored in the repository, and the filters are disabled in
        this worktree. Call it on a new worktree: changes of the files are lost.

        Raises:
            Unavailable: ``GIT_FAILED``, ``GIT_TIMEOUT``: a filter failed.
        """
        rewrite, patterns = ("read-tree", "--reset", "-u", "--no-recurse-submodules", "HEAD"), _filter_patterns(names)
        try:
            if self._git("ls-files", "-z", "--", *patterns).out:  # else every file would be looked at once more
                self._git("rm", "-r", "-f", "--quiet", "--ignore-unmatch", "--", *patterns, then=[rewrite])
        except Unavailable:
            self._unlock()
            self.disable_filters(names)
            self._git(*rewrite)
            raise

    def pointers(self) -> list[str]:
        """The files of Git LFS that are only pointers here, as it says itself; none if it cannot run."""
        rows = self._git("lfs", "ls-files", ok=None)
        lines = () if rows.code else rows.out.decode("utf-8", "backslashreplace").splitlines()
        return [line.partition(" - ")[2] for line in lines if re.match(r"[0-9a-f]+ - ", line)]

    def disable_filters(self, names: Sequence[str]) -> None:
        """Disable filters in this worktree."""
        if commands := [("config", "--replace-all", key, value) for key, value in clones.disabled(names).items()]:
            self._git(*commands[0], then=commands[1:])

    def attach(self, branch: str) -> None:
        """Switch to `branch` at the current commit, so that it has the commits made on another branch or on none.

        Raises:
            Conflict: ``WORKTREE_ELSEWHERE``: `branch` has commits that the present one does not have.
        """
        if unverified.head(self.git_dir) == branch:
            return
        current, commit = self.head()
        tip = self.commit_of(f"refs/heads/{branch}")
        if current == branch or commit is None:
            return
        if tip is not None and self._git("merge-base", "--is-ancestor", tip, commit, ok=(0, 1)).code:
            where = f"on {current!r}" if current else "on no branch"
            text = f"The worktree is {where}, whose commits do not build on those of {branch}. Merge the two."
            raise Conflict("WORKTREE_ELSEWHERE", text, branch=current)
        self._git("update-ref", "--no-deref", f"refs/heads/{branch}", commit)
        self._git("symbolic-ref", "HEAD", f"refs/heads/{branch}")

    def return_to(self, branch: str, commit: str) -> None:
        """Switch to `branch` at `commit` and discard all later changes; ignored files and other branches stay."""
        self._unlock()
        for abort in _ABORT:
            self._git(*abort, ok=None)
        self._git("symbolic-ref", "HEAD", f"refs/heads/{branch}")
        self._git("reset", "--hard", "--quiet", commit)
        self._git("clean", "-ffd", "--quiet")
        self.return_submodules()

    def switch_to(self, commit: str) -> bool:
        """Switch to a commit, on no branch, and discard all changes; False if git cannot write its files."""
        self._unlock()
        for abort in _ABORT:
            self._git(*abort, ok=None)
        if self._git("checkout", "--quiet", "--detach", "--force", "--no-recurse-submodules", commit, ok=None).code:
            return False
        self._git("clean", "-ffd", "--quiet")
        self.return_submodules()
        return True

    def restore(self, commit: str, paths: Sequence[str]) -> None:
        """Give paths, and all that is below them, the content that they have at a commit; what is not there goes."""
        self._git(
            "restore", f"--source={commit}", "--staged", "--worktree", "--", *(f":(literal){path}" for path in paths)
        )

    def return_submodules(self) -> None:
        """Put the submodules whose files are here at the links of the index; changes in them are discarded."""
        for commit, inner in self.submodules():
            inner.switch_to(commit)

    def submodules(self) -> Iterator[tuple[str, Checkout]]:
        """The submodules whose files are here and whose repositories are in that of this worktree, with their links."""
        if not os.path.lexists(self.git_dir / submodules.MODULES):
            return
        listed = submodules.names(self._git, "--file", submodules.LIST)
        for row in self._git("ls-files", "-z", "--stage").fields if listed else ():
            facts, _, path = os.fsdecode(row).partition("\t")
            mode, commit, stage = facts.split(" ")
            if mode != "160000" or path not in listed or stage not in ("0", "2"):  # of conflicts, that of this side
                continue
            if os.path.lexists(self.path / path / ".git") and (inner := self.submodule(listed[path], path)):
                yield commit, inner

    def submodule(self, name: str, path: str) -> Checkout | None:
        """A submodule as a checkout in the same box; None if the repository of this worktree has none of its name.

        Without its files, its path is that of this checkout.
        """
        git_dir = self.git_dir / submodules.MODULES / name
        if not submodules.is_name(name) or not _is_directory(self.git_dir, git_dir):
            return None
        if not _is_directory(self.path, self.path / path):
            return replace(self, git_dir=git_dir)
        seen_at = self.seen_at and self.seen_at / path
        return replace(self, path=self.path / path, git_dir=git_dir, seen_at=seen_at)

    def refer(self, ref: str, commit: str) -> None:
        """Set a reference (a full name) to a commit."""
        self._git("update-ref", "--no-deref", ref, commit)

    def activate_submodule(self, name: str) -> None:
        """Have git treat a submodule as initialised."""
        self._git("config", f"submodule.{name}.active", "true")

    def remove_submodule(self, path: str) -> None:
        """Remove the files of a submodule; its repository stays, and git sees no change."""
        self._git("--literal-pathspecs", "submodule", "--quiet", "deinit", "--force", "--", path)

    def keep_all(self, ref: str, besides: Sequence[str], message: str, author: CommitIdentity) -> str | None:
        """Save the current commit, uncommitted changes and the references `besides` as one commit at `ref`.

        All are full names. The branch, the index and the files stay as they are. None: there is no commit at all.
        """
        self._unlock()
        tips = [self.commit_of("HEAD"), *map(self.commit_of, besides)]
        parents = list(dict.fromkeys(commit for commit in tips if commit))
        if not parents:
            return None
        kept = self._commit_of_all(parents, message, author)
        self.refer(ref, kept)
        return kept

    def _commit_of_all(self, parents: Sequence[str], message: str, author: CommitIdentity) -> str:
        """A commit of all that is here, which nothing refers to; the one parent, if that has all."""
        tree = self._write_tree(message, author)
        if len(parents) == 1 and self._git("rev-parse", f"{parents[0]}^{{tree}}").text == tree:
            return parents[0]
        arguments = [argument for parent in parents for argument in ("-p", parent)]
        return self._git("commit-tree", *arguments, tree, stdin=as_message(message), env=author.environment()).text

    def merge(self, commit: str, message: str, author: CommitIdentity) -> list[str]:
        """Merge a commit of the user's repository; return the files in conflict, in which case nothing has changed.

        Raises:
            Conflict: ``WORKTREE_DIRTY``: uncommitted changes in the way, or an unfinished merge or rebase.
        """
        self._unlock()
        if any(self._has(name) for name in _BUSY):
            raise _dirty_error("has a merge or rebase in progress", [])
        options = ("--write-tree", "--name-only", "--no-messages", "-z")
        preview = self._git("merge-tree", *options, "HEAD", commit, ok=(0, 1), settings=notebooks.driver())
        if not preview.fields:
            raise preview.failure()
        if preview.code:
            return list(predict.paths(preview.fields[1:]))
        text = f"--message={as_message(message).decode()}"
        how = notebooks.driver()
        result = self._git("merge", *_MERGE, text, commit, ok=None, env=author.environment(), settings=how)
        if result.code:
            if self._has("MERGE_HEAD"):
                self._git("merge", "--abort")
            if files := self.uncommitted():
                raise _dirty_error("has uncommitted changes in the way", files)
            raise result.failure()
        return []

    def dirty_diff(self, max_bytes: int) -> list[FileDiff]:
        """The uncommitted changes, including new files; see `Repository.diff`."""
        tree, head = self._write_tree("Uncommitted changes", _WORKBENCH), self.commit_of("HEAD")
        return diff.between(self._ask, head or self._empty_tree(), tree, max_bytes)

    def notebook_versions(self, path: str, old_path: str | None, max_bytes: int) -> tuple[str, str] | None:
        """A notebook as it is committed, and as it is; see `diff.read_versions`."""
        tree, head = self._write_tree("Uncommitted changes", _WORKBENCH), self.commit_of("HEAD")
        return diff.read_versions(self._ask, head or self._empty_tree(), tree, path, old_path, max_bytes)

    def references(self) -> dict[str, str]:
        """The object of each reference in the worktree's own repository, and of a detached HEAD."""
        lines = self._git("for-each-ref", "--format=%(objectname) %(refname)").text.splitlines()
        references = {ref: commit for commit, _, ref in (line.partition(" ") for line in lines)}
        branch, commit = self.head()
        return references | ({"HEAD": commit} if branch is None and commit else {})

    def save_all(self, ref: str, message: str, author: CommitIdentity) -> str | None:
        """Save all uncommitted changes as a commit at `ref` (a full name); return it, or None if there are none.

        The branch, the index and the files stay as they are.
        """
        head = self.commit_of("HEAD")
        commit = self._commit_of_all([head] if head else [], message, author)
        if commit == head:
            return None
        self.refer(ref, commit)
        return commit

    def learn_branches(self, branches: Mapping[str, str]) -> None:
        """Set branches in the worktree's own repository to the user's commits, to compare and merge with.

        The branch that is checked out stays as it is.
        """
        current = unverified.head(self.git_dir) or self.head()[0]
        lines = "".join(f"update refs/heads/{name} {commit}\n" for name, commit in branches.items() if name != current)
        if lines:
            self._git("update-ref", "--no-deref", "--stdin", stdin=os.fsencode(lines))

    def bundle(self, ref: str, known: Sequence[str], into: BinaryIO, max_bytes: int) -> bool:
        """Write the commits that `ref` (a full name) has and `known` does not as a bundle; False if there are none.

        Raises:
            Conflict: ``IMPORT_REFUSED``: it would be longer than `max_bytes`.
        """
        revisions = "".join(f"{line}\n" for line in (ref, *(f"^{commit}" for commit in known)))
        options = ("bundle", "create", "--quiet", "-", "--ignore-missing", "--stdin")
        result = self._git(*options, ok=None, stdin=os.fsencode(revisions), bound=Bound(max_bytes, into))
        if result.cut:
            text = f"{ref.removeprefix('refs/heads/')[:80]!r} has more than {max_bytes:,} bytes of new commits."
            raise Conflict("IMPORT_REFUSED", f"{text} Make it smaller, or have the limit raised.", limit=max_bytes)
        if result.code == 0:
            return True
        if "empty bundle" in result.err or self.commit_of(ref) is None:
            return False
        raise result.failure()

    def commit_of(self, name: str) -> str | None:
        """The commit that a full name refers to here, or None."""
        options = ("--verify", "--quiet", "--end-of-options")
        commit = self._git("rev-parse", *options, f"{name}^{{commit}}", ok=(0, 1, 128)).text
        return commit if is_object_id(commit) else None

    def ask(
        self,
        *arguments: str,
        ok: Container[int] | None = (0,),
        env: Mapping[str, str] | None = None,
        settings: Sequence[str] = (),
    ) -> GitResult:
        """Run git in the worktree; for other modules of this package."""
        return self._git(*arguments, ok=ok, env=env, settings=settings)

    def _empty_tree(self) -> str:
        return self._git("hash-object", "-t", "tree", "--stdin").text

    def _write_tree(self, message: str, author: CommitIdentity) -> str:
        """The tree that committing everything would make, without locking the index, or minding that it is locked.

        It links to new commits of what submodules have, with this message.
        """
        index = self.git_dir / f"workbench-{token_hex(4)}.index"
        env = {"GIT_INDEX_FILE": str(index)}
        try:
            if self.commit_of("HEAD") and not self._begin_with_index(index, env):
                self._git("read-tree", "HEAD", env=env)
            self._open_nested(env)
            self._git("add", "--all", env=env)
            self._link_submodules(message, author, env)
            return self._git("write-tree", env=env).text
        finally:
            with suppress(OSError):
                index.unlink(missing_ok=True)

    def _begin_with_index(self, new: Path, env: Mapping[str, str]) -> bool:
        """Make a new index of the current commit with what the index knows of the files, so that those that have not
        changed are not read again; False if it cannot be used, as when it has git overlook changes."""
        if not unverified.copy_index(self.git_dir, new.name):
            return False
        rows = self._git("ls-files", "-v", "-z", ok=None, env=env)
        sees_all = rows.code == 0 and not rows.cut and all(row.startswith((b"H ", b"M ")) for row in rows.fields)
        reading = ("read-tree", "--reset", "--no-sparse-checkout", "HEAD")
        if sees_all and self._git(*reading, ok=None, env=env).code == 0:
            return True
        new.unlink(missing_ok=True)
        return False

    def _link_submodules(self, message: str, author: CommitIdentity, env: Mapping[str, str]) -> None:
        rows = []
        for _, inner in self.submodules():
            head = inner.commit_of("HEAD")
            path = os.path.relpath(inner.path, self.path)
            rows.append(f"160000 {inner._commit_of_all([head] if head else [], message, author)}\t{path}\0")
        if rows:
            self._git("update-index", "-z", "--index-info", stdin=os.fsencode("".join(rows)), env=env)

    def _open_nested(self, env: Mapping[str, str]) -> None:
        """Have `git add` see the files of repositories that were made inside the worktree. Submodules stay.

        Without this, it adds a link to a commit of theirs instead of the files, or refuses. It looks into every
        directory with a file in the index: this adds a file that does not exist, and `git add` removes it again.
        """
        for _ in range(_DEEPEST):
            if not (paths := self._find_nested(env)):
                return
            blob = self._git("hash-object", "--stdin").out.strip()
            rows = b"".join(b"100644 %s\t%s/%s\0" % (blob, os.fsencode(path), _NO_FILE) for path in paths)
            self._git("update-index", "--add", "--replace", "-z", "--index-info", stdin=rows, env=env)

    def _find_nested(self, env: Mapping[str, str]) -> list[str]:
        """Repositories created inside the worktree that git would not look into."""
        result = self._git("ls-files", "-z", "-t", "--stage", "--others", "--exclude-standard", ok=None, env=env)
        rows = result.expect(None if result.cut else (0,)).fields
        paths = [os.fsdecode(row[2:-1]) for row in rows if row.startswith(b"? ") and row.endswith(b"/")]
        links = [os.fsdecode(row.partition(b"\t")[2]) for row in rows if row.startswith(b"H 160000 ")]
        if links := [path for path in links if os.path.lexists(self.path / path / ".git")]:
            listed = submodules.names(self._git, "--file", submodules.LIST)
            paths += [path for path in links if path not in listed]
        return paths

    def _has_uncommitted(self) -> bool:
        """Whether files remain uncommitted after a commit of everything."""
        rows = self._git("ls-files", "-z", "--others", "--modified", "--exclude-standard").fields
        return any(not row.endswith(b"/") for row in rows)

    def _has_staged(self) -> bool:
        options = ("--cached", "--quiet", "--no-ext-diff", "--ignore-submodules=none")
        return self._git("diff", *options, ok=(0, 1)).code == 1

    def _has(self, name: str) -> bool:
        return self._git("rev-parse", "--quiet", "--verify", name, ok=(0, 1)).code == 0

    def _unlock(self) -> None:
        """Remove the locks that a killed git left behind. Call only while nothing else runs here."""
        with suppress(OSError):  # the repository may have been removed
            for directory, below, files, opened in os.fwalk(self.git_dir, follow_symlinks=False):
                if directory == str(self.git_dir):
                    below[:] = [name for name in below if name == "refs"]
                for name in files:
                    if name.endswith(".lock"):
                        _unlink(name, opened)

    def _ask(self, *arguments: str, bound: Bound = Bound(_MAX_OUTPUT)) -> GitResult:
        return self._git(*arguments, ok=None, bound=bound)

    def _git(
        self,
        *arguments: str,
        ok: Container[int] | None = (0,),
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        bound: Bound = Bound(_MAX_OUTPUT),
        then: Sequence[Sequence[str]] = (),
        settings: Sequence[str] = (),
    ) -> GitResult:
        if not self.path.is_dir():
            raise Unavailable("GIT_FAILED", f"{self.path} does not exist.", stderr="")
        # Without these, git in a worktree that lost its .git would find the main checkout.
        seen_at = self.seen_at or self.path
        places = {"GIT_DIR": str(self.git_dir), "GIT_WORK_TREE": str(seen_at), "GIT_OPTIONAL_LOCKS": "0"}
        variables = {**NOBODY, **places, **(env or {})}
        result = run(
            arguments,
            self.path,
            variables,
            self.limit,
            stdin,
            settings=settings,
            base=self.environment,
            wrap=self.wrap,
            start=self.start,
            bound=bound,
            then=then,
        )
        return replace(result, err=self.told(result.err)).expect(ok)


def _filter_patterns(names: Sequence[str]) -> list[str]:
    """Patterns of the files to which filters may apply: all files, if git has no pattern for a name."""
    if all(_PLAIN_NAME.fullmatch(name) for name in names):
        return [f":(attr:filter={name})" for name in names]
    return ["."]


def _dirty_error(what: str, files: list[str]) -> Conflict:
    return Conflict("WORKTREE_DIRTY", f"The worktree {what}. Commit or discard it first.", files=files)


def _is_directory(top: Path, path: Path) -> bool:
    """Whether a path below a directory is a directory, with no link on the way."""
    return path.is_dir() and path.resolve() == top.resolve() / path.relative_to(top)


def _unlink(name: str, directory: int) -> None:
    with suppress(OSError):
        os.unlink(name, dir_fd=directory)
