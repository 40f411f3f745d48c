"""Starting processes: what they get, where their output goes, and how they ended."""

from __future__ import annotations

import gc
import os
import signal
import stat
from pathlib import Path

import psutil
import pytest

from tests import given
from tests.process.stage import DEADLINE, Stage, gone
from workbench.process import MARK, ProcessRef, ProcessTable

# -- start


def test_a_command_gets_its_directory_environment_and_input_and_writes_to_the_log(stage: Stage) -> None:
    code = "import sys; print(os.getcwd(), os.environ['GREETING'], sys.stdin.read())"
    ref = stage.python(code, "grüße", GREETING="hello", PYTHONIOENCODING="utf-8")
    stage.ended(ref)
    assert stage.table.exit_code(ref) == 0
    assert stage.log.split() == [str(stage.path), "hello", "grüße"]


def test_a_process_gets_only_the_given_environment(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "of the server")
    stage.ended(stage.start(["env"]))
    assert {line.partition("=")[0] for line in stage.log.splitlines()} == {"PATH", MARK}


def test_a_process_that_is_being_ended_does_not_count_as_ended_by_itself(stage: Stage) -> None:
    ref = stage.start(["sleep", "60"])
    assert not stage.table.ended_by_itself(ref)
    with stage.table.ending(ref):
        with stage.table.ending(ref):
            stage.table.terminate(ref, 1.0)
        assert not stage.table.ended_by_itself(ref)
    assert stage.table.ended_by_itself(ref)


def test_a_long_input_arrives_whole_and_does_not_wait_for_its_reader(stage: Stage) -> None:
    assert stage.table.alive(stage.start(["sleep", "600"], "x" * 10_000_000))
    stage.ended(stage.start(["wc", "-c"], "x" * 10_000_000))
    stage.ended(stage.start(["wc", "-c"]))  # without a text the input is empty
    assert stage.log.split() == ["10000000", "0"]


def test_output_and_errors_are_appended_to_a_log_that_only_its_owner_may_read(stage: Stage, tmp_path: Path) -> None:
    log = tmp_path / "logs" / "agents" / "a.log"
    for word in ("one", "two"):
        command = ["sh", "-c", f"echo {word}; echo {word}! >&2"]
        stage.ended(stage.table.start(command, cwd=tmp_path, env=dict(os.environ), log=log))
    assert log.read_text().split() == ["one", "one!", "two", "two!"]
    assert stat.S_IMODE(log.stat().st_mode) == 0o600


def test_a_log_that_is_a_symbolic_link_is_not_followed(stage: Stage) -> None:
    (stage.path / "elsewhere").write_text("kept")
    (stage.path / "log").symlink_to("elsewhere")
    given.refused("SPAWN_FAILED", stage.start, ["echo", "lost"])
    assert stage.log == "kept"


def test_a_command_leads_a_session_and_a_group_of_its_own(stage: Stage) -> None:
    ref = stage.start(["sleep", "600"])
    assert os.getsid(ref.pid) == os.getpgid(ref.pid) == ref.pid != os.getpgid(0)


def test_open_files_are_not_passed_on(stage: Stage) -> None:
    with (stage.path / "secret").open("w") as secret:
        os.set_inheritable(secret.fileno(), True)
        stage.ended(stage.start(["sh", "-c", f"echo leaked >&{secret.fileno()}"]))
    assert (stage.path / "secret").read_text() == ""


def test_a_command_that_is_not_found_is_reported_by_name(stage: Stage) -> None:
    (script := stage.path / "script").write_text("#!/no/such/interpreter\n")
    script.chmod(0o700)
    for command in ("no-such-command-anywhere", str(script)):
        error = given.refused("COMMAND_NOT_FOUND", stage.start, [command])
        assert error.details == {"command": command}


def test_a_command_that_cannot_run_is_refused(stage: Stage) -> None:
    (stage.path / "data").write_text("data")
    for argv in ([], ["/"], ["echo", "a\0b"], ["./data"]):
        given.refused("SPAWN_FAILED", stage.start, argv)
    given.refused("SPAWN_FAILED", stage.table.start, ["ls"], cwd=stage.path / "no", env={}, log=stage.path / "log")


def test_a_failed_start_leaves_no_file_open(stage: Stage) -> None:
    before = psutil.Process().num_fds()
    for _ in range(5):
        given.refused("COMMAND_NOT_FOUND", stage.start, ["no-such-command-anywhere"], "input")
    assert psutil.Process().num_fds() == before


# -- alive and exit_code


def test_an_ended_process_has_an_exit_code_or_a_signal(stage: Stage) -> None:
    ref = stage.start(["sh", "-c", "exit 3"])
    stage.ended(ref)
    assert stage.table.exit_code(ref) == 3
    assert not psutil.pid_exists(ref.pid)
    killed = stage.start(["sleep", "600"])
    assert (stage.table.alive(killed), stage.table.exit_code(killed)) == (True, None)
    os.kill(killed.pid, signal.SIGKILL)
    stage.ended(killed)
    assert stage.table.exit_code(killed) == -signal.SIGKILL


def test_a_forgotten_process_continues(stage: Stage) -> None:
    forgotten = stage.start(["sleep", "600"])
    stage.table.forget(forgotten)
    gc.collect()
    assert stage.table.alive(forgotten)
    stage.table.terminate(forgotten, 0)
    assert not stage.table.alive(forgotten)


def test_another_table_knows_a_process_by_its_reference(stage: Stage) -> None:
    ref, other = stage.start(["sleep", "600"]), ProcessTable()
    assert other.alive(ProcessRef(ref.pid, ref.started))
    assert stage.table.terminate(ref, DEADLINE)
    assert not other.alive(ref)
    assert other.exit_code(ref) is None


def test_a_zombie_is_dead(stage: Stage) -> None:
    ref = stage.start(["true"])
    given.wait_until(lambda: gone(ref.pid))
    assert not ProcessTable().alive(ref)
    assert psutil.pid_exists(ref.pid), "nobody has asked for its exit code yet"


def test_a_pid_in_use_again_is_recognised_also_after_a_small_correction_of_the_clock(stage: Stage) -> None:
    ref = stage.start(["sleep", "600"])
    for shift in (-3600.0, 3600.0):
        former = ProcessRef(ref.pid, ref.started + shift)
        assert (stage.table.alive(former), stage.table.exit_code(former)) == (False, None)
    assert ProcessTable().alive(ProcessRef(ref.pid, ref.started + 1.0))
