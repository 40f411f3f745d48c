"""The kinds of objects of a notebook: how those of a kind are listed, found and shown."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from kernel_ext.definition_sections import Missing, SectionCaller
from kernel_ext.wording import in_objects
from workbench.errors import NotFound, WorkbenchError
from workbench.present.tables import Table
from workbench.rules.naming import similar

if TYPE_CHECKING:
    from kernel_ext.hosting.host import KernelHost
    from kernel_ext.panels.desk import Desk

SHOWN = 100
"""The most rows of a list that a cell shows; the list is whole."""
TOGETHER = 100
"""How many objects are read whole by one call."""
_LISTS = re.compile(r"\s*wb\.\w+ lists [^.]*\.")


class NotebookSession(SectionCaller, Protocol):
    """A notebook's session."""

    @property
    def host(self) -> KernelHost:
        """The servers' host.

        Raises:
            Unavailable: ``NOT_STARTED``.
        """
        ...

    def panel(self, tab: str = ..., *, alone: bool = ..., dock: bool = ...) -> Desk:
        """Open the panel."""
        ...


T = TypeVar("T")


@dataclass(frozen=True)
class ObjectKind(Generic[T]):
    """How objects of a kind are listed, found and shown.

    Attributes:
        row: makes an object.
        operation: lists them; `items` is where its result has them.
        key: the field that identifies one.
        table: shows some of them; its second argument is shown if there are none.
        empty: shown if there are none at all.
        get: finds one by its key.
        get_many: finds up to `TOGETHER` by their keys, those that exist; None: they are read one by one.
        first: filters of the list itself, which a call replaces.
        words: shorter names for arguments of the operation.
        newest: only the newest are listed, unless a call asks for more by `limit`.
        tab: the panel's tab that shows them, if there is one.
        brief: an operation that lists them faster, with their keys.
        names: other fields that find one.
        spread: fields that have values by name, each of which is a column of a DataFrame.
        called: the name of the list, if it is not `items`.
        part: the field of an item that is the object, if it is not the item; an item without it is left out.
    """

    row: Callable[..., T]
    operation: str
    items: str
    key: str
    table: Callable[[Sequence[Mapping[str, Any]], str], Table]
    empty: str
    get: Callable[[NotebookSession, Any], Mapping[str, Any]]
    first: Mapping[str, Any] = field(default_factory=dict)
    words: Mapping[str, str] = field(default_factory=dict)
    newest: bool = False
    tab: str | None = None
    brief: str | None = None
    names: Sequence[str] = ()
    spread: Sequence[str] = ()
    get_many: Callable[[NotebookSession, Sequence[Any]], Sequence[Mapping[str, Any]]] | None = None
    called: str = ""
    part: str = ""

    @property
    def shown_as(self) -> str:
        """The list, as it is called in a notebook."""
        return f"wb.{self.called or self.items}"

    def _objects(self, page: Mapping[str, Any]) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = page[self.items]
        return [item[self.part] for item in items if item[self.part]] if self.part else items

    def pages(
        self, notebook: NotebookSession, filters: Mapping[str, Any]
    ) -> Iterator[tuple[list[dict[str, Any]], bool]]:
        """All that match, page by page, each with whether there are more; the first has as many as are shown.

        Raises:
            WorkbenchError: what the operation raises. BadInput: ``INVALID_ARGUMENTS``: there is no such filter.
        """
        arguments = {**self.first, **{self.words.get(name, name): value for name, value in filters.items()}}
        is_limited = self.newest or "limit" in filters
        more = {} if is_limited or "limit" not in self.first else {"limit": SHOWN}
        while True:
            page = notebook.call(self.operation, **arguments | more)
            following = None if is_limited else page.get("next_cursor")
            yield self._objects(page), following is not None
            if following is None:
                return
            more = {"cursor": following}

    def keys(self, notebook: NotebookSession) -> list[Any]:
        """What Tab offers: what finds those of the first page.

        Raises:
            WorkbenchError: what the operation raises.
        """
        page = notebook.call(self.brief) if self.brief else notebook.call(self.operation, **self.first)
        fields = (self.key, *self.names)
        keys = (item[name] for name in fields for item in self._objects(page) if item[name] is not None)
        return list(dict.fromkeys(keys))

    def read(self, notebook: NotebookSession, key: Any) -> dict[str, Any]:
        """One of them.

        Raises:
            Missing: it does not exist.
        """
        try:
            return dict(self.get(notebook, key))
        except NotFound as error:
            message = in_objects(error).message
            if near := self._near(notebook, key):
                message = f"{_LISTS.sub('', message)} Did you mean {near}?"
            elif not _LISTS.search(message):
                message = f"{message} {self.shown_as} lists them."
            raise Missing(error.code, message, **error.details) from None
        except WorkbenchError as error:
            raise in_objects(error) from None

    def _near(self, notebook: NotebookSession, key: Any) -> str:
        """The names that a misspelt one may mean; numbers are no names."""
        if not isinstance(key, str) or key.isdecimal():
            return ""
        return similar(key, [name for name in self.keys(notebook) if isinstance(name, str)])


def got_by(operation: str, argument: str) -> Callable[[NotebookSession, Any], Mapping[str, Any]]:
    """Find an object by an operation; `argument` takes its key."""
    return lambda notebook, key: notebook.call(operation, **{argument: key})
