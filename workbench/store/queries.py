"""Reads queries from `.sql` files, which are written once for both databases.

A file holds queries headed `-- name: <identifier>`; parameters are `:named`. Text that several queries share is
defined once, above them, headed `-- part: <identifier>`, and used as ``{{identifier}}``. `-- use: <stem>` adds the
queries of the file with that stem in the same directory, filled in with the parts above. Where the spelling of the two
databases differs, there is a macro in double braces; these are all of them:

==================  =================================  ==========================================
macro               SQLite                             PostgreSQL
==================  =================================  ==========================================
``{{id}}``          INTEGER PRIMARY KEY AUTOINCREMENT  BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY
``{{big}}``         INTEGER                            BIGINT
``{{real}}``        REAL                               DOUBLE PRECISION
``{{strict}}``      STRICT                             (nothing)
``{{rows_of p}}``   rows ``value`` of JSON array ``:p``  the same, as TEXT
``{{database_bytes}}``  size of the database, as a scalar
``{{now}}``         the database's clock, microseconds UTC, for migrations
==================  =================================  ==========================================

Text is compared by code points on both: columns and parameters have the collation "C" on PostgreSQL.

Text for one database only is between ``{{sqlite}}`` or ``{{postgres}}`` and ``{{end}}``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from pathlib import Path


class Dialect(StrEnum):
    """The databases the SQL is written for."""

    SQLITE = "sqlite"
    POSTGRES = "postgres"


_MACROS = {
    Dialect.SQLITE: {
        "id": "INTEGER PRIMARY KEY AUTOINCREMENT",
        "big": "INTEGER",
        "real": "REAL",
        "strict": "STRICT",
        "rows_of": "json_each(CAST(:{0} AS TEXT))",
        "database_bytes": "(SELECT page_count * page_size FROM pragma_page_count, pragma_page_size)",
        "now": "CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)",
    },
    Dialect.POSTGRES: {
        "id": "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
        "big": "BIGINT",
        "real": "DOUBLE PRECISION",
        "strict": "",
        "rows_of": '(SELECT jsonb_array_elements_text(CAST(CAST(:{0} AS TEXT) AS JSONB)) COLLATE "C" AS value)',
        "database_bytes": "pg_database_size(current_database())",
        "now": "CAST(EXTRACT(EPOCH FROM now()) * 1000000 AS BIGINT)",
    },
}
_MACRO = re.compile(r"\{\{(\w+)(?: (\w+))?\}\}")
_ONLY = re.compile(r"\{\{(sqlite|postgres)\}\}\n?(.*?)\{\{end\}\}\n?", re.DOTALL)
_PARAMETER = re.compile(r"(?<![:\w]):([a-z_]\w*)")
_TEXT_PARAMETER = re.compile(r"CAST\(:\w+ AS TEXT\)|(?<=\bLOWER\():\w+")
_STAR = re.compile(r"(?<!COUNT\()\*")
_HEADER = re.compile(r"^-- (name|part|use): (\w+)[ \t]*\n", re.MULTILINE)


def render(text: str, dialect: Dialect) -> str:
    """Expand the macros of `text` for one database; parameters stay `:named`."""
    dialect_text = _ONLY.sub(lambda m: m[2] if m[1] == dialect else "", text)
    return _MACRO.sub(lambda m: _MACROS[dialect][m[1]].format(m[2]), dialect_text)


@dataclass(frozen=True)
class Query:
    """One named statement."""

    name: str
    text: str

    @cached_property
    def sqlite(self) -> str:
        """The statement as `sqlite3` takes it."""
        return render(self.text, Dialect.SQLITE)

    @cached_property
    def postgres(self) -> tuple[str, tuple[str, ...]]:
        """The statement as PostgreSQL takes it, with ``$n`` for its parameters, and the names of these in order."""
        text = _TEXT_PARAMETER.sub(r'\g<0> COLLATE "C"', render(self.text, Dialect.POSTGRES))
        names = tuple(dict.fromkeys(_PARAMETER.findall(text)))
        return _PARAMETER.sub(lambda m: f"${names.index(m[1]) + 1}", text), names

    @cached_property
    def names_its_columns(self) -> bool:
        """Whether it has no `*`, so that it selects the same columns whatever a migration adds."""
        return _STAR.search(self.text) is None

    @property
    def parameters(self) -> list[str]:
        """Names of the parameters, in order of first use."""
        return list(dict.fromkeys(_PARAMETER.findall(render(self.text, Dialect.SQLITE))))


class Queries:
    """The queries of one file, as attributes."""

    def __init__(self, path: Path) -> None:
        self._queries = {query.name: query for query in _read(path, {})}
        vars(self).update(self._queries)

    def __getattr__(self, name: str) -> Query:
        raise AttributeError(f"no query is named {name!r}")

    def __iter__(self) -> Iterator[Query]:
        return iter(self._queries.values())


def _read(path: Path, parts: dict[str, str]) -> Iterator[Query]:
    _, *sections = _HEADER.split(path.read_text("utf-8"))
    for header, name, text in zip(sections[::3], sections[1::3], sections[2::3], strict=True):
        expanded = _MACRO.sub(lambda m: parts.get(m[1], m[0]), text.strip().removesuffix(";"))
        if header == "part":
            parts[name] = expanded
        elif header == "use":
            yield from _read(path.with_name(f"{name}.sql"), parts)
        else:
            yield Query(name, expanded)


def beside(module_file: str) -> Queries:
    """The queries of the `.sql` file with the stem of a module: `beside(__file__)`."""
    return Queries(Path(module_file).with_suffix(".sql"))
