"""Errors and texts in the words of the command line: commands and options in place of operations and arguments.

Operations are called by agents, programs and people alike; the hints of their errors name other operations. Who types
a command is told which command to run instead. `call` is left out: its user typed an operation.
"""

from __future__ import annotations

import re
from typing import Any

from workbench.errors import Hint, WorkbenchError
from workbench.present.declared import commands_of_operations

_SHELL_COMMAND = re.compile(r"`workbench (?!(?:demo|mcp|serve|token|worker)\b)(?=[a-z])")
"""A command of the shell that a notebook has too."""


def error_in_commands(error: WorkbenchError, program: str = "workbench") -> WorkbenchError:
    """An error of an operation for who types commands."""

    def write(hint: Hint) -> str:
        words = commands_of_operations().get(hint.operation)
        return hint.text(f"`{program} {words}`" if words else hint.operation, _option, is_typed=True)

    shown = error.with_hint(write)
    return shown.with_message(in_magics(shown.message)) if program.startswith("%") else shown


def _option(argument: str, value: Any) -> str:
    option = f"--{argument.replace('_', '-')}"
    return option if value is True else f"{option} {value}"


def in_magics(text: str) -> str:
    """A text about commands of the shell, with those of a notebook in their place."""
    return _SHELL_COMMAND.sub("`%workbench ", text)
