"""Events as objects of a notebook: `wb.events`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from kernel_ext.objects.kinds import NotebookSession, ObjectKind
from kernel_ext.objects.rows import Listing, Row
from workbench.cli.status import EVENT_COLUMNS, NO_EVENTS
from workbench.errors import NotFound
from workbench.present.tables import Table


class Event(Row):
    """Something that happened."""

    _KIND: ClassVar[ObjectKind[Event]]

    id: int
    at: str
    kind: str
    actor: str
    subject: str
    session: str | None
    data: dict[str, Any]


class Events(Listing[Event]):
    """The newest events, the newest last: `wb.events(about="task:7")`, `wb.events(kinds=["task.*"], limit=5)`."""

    def __init__(self, notebook: NotebookSession) -> None:
        super().__init__(notebook, Event._KIND)


def event_table(events: Sequence[Mapping[str, Any]], empty: str) -> Table:
    """Events, the newest last."""
    return Table.of(events, EVENT_COLUMNS, empty)


def _event(notebook: NotebookSession, key: Any) -> Mapping[str, Any]:
    """The event with an id, however old it is.

    Raises:
        NotFound: ``EVENT_NOT_FOUND``.
    """
    if isinstance(key, int) and key >= 0:
        events = notebook.call("list_newest_events", before=key + 1, limit=1)["events"]
        if events and events[0]["id"] == key:
            return dict(events[0])
    raise NotFound("EVENT_NOT_FOUND", f"There is no event {key!r}.")


Event._KIND = ObjectKind(
    Event, "list_newest_events", "events", "id", event_table, NO_EVENTS, _event, words={"about": "subject"}, newest=True
)
