"""Spawning agents: who may, where, with what; waiting for room; starting again.

An agent has one process at a time, and the same identity in all of them. Its token is made anew each time a process
is started, and is nowhere but in that process.

- `request`: what an agent is spawned with, checked and kept
- `workplace`: the worktree it works in
- `startup`: the configuration of its process
- `launch`: starting its process
- `queue`: agents that wait for room
- `spawn`: spawning one, starting one again
- `manual`: one that a person runs by hand
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
