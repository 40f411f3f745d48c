"""Hides paths from the commands in a box, or refuses to, where that cannot be done."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from workbench.confinement.box import Box
from workbench.errors import Unavailable


def hiding(box: Box, names: Iterable[str]) -> Box:
    """A box without some paths, which are named relative to the project's root.

    Raises:
        Unavailable: ``HIDE_UNAVAILABLE``.
    """
    places = [(root / name).resolve() for name in names for root in (box.worktree, box.project) if root]
    return require_hidden(replace(box, hide=(*box.hide, *places)))


def require_hidden(box: Box) -> Box:
    """A box that hides what it is to hide: without mounts, a path is closed only if nothing around it is open.

    Raises:
        Unavailable: ``HIDE_UNAVAILABLE``.
    """
    if box.enforce and box.namespaces:
        return box
    bare = replace(box, hide=())
    for path in box.hide:
        is_open = not box.enforce or bare.may_read(path) or any(one.is_relative_to(path) for one in box.read)
        if is_open and path.exists():
            raise Unavailable(
                "HIDE_UNAVAILABLE",
                f"{path} cannot be hidden: something around or below it is open, and this system, or the settings, "
                "allow no mounts in a box (`workbench doctor`). Open less in read, or leave it out of hide.",
                path=str(path),
            )
    return box
