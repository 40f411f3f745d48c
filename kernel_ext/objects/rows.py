"""Lists of objects that show themselves: `wb.tasks` is live, and calling it finds what matches now.

For example:

    wb.tasks                                     # a table of all tasks
    wb.tasks[7].cancel("not this year")
    failed = wb.tasks(status="failed")           # as they are now
    failed.sort("-priority").page(2)
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import index
from typing import TYPE_CHECKING, Any, ClassVar, SupportsIndex, TypeVar, overload

from kernel_ext.libraries import imported
from kernel_ext.objects.kinds import SHOWN, TOGETHER, NotebookSession, ObjectKind
from kernel_ext.objects.mistakes import (
    Suggests,
    checked,
    field_read_only,
    no_such_row,
    not_a_key,
    public,
    unknown_field,
)
from kernel_ext.result import Result
from kernel_ext.wording import in_objects
from workbench.errors import BadInput, NotFound, WorkbenchError
from workbench.present.inert import inert_line
from workbench.present.tables import Table, TablePage, plain
from workbench.rules.wording import in_magics

if TYPE_CHECKING:
    import pandas
    from IPython.lib.pretty import PrettyPrinter

    from kernel_ext.panels.desk import Desk

PAGE = 20
CURSORS = ("cursor", "before")
"""The arguments that ask for another page."""


class Row:
    """One object. Its fields are attributes, as they were when it was read; a cell shows it whole.

    Fields that its list does not have are read when they are first used, for one object after another many at once.
    `refresh` reads it again.
    """

    _KIND: ClassVar[ObjectKind[Any]]

    def __init__(
        self, notebook: NotebookSession, fields: Mapping[str, Any], *, whole: bool = False, page: Sequence[Row] = ()
    ) -> None:
        self._notebook = notebook
        self._values = dict(fields)
        self._whole = whole
        self._page = page
        self._key = self._values[self._KIND.key]

    def as_dict(self) -> dict[str, Any]:
        """Its fields, as the operation that lists or gets it returns them."""
        return dict(self._values)

    def refresh(self) -> None:
        """Read it again.

        Raises:
            Missing: it does not exist any more.
        """
        self._values = self._KIND.read(self._notebook, self._key)
        self._whole = True

    def _complete(self) -> None:
        """Read its other fields. If another row of its page was completed before, the next ones are completed by the
        same call: they are likely to be used too."""
        if self._KIND.get_many is not None and any(row._whole for row in self._page):
            following = self._page[self._page.index(self) :]
            unread = {row._key: row for row in following if not row._whole}
            for fields in self._KIND.get_many(self._notebook, list(unread)[:TOGETHER]):
                row = unread[fields[self._KIND.key]]
                row._values, row._whole = dict(fields), True
        if not self._whole:
            self.refresh()

    def _call(self, operation: str, **arguments: Any) -> Any:
        """Run an operation.

        Raises:
            WorkbenchError: what it raises; it names the lists of a notebook.
        """
        try:
            return self._notebook.call(operation, **arguments)
        except WorkbenchError as error:
            raise in_objects(error) from None

    def _change(self, operation: str, **arguments: Any) -> None:
        """Run an operation that changes it, and read it again."""
        self._call(operation, **arguments)
        self.refresh()

    @classmethod
    def _fields(cls) -> list[str]:
        """The names of its fields."""
        return [name for name in cls.__annotations__ if not name.startswith("_")]

    def __setattr__(self, name: str, value: Any) -> None:
        if not name.startswith("_"):
            raise field_read_only(type(self).__name__, name)
        super().__setattr__(name, value)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # a front end looks for methods that show it
            raise AttributeError(name)
        if name not in self._fields():
            raise unknown_field(type(self).__name__, name, public(self))
        if name not in self._values and not self._whole:
            self._complete()
        value = self._values.get(name)
        return Result(value) if type(value) is dict else value

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._fields()]

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._key == getattr(other, "_key", None)

    def __hash__(self) -> int:
        return hash((type(self), self._key))

    def __str__(self) -> str:
        return repr(self._render_or_explain())

    def __repr__(self) -> str:
        """One line, as for a list of them: `<Task 7: Make the linter pass, failed>`."""
        title, state = (
            next((self._values[name] for name in names if self._values.get(name)), None)
            for names in (("title", "name"), ("status", "state"))
        )
        about = ", ".join(plain(text) for text in (title, state) if text and text != self._key)
        return inert_line(f"<{type(self).__name__} {self._key}{about and f': {about}'}>")

    def _repr_pretty_(self, printer: PrettyPrinter, cycle: bool) -> None:
        alone = len(printer.stack) <= 1 and not cycle
        printer.text(str(self) if alone else repr(self))

    def _repr_html_(self) -> str:
        return self._render_or_explain().html()

    def _render_or_explain(self) -> Table | TablePage:
        """The object, or its last known fields and the error."""
        try:
            return self._render()
        except WorkbenchError as error:
            return self._facts(str(in_objects(error)))

    def _render(self) -> Table | TablePage:
        """What a cell shows: all of it."""
        return self._facts()

    def _facts(self, note: str = "") -> Table:
        facts = [
            [name.replace("_", " "), value] for name, value in self._values.items() if value not in (None, "", [], {})
        ]
        return Table(["", ""], facts, data=self.as_dict(), note=note)


R = TypeVar("R", bound=Row)


class Listing(Suggests, Collection[R]):
    """The objects of a kind, as they are at each use. `[key]` finds one; a call finds those that match."""

    def __init__(self, notebook: NotebookSession, kind: ObjectKind[R]) -> None:
        self._notebook = notebook
        self._kind = kind

    def _label(self) -> str:
        return self._kind.shown_as

    def __call__(self, **filters: Any) -> Rows[R]:
        """Those that match now.

        Args:
            filters: arguments of the operation that lists them.

        Raises:
            BadInput: ``INVALID_ARGUMENTS``.
        """
        pages = self._kind.pages(self._notebook, filters)
        rows = Pages((self._rows(page), has_more) for page, has_more in pages)
        return Rows(rows, self._kind, "None matches." if filters else in_magics(self._kind.empty))

    def _rows(self, page: Sequence[Mapping[str, Any]]) -> list[R]:
        rows: list[R] = []
        rows.extend(self._kind.row(self._notebook, fields, page=rows) for fields in page)
        return rows

    def __getitem__(self, key: int | str) -> R:
        """The one with this id or name.

        Raises:
            Missing: there is none. BadInput: ``INVALID_ARGUMENTS``: it is neither an id nor a name.
        """
        name = key if isinstance(key, str) else _number(self._kind.shown_as, key)
        return self._kind.row(self._notebook, self._kind.read(self._notebook, name), whole=True)

    def __iter__(self) -> Iterator[R]:
        return iter(self())

    def __len__(self) -> int:
        return len(self())

    def __contains__(self, key: object) -> bool:
        try:
            self._kind.read(self._notebook, key._key if isinstance(key, Row) else key)
        except NotFound:
            return False
        return True

    def _make(self, operation: str, **arguments: Any) -> Mapping[str, Any]:
        """Run an operation that makes one.

        Raises:
            WorkbenchError: what it raises; it names the lists of a notebook.
        """
        try:
            return self._notebook.call(operation, **arguments)
        except WorkbenchError as error:
            raise in_objects(error) from None

    def filters(self) -> dict[str, Any]:
        """The filters that a call takes: the types of their values, by name."""
        from workbench.ops import collect
        from workbench.services import SERVICES

        fields = collect(SERVICES)[self._kind.operation].arguments.model_fields
        types = {name: field.annotation for name, field in fields.items() if name not in CURSORS}
        short = {word: types.pop(name, None) for word, name in self._kind.words.items()}
        return short | types

    def fields(self) -> list[str]:
        """The names of the fields of each."""
        names: list[str] = self._kind.row._fields()  # type: ignore[attr-defined]
        return names

    def filter(self, test: Callable[[R], Any] | None = None, /, **values: Any) -> Rows[R]:
        """Those that pass a test and whose fields have these values. See `Rows.filter`."""
        return self().filter(test, **values)

    def sort(self, name: str, *, reverse: bool = False) -> Rows[R]:
        """All, sorted by a field. See `Rows.sort`."""
        return self().sort(name, reverse=reverse)

    def page(self, number: int, size: int = PAGE) -> Rows[R]:
        """One page; the first has the number 1."""
        return self().page(number, size)

    def frame(self) -> pandas.DataFrame:
        """A DataFrame with their fields as columns, as they are now."""
        return self().frame()

    def panel(self, *, dock: bool = False) -> Desk:
        """A panel that shows only them, live.

        Args:
            dock: put it beside the notebook, which JupyterLab can do.

        Raises:
            BadInput: ``UNKNOWN_TAB``: the panel does not show them.
        """
        return self._notebook.panel(self._kind.tab or self._kind.items, alone=True, dock=dock)

    def _ipython_key_completions_(self) -> list[Any]:
        return self._kind.keys(self._notebook)

    def __repr__(self) -> str:
        """As Python names it in others, such as its methods."""
        return f"<{self._kind.shown_as}>"

    def __str__(self) -> str:
        return self._render().text()

    def _repr_pretty_(self, printer: PrettyPrinter, cycle: bool) -> None:
        printer.text(repr(self) if cycle else str(self))

    def _repr_html_(self) -> str:
        return self._render().html()

    def _render(self) -> Table:
        return shown_or_why(self._table)

    def _table(self) -> Table:
        """The first of them: a list of very many is not read whole in order to be shown."""
        page, has_more = next(self._kind.pages(self._notebook, {}))
        table = self._kind.table(page[:SHOWN], in_magics(self._kind.empty))
        name = self._kind.shown_as
        if self._kind.newest and len(page) == SHOWN:
            before = f"{name}(before={page[0][self._kind.key]})"
            return _with_note(table, f"These are the newest: {before} has those before them.")
        if not has_more and len(page) <= SHOWN:
            return table
        return _with_note(table, f"… and more: {name}(field=value) has those that match, and {name}() all.")


class Pages(Sequence[R]):
    """Objects that are read page by page as they are used, the first page at once."""

    def __init__(self, pages: Iterator[tuple[list[R], bool]]) -> None:
        self._pages = pages
        page, self.has_more = next(pages)
        self._rows = list(page)

    @overload
    def __getitem__(self, at: int) -> R: ...
    @overload
    def __getitem__(self, at: slice) -> list[R]: ...
    def __getitem__(self, at: int | slice) -> R | list[R]:
        last = at.stop if isinstance(at, slice) else at + 1
        self._read(last if last and last > 0 else None)
        return self._rows[at]

    def __len__(self) -> int:
        self._read(None)
        return len(self._rows)

    def _read(self, count: int | None) -> None:
        """Read until there are so many; None: all."""
        while self.has_more and (count is None or len(self._rows) < count):
            page, self.has_more = next(self._pages)
            self._rows += page


class Rows(Suggests, Sequence[R]):
    """Objects in an order, each as it was when it was read. They can be filtered, sorted, paged and made a DataFrame.

    Those of a list are read as they are used: a cell that shows the first of them reads no more.
    """

    def __init__(self, rows: Sequence[R], kind: ObjectKind[R], empty: str) -> None:
        self._rows = rows
        self._kind = kind
        self._empty = empty

    @overload
    def __getitem__(self, at: int) -> R: ...
    @overload
    def __getitem__(self, at: slice) -> Rows[R]: ...
    def __getitem__(self, at: int | slice) -> R | Rows[R]:
        """By position, unlike in a live list."""
        if isinstance(at, slice):
            return self._like(self._rows[at])
        try:
            return self._rows[at]
        except IndexError:
            raise no_such_row(at, len(self)) from None

    def _label(self) -> str:
        return f"{self._kind.shown_as}(…)"

    def __len__(self) -> int:
        return len(self._rows)

    def __bool__(self) -> bool:
        return bool(self._rows[:1])

    def filter(self, test: Callable[[R], Any] | None = None, /, **values: Any) -> Rows[R]:
        """Those that pass a test and whose fields have these values.

        Raises:
            BadInput: ``UNKNOWN_FIELD``.
        """
        for name in values:
            self._require(name)
        return self._like(
            [
                row
                for row in self._rows
                if (test is None or test(row)) and all(getattr(row, name) == value for name, value in values.items())
            ]
        )

    def sort(self, name: str, *, reverse: bool = False) -> Rows[R]:
        """A copy that is sorted by a field, with ``-`` before it from the largest down; those without it come last.

        Raises:
            BadInput: ``UNKNOWN_FIELD``.
        """
        if isinstance(name, str) and name.startswith("-"):
            reverse, name = True, name[1:]
        self._require(name)
        valued = [row for row in self._rows if getattr(row, name) is not None]
        rest = [row for row in self._rows if getattr(row, name) is None]
        return self._like([*sorted(valued, key=lambda row: getattr(row, name), reverse=reverse), *rest])

    def page(self, number: int, size: int = PAGE) -> Rows[R]:
        """One page; the first has the number 1.

        Raises:
            BadInput: ``INVALID_ARGUMENTS``.
        """
        for argument in (number, size):
            checked(argument, SupportsIndex, ".page(…)", "the number of a page, and its size")
        if number < 1 or size < 1:
            raise BadInput("INVALID_ARGUMENTS", "Pages have numbers from 1, and sizes from 1.", problems=[])
        rows = self[(number - 1) * size : number * size]
        if rows or not self:
            return rows
        last = -(-len(self) // size)
        return Rows([], self._kind, f"There is no page {number}. The last one has the number {last}.")

    def frame(self) -> pandas.DataFrame:
        """A DataFrame with their fields as columns: times are times, and parameters and metrics are columns each."""
        imported("pandas")
        import pandas

        frame = pandas.DataFrame([self._spread(row.as_dict()) for row in self._rows])
        for name in frame.columns:
            is_field = name.partition(".")[0] not in self._kind.spread
            if is_field and name.endswith("_at") and frame[name].notna().any():
                frame[name] = pandas.to_datetime(frame[name], utc=True, format="ISO8601")
        return frame

    def _spread(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """The fields of one, with those that have values by name as a field for each, such as `parameters.lr`."""
        wide = {f"{part}.{name}": value for part in self._kind.spread for name, value in fields[part].items()}
        return {name: value for name, value in fields.items() if name not in self._kind.spread} | wide

    def shown_by(self, table: Callable[[Sequence[Mapping[str, Any]], str], Table]) -> Rows[R]:
        """The same, which a cell shows by another table."""
        return Rows(self._rows, replace(self._kind, table=table), self._empty)

    def _require(self, name: str) -> None:
        row = self._kind.row
        fields = row._fields()  # type: ignore[attr-defined]
        if name not in fields:
            raise unknown_field(row.__name__, name, fields)

    def _like(self, rows: Sequence[R]) -> Rows[R]:
        return Rows(rows, self._kind, "None matches.")

    def __repr__(self) -> str:
        return repr(self._table())

    def _repr_html_(self) -> str:
        return self._table().html()

    def _table(self) -> Table:
        table = self._kind.table([row.as_dict() for row in self._rows[:SHOWN]], self._empty)
        is_unread = isinstance(self._rows, Pages) and self._rows.has_more
        if not is_unread and len(self) <= SHOWN:
            return table
        more = "more" if is_unread else f"{len(self) - SHOWN:,} more"
        return _with_note(table, f"… and {more}: .page(number), .filter(field=value) and .sort(field) choose.")


def _number(of: str, key: object) -> int:
    """A number as an id; those of NumPy and pandas are numbers too."""
    try:
        return index(key)  # type: ignore[arg-type]
    except TypeError:
        raise not_a_key(of, key) from None


def shown_or_why(read: Callable[[], Table]) -> Table:
    """What a cell shows of a list: the error, if it cannot be read. IPython would show an error once for each form."""
    try:
        return read()
    except WorkbenchError as error:
        return Table([], [], str(error))


def _with_note(table: Table, note: str) -> Table:
    """The table with one more line below."""
    return Table(table.columns, table.rows, table.empty, table.data, "\n".join(filter(None, (table.note, note))))
