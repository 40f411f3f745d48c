"""Personalities (spec 5): what agents tell a KOI network about themselves, and what it tells about others."""

from workbench.services.personalities import (
    calls,
    exchange,
    names,
    network,
    own,
    peers,
    pipeline,
    registry,
)

__all__ = ["calls", "exchange", "names", "network", "own", "peers", "pipeline", "registry"]
