"""Confinement of what runs in a worktree, by Linux's Landlock: the kernel refuses what a box does not allow.

A `Box` says what a command may touch; `Box.argv` puts a launcher in front of the command that gives up everything
else before it becomes the command, for itself and all that it starts. It needs no privileges, and works for root too.
"""

from workbench.confinement.box import Box, Chosen, Limits, box_for_worktree, decide
from workbench.confinement.landlock import Abilities, abilities

__all__ = ["Abilities", "Box", "Chosen", "Limits", "abilities", "box_for_worktree", "decide"]
