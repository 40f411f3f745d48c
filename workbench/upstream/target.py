"""The target of a connection: a program that is started, or a server at a URL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, repr=False)
class ServerProgram:
    """A program that speaks MCP on its standard input and output. It has no representation that shows its secrets.

    Args:
        command: the program with its arguments.
        environment: the program's, whole.
    """

    command: Sequence[str]
    environment: Mapping[str, str]
    directory: Path


@dataclass(frozen=True, slots=True, repr=False)
class ServerAddress:
    """A server at a URL. It has no representation that shows its secrets.

    Args:
        headers: of every request.
        is_sse: it has the older transport, with one stream of events for all answers.
    """

    url: str
    headers: Mapping[str, str]
    is_sse: bool = False


Target = ServerProgram | ServerAddress
