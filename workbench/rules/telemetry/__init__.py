"""What an OpenTelemetry collector is told of a project: spans of its work, and sums of what models used."""
