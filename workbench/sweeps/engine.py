"""Executes one notebook with papermill, in a watched kernel with its own environment and limited outputs.

Several threads execute at once. Therefore nothing here changes `os.environ` or the current directory, which they share:
a kernel gets both at its start.
"""

from __future__ import annotations

import asyncio
import logging
import subprocess
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jupyter_core.utils import ensure_event_loop
from nbclient.exceptions import CellExecutionError, DeadKernelError
from papermill.clientwrap import PapermillNotebookClient
from papermill.engines import NBClientEngine, papermill_engines
from papermill.exceptions import PapermillExecutionError
from papermill.execute import execute_notebook, remove_error_markers

from workbench.rules.sweeps.notebook import received
from workbench.sweeps import kernel_facts, numbering, outputs, sockets
from workbench.sweeps.outputs import OutputLimit
from workbench.sweeps.watch import Kernel, Reason

ENGINE = "workbench-sweep"
START_SECONDS = 60
POLL_SECONDS = 0.1
"""How soon the end of a kernel is noticed; with nbclient's own value, each limit would cost a second."""
OUTPUT_SECONDS = 300
"""How long a cell that has ended may take to deliver all its outputs; nbclient's own 4 s are too short for many."""

client_log = logging.getLogger(f"{__name__}.client")
"""The logger of nbclient, which logs each failure; `failures` describes it in a sentence."""
client_log.addHandler(logging.NullHandler())  # without a handler, warnings would be printed


@dataclass
class Execution:
    """An execution of a notebook.

    Args:
        environment: of the kernel: all of it.
        directory: the kernel's current directory.
        log: gets the output of the kernel's process itself, such as of a crash in native code.
        on_cell: called with the number of the cell that is done, and that of all cells.
    """

    kernel: Kernel
    environment: Mapping[str, str]
    directory: Path
    limit: OutputLimit
    log: int = subprocess.DEVNULL
    on_cell: Callable[[int, int], None] = lambda _done, _all: None
    source: Any = field(default=None, init=False)
    """The notebook to execute."""
    document: Any = field(default=None, init=False)
    """The notebook as far as it was executed."""
    packages: Mapping[str, str] = field(default_factory=dict, init=False)
    """The packages that the kernel had imported at the end, with their versions."""
    sockets: Path | None = field(default=None, init=False)
    """The directory of the kernel's sockets; None: it listens on TCP ports."""


class _Client(PapermillNotebookClient):  # type: ignore[misc]
    def __init__(self, nb_man: Any, execution: Execution, **options: Any) -> None:
        super().__init__(nb_man, **options)
        self._execution = execution

    def start_new_kernel(self, **options: Any) -> None:
        """Called by papermill; nbclient's asynchronous form is not."""
        execution = self._execution
        sockets.listen_in(execution.sockets, self.km)
        surroundings = {"env": dict(execution.environment), "cwd": str(execution.directory)}
        super().start_new_kernel(**surroundings, stdout=execution.log, stderr=execution.log, **options)
        execution.kernel.started(self.km.provisioner.pid)

    def papermill_execute_cells(self) -> None:
        """Called by papermill once the kernel is ready."""
        self.wait_for_reply(sockets.keep_outputs(self.km, self.kc))
        super().papermill_execute_cells()
        if sockets.is_ipykernel(self.km):
            self._execution.packages = kernel_facts.packages(self._ask)

    def show_error(self, cell: Any, error: CellExecutionError) -> None:
        """Show in a cell why it failed, if its kernel does not, as for a magic, a group or a handler of errors.

        papermill reads the reason there.
        """
        if any(output.output_type == "error" for output in cell.outputs):
            return
        leaf = kernel_facts.leaf(self._ask, error.ename) if sockets.is_ipykernel(self.km) else None
        outputs.add_error(cell, error.ename, f"{error.evalue}: {leaf}" if leaf else error.evalue)

    def _ask(self, expression: str) -> Any:
        return self.wait_for_reply(self.kc.execute(**kernel_facts.expression(expression)))

    def process_message(self, msg: dict[str, Any], cell: Any, cell_index: int) -> Any:
        """Called for each message of the kernel about its outputs."""
        content = self._execution.limit.cut(msg["msg_type"], msg["content"])
        if content is None:
            return None
        return super().process_message({**msg, "content": content}, cell, cell_index)

    async def _async_poll_kernel_alive(self) -> None:
        while True:
            await asyncio.sleep(POLL_SECONDS)
            try:
                await self._async_check_alive()
            except DeadKernelError:
                self.task_poll_for_reply.cancel()
                return


class _Engine(NBClientEngine):  # type: ignore[misc]
    @classmethod
    def execute_managed_notebook(cls, nb_man: Any, kernel_name: str, execution: Execution, **_: Any) -> None:
        """Called by papermill."""
        execution.document, complete, failed = nb_man.nb, nb_man.cell_complete, nb_man.cell_exception

        def note(cell: Any, cell_index: int | None = None, **options: Any) -> None:
            complete(cell, cell_index, **options)
            source = execution.source
            execution.on_cell(numbering.in_source(cell_index or 0, nb_man.nb, source), len(source.cells))

        def note_error(cell: Any, cell_index: int | None = None, *, exception: CellExecutionError) -> None:
            client.show_error(cell, exception)
            failed(cell, cell_index, exception=exception)

        nb_man.cell_complete, nb_man.cell_exception = note, note_error
        seconds = {"timeout": None, "startup_timeout": START_SECONDS, "iopub_timeout": OUTPUT_SECONDS}
        options = {**seconds, "raise_on_iopub_timeout": True, "log": client_log}
        client = _Client(nb_man, execution, kernel_name=kernel_name, **options)
        client.execute()


papermill_engines.register(ENGINE, _Engine)


def execute(notebook: Any, arguments: Mapping[str, Any], execution: Execution) -> None:
    """Execute a notebook with arguments; the result is in `execution.document`, also after a failure.

    Nothing is saved meanwhile: papermill would write the whole notebook, not atomically, before and after each cell.
    It happens in a thread of its own, because papermill takes the event loop of its thread, which may be in use.

    Args:
        notebook: a notebook as nbformat reads it; it is not changed.
        arguments: the values of its parameters as they are recorded.

    Raises:
        Exception: see `failures.of`. KeyboardInterrupt: it came in this thread; the kernel has ended.
    """
    execution.source = notebook
    with ThreadPoolExecutor(1, "workbench-notebook") as thread:
        execution_future = thread.submit(_execute, notebook, arguments, execution)
        try:
            execution_future.result()
        except KeyboardInterrupt:
            execution.kernel.end(Reason.CANCELLED)
            raise


def _execute(notebook: Any, arguments: Mapping[str, Any], execution: Execution) -> None:
    with _close_own_loop(), sockets.directory() as execution.sockets, execution.kernel:
        try:
            execute_notebook(
                notebook,
                None,
                received(notebook, arguments),
                engine_name=ENGINE,
                progress_bar=False,
                autosave_cell_every=0,
                execution=execution,
            )
        except PapermillExecutionError:
            if not outputs.only_expected_errors(execution.document):
                raise
            remove_error_markers(execution.document)


@contextmanager
def _close_own_loop() -> Iterator[None]:
    """Close the event loop that jupyter_core creates for papermill in a new thread, and would never close."""
    loop = ensure_event_loop()
    try:
        yield
    finally:
        tasks = asyncio.all_tasks(loop)
        for task in tasks:
            task.cancel()
        loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        asyncio.set_event_loop(None)
        loop.close()
