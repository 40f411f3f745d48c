"""One concept, one module: its operations, its SQL beside it, its events."""
