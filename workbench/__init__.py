"""Workbench: run a team of AI agents from a Jupyter notebook.

The names below are public. Each is imported on first use, so that `import workbench` and `%load_ext workbench` stay
fast.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from workbench.app import Workbench
    from workbench.client import Agent, HttpClient, McpClient, SyncAgent
    from workbench.errors import WorkbenchError
    from workbench.model import Level, Wire, __version__
    from workbench.ops import Caller, Ctx, op
    from workbench.recording import Recorder
    from workbench.state.settings import Settings

_HOMES = {
    "Agent": "workbench.client",
    "SyncAgent": "workbench.client",
    "Recorder": "workbench.recording",
    "Workbench": "workbench.app",
    "HttpClient": "workbench.client",
    "McpClient": "workbench.client",
    "WorkbenchError": "workbench.errors",
    "Level": "workbench.model",
    "Wire": "workbench.model",
    "__version__": "workbench.model",
    "Caller": "workbench.ops",
    "Ctx": "workbench.ops",
    "op": "workbench.ops",
    "Settings": "workbench.state.settings",
}

__all__ = [
    "Agent",
    "Caller",
    "Ctx",
    "HttpClient",
    "Level",
    "McpClient",
    "Recorder",
    "Settings",
    "SyncAgent",
    "Wire",
    "Workbench",
    "WorkbenchError",
    "__version__",
    "op",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'workbench' has no attribute {name!r}")


def main() -> None:
    """Entry point of the `workbench` command: `workbench.cli.main`, also while that is imported."""
    try:
        import_module("workbench.cli").main()
    except KeyboardInterrupt:
        sys.stderr.write("INTERRUPTED: The command was interrupted. Run it again.\n")
        sys.exit(130)


def load_ipython_extension(ipython: Any) -> None:
    """Make `%load_ext workbench` work."""
    import_module("kernel_ext").load_ipython_extension(ipython)


def unload_ipython_extension(ipython: Any) -> None:
    """Make `%unload_ext workbench` work."""
    import_module("kernel_ext").unload_ipython_extension(ipython)
