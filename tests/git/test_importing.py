"""Commits of a worker come to the person's repository checked, whole, or not at all."""

from __future__ import annotations

import os
import random
import subprocess
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.git.parts import ANNA, MEGABYTE, Picture, add, bring, commit, git, inside, own, untouched, write
from tests.given import refused
from workbench.git import Repository, Wrap

pytestmark = pytest.mark.long


def make_bundle(tmp_path: Path, root: Path, build: Callable[[Path], str], fill: int = 0) -> Path:
    """A bundle that nobody checked: of what `build` makes of a clone, with `fill` files more; `build` gives the tip."""
    evil = tmp_path / "evil"
    git(tmp_path, "clone", "--quiet", str(root), str(evil))
    commit(evil, {f"fill/{number}": f"{number}\n" for number in range(fill)} | {"fill/x": ""}, "fill")
    git(evil, "update-ref", "--no-deref", "refs/evil", build(evil))
    bundle = tmp_path / "bundle"
    with bundle.open("wb") as file:
        pack = ("-c", "pack.compression=0", "pack-objects", "--stdout", "--revs", "--thin", "--delta-base-offset", "-q")
        wanted = f"{git(evil, 'rev-parse', 'refs/evil')}\n^{git(root, 'rev-parse', 'main')}\n"
        done = subprocess.run(["git", *pack], cwd=evil, input=wanted.encode(), capture_output=True, check=True)
        file.write(f"# v2 git bundle\n{git(evil, 'rev-parse', 'refs/evil')} refs/heads/work\n\n".encode() + done.stdout)
    return bundle


def saying(bundle: Path) -> Wrap:
    """A worker whose git says what is in a file, whatever it is asked."""
    return lambda _: ["cat", str(bundle)]


def raw(place: Path, kind: str, text: bytes) -> str:
    """Write an object without any check."""
    how = ["git", "hash-object", "-w", "-t", kind, "--literally", "--stdin"]
    return subprocess.run(how, cwd=place, input=text, capture_output=True, check=True).stdout.decode().strip()


def tree_of(place: Path, *entries: tuple[str, str, str]) -> str:
    """A tree as it is written: mode, name, object."""
    return raw(place, "tree", b"".join(f"{m} {n}\0".encode() + bytes.fromhex(o) for m, n, o in entries))


def commit_of(place: Path, tree: str) -> str:
    """A commit of a tree on top of HEAD."""
    return git(place, "commit-tree", "-p", "HEAD", "-m", "evil", tree)


def a_tree_with(mode: str, name: str, text: str = "evil\n") -> Callable[[Path], str]:
    """A commit whose only entry has a name."""

    def build(place: Path) -> str:
        what = raw(place, "blob", text.encode())
        return commit_of(
            place, tree_of(place, (mode, name, tree_of(place, ("100644", "x", what)) if mode == "40000" else what))
        )

    return build


def a_missing_parent(place: Path) -> str:
    tree = git(place, "rev-parse", "HEAD^{tree}")
    who = "author e <e> 1 +0000\ncommitter e <e> 1 +0000\n"
    made = raw(place, "commit", f"tree {tree}\nparent {'1' * 40}\n{who}\nevil\n".encode())
    (place / ".git" / "shallow").write_text(f"{made}\n")
    return made


def modules(name: str, path: str, url: str) -> Callable[[Path], str]:
    """A commit with a file of submodules."""
    return a_tree_with("100644", ".gitmodules", f'[submodule "{name}"]\n\tpath = {path}\n\turl = {url}\n')


