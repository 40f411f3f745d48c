"""What a worker's commands may touch, enforced by the kernel (Landlock) and inherited by all they start.

`Box` says it, `launch.py` enforces it: a small program that confines itself and then becomes the
command. `abilities` tells what this machine's kernel can enforce, in words for people.
Source: https://docs.kernel.org/userspace-api/landlock.html.
"""

from workbench.confinement.abilities import COMPLETE, Abilities, abilities
from workbench.confinement.box import Box, Limits, box_for_worktree

__all__ = ["COMPLETE", "Abilities", "Box", "Limits", "abilities", "box_for_worktree"]
