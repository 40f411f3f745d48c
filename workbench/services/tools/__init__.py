"""Tools (spec 4): everything that a model or a person may call by name here, and every call."""

from workbench.services.tools import (
    call_log,
    call_records,
    calls,
    catalogue,
    hosts,
    permission_requests,
    permission_settings,
    servers,
)

__all__ = [
    "call_log",
    "call_records",
    "calls",
    "catalogue",
    "hosts",
    "permission_requests",
    "permission_settings",
    "servers",
]
