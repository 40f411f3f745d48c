"""Explains why a run did not complete, as a code and a sentence.

- ``RUN_TIMEOUT``, ``RUN_OUT_OF_MEMORY``, ``RUN_CANCELLED``: it was ended
- ``INPUT_REQUESTED``: a cell asked for input
- ``CELL_FAILED``: a cell raised an error
- ``KERNEL_DIED``: its kernel ended by itself
- ``KERNEL_NOT_STARTED``: its kernel did not start
- ``OUTPUTS_LOST``: its kernel did not deliver all that a cell printed or showed
"""

from __future__ import annotations

import re
from typing import Any

from nbclient.exceptions import CellTimeoutError, DeadKernelError
from papermill.exceptions import PapermillExecutionError

from workbench.errors import Unavailable, WorkbenchError, named
from workbench.sweeps import numbering
from workbench.sweeps.watch import Kernel, Reason

_ESCAPES = re.compile(r"\x1b\[[0-9;]*m")
_LONGEST = 500


def of(error: BaseException | None, kernel: Kernel, document: Any, source: Any) -> WorkbenchError | None:
    """The reason of a failure; None if there is none.

    Args:
        error: the exception that the execution raised.
        document: the notebook as far as it was executed; None: it was not begun.
        source: the notebook to execute; messages number cells as it does.
    """
    if kernel.reason is Reason.TIMEOUT:
        return Unavailable(
            "RUN_TIMEOUT", f"The run took longer than {kernel.seconds:g} s. Raise --timeout, in a notebook timeout."
        )
    if kernel.reason is Reason.MEMORY:
        limit = (kernel.memory or 0) / 1e6
        return Unavailable(
            "RUN_OUT_OF_MEMORY", f"The run used more than {limit:,.0f} MB. Raise --memory, in a notebook memory."
        )
    if kernel.reason is Reason.CANCELLED:
        return Unavailable(
            "RUN_CANCELLED", "The sweep was interrupted. Run it again with --resume, in a notebook with resume=True."
        )
    if error is None or isinstance(error, WorkbenchError):
        return error
    if isinstance(error, PapermillExecutionError):
        return _explain_cell(error, numbering.in_source(error.cell_index, document, source))
    cell = _running_cell(document, source)
    if isinstance(error, DeadKernelError):
        return Unavailable("KERNEL_DIED", f"The kernel ended by itself in cell {cell}.")
    if isinstance(error, CellTimeoutError):  # the limit of a run is not nbclient's: it only waits for outputs
        return Unavailable(
            "OUTPUTS_LOST",
            f"The kernel did not deliver all outputs of cell {cell}. Run it again with --retry-failed, in a notebook "
            "with retry_failed=True.",
        )
    if cell is None:
        return Unavailable("KERNEL_NOT_STARTED", f"The kernel did not start: {_shorten(str(error))}")
    return Unavailable("RUN_FAILED", f"The run failed: {_shorten(named(error))}")


def _explain_cell(error: PapermillExecutionError, cell: int) -> WorkbenchError:
    if error.ename == "StdinNotImplementedError":
        return Unavailable("INPUT_REQUESTED", f"Cell {cell} asks for input, and nobody answers. Make it a parameter.")
    return Unavailable("CELL_FAILED", f"Cell {cell}: {_shorten(f'{error.ename}: {error.evalue}')}")


def _shorten(text: str) -> str:
    """A text on one line, without colours."""
    line = " ".join(_ESCAPES.sub("", text).split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"


def _running_cell(document: Any, source: Any) -> int | None:
    """The number of the cell that was executed last; None if there is none."""
    cells = [] if document is None else document.cells
    indexes = [index for index, cell in enumerate(cells) if (cell.metadata.get("papermill") or {}).get("start_time")]
    return numbering.in_source(indexes[-1], document, source) if indexes else None
