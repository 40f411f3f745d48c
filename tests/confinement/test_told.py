"""Paths in the output of a box are told as they are outside, wherever the output is cut."""

from __future__ import annotations

from pathlib import Path

import pytest

from workbench.confinement import Box, Mount
from workbench.confinement.told import Stream, Translation

PROJECT, WORKTREE = Path("/home/me/lab"), Path("/home/me/lab/.aiswarm/worktrees/w")
BOX = Box(
    write=(WORKTREE, PROJECT / ".aiswarm" / "repositories" / "w"),
    read=(PROJECT / ".venv",),
    scratch=Path("/tmp/scratch"),
    worktree=WORKTREE,
    project=PROJECT,
    state=PROJECT / ".aiswarm",
    mounts=(Mount(Path("/data/big"), PROJECT / "data"),),
    namespaces=frozenset({"mount", "net", "ipc"}),
)
TOLD = {
    'File "/home/me/lab/src/a.py", line 3': f'File "{WORKTREE}/src/a.py", line 3',
    "/home/me/lab": f"{WORKTREE}",
    "cd /home/me/lab. Then": f"cd {WORKTREE}. Then",
    "file:///home/me/lab/a,/home/me/lab:/home/me/lab/b": f"file://{WORKTREE}/a,{WORKTREE}:{WORKTREE}/b",
    "cc -I/home/me/lab/include": f"cc -I{WORKTREE}/include",
    "/home/me/lab/.venv/bin/python": "/home/me/lab/.venv/bin/python",
    "/home/me/lab/.venv2/x": f"{WORKTREE}/.venv2/x",
    "/home/me/lab/data/x.csv": "/data/big/x.csv",
    f"{WORKTREE}/src": f"{WORKTREE}/src",
    "/home/me/lab/.aiswarm/repositories/w": "/home/me/lab/.aiswarm/repositories/w",
    "/home/me/lab2 /home/me/lab.txt /home/me/lab-x": "/home/me/lab2 /home/me/lab.txt /home/me/lab-x",
    "/mnt/home/me/lab ../home/me/lab": "/mnt/home/me/lab ../home/me/lab",
    "no path: 50/50, / and ~": "no path: 50/50, / and ~",
}


@pytest.mark.parametrize("inside", TOLD)
def test_a_path_of_the_project_is_told_as_that_of_the_worktree_or_of_what_is_mounted(inside: str) -> None:
    assert BOX.told(inside) == TOLD[inside]
    data = {"made": [{inside: inside}, 3, None]}
    assert BOX.translation.data(data) == {"made": [{TOLD[inside]: TOLD[inside]}, 3, None]}


@pytest.mark.parametrize("size", [1, 2, 3, 7, 13])
def test_an_output_in_pieces_is_told_as_in_one(size: int) -> None:
    text, stream = "\n".join(TOLD), Stream(BOX.translation)
    pieces = [stream.add(text[start : start + size]) for start in range(0, len(text), size)]
    assert "".join([*pieces, stream.flush()]) == "\n".join(TOLD.values())


def test_what_may_become_a_path_is_held_back_until_it_is_asked_for() -> None:
    stream = Stream(BOX.translation)
    assert (stream.add("see /home/me"), stream.add("/lab"), stream.add("/a")) == ("see ", "", f"{WORKTREE}/a")
    assert (stream.add("at 50/"), stream.flush(), stream.add("home/me/lab ")) == ("at 50", "/", "home/me/lab ")


def test_without_a_worktree_at_the_projects_path_nothing_is_changed() -> None:
    assert Translation().text("/home/me/lab/a") == "/home/me/lab/a"
    outside = Box(write=(WORKTREE,), read=(), scratch=Path("/tmp/s"), worktree=WORKTREE, project=PROJECT)
    assert outside.told("/home/me/lab/a") == "/home/me/lab/a"
