"""Ending reluctant processes with all their descendants, and measuring them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests import given
from tests.process.stage import DEADLINE, FORK, SAY, STUBBORN, Stage, gone
from tests.unkillable import unkillable
from workbench.errors import Unavailable
from workbench.process import MARK, ProcessRef, ProcessTable

# -- terminate


def test_a_process_that_handles_sigterm_is_not_killed(stage: Stage) -> None:
    code = """
import signal, sys, time
def stop(*_):
    print("bye", flush=True)
    sys.exit(7)
signal.signal(signal.SIGTERM, stop)
say("ready")
time.sleep(600)
"""
    ref = stage.python(code)
    stage.pid("ready")
    assert stage.table.terminate(ref, DEADLINE)
    assert (stage.table.exit_code(ref), stage.log) == (7, "bye\n")


def test_a_process_that_ignores_sigterm_is_killed(stage: Stage) -> None:
    ref = stage.python(f"{STUBBORN}; say('ready'); time.sleep(600)")
    stage.pid("ready")
    assert stage.table.terminate(ref, 0.05)
    assert stage.table.exit_code(ref) == -signal.SIGKILL
    assert not psutil.pid_exists(ref.pid)


def test_a_stopped_process_can_be_ended_and_an_ended_one_is_not_found(stage: Stage) -> None:
    ref, by_itself = stage.start(["sleep", "600"]), stage.start(["true"])
    os.kill(ref.pid, signal.SIGSTOP)
    assert stage.table.terminate(ref, 0.05)
    stage.ended(by_itself)
    for ended in (ref, by_itself):
        assert not stage.table.terminate(ended, DEADLINE)
        usage = stage.table.usage([ended])[ended]
        assert (usage.cpu_seconds, usage.memory_bytes, list(usage.descendants)) == (0, 0, [])
    assert stage.table.exit_code(by_itself) == 0


DAEMON = "orphan, os.setsid, orphan, os.setsid"


@pytest.mark.parametrize("steps", ["", "os.setpgrp", "os.setsid", "orphan", "os.setsid, orphan", DAEMON])
@pytest.mark.parametrize("leader", ["stays", "left"])
def test_a_descendant_that_ignores_sigterm_is_ended_wherever_it_is(stage: Stage, steps: str, leader: str) -> None:
    wait = "time.sleep(600)" if leader == "stays" else ""
    ref = stage.python(f"{FORK}\nchild('child', {steps})\n{wait}")
    child = stage.pid("child")
    if leader == "left":
        stage.ended(ref)
    assert stage.table.terminate(ref, 0.05)
    assert gone(child)
    assert not stage.table.alive(ref)


@pytest.mark.parametrize("steps", ["os.setsid", "orphan", "os.setpgrp, orphan"])
def test_a_descendant_without_the_mark_is_found_by_its_ancestry_or_session(stage: Stage, steps: str) -> None:
    bare = "trap : TERM; echo $$ > bare.part; mv bare.part bare; while :; do sleep 600; done"
    path = os.environ["PATH"]
    become = f"os.execve('/bin/sh', ['sh', '-c', {bare!r}], {{'PATH': {path!r}}})"
    ref = stage.python(f"{FORK}\nchild('x', {steps}, lambda: {become})\ntime.sleep(600)")
    child = stage.pid("bare")
    assert stage.table.terminate(ref, 0.05)
    assert gone(child)


def test_children_that_are_started_during_termination_are_ended_too(stage: Stage) -> None:
    code = f"""
{FORK}
def again(*_):
    child("late", os.setsid, orphan)
signal.signal(signal.SIGTERM, again)
say("ready")
while True:
    time.sleep(600)
"""
    ref = stage.python(code)
    stage.pid("ready")
    ended = stage.table.terminate(ref, 0.5)
    assert (ended, gone(stage.pid("late"))) == (True, True)


def test_a_tree_that_keeps_forking_is_ended(stage: Stage) -> None:
    code = f"""
{STUBBORN}
say("ready")
while True:
    if os.fork():
        time.sleep(0.02)
        os._exit(0)
    os.setsid()
"""
    ref = stage.python(code)
    stage.pid("ready")
    assert stage.table.terminate(ref, 0.05)
    assert not marked(ref)


def marked(ref: ProcessRef) -> list[int]:
    assert ref.mark
    found = []
    for process in psutil.process_iter():
        try:
            if ref.mark in process.environ().get(MARK, "") and not gone(process.pid):
                found.append(process.pid)
        except psutil.Error:
            continue
    return found


@pytest.mark.parametrize("steps", ["", "os.setsid", "os.setsid, orphan"])
def test_after_a_restart_the_descendants_of_a_running_process_are_found(stage: Stage, steps: str) -> None:
    ref = stage.python(f"{FORK}\nchild('child', {steps})\ntime.sleep(600)")
    child = stage.pid("child")
    assert ProcessTable().terminate(ProcessRef(ref.pid, ref.started), 0.05)
    assert gone(child)
    assert gone(ref.pid)


@pytest.mark.long
def test_a_tree_that_was_started_by_a_member_of_another_ends_with_that_one(stage: Stage) -> None:
    code = """
