"""Events as objects of a notebook: `wb.events`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from kernel_ext.objects.rows import Kind, Listing, Notebook, Row
from workbench.cli.status import EVENT_COLUMNS, NO_EVENTS
from workbench.tables import Table


class Event(Row):
    """Something that happened."""

    KIND: ClassVar[Kind[Event]]

    id: int
    at: str
    kind: str
    actor: str
    subject: str
    session: str | None
    data: dict[str, Any]


class Events(Listing[Event]):
    """The newest events, the newest last: `wb.events(about="task:7")`, `wb.events(kinds=["task.*"], limit=5)`."""

    def __init__(self, notebook: Notebook) -> None:
        super().__init__(notebook, Event.KIND)


def event_table(found: Sequence[Mapping[str, Any]], empty: str) -> Table:
    """Events, the newest last."""
    return Table.of(found, EVENT_COLUMNS, empty)


Event.KIND = Kind(
    Event, "list_newest_events", "events", "id", event_table, NO_EVENTS, words={"about": "subject"}, newest=True
)
