"""This project's node on a network: whether it takes part, and how it joins and leaves."""

from workbench.services.personalities.network import operations

__all__ = ["operations"]
