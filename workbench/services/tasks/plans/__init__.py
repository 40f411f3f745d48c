"""Plans: a checked list of tasks that is created, updated and exported as a whole."""

from workbench.services.tasks.plans import apply, plan, proposal, standing

__all__ = ["apply", "plan", "proposal", "standing"]
