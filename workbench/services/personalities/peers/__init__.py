"""Peers: the nodes of the network that this one knows, and what is still to be sent to them."""

from workbench.services.personalities.peers import directory

__all__ = ["directory"]
