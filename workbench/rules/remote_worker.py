"""Workers that are started on other machines, by ssh or on clusters: their command line, and sentences about ends."""

from __future__ import annotations

from collections.abc import Mapping

LINE = 300
"""So many characters of a worker's last line are shown to a person; the rest is cut off."""


def arguments(server: str, directory: str, limits: Mapping[str, float]) -> list[str]:
    """The arguments of `workbench` there. None is secret: the worker reads its token from its standard input.

    Args:
        server: the server's address, as it is reached from there.
        directory: the worker's own.
        limits: options of `workbench worker`, by their names.
    """
    there = ["worker", "--server", server, "--token-file", "-", "--directory", directory]
    return [*there, *(f"--{name}={value:.15g}" for name, value in limits.items())]


def failed(machine: str, status: int, last: str) -> str:
    """The sentence with a code about a worker that ended with an exit status other than 0; `last`: its last line."""
    return f"WORKER_FAILED: the worker on {machine} ended with status {status}: {said(last)}"


def said(last: str) -> str:
    """The end of a sentence: the last line that was said."""
    return f"{last[:LINE].rstrip('.') or 'it said nothing'}."
