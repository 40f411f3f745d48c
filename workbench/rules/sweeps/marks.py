"""The marks by which the processes of a sweep and of each of its runs are found."""

from __future__ import annotations

from hashlib import sha256

SWEEP_MARK = "sweep-"
RUN_MARK = "run-"


def sweep_mark(sweep: str, project: str) -> str:
    """The mark of everything that a sweep of a project starts."""
    return f"{SWEEP_MARK}{_digest(f'{project}:{sweep}')}"


def run_mark(key: str, project: str) -> str:
    """The mark of everything that a run starts, whichever try of it.

    Args:
        key: that of its record.
    """
    return f"{RUN_MARK}{_digest(f'{project}:{key}')}"


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:32]
