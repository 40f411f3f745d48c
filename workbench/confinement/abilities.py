"""Describes what this machine's kernel enforces, so that a person can decide whether it is enough."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from workbench.confinement import landlock, namespaces, syscalls

_FILES = 1

_SINCE = (
    (
        _FILES,
        "files outside the box are neither read nor written, processes outside not looked into",
        "a worker can read and write whatever its user can",
    ),
    (2, "files move between directories only within the box", "a worker cannot move files between its own directories"),
    (3, "files outside are not emptied", "a worker can empty files outside, though not read them"),
    (
        4,
        "TCP reaches the allowed ports only, and serves none",
        "a worker can open TCP connections to any port, and bind ports",
    ),
    (6, "signals reach no process outside", "a worker can end other processes of the same user"),
)
"""A version of Landlock, what it enforces, and what its absence means."""

_FILTERED = (
    "no UNIX sockets, no UDP (but for names where TCP is allowed), no shared memory of the system, no namespaces, no "
    "setuid bits",
    "a worker can use UDP and UNIX sockets, such as those of Docker or of the desktop, make namespaces, and set the "
    "setuid bit of programs that belong to its user",
)


@dataclass(frozen=True, slots=True)
class Abilities:
    """What is enforced, and the consequences of what is missing; `abi` is Landlock's version, 0 without Landlock."""

    abi: int
    enforced: tuple[str, ...]
    missing: tuple[str, ...]

    @property
    def complete(self) -> bool:
        """Whether nothing is missing."""
        return not self.missing

    @property
    def namespaces(self) -> frozenset[str]:
        """The namespaces that a command can have of its own: "mount", "ipc" and "net", or none. Tried once."""
        return namespaces.available() if self.abi else frozenset()

    @property
    def summary(self) -> str:
        """The abilities in one sentence, or two."""
        if self.abi == 0:
            return (
                "Workers are not confined: this system has no Landlock (Linux 5.13 or newer, switched on). "
                f"So {self.missing[0]}."
            )
        if self.missing:
            return f"Workers are confined in part (Landlock ABI {self.abi}): {'; '.join(self.missing)}."
        return f"Workers are confined (Landlock ABI {self.abi})."


@cache
def abilities() -> Abilities:
    """The abilities of this machine's kernel."""
    return of(landlock.version(), filtered=syscalls.available())


def of(abi: int, *, filtered: bool) -> Abilities:
    """The abilities of a kernel with this version of Landlock; `filtered`: it can also filter system calls."""
    steps = [(abi >= since, ability, consequence) for since, ability, consequence in _SINCE]
    steps.append((abi >= _FILES and filtered, *_FILTERED))
    enforced = tuple(ability for is_met, ability, _ in steps if is_met)
    return Abilities(abi, enforced, missing=tuple(consequence for is_met, _, consequence in steps if not is_met))
