"""Other projects that a query uses beside its own: each is a catalogue of the same database, with the same views.

Their stores are only read, and only if this user's Workbench made them; nothing of these projects is run. In the place
of a project may be what `export` saved of one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from workbench.analytics.changes import START, Position, Update, read_update
from workbench.analytics.exported import ExportCatalogue, Exported, found
from workbench.analytics.replica import Catalogue, Replica
from workbench.analytics.views import VIEWS
from workbench.errors import BadInput
from workbench.state.database_note import DatabaseNote
from workbench.state.home import expanded
from workbench.state.root import STATE
from workbench.state.settings import Settings
from workbench.store.base import Reader
from workbench.store.snapshot import read_snapshot
from workbench.trust import state_directory

NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}")
TAKEN = {"main", "temp", "system", "memory", "copy", "information_schema", "pg_catalog", *VIEWS}
"""Names that mean something else in a query."""
Source = Path | str | Exported
"""Where a project's store is, or what was exported of one."""


@dataclass(frozen=True)
class _Other:
    """A project, or what was exported of one, and its copy, which belongs to a generation of the database."""

    source: Source
    copy: Catalogue | ExportCatalogue
    follow: Callable[[], None]
    generation: int


class Others:
    """The other projects of a database. Not for several threads at once.

    Args:
        replica: the copy that has the database.
    """

    def __init__(self, replica: Replica) -> None:
        self._replica = replica
        self._known: dict[str, _Other] = {}

    def follow(self, wanted: Mapping[str, Path] | None) -> None:
        """Bring the copies of projects up to date; an export is read once.

        Args:
            wanted: their roots, or exports, by name; others are removed. None: the same as before.

        Raises:
            BadInput: ``BAD_NAME``, ``NOT_A_DIRECTORY``. NotFound: ``NO_PROJECT``.
            Refused: see `state_directory.check`. Others: see `read_snapshot`, `exported.found`, `ExportCatalogue`.
        """
        if wanted is not None:
            self._choose({name: _source(name, root) for name, root in wanted.items()})
        for name, project in list(self._known.items()):
            if project.generation != self._replica.generation:
                self._add(name, project.source)
            self._known[name].follow()

    @contextmanager
    def besides(self, more: Mapping[str, Path]) -> Iterator[None]:
        """Have more projects for a while; one of the same name gives way meanwhile. The others are brought up to date.

        Raises:
            As `follow`.
        """
        before = {name: project.source for name, project in self._known.items()}
        self._choose({**before, **{name: _source(name, root) for name, root in more.items()}})
        try:
            self.follow(None)
            yield
        finally:
            self._choose(before)

    def _choose(self, sources: Mapping[str, Source]) -> None:
        """Have just these."""
        for name, project in list(self._known.items()):
            if sources.get(name) != project.source:
                del self._known[name]
                project.copy.close()
        for name, source in sources.items():
            if name not in self._known:
                self._add(name, source)

    def _add(self, name: str, source: Source) -> None:
        connect, generation = self._replica.connection, self._replica.generation
        if isinstance(source, Exported):
            exported = ExportCatalogue(name, source, connect)
            self._known[name] = _Other(source, exported, exported.fill, generation)
        else:
            copy = Catalogue(name, connect)
            self._known[name] = _Other(source, copy, partial(_follow, copy, source), generation)


def _source(name: str, root: Path) -> Source:
    """What may be used under a name that is free."""
    if not NAME.fullmatch(name) or name in TAKEN or name.startswith("raw_"):
        raise BadInput(
            "BAD_NAME",
            f"A project cannot be named {name!r} in a query. Use small letters, digits and _, and no view's name.",
        )
    place = expanded(root)
    if not (place / STATE).exists() and (exported := found(place)) is not None:
        return exported
    settings = Settings.load(place)
    state_directory.require(settings.model_copy(update={"database_url": None}))  # which is this project's
    note, own = DatabaseNote.of(settings.home), settings.database_url
    if note is None:
        return settings.database
    return own.conninfo if own is not None and str(own) == note.url else note.url


def _follow(copy: Catalogue, database: Path | str) -> None:
    """Read and apply what has changed in a project since its copy was made."""
    while True:
        position = copy.position
        fits, update = read_snapshot(database, partial(_news, position=position))
        if not fits:
            copy.reset(position)
        copy.apply(update)
        if update.is_last:
            return


def _news(tx: Reader, position: Position) -> tuple[bool, Update]:
    """Whether a copy at a position follows this store, and what changes it next: if it does not, from the beginning."""
    fits = position.fits(tx)
    return fits, read_update(tx, position if fits else START)
