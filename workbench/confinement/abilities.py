"""What the kernel of this machine enforces, said so that a person can decide whether it is enough."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

COMPLETE = 6
"""The Landlock ABI (Linux 6.12) from which on all that `Box` promises is enforced."""

_SINCE = (
    (1, "files outside the worktree can be neither read nor written"),
    (2, "files cannot be linked or moved in from outside"),
    (3, "files that may only be read cannot be truncated"),
    (4, "TCP connections are refused but to the allowed ports"),
    (5, "devices cannot be reconfigured"),
    (6, "signals reach no process outside, nor do abstract sockets"),
)


@dataclass(frozen=True, slots=True)
class Abilities:
    """What is enforced and what is not; `abi` is 0 where there is no Landlock."""

    abi: int
    enforced: tuple[str, ...]
    missing: tuple[str, ...]

    @property
    def complete(self) -> bool:
        """Whether nothing is missing."""
        return not self.missing

    @property
    def summary(self) -> str:
        """One sentence."""
        if self.abi == 0:
            return "Workers are not confined: this system has no Landlock (Linux 5.13 or newer, enabled)."
        if self.missing:
            return f"Workers are confined in part (Landlock ABI {self.abi}). Not enforced: {'; '.join(self.missing)}."
        return f"Workers are confined (Landlock ABI {self.abi})."


@cache
def abilities() -> Abilities:
    """What this machine's kernel enforces."""
    abi = _abi()
    return Abilities(
        abi=abi,
        enforced=tuple(what for since, what in _SINCE if since <= abi),
        missing=tuple(what for since, what in _SINCE if since > abi),
    )


def _abi() -> int:
    try:
        from py_landlock import LandlockError, get_abi_version
    except ImportError:  # it is for Linux alone
        return 0
    try:
        return int(get_abi_version())
    except LandlockError:
        return 0
