"""B23: what a box adds to the start of a command in a worktree, and to a git command."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from tests.bench.rows import SHORT, Row, Samples, over, take_turns
from workbench.confinement import box_for_worktree
from workbench.confinement.starter import Starter
from workbench.git import Checkout

ANY, GIT = "a command", "git status"


def run(rounds: int, quick: bool) -> Mapping[str, Samples]:
    """Boxed and bare take turns, each as whoever runs this, with all that the system allows."""
    with tempfile.TemporaryDirectory(dir="/tmp") as directory:
        worktree, git_dir, scratch = (Path(directory) / name for name in ("worktree", "repository", "scratch"))
        subprocess.run(["git", "init", "-q", "--separate-git-dir", git_dir, worktree], check=True)
        box = box_for_worktree(worktree=worktree, git_dir=git_dir, objects=(), scratch=scratch)
        environment, times = box.environment(os.environ), rounds if quick else rounds + 5 * SHORT
        any_turns = take_turns(
            times,
            boxed=partial(_time, partial(_run, box.guarded(["true"]), worktree, environment)),
            bare=partial(_time, partial(_run, ["true"], worktree, environment)),
        )
        bare = Checkout(worktree, git_dir, environment=environment)
        with Starter() as starter:
            boxed = replace(bare, wrap=box.guarded, start=starter.started, seen_at=box.inside(worktree))
            boxed.uncommitted()
            git_turns = take_turns(
                times, boxed=partial(_time, boxed.uncommitted), bare=partial(_time, bare.uncommitted)
            )
        return {
            name: Samples(turns["boxed"], turns["bare"], unit="ms")
            for name, turns in ((ANY, any_turns), (GIT, git_turns))
        }


def _run(argv: Sequence[str], cwd: Path, environment: Mapping[str, str]) -> None:
    subprocess.run(argv, cwd=cwd, env=environment, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)


def _time(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1_000


ROW = Row(
    "B23",
    "a command in its box, and git in the box of a worktree as Workbench runs it: from the start to the end",
    "the same command without a box",
    {ANY: over(30, "ms"), GIT: over(8, "ms")},
    run,
)
