"""Where work belongs: projects, their sessions, and teams (spec 1)."""
