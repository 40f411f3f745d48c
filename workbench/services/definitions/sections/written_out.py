"""Warnings about secrets that are written out where a reference would keep them out of files and of git."""

from __future__ import annotations

from collections.abc import Iterable

from workbench.rules.definitions.secrets.references import variable
from workbench.services.definitions.operation import Done


class Configured(Done):
    """A configuration that was changed. `warnings` are about secrets that are written out."""

    warnings: list[str]


def configured(done: Done, keys: Iterable[str]) -> Configured:
    """The answer to a change that set values, with its warnings.

    Args:
        keys: of the secrets that are written out.
    """
    return Configured(
        message=done.message, warnings=[warning(key, "agent.yaml, and git would keep it") for key in keys]
    )


def warning(key: str, file: str) -> str:
    """What is wrong with a secret that is written out, and what to do."""
    return f"{key} is written out in {file}. Use a reference such as {variable(key)} instead."
