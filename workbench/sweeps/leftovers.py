"""A sweep that begins ends the processes of sweeps that were killed, and removes their sockets.

The agents that their runs started are ended by the project's server; see `services.runs.ending`.
"""

from __future__ import annotations

import os

from workbench import file_lock
from workbench.process.marks import MARK, marks_of
from workbench.process.tree import running_processes
from workbench.rules.sweeps.marks import sweep_mark
from workbench.settings import Settings
from workbench.sweeps import sockets
from workbench.sweeps.watch import end_marked

LOCK = ".lock"


def end_leftovers(settings: Settings) -> None:
    """End what killed sweeps of this project left running, and remove the sockets of kernels whose sweeps were killed.

    A sweep that runs holds its lock, and is left alone; so is what this process itself is part of.
    """
    sockets.remove_left()
    if not settings.runs.is_dir():
        return
    running = {mark for row in running_processes() for mark in marks_of(row.process)}
    running -= {*os.environ.get(MARK, "").split(":")}
    for place in settings.runs.iterdir():
        mark = sweep_mark(place.name, str(settings.project))
        if mark in running and (place / LOCK).exists():
            with file_lock.held(place / LOCK) as is_held:
                if is_held:
                    end_marked(mark)
