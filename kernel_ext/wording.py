"""Results of commands as a notebook shows them: sentences that name commands of the shell name its magics instead."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from workbench.cli.output import Note
from workbench.rules.wording import in_magics
from workbench.tables import Page, Table


def worded(shown: Any) -> Any:
    """What a command returned. Cells of tables stay: agents and people wrote them."""
    if isinstance(shown, Page):
        return replace(shown, parts=[(title, worded(table)) for title, table in shown.parts])
    if isinstance(shown, Table):
        return replace(shown, empty=in_magics(shown.empty), note=in_magics(shown.note), lead=in_magics(shown.lead))
    return replace(shown, message=in_magics(shown.message)) if isinstance(shown, Note) else shown
