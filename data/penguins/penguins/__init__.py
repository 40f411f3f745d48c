"""What the scripts share. Paths are relative to the repository root, where the scripts run."""
