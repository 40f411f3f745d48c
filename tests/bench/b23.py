"""B23: what a box adds to the start of a command in a worktree, and to a git command."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from tests.bench.rows import SHORT, Row, Samples, over, take_turns
from workbench.confinement import box_for_worktree

ANY, GIT = "a command", "git status"
COMMANDS = {ANY: ["true"], GIT: ["git", "status", "--porcelain"]}


def run(rounds: int, quick: bool) -> Mapping[str, Samples]:
    """Boxed and bare take turns, each as whoever runs this, with all that the system allows."""
    with tempfile.TemporaryDirectory(dir="/tmp") as directory:
        worktree, git_dir, scratch = (Path(directory) / name for name in ("worktree", "repository", "scratch"))
        subprocess.run(["git", "init", "-q", "--separate-git-dir", git_dir, worktree], check=True)
        box = box_for_worktree(worktree=worktree, git_dir=git_dir, objects=(), scratch=scratch)
        environment, samples = box.environment(os.environ), {}
        for name, words in COMMANDS.items():
            turns = take_turns(
                rounds if quick else rounds + 5 * SHORT,
                boxed=partial(_time, box.guarded(words), worktree, environment),
                bare=partial(_time, words, worktree, environment),
            )
            samples[name] = Samples(turns["boxed"], turns["bare"], unit="ms")
        return samples


def _time(argv: Sequence[str], cwd: Path, environment: Mapping[str, str]) -> float:
    began = time.perf_counter()
    subprocess.run(argv, cwd=cwd, env=environment, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    return (time.perf_counter() - began) * 1_000


ROW = Row(
    "B23",
    "a command in its box, and git in the box of a worktree: from the start to the end",
    "the same command without a box",
    {ANY: over(30, "ms"), GIT: over(8, "ms")},
    run,
)
