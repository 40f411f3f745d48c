"""Operating-system processes with all their descendants: starting, finding, measuring and ending them.

- `reference`: a process identified so that another with the same pid is not mistaken for it
- `marks`: the environment variable that descendants inherit and are found by
- `tree`: a process with its descendants: finding, signalling, waiting, measuring
- `subreaper`: becoming the parent of descendants whose own parents ended
- `streams`: the standard input and the log of a process
- `table`: the processes started here: their exit codes, and ending them

Everything blocks, so event loops call it in a thread. The server and the worker use the same code.
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
