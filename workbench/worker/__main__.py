"""`python -m workbench.worker`: reads its configuration from standard input, then takes tasks until it is stopped.

By hand: `workbench worker`, which asks the server for the configuration first.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import nullcontext

from workbench.errors import WorkbenchError
from workbench.present.inert import inert
from workbench.process import adopt_orphans, mark_this_process
from workbench.worker import own_log
from workbench.worker.startup import WorkerConfig
from workbench.worker.supervisor import Supervisor


class _Inert(logging.Formatter):
    """Makes output inert for a terminal in which a worker runs by hand, which shows its commands' output."""

    def format(self, record: logging.LogRecord) -> str:
        return inert(super().format(record))


async def work(config: WorkerConfig, notes: Sequence[str] = (), *, while_input: bool = False) -> int:
    """Work until a signal, until there is no more to do, or until the admission is revoked; the exit status.

    Args:
        notes: lines for its log, before it begins.
        while_input: end, as by SIGTERM, when the standard input ends.
    """
    supervisor = Supervisor(config, adopts_orphans=adopt_orphans())
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, supervisor.stop)
    if while_input:
        stdin = sys.stdin.fileno()

        def read() -> None:
            if not os.read(stdin, 4_096):
                loop.remove_reader(stdin)
                logging.info("its input has ended, and so does the worker")
                supervisor.stop()

        loop.add_reader(stdin, read)
    is_far = config.server_file is None and not while_input  # else what it logs comes to its server by itself
    async with own_log.sending(config) if is_far else nullcontext():
        for note in notes:
            logging.warning("%s", note)
        try:
            await supervisor.run()
        except WorkbenchError as error:
            logging.error("%s: %s", error.code, error.message)
            return 1
    return 0


def run(config: WorkerConfig, notes: Sequence[str] = (), *, while_input: bool = False) -> int:
    """Work in this process, which does nothing else; the exit status. See `work`."""
    mark_this_process()
    logging.basicConfig(level=logging.INFO, format=own_log.FORMAT)
    if sys.stderr.isatty():
        for handler in logging.getLogger().handlers:
            handler.setFormatter(_Inert(own_log.FORMAT))
    for name in ("httpx2", "httpcore2", "mcp"):
        logging.getLogger(name).setLevel(logging.WARNING)
    return asyncio.run(work(config, notes, while_input=while_input))


if __name__ == "__main__":
    sys.exit(run(WorkerConfig.from_json(sys.stdin.read())))