FORGED: dict[str, Callable[[Path], str]] = {
    "a blob": lambda place: raw(place, "blob", b"blob"),
    "a tree": lambda place: git(place, "rev-parse", "HEAD^{tree}"),
    "a tag": lambda place: git(place, "tag", "-a", "-m", "x", "evil") + git(place, "rev-parse", "refs/tags/evil"),
    "a missing parent": a_missing_parent,
    "no author": lambda place: raw(place, "commit", f"tree {git(place, 'rev-parse', 'HEAD^{tree}')}\n\nx\n".encode()),
    "a name twice": lambda place: commit_of(place, tree_of(place, *[("100644", "a", raw(place, "blob", b"evil"))] * 2)),
    ".git directory": a_tree_with("40000", ".git"),
    ".GIT directory": a_tree_with("40000", ".GIT"),
    ".git file": a_tree_with("100644", ".git"),
    "git~1": a_tree_with("40000", "git~1"),
    ".git with what HFS ignores": a_tree_with("40000", ".g\u200cit"),
    "a dot": a_tree_with("40000", "."),
    "two dots": a_tree_with("40000", ".."),
    "a slash": a_tree_with("100644", "../../hooks/post-checkout"),
    "a link to modules": a_tree_with("120000", ".gitmodules"),
    "modules with an option": modules("x", "x", "--upload-pack=touch /tmp/x"),
    "modules outside": modules("../../x", "x", "https://x"),
    "a module path with an option": modules("x", "-x", "https://x"),
}


def refuses(root: Path, repo: Repository, work: Path, bundle: Path) -> None:
    """Assert that an import is refused and leaves nothing."""
    differ(repo, work)
    before, objects = Picture.of(root), everything(root / ".git" / "objects")
    refused("IMPORT_REFUSED", repo.import_branch, inside(work, wrap=saying(bundle)), "work", max_bytes=MEGABYTE)
    assert Picture.of(root) == before
    assert everything(root / ".git" / "objects") == objects


@pytest.mark.parametrize("fill", [0, 150], ids=["few objects", "many"])
@pytest.mark.parametrize("forged", FORGED)
def test_a_forged_object_is_refused_and_leaves_nothing(
    root: Path, repo: Repository, work: Path, tmp_path: Path, forged: str, fill: int
) -> None:
    refuses(root, repo, work, make_bundle(tmp_path, root, FORGED[forged], fill))


def everything(place: Path) -> list[str]:
    """All files below a directory."""
    return sorted(str(path.relative_to(place)) for path in place.rglob("*"))


def differ(repo: Repository, work: Path) -> None:
    """Let the branch seem to have moved, so that it is not taken for what is here already."""
    (own(work) / "refs" / "heads" / "work").unlink()
    assert repo.unverified_branch(own(work), "work") is None


def mangle_bundle(tmp_path: Path, root: Path, mangle: Callable[[bytes], bytes]) -> Path:
    """A sound bundle, but for what is done to it."""
    bundle = make_bundle(tmp_path, root, lambda place: git(place, "rev-parse", "HEAD"))
    bundle.write_bytes(mangle(bundle.read_bytes()))
    return bundle


def head_of(bundle: bytes) -> int:
    """The position at which the pack begins."""
    return bundle.index(b"\n\n") + 2


MANGLED: dict[str, Callable[[bytes], bytes]] = {
    "nothing": lambda _: b"",
    "noise": lambda _: bytes(range(256)) * 100,
    "no end of line": lambda _: b"x" * 300_000,
    "another version": lambda b: b.replace(b"v2", b"v9", 1),
    "lines without end": lambda b: b[:16] + b"-" + b"1" * 40 + b" x\n" + b"@x\n" * 30_000,
    "two branches": lambda b: b[:16] + b"1" * 40 + b" refs/heads/main\n" + b[16:],
    "no branch": lambda b: b[:16] + b[b.index(b"\n\n") + 1 :],
    "no id": lambda b: b[:16] + b"--help refs/heads/work\n\n" + b[head_of(b) :],
    "an id that is not in it": lambda b: b[:16] + b"1" * 40 + b" refs/heads/work\n\n" + b[head_of(b) :],
    "no pack": lambda b: b[: head_of(b)],
    "a pack cut off": lambda b: b[:-30],
    "a pack that is one bit off": lambda b: b[:-30] + bytes([b[-30] ^ 1]) + b[-29:],
    "more objects than there are": lambda b: b[: head_of(b) + 8] + b"\x7f\xff\xff\xff" + b[head_of(b) + 12 :],
    "no object": lambda b: b[: head_of(b) + 8] + b"\0\0\0\0" + b[head_of(b) + 12 :],
}


