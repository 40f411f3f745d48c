"""A worker may do anything to its own files: the person's repository keeps working and runs nothing of it."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.git.parts import ANNA, MEGABYTE, git, inside, nest, own, records, remove, script, write
from workbench.errors import WorkbenchError
from workbench.git import Checkout, Repository, changed

pytestmark = pytest.mark.long

INSIDE = ("env", "INSIDE=yes")


def worker(work: Path, limit: float = 0.3) -> Checkout:
    """A worktree whose git can be told from the person's by a variable."""
    return inside(work, wrap=lambda argv: [*INSIDE, *argv], limit=limit)


@pytest.fixture
def spy(tmp_path: Path) -> Path:
    """A program that tells that it ran, unless a worker's git started it."""
    return script(tmp_path / "spy", f'[ -n "$INSIDE" ] || echo "$@" >> {tmp_path / "ran"}; cat 2>/dev/null; exit 0')


@pytest.fixture(autouse=True)
def _removed(root: Path) -> Iterator[None]:
    """Nobody else has to delete what a worker made to be hard to delete."""
    yield
    for command in (["chmod", "-R", "u+rwx"], ["rm", "-rf"]):
        subprocess.run([*command, str(root)], check=True)


PERSONS = [
    *(("log", "--all", "--oneline"), ("log", "--graph", "--all", "--stat"), ("status", "--porcelain")),
    *(("worktree", "list"), ("worktree", "list", "--porcelain", "-z"), ("worktree", "prune", "--expire=now")),
    *(("branch", "--all", "-vv"), ("pack-refs", "--all", "--prune"), ("gc", "--quiet", "--prune=now")),
    *(("fsck", "--full", "--strict"), ("stash", "list"), ("reflog", "--all"), ("describe", "--all")),
    *(("add", "--all", "--dry-run"), ("clean", "-nd")),
]


def works(root: Path) -> None:
    """Do what the person does all day."""
    for command in PERSONS:
        done = subprocess.run(["git", *command], cwd=root, capture_output=True, text=True, timeout=20)
        assert (done.returncode, "error" in done.stderr, "broken" in done.stderr) == (0, False, False), done
        assert command[0] != "fsck" or "dangling" in done.stdout or not done.stdout


