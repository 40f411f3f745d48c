"""A box with files, shared memory and a network of its own, in which the worktree stands at the project's path."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import venv
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.confinement.scene import BOXES, PEOPLE, SECRET, Scene
from tests.given import refused
from tests.users import SYSTEM_PYTHON
from workbench.confinement import Box, Mount, abilities, box_for_worktree
from workbench.confinement.refusals import found_in_output
from workbench.git import CommitIdentity, Repository

pytestmark = [
    pytest.mark.timeout(120),
    pytest.mark.skipif(not abilities().namespaces, reason="this system has no namespaces for its users"),
    pytest.mark.parametrize("scene", BOXES[len(PEOPLE) :], indirect=True),
]

ADA = CommitIdentity("ada", "ada@localhost")


def git(place: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=place, capture_output=True, text=True, check=True).stdout.strip()


def box_with(scene: Scene, *mounts: Mount, **how: Any) -> Box:
    """The box of a scene with mounts, as git in the worktree ignores them."""
    box = box_for_worktree(
        worktree=scene.worktree,
        git_dir=scene.own,
        objects=scene.repository.object_directories(),
        scratch=scene.scratch,
        project=scene.project,
        mounts=mounts,
        **how,
    )
    scene.repository.anchor_worktree(scene.worktree, scene.own, box.mount_points)
    return box


def works(scene: Scene, script: str, box: Box | None = None, **more: str) -> str:
    done = scene.work(f"set -e\n{script}", box, **more)
    assert done.returncode == 0, done.stdout
    return done.stdout


# Where things are


def test_the_worktree_stands_at_the_projects_path_and_the_checkout_stays_as_it_is(scene: Scene) -> None:
    before = scene.outside()
    said = works(scene, "pwd; echo new > new.txt; git add -A; git commit -qm New; git status --short; cat $P/new.txt")
    assert said == f"{scene.project}\nnew\n"
    assert scene.outside() == before
    assert (scene.worktree / "new.txt").read_text() == "new\n"
    commit = scene.repository.import_branch(scene.checkout, "wb/a/main", max_bytes=1_000_000)
    assert git(scene.project, "show", f"{commit}:new.txt") == "new"


def test_a_path_has_two_names_and_each_is_found_by_the_other(scene: Scene) -> None:
    data = scene.root / "data"
    box = box_with(scene, Mount(data, scene.project / "data"))
    (borrowed,) = (scene.state / "objects").glob("*/objects")
    pairs = {
        scene.worktree / "src" / "x.py": scene.project / "src" / "x.py",
        data / "x.csv": scene.project / "data" / "x.csv",
        scene.own / "HEAD": scene.own / "HEAD",
        scene.scratch / "x": scene.scratch / "x",
        scene.project / ".git" / "objects": borrowed,
        Path("/usr/bin"): Path("/usr/bin"),
    }
    assert {outside: box.inside(outside) for outside in pairs} == pairs
    assert {box.outside(inside): inside for inside in pairs.values()} == pairs
    assert Box.from_json(json.loads(json.dumps(box.as_json()))) == box


def test_git_ignores_what_is_mounted_and_keeps_what_a_branch_has_beside_it(scene: Scene) -> None:
    persona = scene.worktree / ".aiswarm" / "personas" / "poet.md"
    persona.parent.mkdir(parents=True)
    persona.write_text("Rhyme.\n")
    (data := scene.root / "data").mkdir()
    (data / "x.csv").write_text("1\n")
    git(scene.worktree, "add", "-f", ".aiswarm/personas")
    git(scene.worktree, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "A poet")
    scene.hand_over()
    box = box_with(scene, Mount(data, scene.project / "data"))
    said = works(
        scene, "cat data/x.csv .aiswarm/personas/poet.md; echo x > x; git add -A; git clean -ffdq; ls data", box
    )
    assert said == "1\nRhyme.\nx.csv\n"
    scene.checkout.commit_all("All", ADA)
    assert git(scene.worktree, "show", "--name-status", "--format=") == "A\tx"


def test_a_worktree_of_an_earlier_version_works_once_it_is_used_again(scene: Scene) -> None:
    scene.worktree.joinpath(".git").write_text("gitdir: ../../repositories/a\n")
    with scene.own.joinpath("config").open("a") as file:
        file.write('[core]\n\tworktree = "../../worktrees/a"\n')
    scene.own.joinpath("objects", "info", "alternates").write_text("../../../../.git/objects\n")
    assert "not a git repository" in scene.work("git log").stdout
    box_with(scene)
    scene.hand_over()
    assert works(scene, "git rev-parse --show-toplevel; git log --format=%s; git status --short") == (
        f"{scene.project}\nFirst\n"
    )


@pytest.mark.parametrize("name", ["a project", "a:b", "ünï*[x]"])
def test_a_project_may_have_any_name(scene: Scene, name: str) -> None:
    project = scene.root / name
    scene.project.rename(project)
    repository = Repository(project, project / ".git")
    state = project / ".aiswarm"
    place, own = state / "worktrees" / "a", state / "repositories" / "a"
    box = box_for_worktree(
        worktree=place,
        git_dir=own,
        objects=repository.object_directories(),
        scratch=state / "scratch" / "a",
        project=project,
        mounts=[Mount(project / "untracked.txt", project / "x y.txt")],
    )
    repository.anchor_worktree(place, own, box.mount_points)
    scene.hand_over()
    done = subprocess.run(
        scene.wrap(["sh", "-c", "pwd; git log --format=%s; git status --short; cat 'x y.txt'"], box),
        cwd=place,
        env=box.environment({"PATH": "/usr/bin:/bin"}),
        capture_output=True,
        text=True,
    )
    assert (done.stdout, done.stderr) == (f"{project}\nFirst\n{SECRET}", "")


# Mounts


def test_what_is_mounted_can_be_read_and_neither_written_nor_changed(scene: Scene) -> None:
    (data := scene.root / "data").mkdir()
    (data / "x.csv").write_text("1\n")
    (data / "more").symlink_to(scene.project / "untracked.txt")
    scene.hand_over()
    box = box_with(scene, Mount(data, scene.project / "data"), Mount(data / "x.csv", scene.project / "one.csv"))
    before = scene.outside()
    assert works(scene, "cat data/x.csv $P/data/x.csv one.csv", box) == "1\n1\n1\n"
    for script in ("echo x > data/x.csv", "chmod 600 data/x.csv", "touch data/new", "rm one.csv", "mv data away"):
        assert scene.work(script, box).returncode, script
    assert SECRET not in scene.work("cat data/more", box).stdout
    assert scene.outside() == before


@pytest.mark.parametrize(
    "take",
    [
        lambda place: place.write_text("of the branch"),
        lambda place: place.touch(),
        lambda place: place.symlink_to("/usr"),
        lambda place: (place.mkdir(), (place / "file").touch()),
    ],
    ids=["a file", "an empty file", "a link", "a directory with a file"],
)
def test_a_mount_never_takes_the_place_of_something_of_the_worktrees(
    scene: Scene, take: Callable[[Path], object]
) -> None:
    take(scene.worktree / "data")
    error = refused("MOUNT_POINT_TAKEN", box_with, scene, Mount(scene.home, scene.project / "data"))
    assert "Remove it there" in error.message
    take(scene.worktree / "beside")
    below = Mount(scene.home, scene.project / "beside" / "below")
    if (scene.worktree / "beside").is_dir() and not (scene.worktree / "beside").is_symlink():
        box_with(scene, below)
    else:
        refused("MOUNT_POINT_TAKEN", box_with, scene, below)


def test_data_behind_a_link_that_git_tracks_is_read_where_the_link_leads(scene: Scene) -> None:
    (data := scene.root / "data").mkdir()
    (data / "x.csv").write_text("1\n")
    for place in (scene.project, scene.worktree):
        (place / "data").symlink_to(data)
    scene.hand_over()
    named = Mount(data, scene.project / "data")
    assert works(scene, "cat data/x.csv", box_with(scene, named)) == "1\n"
    (scene.worktree / "data").unlink()
    (scene.worktree / "data").symlink_to(scene.home)
    refused("MOUNT_POINT_TAKEN", box_with, scene, named)


@pytest.mark.parametrize("outside", [False, True], ids=["in the project", "by a link of the project"])
def test_what_is_written_below_what_is_read_can_be_written(scene: Scene, outside: bool) -> None:
    data = scene.project / "data"
    place = scene.root / "elsewhere" if outside else data
    (out := place / "out").mkdir(parents=True)
    (place / "x.csv").write_text("1\n")
    if outside:
        data.symlink_to(place)
    scene.hand_over()
    works(scene, "true", box_with(scene, write=(out,)))  # leaves its mount point
    for _ in range(2):
        box = box_with(scene, Mount(place, data), write=(out,))
        assert works(scene, "cat data/x.csv; echo 2 > data/out/y.csv; ! echo 3 2> /dev/null > data/x.csv", box) == "1\n"
    assert (out / "y.csv").read_text() == "2\n"


@pytest.mark.parametrize("outside", [False, True], ids=["in the project", "by a link of the project"])
def test_a_box_with_mounts_and_one_without_follow_each_other(scene: Scene, outside: bool) -> None:
    data, file = scene.project / "data", scene.project / "one.csv"
    place = scene.root / "elsewhere" if outside else data
    place.mkdir()
    (place / "x.csv").write_text("1\n")
    file.write_text("2\n")
    if outside:
        data.symlink_to(place)
    scene.hand_over()
    mounts = (Mount(place, data), Mount(file, file))
    for namespaces in (scene.namespaces, frozenset[str](), scene.namespaces, frozenset[str]()):
        box = box_with(scene, *mounts, namespaces=namespaces)
        assert works(scene, "cat data/x.csv one.csv; git status --short", box) == "1\n2\n"
        assert scene.work("echo 3 > data/x.csv", box).returncode


def test_a_link_put_in_place_of_a_mount_point_later_leads_nowhere(scene: Scene) -> None:
    (data := scene.root / "data").mkdir()
    box = box_with(scene, Mount(data, scene.project / "data"))
    scene.tried("ln -s /usr data")
    done = scene.run(["true"], box)
    assert (done.returncode, "data cannot be mounted" in done.stdout) == (125, True)


def test_what_is_hidden_cannot_be_read_although_what_is_around_it_can(scene: Scene) -> None:
    (scene.home / "file").write_text("file\n")
    box = replace(box_with(scene, hide=(scene.home / ".ssh", scene.home / ".aws" / "credentials")), read=(scene.home,))
    done = scene.work("cat $H/file; cat $H/.aws/credentials; ls $H/.ssh; cat $H/.ssh/id_ed25519", box)
    assert done.stdout.startswith("file\n")
    assert SECRET not in done.stdout
    assert "id_ed25519\n" not in done.stdout.partition("id_ed25519:")[0]


# Programs


def test_locks_pools_shared_memory_and_servers_work_inside(scene: Scene) -> None:
    program = """if True:
        import multiprocessing, socket, threading, urllib.request
        from concurrent.futures import ProcessPoolExecutor
        from http.server import HTTPServer, SimpleHTTPRequestHandler
        from multiprocessing.shared_memory import SharedMemory
        with multiprocessing.Lock(), ProcessPoolExecutor(2, multiprocessing.get_context("fork")) as pool:
            print(*pool.map(abs, [-1, -2]))
        memory = SharedMemory(create=True, size=4)
        memory.buf[:1] = b"x"
        other = SharedMemory(memory.name)
        print(bytes(other.buf[:1]))
        other.close(), memory.close(), memory.unlink()
        for host, family in (("127.0.0.1", socket.AF_INET), ("::1", socket.AF_INET6)):
            class Server(HTTPServer):
                address_family = family
            server = Server((host, 8000), SimpleHTTPRequestHandler)
            threading.Thread(target=server.handle_request).start()
            address = f"[{host}]" if ":" in host else host
            print(urllib.request.urlopen(f"http://{address}:8000/shared.txt").read())
            server.server_close()
        here = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        here.bind(("127.0.0.1", 8001))
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"hello", ("127.0.0.1", 8001))
        print(here.recv(9))
    """
    said = scene.run([SYSTEM_PYTHON, "-uc", program]).stdout
    lines = [line for line in said.splitlines() if '"GET ' not in line]
    assert lines == ["1 2", "b'x'", "b'shared\\n'", "b'shared\\n'", "b'hello'"]


def test_shared_memory_has_the_size_that_the_box_says(scene: Scene) -> None:
    box = replace(scene.box, shm_bytes=1 << 20)
    assert "No space left" in scene.work("head -c 2000000 /dev/zero > /dev/shm/x", box).stdout


@pytest.mark.long
def test_a_notebook_is_executed_inside(scene: Scene) -> None:
    if scene.user is not None:
        pytest.skip("the Python of the tests belongs to somebody else")
    cell = {"cell_type": "code", "id": "a", "metadata": {}, "outputs": [], "execution_count": None}
    notebook = {"cells": [cell | {"source": "print(6 * 7)"}], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    (scene.worktree / "in.ipynb").write_text(json.dumps(notebook))
    done = scene.run([sys.executable, "-m", "papermill", "-k", "python3", "in.ipynb", "out.ipynb"])
    assert done.returncode == 0, done.stdout
    assert "42\\n" in (scene.worktree / "out.ipynb").read_text()


@pytest.mark.long
def test_pytest_of_the_projects_environment_runs_where_pyproject_says_nothing_about_it(scene: Scene) -> None:
    if scene.user is not None:
        pytest.skip("the Python of the tests belongs to somebody else")
    venv.create(scene.project / ".venv", symlinks=True, with_pip=False)
    (packages,) = (scene.project / ".venv").glob("lib/python3*/site-packages")
    (own,) = {path for path in map(Path, sys.path) if path.name == "site-packages" and path.is_relative_to(sys.prefix)}
    (packages / "lab.pth").write_text(f"{scene.project / 'src'}\n{own}\n")
    for top, whose in ((scene.project, "hers"), (scene.worktree, "the worktree's")):
        (top / "pyproject.toml").write_text("[project]\nname = 'lab'\nversion = '1'\n")
        (top / "src").mkdir()
        (top / "src" / "lab.py").write_text(f"WHOSE = {whose!r}\n")
    (scene.worktree / "test_lab.py").write_text('import lab\n\ndef test_lab():\n    assert lab.WHOSE == "hers"\n')
    box = box_with(scene, Mount(scene.project / ".venv", scene.project / ".venv"))
    done = scene.run([".venv/bin/python", "-m", "pytest", "-q", "-p", "no:hypothesispytest"], box)
    assert (done.returncode, "the worktree's" in done.stdout) == (1, True), done.stdout
    assert f"rootdir: {scene.project}\n" in scene.run([".venv/bin/python", "-m", "pytest", "-v"], box).stdout


# Apart from others


def test_two_boxes_do_not_meet_on_loopback_in_shared_memory_or_by_sockets(scene: Scene) -> None:
    serve = """if True:
        import ctypes, os, socket
        listening = socket.create_server(("127.0.0.1", 8000))
        datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        datagrams.bind(("127.0.0.1", 8000))
        open("/dev/shm/mine", "w").write("mine")
        memory = ctypes.CDLL(None).shmget(77, 4096, 0o1666)
        print("ready", memory >= 0, flush=True)
        input()
        listening.settimeout(0), datagrams.settimeout(0)
        for receive in (listening.accept, lambda: datagrams.recv(9)):
            try:
                print("met", receive())
            except BlockingIOError:
                print("nobody")
    """
    reach = """if True:
        import ctypes, os, socket
        def reach_unix(kind, address):
            socket.socket(socket.AF_UNIX, kind).connect(address)
        def find_memory():
            assert ctypes.CDLL(None).shmget(77, 4096, 0o666) >= 0
        for meet in (
            lambda: socket.create_connection(("127.0.0.1", 8000)),
            lambda: open("/dev/shm/mine").read(),
            find_memory,
            lambda: reach_unix(socket.SOCK_STREAM, "\\0mine"),
            lambda: reach_unix(socket.SOCK_STREAM, "mine"),
        ):
            try:
                meet()
                print("met")
            except (OSError, AssertionError):
                print("nobody")
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", 8000))
    """
    with scene.started([SYSTEM_PYTHON, "-c", serve]) as first:
        assert first.stdout
        assert first.stdout.readline() == "ready True\n"
        assert scene.run([SYSTEM_PYTHON, "-c", reach]).stdout.split() == ["nobody"] * 5
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", 8000))
        assert first.communicate("\n")[0].split() == ["nobody"] * 2
    assert not Path("/dev/shm/mine").exists()


def test_a_write_into_what_is_read_is_explained_with_what_opens_it(scene: Scene) -> None:
    (data := scene.root / "data").mkdir()
    box = box_with(scene, Mount(data, scene.project / "data"))
    (refusal,) = found_in_output(["touch: cannot touch 'data/new': Read-only file system"], box, scene.worktree)
    assert refusal.what == f"{scene.project}/data/new cannot be written"
    assert refusal.remedy == "the setting confinement_write opens it, once the workplace does not name it"
