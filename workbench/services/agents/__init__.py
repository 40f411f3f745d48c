"""Agents: they register, are admitted with a grant, connect, and are managed by a person (spec 1)."""
