"""Limits what a worker's commands may touch, enforced by the kernel and inherited by every process they start.

`Box` declares the limits; `launcher.py` enforces them: a small program that confines itself and then becomes the
command. Landlock restricts files, TCP and signals; a filter of system calls refuses what Landlock cannot. This needs
no privileges, and confines root as well. `starter` starts git in boxes quickly. `abilities` describes what this
machine's kernel can enforce.
"""

from workbench.confinement.abilities import Abilities, abilities
from workbench.confinement.box import Box, BoxLimits, Mount, box_for_worktree

__all__ = ["Abilities", "Box", "BoxLimits", "Mount", "abilities", "box_for_worktree"]
