"""What programs of others see of a project by OpenTelemetry, which is sent to the person's collector, and what the
programs of agents tell of themselves by it."""

from workbench.services.telemetry import export, receiving

__all__ = ["export", "receiving"]
