"""Agents' processes: launch profiles, confinement, environments, resource usage and termination (spec 3)."""

from workbench.services.processes import (
    departures,
    environments,
    processes,
    profiles,
    reattach,
    samples,
    sandbox,
    termination,
)

__all__ = ["departures", "environments", "processes", "profiles", "reattach", "samples", "sandbox", "termination"]