def replaced(path: Path) -> Path:
    """The path of a file that is gone, whatever it was."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


NAMES_A_PROGRAM = [
    *("core.fsmonitor", "core.pager", "core.editor", "core.sshCommand", "core.askPass", "core.gitProxy"),
    *("core.alternateRefsCommand", "diff.external", "diff.x.textconv", "diff.x.command", "sequence.editor"),
    *("filter.x.clean", "filter.x.smudge", "filter.x.process", "merge.x.driver", "credential.helper", "pager.log"),
    *("uploadpack.packObjectsHook", "gpg.program", "alias.bundle", "alias.rev-parse", "interactive.diffFilter"),
    *("trailer.x.command", "sendemail.tocmd", "gc.recentObjectsHook", "remote.origin.uploadpack"),
]


def programs(work: Path, spy: Path) -> None:
    attributes = "* filter=x diff=x merge=x\n"
    write(work, {".gitattributes": attributes, "included": f"[core]\nfsmonitor = {spy}\n", "attributed": "x"})
    for key in NAMES_A_PROGRAM:
        git(work, "config", key, str(spy))
    git(work, "config", "remote.origin.url", f"ext::{spy}")
    git(work, "config", "core.hooksPath", str(spy.parent))
    git(work, "config", "include.path", str(work / "included"))
    for name in ("post-checkout", "reference-transaction", "post-index-change", "pre-commit", "fsmonitor-watchman"):
        script(own(work) / "hooks" / name, str(spy))
        script(spy.parent / name, str(spy))


def nested(work: Path, spy: Path) -> None:
    inner = work / "inner"
    git(work, "init", "--quiet", str(inner))
    git(inner, "config", "core.fsmonitor", str(spy))
    git(inner, "config", "core.hooksPath", str(spy.parent))
    git(inner, "-c", "core.fsmonitor=", "commit", "--quiet", "--allow-empty", "--message", "x")


def persons_git(work: Path) -> Path:
    return work.parents[2] / ".git"


def cut_objects(work: Path, _: Path) -> None:
    for path in (own(work) / "objects").glob("??/*"):
        path.chmod(0o600)
        path.write_bytes(path.read_bytes()[:-3])


def a_directory_in_place_of(path: Path) -> None:
    replaced(path).mkdir()


def packs_that_lie(work: Path, _: Path) -> None:
    pack = own(work) / "objects" / "pack"
    pack.mkdir(exist_ok=True)
    for end in ("pack", "idx", "rev", "bitmap", "keep", "promisor"):
        (pack / f"pack-{'1' * 40}.{end}").write_bytes(b"PACK\0\0\0\2" + b"\xff" * 2000)
    (own(work) / "objects" / "info" / "commit-graph").write_bytes(b"CGPH" + b"\xff" * 2000)


HEAD, CONFIG, REF = Path("HEAD"), Path("config"), Path("refs/heads/work")

RECORD = {"worktrees/w/HEAD", "worktrees/w/commondir"}

DEEDS: dict[str, Callable[[Path, Path], object]] = {
    "settings and hooks that name programs": programs,
    "a repository within": nested,
    "settings that are noise": lambda w, _: (own(w) / CONFIG).write_bytes(b"[core\n\xff\0=\n"),
    "settings that are a pipe": lambda w, _: os.mkfifo(replaced(own(w) / CONFIG)),
    "settings that include themselves": lambda w, _: (own(w) / CONFIG).write_text("[include]\npath = config\n"),
    "settings for a later git": lambda w, _: (own(w) / CONFIG).write_text("[core]\nrepositoryFormatVersion = 9\n"),
    "settings of another work tree": lambda w, _: git(w, "config", "core.worktree", str(w.parents[2])),
    "HEAD that is noise": lambda w, _: (own(w) / HEAD).write_bytes(b"\xff\0" * 999),
    "HEAD that is huge": lambda w, _: os.truncate(own(w) / HEAD, 1 << 36),
    "HEAD that is a pipe": lambda w, _: os.mkfifo(replaced(own(w) / HEAD)),
    "HEAD that is a directory": lambda w, _: a_directory_in_place_of(own(w) / HEAD),
    "HEAD that is a link": lambda w, _: replaced(own(w) / HEAD).symlink_to("/etc/passwd"),
    "HEAD that is gone": lambda w, _: replaced(own(w) / HEAD),
    "HEAD at a branch of the person's": lambda w, _: (own(w) / HEAD).write_text("ref: refs/heads/main\n"),
    "a branch that is noise": lambda w, _: (own(w) / REF).write_bytes(b"\xff\0" * 999),
    "a branch that is huge": lambda w, _: os.truncate(own(w) / REF, 1 << 36),
    "a branch that is a pipe": lambda w, _: os.mkfifo(replaced(own(w) / REF)),
    "a branch that is a link": lambda w, _: replaced(own(w) / REF).symlink_to(persons_git(w) / "refs/heads/main"),
    "a branch that is symbolic": lambda w, _: (own(w) / REF).write_text("ref: refs/heads/main\n"),
    "a branch that is itself": lambda w, _: (own(w) / REF).write_text("ref: refs/heads/work\n"),
    "a branch that is a tree": lambda w, _: (own(w) / REF).write_text(git(w, "rev-parse", "HEAD^{tree}") + "\n"),
    "references in a linked directory": lambda w, _: replaced(own(w) / "refs/heads").symlink_to("/var"),
    "references that are noise": lambda w, _: (own(w) / "packed-refs").write_bytes(b"\xff\n" * 5000),
    "a pipe of references": lambda w, _: os.mkfifo(replaced(own(w) / "packed-refs")),
    "a thousand references": lambda w, _: (own(w) / "packed-refs").write_text(
        "".join(f"{git(w, 'rev-parse', 'HEAD')} refs/heads/x{n}\n" for n in range(3))
    ),
    "objects cut off": cut_objects,
    "packs that lie": packs_that_lie,
    "objects gone": lambda w, _: replaced(own(w) / "objects"),
    "objects that are the person's": lambda w, _: replaced(own(w) / "objects").symlink_to(persons_git(w) / "objects"),
    "objects from nowhere": lambda w, _: (own(w) / "objects/info/alternates").write_text("/nowhere\n/dev\n"),
    "objects from itself": lambda w, _: (own(w) / "objects/info/alternates").write_text(f"{own(w) / 'objects'}\n"),
    "a pipe of alternates": lambda w, _: os.mkfifo(replaced(own(w) / "objects/info/alternates")),
    "an index that is noise": lambda w, _: (own(w) / "index").write_bytes(b"DIRC\xff" * 999),
    "an index that is a pipe": lambda w, _: os.mkfifo(replaced(own(w) / "index")),
    "history cut off": lambda w, _: (own(w) / "shallow").write_text(git(w, "rev-parse", "HEAD") + "\n"),
    "history replaced": lambda w, _: git(w, "replace", "--graft", "HEAD"),
    "the person's git directory in common": lambda w, _: (own(w) / "commondir").write_text(f"{persons_git(w)}\n"),
    "a .git that is gone": lambda w, _: replaced(w / ".git"),
    "a .git that is a pipe": lambda w, _: os.mkfifo(replaced(w / ".git")),
    "a .git that is the person's": lambda w, _: replaced(w / ".git").symlink_to(persons_git(w)),
    "a .git that names the person's": lambda w, _: (w / ".git").write_text(f"gitdir: {persons_git(w)}\n"),
    "a .git that is huge": lambda w, _: os.truncate(w / ".git", 1 << 36),
    "a .git of its own": lambda w, _: (replaced(w / ".git"), git(w, "init", "--quiet")),
    "directories without end": lambda w, _: nest(w, 1_200),
    "closed directories": lambda w, _: [p.chmod(0) for p in (own(w) / "refs", own(w) / "objects", w)],
    "names that are no text": lambda w, _: [
        (w / os.fsdecode(n)).write_text("x") for n in (b"\xff", b"a\nb", b"\x1b[2J")
    ],
    "links in a circle": lambda w, _: [(w / a).symlink_to(b) for a, b in ("ab", "ba", "c.")],
}


LINGERING = ("pipe", "huge", "without end", "settings of", "a repository within")
"""Words in the names of what takes a worker's git longer than others."""


