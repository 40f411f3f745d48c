"""Runs of experiments: what was run, with which parameters, what it measured and what it left."""

from workbench.services.runs import artifacts, ending, listing, recording, starting, sweeps, tagging

__all__ = ["artifacts", "ending", "listing", "recording", "starting", "sweeps", "tagging"]
