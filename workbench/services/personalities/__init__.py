"""Personalities (spec 5): what agents tell a KOI network about themselves, and what it tells about others."""

from workbench.services.personalities import calls, network, own, peers, registry

__all__ = ["calls", "network", "own", "peers", "registry"]
