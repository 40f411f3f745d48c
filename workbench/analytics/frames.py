"""Which DataFrames of a person a query uses as tables: those that it names, and none in place of another."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from workbench.errors import BadInput
from workbench.rules.plain import is_frame

if TYPE_CHECKING:
    import duckdb

_SELECT = re.compile(r"\b(?:select|from|with)\b", re.IGNORECASE)
_CREATED = re.compile(
    r'\bcreate\s+(?:or\s+replace\s+)?temp(?:orary)?\s+(?:table|view)\s+(?:if\s+not\s+exists\s+)?(?:"(\w+)"|(\w+))',
    re.IGNORECASE,
)
_SOURCE = re.compile(r'\b(?:from|join|pivot|unpivot)\s+(?:"(\w+)"|(\w+)\b)(?!\s*[.(])', re.IGNORECASE)


def used(db: duckdb.DuckDBPyConnection, query: str, known: Mapping[str, object]) -> dict[str, object]:
    """The DataFrames that a query uses, also through temporary views.

    Args:
        known: DataFrames and other values, by name.

    Raises:
        BadInput: ``SQL_FAILED``: a view of the project, or a temporary one, is called the same, or another DataFrame
            but for upper case, which SQL does not tell apart.
    """
    frames = {name: value for name, value in known.items() if is_frame(value)}
    if not frames:
        return {}
    views_query = "SELECT lower(view_name), sql FROM duckdb_views() WHERE temporary AND NOT internal"
    views: dict[str, str] = dict(db.execute(views_query).fetchall())
    known_tables = "SELECT lower(table_name), table_catalog = 'temp' FROM information_schema.tables"
    tables: dict[str, bool] = dict(db.execute(known_tables).fetchall())
    tables |= dict.fromkeys(_names(_CREATED, query.lower()), True)
    table_names = _table_names(db, query)
    while used_views := [name for name in views if name in {each.lower() for each in table_names}]:
        for name in used_views:
            table_names |= _table_names(db, views.pop(name))
    _refuse_hidden(table_names, tables, frames)
    meanings = {name: _frame(name, table_names, frames) for name in table_names if name.lower() not in tables}
    return {name: frames[frame] for name, frame in meanings.items() if frame is not None}


def _frame(name: str, table_names: Collection[str], frames: Mapping[str, object]) -> str | None:
    """The DataFrame that a name in a query means; None if it means none."""
    alike = [frame for frame in frames if frame.lower() == name.lower()]
    spellings = {each for each in table_names if each.lower() == name.lower()}
    if len(alike) > 1 and (name not in alike or len(spellings & {*alike}) > 1):
        raise BadInput(
            "SQL_FAILED",
            f"{name} may be any of your DataFrames {', '.join(sorted(alike))}: SQL does not tell upper from lower "
            "case. Use one of these names in the query, or give the DataFrame another name.",
        )
    return next((frame for frame in alike if frame == name), alike[0] if alike else None)


def _refuse_hidden(table_names: Collection[str], tables: Mapping[str, bool], frames: Mapping[str, object]) -> None:
    """Refuse names of tables, which may be temporary, that are those of DataFrames, too."""
    mine = {frame.lower(): frame for frame in frames}
    for name in sorted(table_names):
        if name.lower() in mine and name.lower() in tables:
            kind, schema = ("temporary view", "temp") if tables[name.lower()] else ("view of the project", "main")
            raise BadInput(
                "SQL_FAILED",
                f"{name} is a {kind} and your DataFrame {mine[name.lower()]}. Write {schema}.{name} for the view, or "
                "give the DataFrame another name.",
            )


def _names(pattern: re.Pattern[str], query: str) -> set[str]:
    return {quoted or plain for quoted, plain in pattern.findall(query)}


def _table_names(db: duckdb.DuckDBPyConnection, query: str) -> set[str]:
    """The names of tables in a query as they are written, without those of its own CTEs and those with a schema."""
    import duckdb

    table_names: set[str] = set()
    for statement in duckdb.extract_statements(query):
        parsed = _parse(db, statement.query)
        if parsed is None:
            table_names |= _names(_SOURCE, statement.query)
        else:
            nodes = [*_nodes(parsed)]
            inner = {entry["key"].lower() for node in nodes for entry in node.get("cte_map", {}).get("map", [])}
            tables = [node for node in nodes if node.get("type") == "BASE_TABLE" and not node["schema_name"]]
            table_names |= {node["table_name"] for node in tables if node["table_name"].lower() not in inner}
    return table_names


def _parse(db: duckdb.DuckDBPyConnection, statement: str) -> Any:
    """The syntax tree of a SELECT, or of the one that another statement begins with, such as CREATE VIEW; else None."""
    begins = _SELECT.search(statement)
    for text in (statement, statement[begins.start() :] if begins else ""):
        [(tree,)] = db.execute("SELECT json_serialize_sql(?::VARCHAR)", [text]).fetchall()
        if text and not (parsed := json.loads(tree))["error"]:
            return parsed
    return None


def _nodes(tree: Any) -> Iterator[dict[str, Any]]:
    """All objects of a syntax tree."""
    waiting = [tree]
    while waiting:
        match waiting.pop():
            case dict() as node:
                yield node
                waiting += node.values()
            case list() as several:
                waiting += several
