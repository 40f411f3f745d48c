"""Spawning agents as processes: validation, queueing, launching and restarting.

An agent has one process at a time, and keeps its identity when it is restarted. Each process gets a new token, which
exists nowhere else.

- `request`: the parameters of an agent, validated and stored
- `definition`: its definition, prepared for the program of its profile
- `newcomer`: what it is to be, checked before it is registered
- `workplace`: the worktree it works in, and what its commands find there
- `workplace_shown`: the operation that shows that
- `startup`: the configuration of its process
- `launch`: starting its process
- `provider_keys`: the keys of model providers that answer for it
- `queue`: agents that wait for a slot
- `spawn`: the operations that spawn and restart agents
- `fallback`: another profile for agents whose own is held
- `manual`: workers that a person runs by hand
- `elsewhere`: workers of machines that share no path with the project
- `terms`: what such a worker is told of how it works
- `unattended`: open tasks that no agent is left to do
"""

from workbench.services.spawning import (
    definition,
    elsewhere,
    fallback,
    launch,
    manual,
    newcomer,
    older_records,
    provider_keys,
    queue,
    request,
    spawn,
    startup,
    terms,
    unattended,
    workplace,
    workplace_shown,
)

__all__ = [
    "definition",
    "elsewhere",
    "fallback",
    "launch",
    "manual",
    "newcomer",
    "older_records",
    "provider_keys",
    "queue",
    "request",
    "spawn",
    "startup",
    "terms",
    "unattended",
    "workplace",
    "workplace_shown",
]
