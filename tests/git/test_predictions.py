"""Predictions of merges agree with a real ``git merge`` on generated histories."""

from __future__ import annotations

import os
import random
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.chance import SOAK
from tests.git.parts import ANNA, Picture, commit, git, script
from tests.given import refused
from workbench.git import MergePreview, Repository

pytestmark = pytest.mark.long

IN_ONE = 10
"""Cases that are asked about at once; there are 200, or soaked 1,000."""
SEEDS = [*range(20), *(pytest.param(seed, marks=pytest.mark.chaos) for seed in range(20, 100))]
PATHS = ["a", "b", "d/a", "d/b", "d/e/a", "n", "ü n"]
LINES = [f"line {number}\n" for number in range(12)]


def blob(draw: random.Random, of: str) -> str:
    """A text, or a changed one."""
    lines = of.splitlines(keepends=True) or list(LINES)
    for _ in range(draw.randint(1, 3)):
        at, what = draw.randrange(len(lines) + 1), draw.choice("+-*")
        if what == "+" or not lines:
            lines.insert(at, f"{draw.choice('xyz')}\n")
        elif what == "-":
            lines.pop(min(at, len(lines) - 1))
        else:
            lines[min(at, len(lines) - 1)] = f"{draw.choice('xyz')}\n"
    return "".join(lines)


def change(draw: random.Random, files: dict[str, tuple[str, str]]) -> dict[str, tuple[str, str]]:
    """Files (mode and content by path) after a few changes of all kinds."""
    files = dict(files)
    for _ in range(draw.randint(1, 3)):
        path, other = draw.choice(PATHS), draw.choice(PATHS)
        match draw.choice(["edit", "edit", "edit", "add", "delete", "rename", "mode", "link", "binary", "swap"]):
            case "delete":
                files.pop(path, None)
            case "rename" if path in files:
                files[other] = files.pop(path)
            case "mode" if path in files:
                files[path] = ("100755" if files[path][0] == "100644" else "100644", files[path][1])
            case "link":
                files[path] = ("120000", draw.choice("abc"))
            case "binary":
                files[path] = ("100644", "\0" + draw.choice("xyz"))
            case "swap":
                files = {p: f for p, f in files.items() if not p.startswith(f"{path}/")}
                files[f"{path}/in"] = files.pop(path, ("100644", "in\n"))
            case _:
                files[path] = ("100644", blob(draw, files.get(path, ("", ""))[1]))
    paths = set(files)
    return {path: file for path, file in files.items() if not any(p.startswith(f"{path}/") for p in paths)}


