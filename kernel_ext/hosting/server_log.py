"""Logging of servers in a kernel: to `.aiswarm/logs/server.log`, never into the user's cells."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from workbench.state.settings import Settings

_LOGGERS = ("workbench", "kernel_ext", "uvicorn", "mcp", "asyncio")


class _Redacting(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        from workbench.rules.secrets.forms import masked_by_form

        return masked_by_form(super().format(record))


class _LogFile(logging.FileHandler):
    """A log file. If it cannot be opened or written, records are lost, but the code that logs does not fail, and
    nothing is printed into the user's cells."""

    def emit(self, record: logging.LogRecord) -> None:
        with suppress(OSError):
            super().emit(record)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802
        pass


@contextmanager
def server_log(settings: Settings) -> Iterator[None]:
    """Write the log of the servers and their libraries to the project's log file until the block ends."""
    handler = _handler(settings)
    handler.setFormatter(_Redacting("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    for name in _LOGGERS:
        logging.getLogger(name).addHandler(handler)
    try:
        yield
    finally:
        for name in _LOGGERS:
            logging.getLogger(name).removeHandler(handler)
        handler.close()


def _handler(settings: Settings) -> logging.Handler:
    path = settings.logs / "server.log"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return _LogFile(path, encoding="utf-8", delay=True)
    except OSError:
        return logging.NullHandler()  # opening the store reports what is wrong with the directory
