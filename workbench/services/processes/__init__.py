"""Agents as processes: profiles to run them, their confinement and environment, seeing and ending them (spec 3)."""

from workbench.services.processes import (
    departures,
    environments,
    processes,
    profiles,
    sandbox,
    termination,
)

__all__ = ["departures", "environments", "processes", "profiles", "sandbox", "termination"]
