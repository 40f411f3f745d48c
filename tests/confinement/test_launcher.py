"""The launcher of every boxed command: what it passes on, how it fails, what it leaves behind."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.git.parts import ended
from workbench.confinement import Box, BoxLimits, abilities, box_for_worktree, namespaces

pytestmark = pytest.mark.skipif(not abilities().abi, reason="this system has no Landlock")

FINE, CANNOT_CONFINE, CANNOT_EXECUTE, NOT_FOUND = 0, 125, 126, 127


@pytest.fixture
def box(tmp_path: Path) -> Box:
    """A worktree, its repository and a home, all empty."""
    for name in ("worktree", "repository"):
        (tmp_path / name).mkdir()
    return box_for_worktree(
        worktree=tmp_path / "worktree", git_dir=tmp_path / "repository", objects=(), scratch=tmp_path / "scratch"
    )


def run(
    box: Box, *command: str, limits: BoxLimits | None = None, pass_fds: tuple[int, ...] = ()
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        box.argv(command, limits),
        cwd=box.write[0],
        env=box.environment(os.environ),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        pass_fds=pass_fds,
        timeout=60,
    )


def python(box: Box, program: str, **more: BoxLimits | tuple[int, ...]) -> str:
    done = run(box, sys.executable, "-I", "-c", program, **more)  # type: ignore[arg-type]
    assert done.returncode == FINE, done.stderr
    return done.stdout


def test_the_trial_of_namespaces_needs_no_temporary_directory_that_a_box_sees(monkeypatch: pytest.MonkeyPatch) -> None:
    with TemporaryDirectory(prefix="it's here", dir="/dev/shm") as directory:
        monkeypatch.setenv("TMPDIR", directory)
        assert namespaces.available.__wrapped__() == abilities().namespaces


# Exit statuses


def test_the_exit_status_is_that_of_the_command(box: Box) -> None:
    (box.write[0] / "text").write_text("text")
    (box.write[0] / "text").chmod(0o755)
    for script, status in {
        "exit 75": 75,
        "kill -TERM $$": -signal.SIGTERM,
        "yes | head -n 1; kill -s PIPE $$": -signal.SIGPIPE,  # who writes to nobody is ended by the system
    }.items():
        assert run(box, "sh", "-c", script).returncode == status, script
    assert run(box, "./text").returncode == CANNOT_EXECUTE


def test_a_missing_command_is_reported_as_missing(box: Box) -> None:
    done = run(box, "no-such-command")
    assert (done.returncode, done.stdout) == (NOT_FOUND, "")
    assert done.stderr == "no-such-command: there is no such command, or none to interpret it.\n"


def test_an_unexecutable_command_is_reported_with_the_remedy(box: Box, on_disk: Path) -> None:
    tool = on_disk / "tool"
    tool.write_text("#!/bin/sh\necho done\n")
    tool.chmod(0o755)
    done = run(box, str(tool))
    assert (done.returncode, len(done.stderr.splitlines())) == (CANNOT_EXECUTE, 1)
    assert "confinement_read" in done.stderr
    assert run(replace(box, read=(tool.parent,)), str(tool)).stdout == "done\n"


@pytest.mark.parametrize("broken", ["fs=ffffffffffffffff", "filter=0000000000000000", "connect=99999", "limit=99:1"])
def test_a_command_that_cannot_be_confined_does_not_run(box: Box, broken: str) -> None:
    own = box.namespaces if broken.startswith("fs=") else frozenset()  # where ports are its own, none is looked at
    argv = replace(box, namespaces=own).argv(["sh", "-c", "echo ran"])
    argv.insert(argv.index("--"), broken)
    if broken.startswith("fs="):
        argv = [argument for argument in argv if not argument.startswith("fs=") or argument == broken]
    done = subprocess.run(argv, cwd=box.write[0], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (CANNOT_CONFINE, "")
    assert done.stderr.startswith("The command could not be confined, so it was not run: ")


# What is passed on


def test_no_file_is_passed_on_but_the_first_three(box: Box, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    with secret.open() as file, secret.open() as high:
        os.dup2(high.fileno(), 900)
        try:
            found = python(box, "import os; print(os.listdir('/proc/self/fd'))", pass_fds=(file.fileno(), 900))
        finally:
            os.close(900)
    assert found == "['0', '1', '2', '3']\n"  # the last one is the directory being listed


def test_the_arguments_are_passed_on_as_they_are(box: Box) -> None:
    odd = ["", "--", "fs=0", "a b", "ü\udcff", "-c"]
    done = subprocess.run(
        box.argv(["printf", "[%s]", *odd]), cwd=box.write[0], env=box.environment({}), capture_output=True, timeout=60
    )
    assert os.fsdecode(done.stdout) == "".join(f"[{one}]" for one in odd)


# Limits


def test_resource_limits_hold_as_far_as_given(box: Box) -> None:
    program = (
        "import resource as r; print(r.getrlimit(r.RLIMIT_CPU), r.getrlimit(r.RLIMIT_DATA), r.getrlimit(r.RLIMIT_CORE))"
    )
    unlimited = resource.RLIM_INFINITY
    before = [resource.getrlimit(which) for which in (resource.RLIMIT_CPU, resource.RLIMIT_DATA)]
    assert before == [(unlimited, unlimited)] * 2
    some = python(box, program, limits=BoxLimits(cpu_seconds=2.5, memory_bytes=1 << 30, wall_seconds=9, tasks=1))
    assert some == f"(3, 3) ({1 << 30}, {1 << 30}) (0, 0)\n"
    assert python(box, program) == f"{(unlimited, unlimited)} {(unlimited, unlimited)} (0, 0)\n"


def test_a_command_that_takes_more_than_its_memory_is_refused_it(box: Box) -> None:
    done = run(box, sys.executable, "-I", "-c", "b'x' * (1 << 30)", limits=BoxLimits(memory_bytes=200 << 20))
    assert "MemoryError" in done.stderr


# Paths


def test_a_link_in_place_of_an_allowed_path_is_not_opened(box: Box, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    place = box.write[0] / "cache"
    place.symlink_to(outside)
    run(replace(box, write=(*box.write, place)), "sh", "-c", "echo x > cache/x")
    assert not any(outside.iterdir())


def test_a_box_resolves_links_when_it_is_made_and_skips_missing_paths(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (link := tmp_path / "link").symlink_to(tmp_path / "real")
    absent = tmp_path / "absent"
    box = box_for_worktree(worktree=link, git_dir=link, objects=(), scratch=link)
    assert box.write == (tmp_path / "real",)
    wider = replace(box, read=(absent,), write=(*box.write, absent))
    assert run(wider, "sh", "-c", "echo x > x && cat x").stdout == "x\n"


def test_files_can_be_opened_one_by_one(box: Box, tmp_path: Path) -> None:
    for name in ("read", "write", "none"):
        (tmp_path / name).write_text(name)
    wider = replace(box, read=(tmp_path / "read",), write=(*box.write, tmp_path / "write"))
    done = run(wider, "sh", "-c", "cat ../read ../write ../none; echo more >> ../write; echo more >> ../read")
    assert done.stdout == "readwrite"
    assert [(tmp_path / name).read_text() for name in ("read", "write")] == ["read", "writemore\n"]


def test_a_box_equals_itself_after_json(box: Box) -> None:
    for one in (box, replace(box, connect=(80, 443), enforce=False, read=(Path("/usr"),))):
        assert Box.from_json(one.as_json()) == one


# Guarded commands

DAEMON = """
import os, sys
source, sink = os.pipe()
if os.fork():
    os.close(sink)
    print(os.read(source, 99).decode(), flush=True)
