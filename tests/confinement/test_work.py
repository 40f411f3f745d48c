"""Ordinary work that must succeed in a box."""

from __future__ import annotations

import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.confinement.scene import Scene
from tests.users import SYSTEM_PYTHON

pytestmark = pytest.mark.timeout(120)

needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="there is no node")


def works(scene: Scene, script: str) -> str:
    """The output of a shell script that must succeed."""
    done = scene.work(f"set -e\n{script}")
    assert done.returncode == 0, done.stdout
    return done.stdout


def python(scene: Scene, program: str) -> str:
    """The output of a Python program that must succeed."""
    done = scene.run([SYSTEM_PYTHON, "-c", program])
    assert done.returncode == 0, done.stdout
    return done.stdout


def own_python(scene: Scene) -> str:
    """The Python of the tests, which an ordinary user may not be able to reach."""
    if scene.user is not None:
        pytest.skip("the Python of the tests belongs to somebody else")
    return sys.executable


# Git


def test_git_work_in_a_box_reaches_the_persons_repository(scene: Scene) -> None:
    said = works(
        scene,
        """
        echo one > one; git add one; git commit -q -m One
        git checkout -q -b side HEAD~1; echo two > two; git add two; git commit -q -m Two
        git checkout -q wb/a/main; git merge -q -m Merged side; git tag -a -m Done done
        git checkout -q side; echo three > three; git add three; git commit -q -m Three; git rebase -q wb/a/main
        echo four >> one; git stash -q; git stash pop -q; git checkout -q -- one
        git mv one moved; git rm -q two; git commit -q -m Moved; git checkout -q wb/a/main; git merge -q --ff-only side
        git gc -q; git fsck; git describe --tags; git log --format=%s --topo-order; git status --short
        """,
    )
    subjects = [line for line in said.splitlines() if "dangling" not in line][1:]
    assert subjects == ["Moved", "Three", "Merged", "Two", "One", "First"]
    commit = scene.repository.import_branch(scene.checkout, "wb/a/main", max_bytes=1_000_000)
    assert commit == works(scene, "git rev-parse HEAD").strip()


def test_commits_are_signed_without_configuration_and_outside_is_no_repository(scene: Scene) -> None:
    said = works(
        scene, "unset GIT_AUTHOR_NAME GIT_AUTHOR_EMAIL; git commit -q --allow-empty -m x; git log -1 --format='%an %ae'"
    )
    assert said == "Workbench workbench@localhost\n"
    assert "not a git repository" in scene.work("rm .git; git status").stdout


# Python


def test_python_starts_processes_and_threads_and_makes_temporary_files(scene: Scene) -> None:
    said = python(
        scene,
        """
import multiprocessing, os, pathlib, sqlite3, subprocess, sys, tempfile, threading
from concurrent.futures import ThreadPoolExecutor
print(subprocess.run([sys.executable, "-c", "print(1)"], capture_output=True, text=True, check=True).stdout.strip())
print(*ThreadPoolExecutor(2).map(abs, [-2, -3]))
with tempfile.TemporaryDirectory() as place:
    pathlib.Path(place, "x").write_text("4")
    print(pathlib.Path(place, "x").read_text())
def child(end):
    end.send(5)
end, other = multiprocessing.Pipe()
process = multiprocessing.get_context("fork").Process(target=child, args=(other,))
process.start()
print(end.recv())
process.join()
data = sqlite3.connect("data.db")
data.execute("pragma journal_mode=wal")
data.execute("create table t (x)")
data.close()
print(os.cpu_count() > 0, len(os.urandom(4)), threading.active_count() > 0)
""",
    )
    assert said == "1\n2 3\n4\n5\nTrue 4 True\n"


def test_locks_between_processes_need_shared_memory_which_is_its_own_or_a_setting_gives(scene: Scene) -> None:
    program = [SYSTEM_PYTHON, "-c", "import multiprocessing; multiprocessing.Lock(); print('locked')"]
    if scene.namespaces:
        assert scene.run(program).stdout == "locked\n"
        return
    assert "Permission denied" in scene.run(program).stdout
    wider = replace(scene.box, write=(*scene.box.write, Path("/dev/shm")))
    assert scene.run(program, wider).stdout == "locked\n"


def test_packages_of_this_python_are_there_and_workbench_too(scene: Scene) -> None:
    program = "import pydantic, workbench.client, workbench.state.settings as s; print(s.shipped('data').is_dir())"
    done = scene.run([own_python(scene), "-c", program])
    assert done.stdout == "True\n"


@pytest.mark.long
def test_pytest_passes_and_fails_in_a_box_as_outside(scene: Scene) -> None:
    (scene.worktree / "test_it.py").write_text(
        "def test_good(tmp_path):\n    (tmp_path / 'x').write_text('x')\n\ndef test_bad():\n    assert 1 == 2\n"
    )
    done = scene.run([own_python(scene), "-m", "pytest", "-q", "-p", "no:hypothesispytest"])
    assert done.returncode == 1
    assert "1 failed, 1 passed" in done.stdout


def test_a_virtual_environment_can_be_made_and_used(scene: Scene) -> None:
    python_ = own_python(scene)
    assert works(scene, f"{python_} -m venv --without-pip env; env/bin/python -c 'print(6)'") == "6\n"


# Others


@needs_node
@pytest.mark.node
def test_node_reads_writes_starts_processes_and_tests(scene: Scene) -> None:
    (scene.worktree / "it.test.js").write_text("require('node:test')('it works', () => {})\n")
    program = """
const fs = require("fs"), os = require("os"), child = require("child_process")
fs.writeFileSync("x", "1")
console.log(fs.readFileSync("x", "utf8"), os.totalmem() > 0, process.memoryUsage().rss > 0)
console.log(os.tmpdir() === os.homedir())
console.log(child.execFileSync("node", ["-e", "console.log(2)"], {encoding: "utf8"}).trim())
new (require("worker_threads").Worker)("console.log(3)", {eval: true})
"""
    done = scene.run(["node", "-e", program])
    assert (done.returncode, done.stdout) == (0, "1 true true\ntrue\n2\n3\n")
    assert "# pass 1" in works(scene, "node --test --test-reporter=tap it.test.js")


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")
def test_make_builds_in_a_box(scene: Scene) -> None:
    (scene.worktree / "Makefile").write_text("out: ; printf built > $@\n")
    assert works(scene, "make -s; cat out") == "built"


def test_a_shell_pipes_substitutes_and_waits(scene: Scene) -> None:
    said = works(
        scene, "seq 3 | sort -r | head -n 1; (sleep 0 & wait); cat <<END\n$(date +%Y > year; wc -l < year)\nEND\n"
    )
    assert said.split() == ["3", "1"]
    if shutil.which("bash"):
        assert scene.run(["bash", "-c", "cat <(echo inside); echo ${HOME}"]).stdout == f"inside\n{scene.scratch}\n"


def test_host_and_user_names_are_resolved_in_a_box(scene: Scene) -> None:
    program = "import os, pwd, socket; print(socket.gethostbyname('localhost'), pwd.getpwuid(os.getuid()).pw_name)"
    assert python(scene, program).startswith("127.0.0.1 ")
