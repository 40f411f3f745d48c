"""Warnings about secrets that are written out where a reference would keep them out of files and of git."""

from __future__ import annotations

from collections.abc import Iterable

from workbench.services.definitions.operation import Done


class Configured(Done):
    """A configuration that was changed. `warnings` are about secrets that are written out."""

    warnings: list[str]


def configured(done: Done, keys: Iterable[str]) -> Configured:
    """The answer to a change that set values, with its warnings.

    Args:
        keys: of the secrets that are written out.
    """
    warnings = [
        f"{key} is written out in agent.yaml, and git would keep it. Use a reference such as env://{key} instead."
        for key in keys
    ]
    return Configured(message=done.message, warnings=warnings)
