"""Spawning agents: who may, where, with what; waiting for room; starting again.

An agent has one process at a time, and the same identity in all of them. Its token is made anew each time a process
is started, and is nowhere but in that process.

- `spawns`: what an agent is spawned with, checked and kept
- `places`: where it works
- `briefing`: what its process is told
- `launching`: its process
- `queue`: those that wait for room
- `asking`: spawning one, starting one again
- `enlisting`: one that a person runs by hand
"""

from workbench.services.spawning import (
    launch,
    manual,
    queue,
    request,
    spawn,
    startup,
    workplace,
)

__all__ = ["launch", "manual", "queue", "request", "spawn", "startup", "workplace"]
