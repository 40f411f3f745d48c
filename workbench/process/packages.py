"""The versions of packages that a process has imported.

Alone: listing the packages takes half a second, and nothing else of processes needs it.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib import metadata


def versions(modules: Iterable[str]) -> dict[str, str]:
    """The packages of this interpreter that have these modules, by name with their versions."""
    top_modules = {name.partition(".")[0] for name in modules}
    names = sorted({package for top in top_modules for package in _distributions().get(top, ())})
    return {name: metadata.version(name) for name in names}


@cache
def _distributions() -> dict[str, list[str]]:
    return dict(metadata.packages_distributions())  # half a second
