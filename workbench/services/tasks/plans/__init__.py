"""Plans: their operations, what a text would change, and changing it."""

from workbench.services.tasks.plans import apply, operations, proposal, standing

__all__ = ["apply", "operations", "proposal", "standing"]
