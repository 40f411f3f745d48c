"""The KOI network: this project's node, its peers, personalities, and stand-alone roles."""

from workbench.cli.koi import network, personalities, roles

__all__ = ["network", "personalities", "roles"]
