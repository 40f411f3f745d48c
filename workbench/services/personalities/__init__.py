"""Personalities (spec 5): what agents tell a KOI network about themselves, and what it tells about others."""

from workbench.services.personalities import calls, names, network, own, peers, registry

__all__ = ["calls", "names", "network", "own", "peers", "registry"]
