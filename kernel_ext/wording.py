"""Results and errors as a notebook shows them: in place of shell commands and operations they name its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from workbench.cli.output import Note, Text
from workbench.errors import BadInput, Interrupted, WorkbenchError
from workbench.present.tables import CommandCell, Table, TablePage
from workbench.rules.wording import in_magics

LISTS: Mapping[str, str] = {
    "agent_list": "wb.definitions",
    "get_personas": "wb.personas",
    "get_worktree_status": "wb.worktrees",
    "list_agents": "wb.agents",
    "list_approvals": "wb.approvals",
    "list_newest_events": "wb.events",
    "list_personalities": "wb.personalities",
    "list_plans": "wb.plans",
    "list_runs": "wb.runs",
    "list_tasks": "wb.tasks",
    "list_tools": "wb.tools",
    "list_worktrees": "wb.worktrees",
}
"""The lists of a notebook, by the operations that they call."""


def worded(shown: Any) -> Any:
    """What a command returned. Texts to copy stay, and cells but for commands: agents and people wrote them."""
    if isinstance(shown, TablePage):
        return replace(shown, parts=[(title, worded(table)) for title, table in shown.parts])
    if isinstance(shown, Table):
        rows = [[in_magics(cell) if isinstance(cell, CommandCell) else cell for cell in row] for row in shown.rows]
        texts = {name: in_magics(getattr(shown, name)) for name in ("empty", "note", "lead")}
        return replace(shown, rows=rows, **texts)
    if isinstance(shown, Text):
        return replace(shown, note=in_magics(shown.note))
    return replace(shown, message=in_magics(shown.message)) if isinstance(shown, Note) else shown


def in_objects(error: WorkbenchError) -> WorkbenchError:
    """An error of an operation for who has used an object: it names the lists of a notebook."""
    return error.with_hint(lambda hint: hint.text(LISTS.get(hint.operation, hint.operation), "{}={!r}".format))


def bad_command(problem: str, advice: str) -> BadInput:
    """The error, with a sentence about the problem; `advice` is what to run for help."""
    return BadInput("BAD_COMMAND", f"{problem} Run `{advice}` for help.")


CALL_INTERRUPTED = "CALL_INTERRUPTED"


@contextmanager
def interruptible(operation: str) -> Iterator[None]:
    """Call an operation in the block: an interrupt is one line.

    Raises:
        Interrupted: ``CALL_INTERRUPTED``.
    """
    try:
        yield
    except Interrupted:
        raise
    except KeyboardInterrupt:
        raise Interrupted(CALL_INTERRUPTED, f"{operation} was interrupted. What it has done stays done.") from None
