"""Personalities of agents (spec 5), without I/O."""
