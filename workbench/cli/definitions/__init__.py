"""Definitions of agents: `define`, with the same noun for each section as the operations (`agent_add_rule`, …)."""

from workbench.cli.definitions import (  # noqa: F401 (each adds its commands to `define`)
    configuration,
    entries,
    lifecycle,
    providers,
    servers,
    versions,
)
from workbench.cli.definitions.group import define

__all__ = ["define"]
