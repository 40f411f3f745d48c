"""The kernel's interrupt, between two cells: it interrupts the functions that run for tools.

While a cell runs, an interrupt is the cell's, as always. Otherwise ipykernel ignores it: it sets the handler of SIGINT
before each cell, and afterwards sets again what it has found, which is replaced here.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Any

_SAVED = "saved_sigint_handler"


class IdleInterrupt:
    """Handles interrupts of an idle kernel. Its methods are called in a cell."""

    def __init__(self, handle: Callable[[], None]) -> None:
        self._handle = handle

    def install(self, kernel: Any) -> None:
        """Begin with it. Does nothing without a kernel, nor where another program handles interrupts."""
        if getattr(kernel, _SAVED, None) in (signal.SIG_IGN, signal.SIG_DFL):
            setattr(kernel, _SAVED, self)

    def remove(self, kernel: Any) -> None:
        """End with it."""
        if getattr(kernel, _SAVED, None) is self:
            setattr(kernel, _SAVED, signal.SIG_IGN)

    def __call__(self, number: int, frame: Any) -> None:
        """The signal handler."""
        self._handle()
