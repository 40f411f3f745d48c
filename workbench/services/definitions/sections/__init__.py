"""What a definition consists of, section by section: read and changed by name."""

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
