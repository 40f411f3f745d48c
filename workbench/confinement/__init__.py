"""What a worker's commands may touch, enforced by the kernel and inherited by all they start.

`Box` says it; `launcher.py` enforces it: a small program that confines itself and then becomes the command. Files, TCP
and signals are Landlock's part, a filter of system calls has what Landlock cannot refuse. It needs no privileges, and
holds root as well. `abilities` tells what this machine's kernel can enforce, in words for people.
"""

from workbench.confinement.abilities import Abilities, abilities
from workbench.confinement.box import Box, BoxLimits, box_for_worktree

__all__ = ["Abilities", "Box", "BoxLimits", "abilities", "box_for_worktree"]
