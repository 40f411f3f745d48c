"""Ctrl-C interrupts Workbench, and none of the programs that it runs for its own work."""

from __future__ import annotations

import ast
import os
import signal
import sys
from pathlib import Path
from subprocess import PIPE, Popen, TimeoutExpired

import pytest

from tests.given import wait_until
from tests.process.stage import gone
from workbench.system import uninterrupted

pytestmark = pytest.mark.timeout(60)

STARTS = 25
GIT = "run(['version'], Path('/'), {}, 30).code"
SESSION = "uninterrupted.run(['true']).returncode"
GROUP = "uninterrupted.run(['true'], keeps_session=True).returncode"
BUSY = f"""
import signal
from pathlib import Path
from workbench.system import uninterrupted
from workbench.git.run import run
signal.signal(signal.SIGINT, lambda *_: None)
print("ready", flush=True)
print([START for _ in range({STARTS})], flush=True)
"""
WAITING = """
import signal
from workbench.system import uninterrupted
signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs of a shell ignore it
uninterrupted.run(["sh", "-c", "echo $$ > pid; sleep 600"])
"""


@pytest.mark.parametrize("start", [GIT, SESSION, GROUP], ids=["git", "session", "group"])
def test_no_program_ends_by_an_interrupt_while_it_starts(start: str) -> None:
    with Popen([sys.executable, "-c", BUSY.replace("START", start)], stdout=PIPE, process_group=0) as process:
        assert process.stdout
        process.stdout.readline()
        while not os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG):
            os.killpg(process.pid, signal.SIGINT)  # as Ctrl-C does, at every moment of every start
        assert ast.literal_eval(process.stdout.read().decode()) == [0] * STARTS


def test_an_interrupt_of_its_caller_ends_a_program(tmp_path: Path) -> None:
    with Popen([sys.executable, "-c", WAITING], stderr=PIPE, cwd=tmp_path, process_group=0) as process:
        wait_until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text())
        os.killpg(process.pid, signal.SIGINT)
        _, error = process.communicate()
    assert b"KeyboardInterrupt" in error
    assert gone(int((tmp_path / "pid").read_text()))


def test_a_program_that_takes_too_long_is_ended() -> None:
    with pytest.raises(TimeoutExpired), uninterrupted.started(["sleep", "600"]) as process:
        process.wait(0.01)
    assert process.returncode == -signal.SIGTERM


def test_interrupts_work_again_after_a_program_has_run() -> None:
    uninterrupted.run(["true"])
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())
