"""B19: which of 20 worktrees would conflict, with each other and with their target, beside git asked pair by pair."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import combinations
from pathlib import Path

from tests.bench.project import scratch
from tests.bench.rows import Row, Samples, take_turns, within
from workbench.git import Repository

WORKTREES = 20
FILES = 1_000
HISTORY = 200
"""Commits before the worktrees, and as many again on the target afterwards."""
CHANGED = 10
"""Files that each worktree changes; a neighbour changes one of them too."""

Pair = tuple[str, str]


def text(number: int, changed: str = "") -> bytes:
    """A file of 60 lines."""
    return "".join(f"{number} {line} {changed if line == number % 60 else ''}\n" for line in range(60)).encode()


def history(files: int) -> bytes:
    """A stream for `git fast-import`: main, and the branches w0 … w19 from the middle of it."""
    stream: list[bytes] = []

    def commit(branch: str, start: str, contents: Mapping[int, bytes]) -> None:
        stream.append(f"commit refs/heads/{branch}\ncommitter b <b> {len(stream)} +0000\ndata 0\n{start}".encode())
        for number, content in contents.items():
            stream.append(f"M 100644 inline d{number % 30}/f{number}\ndata {len(content)}\n".encode() + content + b"\n")

    commit("main", "", {number: text(number) for number in range(files)})
    for number in range(HISTORY):
        commit("main", "", {number % files: text(number % files, f"main {number}")})
    for worktree in range(WORKTREES):
        mine = [(files // 2 + worktree * (CHANGED - 1) + step) % files for step in range(CHANGED)]
        commit(f"w{worktree}", "from refs/heads/main\n", {n: text(n, f"worktree {worktree}") for n in mine})
    for number in range(HISTORY):
        commit("main", "", {number % (files // 4): text(number % (files // 4), f"later {number}")})
    return b"".join(stream)


def repository(root: Path, files: int) -> tuple[Repository, list[Pair]]:
    """A repository, and the pairs to ask about, by their commits."""
    subprocess.run(["git", "init", "--quiet", "--initial-branch=main", str(root)], check=True)
    subprocess.run(["git", "fast-import", "--quiet"], cwd=root, input=history(files), check=True)
    subprocess.run(["git", "reset", "--quiet", "--hard"], cwd=root, check=True)
    repo = Repository.open(root)
    commits = [str(repo.resolve(name)) for name in ("main", *(f"w{number}" for number in range(WORKTREES)))]
    return repo, list(combinations(commits, 2))


def timed(ask: Callable[[], Sequence[bool]], conflicts: int) -> float:
    """Milliseconds that an answer takes, which must be the right one."""
    started = time.perf_counter()
    answer = ask()
    took = (time.perf_counter() - started) * 1e3
    assert sum(answer) == conflicts, f"{sum(answer)} conflicts instead of {conflicts}"
    return took


def ours(repo: Repository, pairs: Sequence[Pair]) -> list[bool]:
    """Which pairs are in conflict."""
    return [preview.tree is None for preview in repo.predict_merges(pairs)]


def one_by_one(repo: Repository, pairs: Sequence[Pair]) -> list[bool]:
    """Predict the merges with one process for each pair."""
    how = ["git", "merge-tree", "--write-tree", "--name-only", "--no-messages", "-z"]
    quiet = {"cwd": repo.root, "stdout": subprocess.DEVNULL, "env": os.environ}
    return [subprocess.run([*how, *pair], check=False, **quiet).returncode == 1 for pair in pairs]  # type: ignore[call-overload]


def run(rounds: int, quick: bool) -> Mapping[str, Samples]:
    """Milliseconds until all pairs are told."""
    with scratch() as directory:
        repo, pairs = repository(directory / "repository", FILES // (5 if quick else 1))
        conflicts = sum(one_by_one(repo, pairs))
        took = take_turns(
            rounds,
            ours=partial(timed, partial(ours, repo, pairs), conflicts),
            peer=partial(timed, partial(one_by_one, repo, pairs), conflicts),
        )
        note = f"{len(pairs)} pairs, {conflicts} in conflict; {FILES:,} files, {2 * HISTORY} commits"
    return {"": Samples(took["ours"], took["peer"], "ms", note=note)}


ROW = Row(
    "B19",
    f"which of {WORKTREES} worktrees would conflict with each other or their target",
    "`git merge-tree` for one pair after the other",
    {"": within(2_000, "ms")},
    run,
)
