"""Helpers of the tests of git: git as a person and as a worker runs it, and views of a repository."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.given import refused
from tests.process.stage import gone
from workbench.errors import WorkbenchError
from workbench.git import Checkout, CommitIdentity, Repository

ANNA = CommitIdentity("Anna Änderung", "anna@example.org")

HOSTILE_FILES = [
    "with space",
    "with\nnewline",
    "with\ttab",
    "-leading-dash",
    "--option=x",
    "ünïcödé 漢字",
    "quote\"and'backslash\\",
    "*.glob?[x]",
    ":(top)magic",
    "deep/er/-x/ file ",
    " ",
    "{a => b}",
]


def git(place: Path, *arguments: str, stdin: str = "", ok: tuple[int, ...] = (0,), **env: str) -> str:
    """Git as the person runs it."""
    who = {f"GIT_{role}_{what}": "pat" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    done = subprocess.run(
        ["git", *arguments], cwd=place, input=stdin, capture_output=True, text=True, env=os.environ | who | env
    )
    assert done.returncode in ok, done.stderr
    return done.stdout.removesuffix("\n")


def write(place: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        path = place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def commit(place: Path, files: Mapping[str, str], message: str = "change") -> str:
    """Commit files; what is committed in a worktree is imported."""
    write(place, files)
    git(place, "add", "--all")
    git(place, "commit", "--quiet", "--message", message)
    bring(place)
    return git(place, "rev-parse", "HEAD")


MEGABYTE = 1 << 20
ended = gone


def own(path: Path) -> Path:
    """The directory of a worktree's own repository."""
    return path.parent.parent / "repositories" / path.name


def inside(path: Path, **more: Any) -> Checkout:
    """The worktree at a path, from inside."""
    return Checkout(path, own(path), **more)


def add(repo: Repository, path: Path, branch: str | None, start: str = "main") -> str:
    """Make a worktree, with the person's filters."""
    made = repo.add_worktree(path, own(path), branch, start)
    if names := repo.filters():
        inside(path).apply_filters(names)
    return made


def remove(repo: Repository, path: Path) -> None:
    """Remove a worktree."""
    repo.remove_worktree(path, own(path))


def bring(place: Path) -> str | None:
    """Import the branch of a worktree of the project above it."""
    branch = inside(place).head()[0] if own(place).is_dir() else None
    root = place.parents[2]
    return branch and Repository(root, root / ".git").import_branch(inside(place), branch, max_bytes=MEGABYTE)


def nest(directory: Path, levels: int) -> None:
    """Create directories within each other."""
    here = os.open(directory, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir("deep", dir_fd=here)
        below = os.open("deep", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)


def script(path: Path, body: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


class CommandLog:
    """A `git` for PATH that notes each command; `commands` are those since it was asked last."""

    def __init__(self, folder: Path) -> None:
        self._log = folder / "commands"
        real = shutil.which("git")
        self.folder = script(folder / "git", f'echo "$@" >> {self._log}; exec {real} "$@"').parent

    def commands(self) -> list[str]:
        """Their names, sorted."""
        found = self._log.read_text().splitlines() if self._log.exists() else []
        self._log.write_text("")
        options = re.compile(r"^(--no-pager|-[cC] \S+|--git-dir=\S+|--work-tree=\S+|\s)*")
        return sorted(options.sub("", line).partition(" ")[0] for line in found)


@dataclass(frozen=True)
class Picture:
    """The visible state of a repository; equal pictures mean that nothing changed."""

    refs: str
    status: str
    files: Mapping[str, bytes]
    worktrees: list[str]

    @classmethod
    def of(cls, root: Path) -> Picture:
        files = {
            str(path.relative_to(root)): path.read_bytes()
            for path in root.rglob("*")
            if path.is_file() and not {".git", ".aiswarm"} & set(path.relative_to(root).parts)
        }
        status = ("status", "--porcelain=v2", "--branch", "--ignored", "--", ".", ":!.aiswarm")
        return cls(git(root, "for-each-ref"), git(root, *status, GIT_OPTIONAL_LOCKS="0"), files, records(root))


def untouched(root: Path, code: str, function: Callable[..., object], *arguments: Any, **named: Any) -> WorkbenchError:
    """The error of a code that a function ends with; what a person can see of a repository stays as it is."""
    before = Picture.of(root)
    error = refused(code, function, *arguments, **named)
    assert Picture.of(root) == before
    return error


def records(root: Path) -> list[str]:
    """The worktrees git knows of."""
    return sorted(path.name for path in (root / ".git" / "worktrees").glob("*"))


def filtering(root: Path, command: str) -> None:
    """Commit a file with a filter, and make that filter required; nothing is checked out anew."""
    commit(root, {".gitattributes": "*.f filter=f\n", "a.f": "a\n"})
    git(root, "config", "filter.f.clean", "cat")
    git(root, "config", "filter.f.smudge", command)
    git(root, "config", "filter.f.required", "true")


def log(root: Path, branch: str = "main") -> str:
    return git(root, "log", "--encoding=UTF-8", "--format=%s|%an <%ae>|%cn <%ce>", "--max-count=1", branch)


def racing(root: Path, work: Path, target: str, command: str) -> None:
    """Make `command` run in the middle of the next merge into `target`, by a merge driver."""
    git(root, "config", "merge.race.driver", f"({command}) >/dev/null 2>&1; exit 0")
    git(root, "checkout", "--quiet", target)
    commit(root, {".gitattributes": "shared merge=race\n", "shared": "ours\n"})
    commit(work, {"shared": "theirs\n"})
