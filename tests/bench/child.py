"""Contestants in processes of their own, spoken to in lines of JSON."""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

ROOT = Path(__file__).parents[2]


def environment() -> dict[str, str]:
    """The environment of a child: imports come from cached bytecode, as they do for people."""
    return {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}


class Child:
    """A Python process that runs a module of this package. A context manager.

    Args:
        module: its name here, such as ``b03``.
        arguments: given to it as `sys.argv`.
        extra: what its environment has beside this process's.
        entering: the prefix of a command that runs it elsewhere, such as on another host.
    """

    def __init__(
        self,
        module: str,
        *arguments: str,
        extra: Mapping[str, str] = MappingProxyType({}),
        entering: Sequence[str] = (),
    ) -> None:
        self._process = subprocess.Popen(
            [*entering, sys.executable, "-m", f"{__package__}.{module}", *arguments],
            cwd=ROOT,
            env=environment() | extra,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate(timeout=60)

    def tell(self, message: Any) -> None:
        """Send it a message."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()

    def hear(self) -> Any:
        """Wait for a message of its.

        Raises:
            RuntimeError: it ended instead; what it said is on stderr.
        """
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self._process.args!r} ended with {self._process.wait()}")
        return json.loads(line)

    def ask(self, message: Any) -> Any:
        """Send it a message and wait for the answer."""
        self.tell(message)
        return self.hear()


def heard() -> Iterator[Any]:
    """In the child: what it is told, until the parent lets go."""
    return map(json.loads, sys.stdin)


async def orders() -> AsyncIterator[Any]:
    """In the child: the same, where other tasks go on meanwhile."""
    lines = heard()
    while (order := await asyncio.to_thread(next, lines, None)) is not None:
        yield order


def play(**roles: Callable[..., Any]) -> None:
    """In the child: be the contestant that the first argument names, with the others."""
    role, *arguments = sys.argv[1:]
    if inspect.isawaitable(played := roles[role](*arguments)):
        asyncio.run(played)


def say(message: Any) -> None:
    """In the child: answer the parent."""
    print(json.dumps(message), flush=True)
