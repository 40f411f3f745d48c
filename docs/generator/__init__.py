"""Generates from the code what the documents and the command line say of it: `python -m docs.generator`."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
"""The directory of the project."""
