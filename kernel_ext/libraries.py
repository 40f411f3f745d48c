"""Libraries that a cell needs for the first time.

Alone: objects of every noun use it.
"""

from __future__ import annotations

import sys
from functools import partial
from importlib import import_module

from kernel_ext.hosting.detached import in_thread


def imported(*names: str) -> None:
    """Import packages in a thread, where no interrupt reaches them.

    An interrupt that ends the import of NumPy leaves it broken: each later import in this process fails.
    """
    for name in names:
        if name not in sys.modules:
            in_thread(partial(import_module, name))
