"""What a cell shows if an operation is interrupted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from workbench.errors import Interrupted

CALL_INTERRUPTED = "CALL_INTERRUPTED"


@contextmanager
def interruptible(operation: str) -> Iterator[None]:
    """Call an operation in the block: an interrupt is one line.

    Raises:
        Interrupted: ``CALL_INTERRUPTED``.
    """
    try:
        yield
    except Interrupted:
        raise
    except KeyboardInterrupt:
        raise Interrupted(CALL_INTERRUPTED, f"{operation} was interrupted. What it has done stays done.") from None