else:
    os.setsid()
    if os.fork():
        os._exit(0)
    os.write(sink, str(os.getpid()).encode())
    null = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(null, number)
    os.execve("/bin/sh", ["sh", "-c", "trap '' TERM HUP; while :; do sleep 60; done"], {})
"""
"""Leaves a process in a session of its own, with no environment, and prints its id."""


def start_guarded(box: Box, script: str, **more: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        box.guarded(["sh", "-c", script]),
        cwd=box.write[0],
        env=box.environment(os.environ) | {"PYTHON": sys.executable, "DAEMON": DAEMON} | more,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


@pytest.mark.parametrize("enforce", [True, False], ids=["in the box", "without walls"])
def test_nothing_that_a_guarded_command_started_outlives_it(box: Box, enforce: bool) -> None:
    leave_two = '"$PYTHON" -c "$DAEMON"; "$PYTHON" -c "$DAEMON"; exit 7'
    with start_guarded(replace(box, enforce=enforce), leave_two) as process:
        printed, _ = process.communicate(timeout=60)
    assert (process.returncode, len(printed.split())) == (7, 2)
    assert all(ended(int(pid)) for pid in printed.split())


def test_a_guarded_command_ends_as_it_would_without_a_guard(box: Box) -> None:
    killed = {"kill -TERM $$": -signal.SIGTERM, "kill -KILL $$": -signal.SIGKILL}
    for script, status in (killed | {"exit 0": 0, "exit 75": 75, "exec no-such-command": NOT_FOUND}).items():
        with start_guarded(box, script) as process:
            assert process.wait(60) == status, script


@pytest.mark.long
def test_a_guarded_command_that_ignores_being_terminated_is_killed_with_all_it_started(box: Box) -> None:
    with start_guarded(box, 'trap \'\' TERM; "$PYTHON" -c "$DAEMON"; echo $$; while :; do sleep 60; done') as process:
        assert process.stdout
        pids = [int(process.stdout.readline()), int(process.stdout.readline())]
        os.killpg(process.pid, signal.SIGTERM)
        assert process.wait(60) == -signal.SIGKILL
    assert all(map(ended, pids))


def test_an_interrupt_from_the_terminal_is_for_the_guarded_command(box: Box) -> None:
    script = """trap 'exit 9' INT; "$PYTHON" -c "$DAEMON"; while :; do sleep 0.05; done"""
    with start_guarded(box, script) as process:
        assert process.stdout
        daemon = int(process.stdout.readline())
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(60) == 9
    assert ended(daemon)


def test_a_guarded_command_ends_with_the_process_that_started_it(box: Box) -> None:
    script = '"$PYTHON" -c "$DAEMON"; exec sleep 600'
    starter = "import subprocess, sys; subprocess.run(sys.argv[1:], start_new_session=True)"
    with subprocess.Popen(
        [sys.executable, "-c", starter, *box.guarded(["sh", "-c", script])],
        cwd=box.write[0],
        env=box.environment(os.environ) | {"PYTHON": sys.executable, "DAEMON": DAEMON},
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stdout
        daemon = int(server.stdout.readline())
        server.kill()
        assert server.stdout.read() == ""  # the command, which holds the pipe too, has ended
    assert ended(daemon)


def test_a_guarded_command_cannot_end_its_guard(box: Box) -> None:
    with start_guarded(box, 'kill -KILL $PPID 2>&1; "$PYTHON" -c "$DAEMON"') as process:
        printed, _ = process.communicate(timeout=60)
    *refusal, daemon = printed.split()
    assert "permitted" in refusal
    assert ended(int(daemon))


# Without walls


def test_without_enforcement_the_surroundings_and_limits_are_the_same(box: Box, tmp_path: Path) -> None:
    (tmp_path / "outside").write_text("outside")
    free = replace(box, enforce=False)
    assert run(free, "sh", "-c", "cat ../outside; echo; echo $HOME").stdout == f"outside\n{box.scratch}\n"
    assert run(free, "sh", "-c", "while :; do :; done", limits=BoxLimits(cpu_seconds=0.1)).returncode == -9
