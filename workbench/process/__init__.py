"""Operating-system processes with all their descendants: starting, finding, measuring and ending them.

- `reference`: a process identified so that another with the same pid is not mistaken for it, and its name, by which
  others can tell whether it still runs
- `connected_user`: whose the program at the other end of a connection is
- `marks`: the environment variable that descendants inherit and are found by
- `tree`: a process with its descendants: finding, signalling, waiting, measuring, adopting those whose parents ended
- `streams`: the standard input and the log of a process
- `table`: the processes started here: their exit codes, and ending them
- `writer`: the lock of a worktree's one writer

Everything blocks, so event loops call it in a thread. The server and the worker use the same code.
"""

from workbench.process.connected_user import connected_user
from workbench.process.marks import MARK, inherited_mark, mark_this_process, marked, new_mark
from workbench.process.reference import ProcessRef, has_ended, is_running, process_identity, process_named
from workbench.process.streams import open_input, open_log
from workbench.process.table import ProcessTable
from workbench.process.tree import Member, ProcessTree, TreeUsage, adopt_orphans
from workbench.process.writer import Writer, WriterLock

__all__ = [
    "MARK",
    "Member",
    "ProcessRef",
    "ProcessTable",
    "ProcessTree",
    "TreeUsage",
    "Writer",
    "WriterLock",
    "adopt_orphans",
    "connected_user",
    "has_ended",
    "inherited_mark",
    "is_running",
    "mark_this_process",
    "marked",
    "new_mark",
    "open_input",
    "open_log",
    "process_identity",
    "process_named",
]
