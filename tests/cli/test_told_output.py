"""`worktrees run` in a person's terminal tells the worktree's own paths, and leaves what is written to files alone."""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from tests import given
from workbench.app import Workbench
from workbench.confinement import abilities

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.timeout(60),
    pytest.mark.long,
    pytest.mark.skipif(not abilities().namespaces, reason="no namespaces"),
]

DIALOGUE = 'tty -s && stty size; printf "at $PWD/a\\nname? "; read name; echo "hello $name in $PWD/"; echo $PWD > told'


class Terminal:
    """A terminal in which a person typed a command."""

    def __init__(self, project: Path, *words: str) -> None:
        self._own, other = pty.openpty()
        fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", 31, 117, 0, 0))
        argv = [sys.executable, "-m", "workbench.cli", "--project", str(project), *words]
        self.program = subprocess.Popen(argv, stdin=other, stdout=other, stderr=other, start_new_session=True)
        os.close(other)
        self.shown = ""

    def until(self, pattern: str) -> str:
        """All that is shown, once that has a pattern."""
        while not re.search(pattern, self.shown):
            self.shown += os.read(self._own, 4096).decode()
        return self.shown

    def type(self, keys: str) -> None:
        os.write(self._own, keys.encode())

    def end(self) -> int:
        """The status of the program, which has ended."""
        while True:
            try:
                chunk = os.read(self._own, 4096)
            except OSError:  # nobody has it open
                chunk = b""
            if not chunk:
                os.close(self._own)
                return self.program.wait()
            self.shown += chunk.decode()


async def test_a_dialogue_in_a_terminal_tells_the_worktrees_paths(workbench: Workbench, repository: Path) -> None:
    place = await given.worktree(workbench)

    def talk() -> tuple[str, int]:
        terminal = Terminal(repository, "worktrees", "run", "lab", "--", "sh", "-c", f"{DIALOGUE}; exit 7")
        terminal.until(r"name\? $")
        terminal.type("Ada\r")
        status = terminal.end()
        return terminal.shown, status

    shown, status = await asyncio.to_thread(talk)
    assert status == 7
    assert shown.replace("\r", "") == f"31 117\nat {place}/a\nname? Ada\nhello Ada in {place}/\n"
    assert (place / "told").read_text() == f"{repository}\n"  # what it writes to files is as it is in the box


async def test_an_interrupt_in_the_terminal_ends_the_command(workbench: Workbench, repository: Path) -> None:
    await given.worktree(workbench)

    def interrupt() -> int:
        terminal = Terminal(repository, "worktrees", "run", "lab", "--", "sh", "-c", "echo begun; exec sleep 600")
        terminal.until("begun")
        terminal.type("\x03")
        return terminal.end()

    assert await asyncio.to_thread(interrupt) == 130


async def test_what_is_written_to_a_file_or_a_pipe_is_left_alone(workbench: Workbench, repository: Path) -> None:
    await given.worktree(workbench)
    words = [sys.executable, "-m", "workbench.cli", "--project", str(repository), "worktrees", "run", "lab", "pwd"]
    done = await asyncio.to_thread(subprocess.run, words, capture_output=True, text=True)
    assert (done.stdout, done.returncode) == (f"{repository}\n", 0)
