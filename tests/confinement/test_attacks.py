"""A hostile worker: each attack is refused by the kernel, or harms nobody but itself."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.confinement.scene import BOXES, PEOPLE, SECRET, Scene
from tests.git.parts import ended
from workbench.errors import Unavailable, WorkbenchError
from workbench.git import CommitIdentity, changed

pytestmark = [pytest.mark.timeout(120), pytest.mark.long]

ATTACKS: dict[str, dict[str, str]] = yaml.safe_load(Path(__file__).with_name("attacks.yaml").read_text("utf-8"))


def each(kind: str) -> pytest.MarkDecorator:
    """Every attack of one kind, as the parameter `attack`."""
    return pytest.mark.parametrize("attack", ATTACKS[kind].values(), ids=ATTACKS[kind].keys())


@pytest.fixture
def supervisor(scene: Scene) -> Iterator[subprocess.Popen[bytes]]:
    with supervised(scene) as process:
        yield process


@contextmanager
def supervised(scene: Scene) -> Iterator[subprocess.Popen[bytes]]:
    """A process by the same user as the worker, with a secret in its environment and in an open file."""
    script = f"exec 5< untracked.txt; echo; read line {SECRET}"
    process = subprocess.Popen(
        ["/bin/sh", "-c", script],
        cwd=scene.project,
        env={"PATH": os.defpath, "SUPERVISORS_TOKEN": SECRET},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        user=scene.user,
        group=scene.user,
    )
    assert process.stdout is not None
    process.stdout.readline()
    yield process
    process.communicate(timeout=10)


@each("reading")
def test_a_worker_that_reads_foreign_files_learns_nothing(
    scene: Scene, supervisor: subprocess.Popen[bytes], attack: str
) -> None:
    before = scene.outside()
    assert SECRET not in scene.tried(attack, SUPERVISOR=str(supervisor.pid))
    assert scene.outside() == before


@each("writing")
def test_a_worker_that_writes_foreign_files_changes_nothing(
    scene: Scene, supervisor: subprocess.Popen[bytes], attack: str
) -> None:
    before = scene.outside()
    scene.tried(attack, SUPERVISOR=str(supervisor.pid))
    assert scene.outside() == before
    assert supervisor.poll() is None


def each_trap() -> Iterator[Any]:
    """Every trap by each who works in a scene, by turns in boxes without and with namespaces."""
    for number, (name, attack) in enumerate(ATTACKS["traps"].items()):
        for box in BOXES[number * len(PEOPLE) % len(BOXES) :][: len(PEOPLE)]:
            yield pytest.param(attack, *box.values, id=f"{name}-{box.id}")


@pytest.mark.parametrize(("attack", "scene"), [*each_trap()], indirect=["scene"])
def test_files_left_by_a_worker_do_not_run_when_the_operator_looks_at_them(scene: Scene, attack: str) -> None:
    scene.tried(attack)
    repository, before = scene.repository, scene.repository.protected()
    branch = "wb/a/main"
    # Of a pipe git reads until it is ended.
    checkout = replace(scene.checkout, limit=0.5) if "mkfifo" in attack else scene.checkout
    for look in (
        checkout.head,
        checkout.uncommitted,
        lambda: checkout.dirty_diff(100_000),
        lambda: checkout.commit_all("All", CommitIdentity("Worker", "worker@localhost")),
        lambda: repository.unverified_branch(scene.own, branch),
        lambda: repository.import_branch(checkout, branch, max_bytes=1_000_000),
        lambda: repository.diff("main", branch, max_bytes=100_000),
        lambda: repository.preview_merge("main", branch),
        lambda: repository.merge_commit(branch, "main", "Try", CommitIdentity("P", "p@localhost")),
    ):
        with suppress(WorkbenchError):  # a worker may spoil its own work
            look()
    ours = f"refs/heads/{branch}"
    assert [what for what in changed(before, repository.protected()) if ours not in what] == []
    for command in (["status"], ["log", "--all"], ["worktree", "list"], ["pack-refs", "--all"], ["gc"], ["fsck"]):
        done = subprocess.run(["git", *command], cwd=scene.project, capture_output=True, text=True)
        assert done.returncode == 0, f"git {command[0]}: {done.stderr}"
    assert not scene.marker.exists()


FILTER_THAT_STAYS = """
import os, sys
if os.fork():
    sys.stdout.buffer.write(sys.stdin.buffer.read())
elif os.setsid() and os.fork():
    os._exit(0)
else:
    with open(f"pid-{os.getpid()}.ignored", "w"):
        pass
    os.execve("/bin/sh", ["sh", "-c", "exec < /dev/null > /dev/null 2>&1; while :; do sleep 60; done"], {})
"""


@pytest.mark.parametrize("hangs", [False, True], ids=["that ends", "that hangs"])
def test_processes_that_git_starts_in_a_worktree_end_with_the_call(scene: Scene, hangs: bool) -> None:
    (scene.worktree / "filter.py").write_text(FILTER_THAT_STAYS)
    wait = "; sleep 600" if hangs else ""
    scene.tried(
        f"git config filter.x.clean '\"$PYTHON\" filter.py{wait}'\n"
        "echo '*.txt filter=x' > .gitattributes; echo '*.ignored' > .gitignore; echo more >> shared.txt"
    )
    guarded = replace(scene.checkout, wrap=scene.guard, limit=1.0 if hangs else 30.0)
    with pytest.raises(Unavailable) if hangs else nullcontext():
        assert guarded.dirty_diff(100_000)
    pids = [int(path.stem.removeprefix("pid-")) for path in scene.worktree.glob("pid-*")]
    assert pids
    assert all(map(ended, pids))


def test_a_changed_file_mode_of_a_hook_is_found_afterwards(scene: Scene) -> None:
    """Landlock does not cover modes; what is read-only cannot be changed at all."""
    hook = scene.project / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\n")
    scene.hand_over()
    before = scene.repository.protected()
    scene.tried('chmod +x "$P/.git/hooks/pre-commit"')
    found = [what for what in changed(before, scene.repository.protected()) if "pre-commit" in what]
    assert bool(found) is not bool(scene.namespaces)


@pytest.mark.parametrize(
    "attack", ["climbs up", "reads the server's token", "goes through the supervisor's directory", "links a file in"]
)
def test_without_a_box_the_attack_succeeds(scene: Scene, supervisor: subprocess.Popen[bytes], attack: str) -> None:
    script = ATTACKS["reading"][attack]
    done = scene.work(script, replace(scene.box, enforce=False), SUPERVISOR=str(supervisor.pid))
    assert SECRET in done.stdout


def test_a_worker_reaches_no_abstract_socket(scene: Scene) -> None:
    name = f"\0workbench-{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(name)
        listening.listen()
        done = scene.work(
            f"""exec "$PYTHON" -c "import socket; socket.socket(socket.AF_UNIX).connect('\\0'+'{name[1:]}')" """
        )
    assert "not permitted" in done.stdout
