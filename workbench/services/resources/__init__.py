"""Scarce things that tasks need: GPUs, processors, memory, licences, and the machine alone.

- `machine`: what there is, here and on machines without a clone
- `leases`: who holds what of it, and which tasks cannot be begun now
- `board`: all of it, for the person
"""

from workbench.services.resources import board, leases, machine

__all__ = ["board", "leases", "machine"]