@pytest.mark.parametrize("how", MANGLED)
def test_an_unsound_bundle_is_refused(root: Path, repo: Repository, work: Path, tmp_path: Path, how: str) -> None:
    refuses(root, repo, work, mangle_bundle(tmp_path, root, MANGLED[how]))


def test_a_sound_bundle_is_accepted_from_any_writer(root: Path, repo: Repository, work: Path, tmp_path: Path) -> None:
    differ(repo, work)
    bundle = mangle_bundle(tmp_path, root, lambda b: b)
    assert repo.import_branch(inside(work, wrap=saying(bundle)), "work", max_bytes=MEGABYTE) == repo.resolve("work")
    assert git(root, "show", "work:fill/x") == ""


def test_content_forged_under_an_id_of_the_persons_is_never_seen(root: Path, repo: Repository, work: Path) -> None:
    blob = git(root, "rev-parse", "main:kept")
    forged = own(work) / "objects" / blob[:2] / blob[2:]
    forged.parent.mkdir(exist_ok=True)
    forged.write_bytes(zlib.compress(b"blob 7\0forged\n"))
    assert (own(work) / "objects" / "info" / "alternates").read_text().startswith("../../../objects/")
    commit(work, {"more": "more\n"})
    repo.integrate("work", "main", "merge", ANNA)
    assert git(root, "show", "main:kept") == "kept"
    (root / "kept").unlink()
    git(root, "checkout", "--quiet", "kept")
    assert (root / "kept").read_text() == "kept\n"
    git(root, "repack", "-adfq")
    assert git(root, "fsck", "--strict", "--full", "--no-dangling") == ""


@pytest.mark.parametrize("many", [False, True], ids=["few objects", "many"])
def test_content_forged_under_a_new_id_is_refused(root: Path, repo: Repository, work: Path, many: bool) -> None:
    write(work, {f"f/{number}": f"{number}\n" for number in range(150 if many else 2)})
    git(work, "add", "--all")
    git(work, "commit", "--quiet", "--message", "more")
    blob = git(work, "rev-parse", "HEAD:f/1")
    path = own(work) / "objects" / blob[:2] / blob[2:]
    path.chmod(0o600)
    path.write_bytes(zlib.compress(b"blob 7\0forged\n"))
    untouched(root, "IMPORT_REFUSED", repo.import_branch, inside(work), "work", max_bytes=MEGABYTE)


# -- what a branch may do


def test_an_import_moves_only_the_branch_and_brings_only_needed_objects(
    root: Path, repo: Repository, work: Path
) -> None:
    git(work, "branch", "side")
    git(work, "tag", "v1")
    write(work, {"more": "more\n"})
    git(work, "stash", "--include-untracked", "--quiet")
    commit_id = commit(work, {"other": "other\n"})
    listed = git(root, "for-each-ref", "--format=%(refname)").splitlines()
    assert listed == ["refs/heads/main", "refs/heads/work"]
    assert repo.resolve("work") == commit_id
    assert "import" in git(root, "reflog", "-1", "work")
    git(root, "cat-file", "-e", git(work, "rev-parse", "refs/stash"), ok=(1,))


def test_a_commit_message_may_be_long_and_look_like_anything(root: Path, repo: Repository, place: Path) -> None:
    for number, message in enumerate(("x " * 9_000, f"{'1' * 40} refs/heads/main", "# v2 git bundle")):
        commit(root, {"shared": f"{number}\n"}, message)
        add(repo, place / str(number), f"work{number}")
        assert commit(place / str(number), {"new": "new\n"}, message) == repo.resolve(f"work{number}")


