"""Agents' processes: launch profiles, confinement, environments, resource usage and termination (spec 3)."""

from workbench.services.processes import (
    departures,
    processes,
    profiles,
    reattach,
    samples,
    sandbox,
    sent_logs,
    silence,
    termination,
)

__all__ = [
    "departures",
    "processes",
    "profiles",
    "reattach",
    "samples",
    "sandbox",
    "sent_logs",
    "silence",
    "termination",
]
