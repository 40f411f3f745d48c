"""What programs of others see of a project by OpenTelemetry: spans and sums, sent to the person's collector."""

from workbench.services.telemetry import export

__all__ = ["export"]