def test_a_branch_may_be_rewritten_and_the_reflog_has_what_it_was(root: Path, repo: Repository, work: Path) -> None:
    first = commit(work, {"a": "a\n"})
    git(work, "commit", "--quiet", "--amend", "--message", "else")
    second = bring(work)
    assert second != first
    git(work, "reset", "--quiet", "--hard", "HEAD~2")
    assert bring(work) == git(root, "rev-parse", "main") == repo.resolve("work")
    git(work, "rebase", "--quiet", "--onto", "main", "--root")
    assert [git(root, "rev-parse", f"work@{{{n}}}") for n in (1, 2)] == [second, first]


def test_an_import_without_news_starts_no_process_and_restores_a_deleted_branch(
    root: Path, repo: Repository, work: Path
) -> None:
    never, made = inside(work, wrap=lambda _: ["false"]), git(root, "rev-parse", "work")
    assert repo.import_branch(never, "work", max_bytes=MEGABYTE) == made == repo.resolve("work")
    git(root, "update-ref", "-d", "refs/heads/work")
    assert bring(work) == made == repo.resolve("work")


GONE = {
    "renamed": lambda work: git(work, "branch", "--move", "other"),
    "unborn": lambda work: git(work, "update-ref", "-d", "refs/heads/work"),
    "deleted": lambda work: (git(work, "checkout", "--quiet", "--detach"), git(work, "branch", "-q", "-D", "work")),
}


@pytest.mark.parametrize("gone", GONE)
def test_a_branch_that_the_worker_no_longer_has_is_not_found_and_stays(repo: Repository, work: Path, gone: str) -> None:
    made = repo.resolve("work")
    GONE[gone](work)
    refused("BRANCH_NOT_FOUND", repo.import_branch, inside(work), "work", max_bytes=MEGABYTE)
    assert repo.resolve("work") == made


def test_a_name_that_git_could_misread_is_neither_imported_nor_peeked_at(repo: Repository, work: Path) -> None:
    outside = ("..", "../../config", "a\0b", "/etc/hostname", "x" * 5000)
    for name in ("-x", "a..b", "", "work^{tree}", "\ud800", "a\nb", *outside):
        refused("BRANCH_NOT_FOUND", repo.import_branch, inside(work), name, max_bytes=MEGABYTE)
        assert repo.unverified_branch(own(work), name) is None


def test_a_symbolic_branch_moves_nothing_but_the_branch(root: Path, repo: Repository, work: Path) -> None:
    main = git(root, "rev-parse", "main")
    git(work, "symbolic-ref", "refs/heads/work", "refs/heads/main")
    git(work, "commit", "--quiet", "--allow-empty", "--message", "on main, it thinks")
    made = repo.import_branch(inside(work), "work", max_bytes=MEGABYTE)
    assert (repo.resolve("work"), repo.resolve("main")) == (made, main)
    assert git(root, "symbolic-ref", "--quiet", "refs/heads/work", ok=(1,)) == ""


def test_an_oversized_import_is_refused_as_soon_as_it_is_seen(root: Path, repo: Repository, work: Path) -> None:
    (work / "large").write_bytes(random.Random(7).randbytes(MEGABYTE))
    git(work, "add", "--all")
    git(work, "commit", "--quiet", "--message", "large")
    before = Picture.of(root)
    error = refused("IMPORT_REFUSED", repo.import_branch, inside(work), "work", max_bytes=MEGABYTE)
    assert error.details["limit"] == MEGABYTE
    endless = inside(work, wrap=lambda _: ["cat", "/dev/zero"])
    refused("IMPORT_REFUSED", repo.import_branch, endless, "work", max_bytes=MEGABYTE)
    assert Picture.of(root) == before
    assert repo.import_branch(inside(work), "work", max_bytes=2 * MEGABYTE) == repo.resolve("work")