def marked(deed: str) -> Any:
    """A deed; those that linger are not for every day."""
    return pytest.param(deed, marks=[pytest.mark.chaos] if any(word in deed for word in LINGERING) else [])


@pytest.mark.parametrize("deed", [marked(deed) for deed in DEEDS])
def test_the_persons_git_works_and_runs_nothing_of_a_hostile_worker(
    root: Path, repo: Repository, work: Path, tmp_path: Path, spy: Path, deed: str
) -> None:
    write(work, {"more": "more\n"})
    git(work, "add", "--all")
    git(work, "commit", "--quiet", "--message", "more")
    main, before = repo.resolve("main"), repo.protected()
    DEEDS[deed](work, spy)
    ours = worker(work)

    works(root)
    with suppress(WorkbenchError):
        repo.import_branch(ours, "work", max_bytes=MEGABYTE)
    for look in (ours.head, ours.uncommitted, lambda: ours.dirty_diff(MEGABYTE), lambda: ours.commit_all("x", ANNA)):
        with suppress(WorkbenchError):
            look()
    with suppress(WorkbenchError):
        repo.import_branch(ours, "work", max_bytes=MEGABYTE)
    assert repo.resolve("main") == main
    assert set(changed(before, repo.protected())) <= {"refs/heads/work", "worktrees/w/gitdir"} | RECORD
    repo.predict_merges([("main", "work")])
    repo.diff("main", "work", max_bytes=MEGABYTE)
    assert (tmp_path / "ran").exists() is False

    remove(repo, work)
    git(root, "fsck", "--full", "--strict")
    assert (records(root), work.exists(), own(work).exists()) == ([], False, False)
    assert not (tmp_path / "ran").exists()
