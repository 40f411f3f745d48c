"""The pipeline of knowledge (spec 5, 6): RID, Manifest, Bundle, Network, Final. `run.handle` is its entrance."""

from workbench.services.personalities.pipeline import directory, retention

__all__ = ["directory", "retention"]
