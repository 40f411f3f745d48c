"""The IPython extension: `%load_ext workbench`. Loading is fast, because the servers are imported in their thread."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell


def load_ipython_extension(ipython: InteractiveShell) -> None:
    """Register `%workbench`, `%%plan`, `%%persona`, `%%wsql` and `%%chat`."""
    from kernel_ext import magics

    magics.load(ipython)


def unload_ipython_extension(ipython: InteractiveShell) -> None:
    """Stop the servers and unregister the magics."""
    from kernel_ext import magics

    magics.unload(ipython)
