"""The sections of a definition: each is read and changed by name."""

from workbench.services.definitions.sections import (
    configuration,
    exported_tools,
    mcp_servers,
    providers,
    references,
    rules,
)

__all__ = [
    "configuration",
    "exported_tools",
    "mcp_servers",
    "providers",
    "references",
    "rules",
]
