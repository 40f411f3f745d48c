"""Agent definitions (spec 2): directories that say what an agent is given. Names are those of the spec."""

from workbench.services.definitions import (
    analytics,
    bulk,
    changes,
    completeness,
    formats,
    lifecycle,
    own,
    probe,
    sections,
    templates,
    transfer,
    trust,
    trust_requests,
    versions,
)

__all__ = [
    "analytics",
    "bulk",
    "changes",
    "completeness",
    "formats",
    "lifecycle",
    "own",
    "probe",
    "sections",
    "templates",
    "transfer",
    "trust",
    "trust_requests",
    "versions",
]
