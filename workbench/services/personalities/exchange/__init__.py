"""What this node does with each peer: greet it, agree on edges, send and fetch events, answer its requests, and compare
what both know.
"""

from workbench.services.personalities.exchange import rounds

__all__ = ["rounds"]
