"""Personalities (spec 5): what agents tell a KOI network about themselves, and what it tells about others."""

from workbench.services.personalities import (
    exchange,
    names,
    network,
    peers,
    pipeline,
    profiles,
    publishing,
    registry,
    trait_permissions,
)

__all__ = [
    "exchange",
    "names",
    "network",
    "peers",
    "pipeline",
    "profiles",
    "publishing",
    "registry",
    "trait_permissions",
]