from pathlib import Path
from workbench.process import ProcessTable
table = ProcessTable()
command = ["sh", "-c", "(setsid sh -c 'echo $$ > inner.part; mv inner.part inner; sleep 600' &)"]
table.start(command, cwd=Path.cwd(), env={"PATH": os.environ["PATH"]}, log=Path("inner.log"))
import time
time.sleep(600)
"""
    ref = stage.start([sys.executable, "-c", SAY + code], PYTHONPATH=os.pathsep.join(sys.path))
    inner = stage.pid("inner")
    assert stage.table.terminate(ref, DEADLINE)
    assert gone(inner)


# -- strangers


@pytest.fixture
def stranger() -> Iterator[subprocess.Popen[bytes]]:
    """A process that is no business of the table."""
    with subprocess.Popen(["sleep", "600"], start_new_session=True) as process:
        yield process
        process.kill()


def test_a_process_with_the_pid_and_another_start_is_never_signalled(stranger: subprocess.Popen[bytes]) -> None:
    for shift in (-3600.0, 3600.0):
        started = psutil.Process(stranger.pid).create_time() + shift
        assert not ProcessTable().terminate(ProcessRef(stranger.pid, started), 0)
    assert stranger.poll() is None


def test_the_session_of_a_stranger_that_had_the_same_pid_is_never_signalled(tmp_path: Path) -> None:
    left = ["sh", "-c", "sleep 600 & echo $! > left"]
    with subprocess.Popen(left, cwd=tmp_path, start_new_session=True) as leader:
        started = psutil.Process(leader.pid).create_time()
    child = int((tmp_path / "left").read_text())
    try:
        assert not ProcessTable().terminate(ProcessRef(leader.pid, started), 0)
        assert not gone(child)
    finally:
        os.kill(child, signal.SIGKILL)


def test_a_restart_finds_the_group_of_an_ended_process_unless_from_before_boot(
    stage: Stage,
) -> None:
    ref = stage.python(f"{FORK}\nchild('child')")
    child = stage.pid("child")
    stage.ended(ref)
    before = ProcessRef(ref.pid, psutil.boot_time() - 1)
    assert not ProcessTable().terminate(before, 0)
    assert not gone(child)
    assert ProcessTable().terminate(ref, 0.05)
    assert gone(child)


def test_only_the_process_itself_is_ended_where_it_shares_the_session_of_the_caller() -> None:
    with subprocess.Popen(["sleep", "600"]) as process:
        ref = ProcessRef(process.pid, psutil.Process(process.pid).create_time())
        assert ProcessTable().terminate(ref, DEADLINE)
    assert process.returncode == -signal.SIGTERM


def test_two_trees_of_one_table_do_not_end_each_other(stage: Stage) -> None:
    one, other = stage.start(["sleep", "600"]), stage.start(["sleep", "600"])
    assert stage.table.terminate(one, DEADLINE)
    assert stage.table.alive(other)


# -- processes that cannot be ended


@pytest.mark.long
def test_a_process_that_cannot_be_ended_is_named_and_can_be_ended_later(stage: Stage) -> None:
    ref = stage.python(f"{FORK}\nchild('child')\ntime.sleep(600)")
    child = stage.pid("child")
    with unkillable(child):
        with pytest.raises(Unavailable, match=f"PROCESS_SURVIVED: SIGKILL did not end {child}") as caught:
            stage.table.terminate(ref, 0, 2.0)
        assert caught.value.details == {"pids": [child]}
        assert not stage.table.alive(ref)
        assert [member.pid for member in stage.table.usage([ref])[ref].descendants] == [child]
    given.wait_until(lambda: gone(child))
    assert not stage.table.terminate(ref, 0)


# -- usage


def test_the_usage_of_a_process_includes_descendants_that_left_its_session(stage: Stage) -> None:
    ref = stage.python(f"{FORK}\nchild('child', os.setsid, orphan)\nwhile True: pass")
    child = stage.pid("child")
    given.wait_until(lambda: stage.table.usage([ref])[ref].cpu_seconds > 0.05)
    usage = stage.table.usage([ref])[ref]
    assert [member.pid for member in usage.descendants] == [child]
    assert usage.memory_bytes > usage.descendants[0].memory_bytes > 0


SUBREAPER = r"""
import os, sys, time
from workbench.process import ProcessRef, ProcessTree, adopt_orphans, new_mark
if not adopt_orphans():
    sys.exit(75)
mark = new_mark()
burn = "import os, time\nend = time.process_time() + 0.2\nwhile time.process_time() < end: pass"
script = '(setsid env -i "$0" -c "$1" & setsid env -i sleep 600 &)'
root = os.spawnlp(os.P_NOWAIT, "sh", "sh", "-c", script, sys.executable, burn)
tree = ProcessTree(ProcessRef.of_new(root, mark), adopts_orphans=True)
os.waitpid(root, 0)
while tree.usage().cpu_seconds < 0.2 or len(tree.find()) != 1:
    time.sleep(0.01)
assert [process.name() for process in tree.find()] == ["sleep"]
tree.kill()
try:
    os.waitpid(-1, os.WNOHANG)
except ChildProcessError:
    print("nothing is left")
"""


def test_an_adopting_process_finds_unmarked_orphans_and_counts_ended_ones(stage: Stage) -> None:
    ref = stage.start([sys.executable, "-c", SUBREAPER], PYTHONPATH=os.pathsep.join(sys.path))
    stage.ended(ref)
    if stage.table.exit_code(ref) == 75:
        pytest.skip("this system does not let a process adopt orphans")
    assert (stage.table.exit_code(ref), stage.log) == (0, "nothing is left\n")
