"""Hours in seconds: the time of some processes leaps ahead whenever all of them wait, and passes as usual else.

So what takes real time, such as git and the start of a process, takes no more than on any day, and a lease of two
minutes lasts as long as two minutes of waiting. A leap is shorter than the pause after which the server thinks that it
stood still.
"""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from tests.night import warp

LEAP = 4.5
"""Seconds; less than `workbench.services.tasks.expiry.STALL`."""
FASTEST = 600
"""Seconds that pass in one of the machine's while all wait."""
LOOK_SECONDS = 0.001
_SITE = """\
import site; site.addsitedir({site!r})
import os, sys; sys.path.append({here!r}); "NIGHT_CLOCK" in os.environ and __import__("warp")
"""


class NightClock:
    """The time of the processes that `environment` is given to and that `python` runs, with all that they start."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        (directory / warp.WAITERS).mkdir(parents=True)
        (directory / warp.AHEAD).write_bytes(bytes(8))
        self._ahead = 0
        self._sender = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._sender.setblocking(False)
        self.python = _interpreter(directory / "venv")
        self.environment = {"NIGHT_CLOCK": str(directory)}
        self._began = time.time()
        self._before: dict[str, int] = {}
        self._known: set[int] = set()
        self._leapt_at = 0.0
        self.leaps = 0

    @property
    def now(self) -> float:
        """The time, seconds since the epoch."""
        return time.time() + self._ahead / 1e9

    @property
    def passed(self) -> float:
        """Seconds since the clock was made."""
        return self.now - self._began

    def tick(self, roots: Iterable[int]) -> None:
        """Let time pass: it leaps if the processes with some ids, and all that they have started, only wait.

        Such a process counts although the one that started it has ended.
        """
        used = _used({*roots} | self._known)
        if used is None or used != self._before:
            self._before = used or {}
            time.sleep(LOOK_SECONDS)
            return
        self._known = {int(place.split("/")[2]) for place in used}
        self._before = {}
        time.sleep(max(0.0, self._leapt_at + LEAP / FASTEST - time.time()))
        self._leap(LEAP)
        self._leapt_at = time.time()

    def close(self) -> None:
        """Wake nobody any more."""
        self._sender.close()

    def _leap(self, seconds: float) -> None:
        """Let time leap, and wake all that wait for a time."""
        self._ahead += int(seconds * 1e9)
        self.leaps += 1
        with (self.directory / warp.AHEAD).open("r+b") as file:
            file.write(struct.pack("<q", self._ahead))
        for waiter in os.listdir(self.directory / warp.WAITERS):
            address = str(self.directory / warp.WAITERS / waiter)
            try:
                self._sender.sendto(b"!", address)
            except BlockingIOError:
                pass  # it has not read the last one yet
            except OSError:
                with suppress(OSError):
                    os.unlink(address)


def _used(roots: Iterable[int]) -> dict[str, int] | None:
    """The processor time of each thread of some processes and of those below them; None if one of them works."""
    used: dict[str, int] = {}
    pending = list(roots)
    while pending:
        pid = pending.pop()
        try:
            threads = os.listdir(f"/proc/{pid}/task")
            for thread in threads:
                place = f"/proc/{pid}/task/{thread}"
                stat = _read(f"{place}/stat").rpartition(b") ")[2]
                if stat[:1] in b"RD":
                    return None
                used[place] = int(_read(f"{place}/schedstat").split()[0])
                pending += map(int, _read(f"{place}/children").split())
        except (FileNotFoundError, ProcessLookupError):
            continue
    return used


def _read(path: str) -> bytes:
    with open(path, "rb", buffering=0) as file:
        return file.read(4096)


def _interpreter(place: Path) -> Path:
    """An interpreter with all that this one has, whose processes can have the clock's time."""
    (place / "bin").mkdir(parents=True)
    python = place / "bin" / "python"
    python.symlink_to(Path(sys.executable).resolve())
    home = Path(sys.executable).resolve().parent
    (place / "pyvenv.cfg").write_text(f"home = {home}\nversion = {sys.version.split()[0]}\n")
    site = place / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
    site.mkdir(parents=True)
    (site / "night.pth").write_text(_SITE.format(site=sysconfig.get_path("purelib"), here=str(Path(__file__).parent)))
    subprocess.run([python, "-c", "import workbench, pydantic"], check=True)
    return python
