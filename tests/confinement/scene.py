"""A person's machine in miniature: home, project, two worktrees, a running supervisor, and attacks of a worker."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.confinement import filtered
from tests.users import NOBODY, SYSTEM_PYTHON
from workbench.confinement import Box, BoxLimits, abilities, box_for_worktree
from workbench.confinement.compiled import LAUNCHER
from workbench.git import Checkout, Repository

SECRET = "what-nobody-else-may-know"

_USERS = {"by whoever runs the tests": None} | ({"by an ordinary user": NOBODY} if os.getuid() == 0 else {})
PEOPLE = [pytest.param((user, frozenset()), id=who) for who, user in _USERS.items()]
"""Who works in a scene, in boxes without namespaces unless a test says otherwise."""
BOXES = PEOPLE + [
    pytest.param((user, abilities().namespaces), id=f"{who} with namespaces")
    for who, user in _USERS.items()
    if abilities().namespaces
]
"""Who works in a scene, and the namespaces of the boxes there."""

_AS_NOBODY = f"""
import __future__, ctypes, os, resource, signal, stat, sys, warnings
sys.argv = sys.argv[3:]  # -I -S
with open(sys.argv[0]) as file:
    launcher = compile(file.read(), sys.argv[0], "exec")
os.setgroups([]), os.setgid({NOBODY}), os.setuid({NOBODY})
exec(launcher)
"""
"""The launcher as an ordinary user: what it imports may lie where only its owner may look."""


@dataclass(frozen=True)
class Scene:
    """`root` holds it all; `user` is who works, None being who runs the tests; `namespaces` are those of its boxes.

    `system` is that of `filtered` on which its boxes are started; empty: this one.
    """

    root: Path
    user: int | None
    namespaces: frozenset[str] = frozenset()
    system: str = ""

    @property
    def home(self) -> Path:
        return self.root / "home"

    @property
    def project(self) -> Path:
        return self.root / "project"

    @property
    def state(self) -> Path:
        return self.project / ".aiswarm"

    @property
    def worktree(self) -> Path:
        return self.state / "worktrees" / "a"

    @property
    def own(self) -> Path:
        return self.state / "repositories" / "a"

    @property
    def scratch(self) -> Path:
        return self.state / "scratch" / "a"

    @property
    def marker(self) -> Path:
        """The file that appears if a worker's code runs outside its box."""
        return self.root / "marker"

    @property
    def repository(self) -> Repository:
        return Repository(self.project, self.project / ".git")

    @property
    def box(self) -> Box:
        return box_for_worktree(
            worktree=self.worktree,
            git_dir=self.own,
            objects=self.repository.object_directories(),
            scratch=self.scratch,
            project=self.project,
            namespaces=self.namespaces,
        )

    @property
    def checkout(self) -> Checkout:
        seen_at = self.box.inside(self.worktree)
        return Checkout(self.worktree, self.own, self.wrap, self.environment, limit=5.0, seen_at=seen_at)

    @property
    def environment(self) -> dict[str, str]:
        base = {"PATH": os.defpath, "LANG": "C.UTF-8"}
        # Not the programs of the tests' interpreter: an ordinary user may not be able to reach them.
        path = {} if self.user is None else {"PATH": os.defpath}
        above = os.path.relpath(self.root, self.box.inside(self.worktree))
        names = {
            "UP": above,
            "P": self.project,
            "H": self.home,
            "MARK": self.marker,
            "ROOT": self.root,
            "PYTHON": SYSTEM_PYTHON,
        }
        who = {f"GIT_{role}_{what}": "worker" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        return self.box.environment(base) | path | {name: str(value) for name, value in names.items()} | who

    def wrap(self, command: Sequence[str], box: Box | None = None, limits: BoxLimits | None = None) -> list[str]:
        """The command in its box, by whoever works here."""
        return self.by_the_worker((box or self.box).argv(command, limits))

    def guard(self, command: Sequence[str]) -> list[str]:
        """The command in its box, by whoever works here; nothing that it starts outlives it."""
        return self.by_the_worker(self.box.guarded(command))

    def by_the_worker(self, boxed: list[str]) -> list[str]:
        """A boxed command, by whoever works here."""
        if self.user is not None:
            boxed = [sys.executable, "-I", "-c", _AS_NOBODY, "-I", "-S", str(LAUNCHER), *boxed[4:]]
        return [sys.executable, "-I", filtered.__file__, self.system, *boxed] if self.system else boxed

    def work(self, script: str, box: Box | None = None, **more: str) -> subprocess.CompletedProcess[str]:
        """Run a shell script as the worker does, in its worktree."""
        return self.run(["/bin/sh", "-c", script], box, **more)

    def tried(self, script: str, **more: str) -> str:
        """The output of an attack that has run to its end."""
        done = self.work(f"{script}\necho the end", **more)
        assert done.stdout.endswith("the end\n"), done.stdout
        return done.stdout

    def run(self, command: Sequence[str], box: Box | None = None, **more: str) -> subprocess.CompletedProcess[str]:
        """Run a command as the worker does, in its worktree."""
        return subprocess.run(
            self.wrap(command, box),
            cwd=self.worktree,
            env=self.environment | more,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
        )

    def started(self, command: Sequence[str], box: Box | None = None, cwd: Path | None = None) -> subprocess.Popen[str]:
        """Start a command as the worker does, and speak to it."""
        return subprocess.Popen(
            self.wrap(command, box),
            cwd=cwd or self.worktree,
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def outside(self) -> dict[str, str]:
        """All that is not the worker's: what each path holds, and how it may be used."""
        mine = (self.worktree, self.own, self.scratch)
        found = (path for path in sorted(self.root.rglob("*")) if not any(path.is_relative_to(m) for m in mine))
        return {str(path): _print(path) for path in found}

    def hand_over(self) -> None:
        """Give everything to whoever works here."""
        for path in (self.root, *self.root.rglob("*")):
            os.chown(path, self.user or os.getuid(), -1, follow_symlinks=False)


def make(root: Path, user: int | None) -> Scene:
    """A project with its secrets, two worktrees whose names begin alike, and a home."""
    scene = Scene(root, user)
    for directory in (scene.home / ".ssh", scene.home / ".aws", scene.project, scene.scratch):
        directory.mkdir(parents=True)
    (scene.home / ".ssh" / "id_ed25519").write_text(SECRET)
    (scene.home / ".aws" / "credentials").write_text(SECRET)
    (scene.project / "shared.txt").write_text("shared\n")
    (scene.project / ".gitignore").write_text(".aiswarm/\n")
    (scene.project / "untracked.txt").write_text(SECRET)
    for arguments in (
        ["init", "-q", "-b", "main"],
        ["config", "remote.origin.url", f"https://me:{SECRET}@localhost/x.git"],
        ["config", "user.name", "Person"],
        ["config", "user.email", "person@localhost"],
        ["add", "shared.txt", ".gitignore"],
        ["commit", "-q", "-m", "First"],
    ):
        subprocess.run(["git", *arguments], cwd=scene.project, check=True)
    for name in ("a", "a-evil"):
        scene.repository.add_worktree(
            scene.state / "worktrees" / name, scene.state / "repositories" / name, f"wb/{name}/main", "main"
        )
    (scene.state / "worktrees" / "a-evil" / "mine.txt").write_text(SECRET)
    (scene.state / "server.json").write_text(json.dumps({"operator_token": SECRET}))
    for name in ("coordination.db", "coordination.db-wal"):
        (scene.state / name).write_text(SECRET)
    (scene.state / "profiles").mkdir()
    scene.hand_over()
    return scene


def _print(path: Path) -> str:
    state = path.lstat()
    how = f"{stat.filemode(state.st_mode)} {state.st_uid}"
    if stat.S_ISREG(state.st_mode):
        return f"{how} {hashlib.sha256(path.read_bytes()).hexdigest()}"
    return f"{how} {os.readlink(path)}" if stat.S_ISLNK(state.st_mode) else how
