"""The group of commands about tools."""

from __future__ import annotations

from workbench.cli.global_options import root
from workbench.cli.output import NounGroup


@root.group(cls=NounGroup)
def tools() -> None:
    """Tools that agents and models can call: list, show, call, calls, allow, cancel; servers."""
