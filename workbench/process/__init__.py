"""Operating-system processes with all their descendants: started, found, measured, and ended so that none is left.

- `reference`: a process that is never confused with another of the same pid
- `marks`: the variable that descendants inherit and are known by
- `tree`: a process with its descendants: finding, signalling, waiting, measuring
- `subreaper`: becoming the parent of descendants whose own parents ended
- `streams`: what a process reads and where its output goes
- `table`: the processes started here: their exit codes, and ending them

Everything blocks: an event loop calls it in a thread. The server and the worker use the same code.
"""

from workbench.process.marks import MARK, marked, new_mark
from workbench.process.reference import ProcessRef, is_running
from workbench.process.streams import open_input, open_log
from workbench.process.subreaper import adopt_orphans
from workbench.process.table import ProcessTable
from workbench.process.tree import Member, ProcessTree, Usage

__all__ = [
    "MARK",
    "Member",
    "ProcessRef",
    "ProcessTable",
    "ProcessTree",
    "Usage",
    "adopt_orphans",
    "is_running",
    "marked",
    "new_mark",
    "open_input",
    "open_log",
]