class Stream:
    """Commits for ``git fast-import``, by their marks."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.last = 0

    def commit(self, files: Mapping[str, tuple[str, str]], *parents: int) -> int:
        """Add a commit with all its files."""
        self.last += 1
        head = f"commit refs/heads/c{self.last}\nmark :{self.last}\ncommitter pat <pat> {self.last} +0000\ndata 0\n"
        froms = "".join(f"{'from' if n == 0 else 'merge'} :{mark}\n" for n, mark in enumerate(parents))
        self.parts.append(f"{head}{froms}deleteall\n".encode())
        for path, (mode, text) in files.items():
            data = text.encode()
            self.parts.append(f'M {mode} inline "{path}"\ndata {len(data)}\n'.encode() + data + b"\n")
        return self.last

    def load(self, root: Path) -> None:
        """Write all of it."""
        subprocess.run(["git", "fast-import", "--quiet"], cwd=root, input=b"".join(self.parts), check=True)


def case(draw: random.Random, stream: Stream) -> tuple[int, int]:
    """Two commits to be merged: mostly with one base, some criss-cross, some with none or one in the other."""
    start = {path: ("100644", blob(draw, "")) for path in draw.sample(PATHS, 4)}
    start = {path: file for path, file in start.items() if not any(p.startswith(f"{path}/") for p in start)}
    base = stream.commit(start)
    one, other = change(draw, start), change(draw, start)
    ours, theirs = stream.commit(one, base), stream.commit(other, base)
    match draw.randrange(12):
        case 0:
            return ours, stream.commit(other)
        case 1:
            return base, theirs
        case 2 | 3:
            both = one | other
            both = {path: file for path, file in both.items() if not any(p.startswith(f"{path}/") for p in both)}
            ours, theirs = (
                stream.commit(change(draw, both), ours, theirs),
                stream.commit(change(draw, both), theirs, ours),
            )
        case 4:
            theirs = stream.commit(change(draw, other), theirs)
    return ours, theirs


MUDDLED = "a tree with conflict markers that git takes for merged"
"""In rare criss-cross merges of renames: git names the sides in them as it was called, so the trees differ."""


def agree(predicted: MergePreview, real: MergePreview) -> bool:
    """Whether both say the same."""
    same = predicted.tree is not None if real.tree == MUDDLED else predicted.tree == real.tree
    return same and sorted(predicted.conflicts) == sorted(real.conflicts)


def preview_of(scratch: Path, ours: str, theirs: str) -> MergePreview:
    """The outcome of a real `git merge`."""
    git(scratch, "checkout", "--quiet", "--force", "--detach", ours)
    git(scratch, "clean", "-ffdxq")
    done = subprocess.run(
        ["git", "-c", "user.name=x", "-c", "user.email=x", "merge", "--no-stat", "--no-edit", "--no-ff", theirs],
        cwd=scratch,
        capture_output=True,
        text=True,
    )
    if "unrelated histories" in done.stderr:
        return MergePreview(None, ())
    if done.returncode == 0 and "CONFLICT (rename involved in collision)" in done.stdout:
        return MergePreview(MUDDLED, ())
    if done.returncode == 0:
        return MergePreview(git(scratch, "rev-parse", "HEAD^{tree}"), ())
    unmerged = git(scratch, "ls-files", "--unmerged", "-z").split("\0")
    git(scratch, "merge", "--abort", ok=(0, 128))
    git(scratch, "reset", "--quiet", "--hard")
    names = (re.sub(r"~(HEAD|[0-9a-f]{40})(_\d+)?$", "", row.partition("\t")[2]) for row in unmerged if row)
    return MergePreview(None, tuple(dict.fromkeys(names)))


@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", SEEDS if SOAK else SEEDS[:20])
def test_predictions_agree_with_real_merges(root: Path, tmp_path: Path, seed: int) -> None:
    draw, stream = random.Random(seed), Stream()
    marks = [case(draw, stream) for _ in range(IN_ONE)]
    stream.load(root)
    git(tmp_path, "clone", "--quiet", "--no-checkout", "--shared", str(root), "scratch")
    names = git(root, "for-each-ref", "--format=%(refname:short) %(objectname)", "refs/heads").splitlines()
    commits = {name.removeprefix("c"): commit for name, commit in (line.split() for line in names)}
    pairs = [(commits[str(ours)], commits[str(theirs)]) for ours, theirs in marks]
    repo = Repository(root, root / ".git")
    predicted = repo.predict_merges(pairs)
    for pair, prediction in zip(pairs, predicted, strict=True):
        real = preview_of(tmp_path / "scratch", *pair)
        assert agree(prediction, real), (pair, prediction, real)
    assert predicted[:3] == [repo.preview_merge(*pair) for pair in pairs[:3]]
    for (ours, theirs), preview in zip(pairs, predicted, strict=True):
        if preview.tree is not None and not repo.is_ancestor(theirs, ours):
            git(root, "update-ref", "refs/heads/target", ours)
            made = repo.merge_commit(theirs, "target", "merge", ANNA)
            assert git(root, "rev-parse", f"{made}^{{tree}}") == preview.tree


def test_an_old_git_predicts_the_same_merges_one_by_one(
    root: Path, repo: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw, stream = random.Random(7), Stream()
    marks = [case(draw, stream) for _ in range(IN_ONE)]
    stream.load(root)
    pairs = [(f"c{ours}", f"c{theirs}") for ours, theirs in marks]
    at_once = repo.predict_merges(pairs)
    real = shutil.which("git")
    script(tmp_path / "bin" / "git", f'case "$*" in *"merge-tree --stdin"*) exit 129;; esac; exec {real} "$@"')
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    assert repo.predict_merges(pairs) == at_once
    assert {preview.tree is None for preview in at_once} == {True, False}


def test_repeated_and_reversed_pairs_are_predicted_without_a_change(root: Path, repo: Repository, work: Path) -> None:
    commit(root, {"kept": "changed\n"})
    main, theirs = git(root, "rev-parse", "main"), git(root, "rev-parse", "work")
    before = Picture.of(root)
    assert repo.predict_merges([]) == []
    there, back, again = repo.predict_merges([("main", "work"), (theirs, main), (main, theirs)])
    assert there == back == again == repo.preview_merge("main", "work")
    assert repo.predict_merges([("main", "main")])[0].conflicts == ()
    assert Picture.of(root) == before


def test_a_prediction_of_something_that_is_no_commit_is_refused(root: Path, repo: Repository) -> None:
    for one in ("0" * 40, "missing", "main^{tree}", "-x", git(root, "rev-parse", "main^{tree}")):
        for pair in (("main", one), (one, "main")):
            refused("BRANCH_NOT_FOUND", repo.predict_merges, [pair, ("main", "main")])
