"""Lists commits: those of the user's repository, and those that changed one directory, with its files at each."""

from __future__ import annotations

import os
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from workbench.errors import NotFound
from workbench.git.plumbing import Plumbing
from workbench.git.run import Bound, GitResult, displayed, run

SHAPE = ("--no-commit-header", "--encoding=UTF-8", "--format=%H%x00%at%x00%an%x00%s")
"""Options that make `rev-list` write what `parse_commits` reads."""
LIMIT = 20.0
"""Seconds that a git command may take."""
LARGEST_FILE = 1 << 20
LARGEST_COMMIT = 4 << 20
LARGEST_OUTPUT = 128 << 20
"""Bytes that are read of a file, of the files of a commit, and of all commits together."""
_OFFLINE = {"GIT_ALLOW_PROTOCOL": "", "GIT_NO_LAZY_FETCH": "1", "GIT_OPTIONAL_LOCKS": "0"}
_OBJECT_ID = re.compile(r"[0-9a-f]{4,64}")
_YEAR_9999 = 253_402_300_799


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit; `at_us` is the time its author claims, in microseconds since the epoch."""

    id: str
    author: str
    at_us: int
    subject: str


def parse_commits(result: GitResult) -> list[Commit]:
    """The commits that `rev-list` has written with `SHAPE`, in its order."""
    return [_commit(row) for row in result.out.split(b"\n") if row]


def count_since(repository: Plumbing, head: str, commits: Iterable[str]) -> dict[str, int]:
    """How many commits `head` has beyond each of `commits`; commits that do not exist are left out.

    Three git commands, however many `commits` there are.
    """
    names = list(dict.fromkeys(commits))
    request = "".join(f"{name}^{{commit}}\n" for name in names).encode()
    kinds = repository.read("cat-file", "--batch-check=%(objecttype)", stdin=request).text.splitlines() if names else []
    existing = [name for name, kind in zip(names, kinds, strict=True) if kind == "commit"]
    if not existing:
        return {}
    shared = repository.read("merge-base", "--octopus", head, *existing, ok=(0, 1)).text
    excluded = ("--not", shared) if shared else ()
    rows = repository.read("rev-list", "--topo-order", "--parents", head, *existing, *excluded).text.splitlines()
    counts = _count_reached([head, *existing], map(str.split, rows))
    return {
        name: sum(count for bits, count in counts.items() if bits & 1 and not bits & bit)
        for name, bit in _bits(existing, 1)
    }


def _bits(names: Sequence[str], first: int = 0) -> Iterator[tuple[str, int]]:
    return ((name, 1 << at) for at, name in enumerate(names, first))


def _count_reached(tips: Sequence[str], rows: Iterable[Sequence[str]]) -> Counter[int]:
    """Count commits by the set of tips that reach them; in a set, the first tip is bit 0.

    Args:
        rows: commits with their parents, each before all of its parents.
    """
    bits: defaultdict[str, int] = defaultdict(int)
    for tip, bit in _bits(tips):
        bits[tip] |= bit
    counts: Counter[int] = Counter()
    for commit, *parents in rows:
        for parent in parents:
            bits[parent] |= bits[commit]
        counts[bits.pop(commit)] += 1
    return counts


@dataclass(frozen=True, slots=True)
class DirectoryHistory:
    """The history of a directory, on the branch that is checked out around it. Every method blocks.

    The repository may be any, not only the project's: nothing is fetched, and no filter runs.

    Args:
        folder: its path below `top`, the top level of the checkout; empty: `top` itself.
    """

    top: Path
    git_dir: Path
    folder: str

    @classmethod
    def of(cls, directory: Path) -> DirectoryHistory | None:
        """The history of a directory, by its real path; None if it is in no checkout of a repository with a commit.

        The directory need not exist any more.

        Raises:
            Unavailable: ``GIT_FAILED``, ``GIT_TIMEOUT``, ``GIT_MISSING``.
        """
        place = next(path for path in (directory, *directory.parents) if path.is_dir())
        result = run(["rev-parse", "--show-toplevel", "--absolute-git-dir"], place, _OFFLINE, LIMIT)
        if result.code and ("not a git repository" in result.err or "must be run in a work tree" in result.err):
            return None
        top, *more = map(Path, result.expect((0,)).text.split("\n"))
        if len(more) != 1:  # a path that contains a line break
            return None
        folder = directory.relative_to(top).as_posix()
        history = cls(top, more[0], "" if folder == "." else folder)
        return history if history._parse("HEAD") else None

    def last_commits(self, limit: int) -> list[Commit]:
        """The last commits that changed the directory, newest first."""
        options = (f"--max-count={max(limit, 0)}", *SHAPE)
        return parse_commits(self._git("rev-list", *options, "HEAD", "--", f":(top,literal){self.folder}"))

    def find_commit(self, object_id: str) -> str:
        """The commit with an object id, which may be abbreviated; or that is checked out (`HEAD`).

        Raises:
            NotFound: ``VERSION_NOT_FOUND``.
        """
        is_safe = object_id == "HEAD" or _OBJECT_ID.fullmatch(object_id)
        if not is_safe or not (commit := self._parse(object_id)):
            raise NotFound(
                "VERSION_NOT_FOUND", f"There is no commit {object_id[:80]!r} around {self.folder or self.top}."
            )
        return commit

    def contents(self, ids: Sequence[str], wanted: Callable[[str], bool]) -> list[dict[str, bytes]]:
        """The files of the directory in each commit, by path; none if it is not there, is too large, or lacks objects.

        Args:
            ids: full object ids of commits.
            wanted: whether to read a file, by its path below the directory.
        """
        blobs_by_commit = [self._blobs(commit, wanted) for commit in ids]
        blobs_read = self._read({blob for blobs in blobs_by_commit for blob in blobs.values()})
        return [
            {path: blobs_read[blob] for path, blob in blobs.items()} if blobs_read.keys() >= set(blobs.values()) else {}
            for blobs in blobs_by_commit
        ]

    def _blobs(self, commit: str, wanted: Callable[[str], bool]) -> dict[str, str]:
        tree = self._git("ls-tree", "-r", "-l", "-z", "--full-tree", f"{commit}:{self.folder}", ok=(0, 128))
        rows = [os.fsdecode(row).partition("\t") for row in tree.fields]
        regular = {path: head.split()[2:] for head, _, path in rows if head.startswith("100") and wanted(path)}
        sizes = [int(size) if size.isdigit() else LARGEST_COMMIT for _, size in regular.values()]  # BAD: it is missing
        if max(sizes, default=0) > LARGEST_FILE or sum(sizes) > LARGEST_COMMIT:
            return {}
        return {path: blob for path, (blob, _) in regular.items()}

    def _read(self, blobs: Iterable[str]) -> dict[str, bytes]:
        request = "".join(f"{blob}\n" for blob in sorted(blobs)).encode()
        return dict(_entries(self._git("cat-file", "--batch", stdin=request).out)) if request else {}

    def _parse(self, name: str) -> str:
        options = ("--verify", "--quiet", "--end-of-options")
        return self._git("rev-parse", *options, f"{name}^{{commit}}", ok=(0, 1, 128)).text

    def _git(self, *arguments: str, ok: Sequence[int] = (0,), stdin: bytes = b"") -> GitResult:
        places = {"GIT_DIR": str(self.git_dir), "GIT_WORK_TREE": str(self.top)}
        return run(arguments, self.top, _OFFLINE | places, LIMIT, stdin, bound=Bound(LARGEST_OUTPUT)).expect(ok)


def _entries(out: bytes) -> Iterable[tuple[str, bytes]]:
    """Parse the output of `cat-file --batch`; objects that are missing are left out."""
    start = 0
    while start < len(out):
        end = out.index(b"\n", start)
        head, start = out[start:end].decode("ascii").split(), end + 1
        if head[1] != "missing":
            size = int(head[2])
            yield head[0], out[start : start + size]
            start += size + 1


def _commit(row: bytes) -> Commit:
    commit, at, author, subject = (displayed(part) for part in row.split(b"\0", 3))
    seconds = min(max(int(at or 0), 0), _YEAR_9999)
    return Commit(commit, author, seconds * 1_000_000, subject)
