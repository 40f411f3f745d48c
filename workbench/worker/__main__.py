"""`python -m workbench.worker`: reads its orders from standard input, then takes tasks until told to stop."""

from __future__ import annotations

import asyncio
import json
import logging
import signal
import sys
from pathlib import Path

from workbench.errors import WorkbenchError
from workbench.worker.orders import Orders
from workbench.worker.supervisor import Supervisor


async def work(orders: Orders) -> int:
    """Work until a signal, or until the admission is refused or taken away; the exit status."""
    supervisor = Supervisor(orders, Path.cwd())
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, supervisor.stop)
    try:
        await supervisor.run()
    except WorkbenchError as error:
        logging.error("%s: %s", error.code, error.message)
        return 1
    return 0


def main() -> None:
    """Entry point."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    for noisy in ("httpx2", "httpcore2", "mcp"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    orders = Orders(**json.load(sys.stdin))
    sys.exit(asyncio.run(work(orders)))


if __name__ == "__main__":
    main()
