"""Agents as processes: profiles to run them, their confinement and environment, seeing and ending them (spec 3)."""