@pytest.mark.parametrize("endless", ["sleep 600", *(f"while :; do echo >&{end}; sleep 0.01; done" for end in (1, 2))])
def test_an_import_that_takes_too_long_is_stopped_even_if_it_prints(repo: Repository, work: Path, endless: str) -> None:
    differ(repo, work)
    slow = inside(work, wrap=lambda _: ["sh", "-c", endless], limit=0.3)
    error = refused("GIT_TIMEOUT", repo.import_branch, slow, "work", max_bytes=MEGABYTE)
    assert "0.3 s" in error.message


def test_a_branch_that_the_person_is_on_is_not_moved(root: Path, repo: Repository, work: Path, tmp_path: Path) -> None:
    write(work, {"more": ""})
    inside(work).commit_all("more", ANNA)
    git(root, "checkout", "--quiet", "--ignore-other-worktrees", "work")
    refused("TARGET_CHECKED_OUT", repo.import_branch, inside(work), "work", max_bytes=MEGABYTE)
    git(root, "checkout", "--quiet", "main")
    git(root, "worktree", "add", "--quiet", "--force", str(tmp_path / "persons"), "work")
    refused("TARGET_CHECKED_OUT", repo.import_branch, inside(work), "work", max_bytes=MEGABYTE)
    git(root, "worktree", "remove", str(tmp_path / "persons"))
    assert repo.import_branch(inside(work), "work", max_bytes=MEGABYTE) == repo.resolve("work")


def test_concurrent_imports_succeed(repo: Repository, work: Path) -> None:
    write(work, {"more": ""})
    commit_id = inside(work).commit_all("more", ANNA)

    def take(_: int) -> str | None:
        with repo.lock():
            return repo.import_branch(inside(work), "work", max_bytes=MEGABYTE)

    with ThreadPoolExecutor(6) as pool:
        assert set(pool.map(take, range(12))) == {commit_id}


def test_packed_objects_are_imported_too(repo: Repository, work: Path) -> None:
    write(work, {"more": ""})
    commit_id = inside(work).commit_all("more", ANNA)
    git(work, "gc", "--quiet", "--prune=now")
    assert repo.unverified_branch(own(work), "work") is None
    assert bring(work) == commit_id


# -- looking without running git


PEEKED: dict[str, Callable[[Path, str], object]] = {
    "deleted": lambda ref, _: ref.unlink(),
    "empty": lambda ref, _: ref.write_text(""),
    "symbolic": lambda ref, _: ref.write_text("ref: refs/heads/main\n"),
    "noise": lambda ref, _: ref.write_bytes(b"\xff\0" * 30),
    "upper case": lambda ref, id_: ref.write_text(f"{id_.upper()}\n"),
    "more than an id": lambda ref, id_: ref.write_text(f"{id_}\nmore"),
    "huge": lambda ref, _: os.truncate(ref, 1 << 40),
    "a directory": lambda ref, _: (ref.unlink(), ref.mkdir()),
    "a pipe": lambda ref, _: (ref.unlink(), os.mkfifo(ref)),
    "a link": lambda ref, _: (ref.rename(ref.with_name("else")), ref.symlink_to("else")),
    "in a linked directory": lambda ref, _: (
        ref.parent.rename(ref.parent.with_name("else")),
        ref.parent.symlink_to("else"),
    ),
}


@pytest.mark.parametrize("how", PEEKED)
def test_a_branch_that_is_no_plain_reference_has_no_unverified_commit(repo: Repository, work: Path, how: str) -> None:
    ref = own(work) / "refs" / "heads" / "work"
    assert repo.unverified_branch(own(work), "work") == repo.resolve("work")
    PEEKED[how](ref, str(repo.resolve("work")))
    assert repo.unverified_branch(own(work), "work") is None
