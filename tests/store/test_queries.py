"""The SQL: how `.sql` files are read, and that both databases take every statement in them."""

from __future__ import annotations

import ast
import re
import sqlite3
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import workbench
from workbench.store.migrate import MIGRATIONS, migrate, scripts
from workbench.store.queries import Dialect, Queries, Query, beside, render

PACKAGE = Path(workbench.__file__).parent


def _headers(path: Path, kind: str) -> list[str]:
    """The names in the headers of a kind in a file."""
    return re.findall(rf"^-- {kind}: (\w+)", path.read_text("utf-8"), re.MULTILINE)


WITH_QUERIES = sorted(path for path in PACKAGE.rglob("*.sql") if _headers(path, "name"))
USED = {path: [path.with_name(f"{stem}.sql") for stem in _headers(path, "use")] for path in WITH_QUERIES}
"""The files whose queries each file completes with its parts; those have none that could be run by themselves."""
FILES = [path for path in WITH_QUERIES if not any(path in used for used in USED.values())]
EVERY = {
    f"{path.relative_to(PACKAGE).with_suffix('')}:{query.name}": query for path in FILES for query in Queries(path)
}
SQLITE_ONLY = {
    "tables": "asks sqlite_master, SQLite's own catalogue, of a legacy database, and of one that may be empty",
    "compared": "asks sqlite_sequence, where SQLite counts ids",
    "damage": "is a pragma, for a legacy database",
    "copy": "is how SQLite makes a backup",
}
POSTGRES_ONLY = {
    "store/postgres:add_events": "inserts arrays",
    "store/postgres_rewriting:make_calls": "makes a table that the next ones use",
    "store/postgres_rewriting:noted": "reads it",
    "store/postgres_rewriting:answer": "changes it",
    "store/copying:last_event": "asks where PostgreSQL counts ids",
    "store/copying:has_servers": "asks whether the table is there",
    "store/copying:users": "asks who has connections",
    "store/server_connection:status": "asks it as well",
}
CALLING_PYTHON = {PACKAGE / "services" / "spawning" / "older_records.sql"}
"""Scripts that call functions which only a connection of SQLite can be given."""
STATEMENTS = ("SELECT", "WITH", "INSERT", "UPDATE", "DELETE")


# Reading the files.


@pytest.mark.parametrize(
    ("text", "sqlite", "postgres"),
    [
        ("a {{id}}", "a INTEGER PRIMARY KEY AUTOINCREMENT", "a BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY"),
        ("a {{big}}, b {{real}}", "a INTEGER, b REAL", "a BIGINT, b DOUBLE PRECISION"),
        (") {{strict}};", ") STRICT;", ") ;"),
        (
            "{{rows_of keys}} AS k",
            "json_each(CAST(:keys AS TEXT)) AS k",
            '(SELECT jsonb_array_elements_text(CAST(CAST(:keys AS TEXT) AS JSONB)) COLLATE "C" AS value) AS k',
        ),
        ("nothing { } to {do}", "nothing { } to {do}", "nothing { } to {do}"),
    ],
)
def test_a_macro_is_rendered_for_each_database(text: str, sqlite: str, postgres: str) -> None:
    assert render(text, Dialect.SQLITE) == sqlite
    assert render(text, Dialect.POSTGRES) == postgres
    with pytest.raises(KeyError, match="biggest"):
        render(f"{text} {{{{biggest}}}}", Dialect.SQLITE)


@pytest.mark.parametrize(
    ("text", "parameters", "postgres"),
    [
        ("a = :a AND b = :b_2", ["a", "b_2"], "a = $1 AND b = $2"),
        ("a = :now OR b < :x OR c = :now", ["now", "x"], "a = $1 OR b < $2 OR c = $1"),
        ("SELECT a::text, b::int FROM t WHERE c=:c", ["c"], "SELECT a::text, b::int FROM t WHERE c=$1"),
        ("a LIKE :a || '%'", ["a"], "a LIKE $1 || '%'"),
        ("x IN (SELECT value FROM {{rows_of ids}} AS i)", ["ids"], None),
        ("SELECT 1", [], "SELECT 1"),
    ],
)
def test_parameters_are_named_in_the_file_and_passed_apart_from_the_text(
    text: str, parameters: list[str], postgres: str | None
) -> None:
    query = Query("any", text)
    assert query.parameters == parameters
    assert postgres is None or query.postgres == (postgres, tuple(parameters))


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_file_gives_its_queries_by_name_and_in_order(tmp_path: Path, end: str) -> None:
    text = "-- About things.\n\n-- name: first\n-- Why it is so.\nSELECT 1;\n\n-- name: second\nSELECT\n    2;\n"
    (tmp_path / "things.sql").write_bytes(text.replace("\n", end).encode())
    things = beside(str(tmp_path / "things.py"))
    found = [(query.name, query.text) for query in things]
    assert found == [("first", "-- Why it is so.\nSELECT 1"), ("second", "SELECT\n    2")]
    assert things.second is list(things)[1]
    with pytest.raises(AttributeError, match="'third'"):
        things.third


def test_a_shared_part_of_queries_may_use_an_earlier_part(tmp_path: Path) -> None:
    parts = "-- part: seen\nx = {{big}}\n\n-- part: wanted\ny = 2 AND {{seen}}\n\n"
    (tmp_path / "things.sql").write_text(f"{parts}-- name: first\nSELECT 1 WHERE {{{{wanted}}}};\n")
    (query,) = Queries(tmp_path / "things.sql")
    assert (query.name, query.text) == ("first", "SELECT 1 WHERE y = 2 AND x = {{big}}")


def test_a_file_completes_the_queries_of_another_one_with_its_own_parts(tmp_path: Path) -> None:
    tmp_path.joinpath("shared.sql").write_text("-- part: all\nFROM {{table}}\n\n-- name: first\nSELECT 1 {{all}};\n")
    for table in ("a", "b"):
        text = f"-- part: table\n{table}\n\n-- use: shared\n\n-- name: second\nSELECT 2 {{{{all}}}};\n"
        tmp_path.joinpath(f"{table}.sql").write_text(text)
        assert [query.text for query in Queries(tmp_path / f"{table}.sql")] == [
            f"SELECT 1 FROM {table}",
            f"SELECT 2 FROM {table}",
        ]


# The files that ship.


def test_every_header_in_a_file_names_a_query_of_its_own() -> None:
    headers = {path: [name for file in (*USED[path], path) for name in _headers(file, "name")] for path in FILES}
    assert {path: [query.name for query in Queries(path)] for path in FILES} == headers


def test_the_module_beside_a_file_uses_each_of_its_queries_and_no_other() -> None:
    used = {path: set(_named_by(path)) for path in FILES}
    assert {path: {query.name for query in Queries(path)} for path in FILES} == used


def _named_by(path: Path) -> Iterator[str]:
    """The queries of a file that some module asks for: `SQL.x` in its own module, by what they import in others."""
    for module in _asking():
        aliases = _aliases(module, path)
        yield from (name for owner, name in _attributes(module) if owner in aliases)
    for used in USED[path]:  # the module beside it is given the queries of each file that completes them
        yield from (name for owner, name in _attributes(used.with_suffix(".py")) if owner.endswith(".sql"))


@cache
def _asking() -> list[Path]:
    """The modules that can ask for a query: those that mention some. To parse the others takes most of the time."""
    return [module for module in PACKAGE.rglob("*.py") if re.search(r"SQL|\.sql", module.read_text("utf-8"))]


@cache
def _nodes(module: Path) -> list[ast.AST]:
    return list(ast.walk(ast.parse(module.read_text("utf-8"))))


@cache
def _attributes(module: Path) -> list[tuple[str, str]]:
    """The attributes that a module reads: `tasks.SQL.get` is ("tasks.SQL", "get")."""
    return [(ast.unparse(node.value), node.attr) for node in _nodes(module) if isinstance(node, ast.Attribute)]


def _aliases(module: Path, path: Path) -> set[str]:
    """The names that a module has for the queries of a file."""
    if module == path.with_suffix(".py"):
        return {"SQL"}
    homes = _homes(path)
    return {alias for source, name, alias in _imported(module) if name == "SQL" and source in homes} | {
        f"{alias}.SQL" for source, name, alias in _imported(module) if f"{source}.{name}" in homes
    }


@cache
def _imported(module: Path) -> list[tuple[str, str, str]]:
    """The imports of a module: source, name and alias."""
    imports = [node for node in _nodes(module) if isinstance(node, ast.ImportFrom)]
    return [(str(node.module), name.name, name.asname or name.name) for node in imports for name in node.names]


@cache
def _homes(path: Path) -> set[str]:
    """The modules in which the queries of a file are `SQL`: the one beside it, and a package that re-exports them."""
    module = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
    package = path.with_name("__init__.py")
    passed_on = package.exists() and (module, "SQL", "SQL") in _imported(package)
    return {module, module.rpartition(".")[0]} if passed_on else {module}


def test_sqlite_takes_every_query() -> None:
    db = sqlite3.connect(":memory:", isolation_level=None)
    migrate(db, scripts(), 0)
    refused = {}
    assert POSTGRES_ONLY.keys() <= EVERY.keys()
    for name, query in EVERY.items():
        if name in POSTGRES_ONLY or query.name.startswith("postgres_"):
            continue
        try:
            db.execute(f"EXPLAIN {query.sqlite}", dict.fromkeys(query.parameters)).fetchall()
        except sqlite3.Error as error:
            refused[name] = str(error)
    db.close()
    assert refused == {}


def test_all_the_sql_of_the_package_is_checked() -> None:
    unread = set(PACKAGE.rglob("*.sql")) - set(WITH_QUERIES) - set(MIGRATIONS.glob("*.sql"))
    for_duckdb = {path for part in ("views", "reports") for path in (PACKAGE / "analytics" / part).rglob("*.sql")}
    assert unread == for_duckdb | CALLING_PYTHON


@pytest.mark.postgres
def test_postgresql_takes_every_query(postgres: Any) -> None:
    _migrate(postgres)
    assert SQLITE_ONLY.keys() <= {query.name for query in EVERY.values()}
    tried = {
        name: query
        for name, query in EVERY.items()
        if query.name not in SQLITE_ONLY and not query.name.startswith("sqlite_")
    }
    assert {name: said for name, query in tried.items() if (said := _refusal(postgres, query))} == {}


@pytest.mark.postgres
def test_postgresql_finds_the_open_tasks_below_a_task_by_their_ids(postgres: Any) -> None:
    from workbench.store.postgres_connection import SESSION

    _migrate(postgres)
    postgres.execute(SESSION)
    postgres.execute(f"PREPARE below AS {EVERY['services/tasks/dependencies:subtree_open'].postgres[0]}")
    plan = "\n".join(line for (line,) in postgres.execute("EXPLAIN EXECUTE below (1)"))
    assert "task_status_pkey" in plan, plan
    assert "tasks_by_status" not in plan, plan


def _migrate(postgres: Any) -> None:
    postgres.execute(beside(str(PACKAGE / "store" / "migrate.py")).create_history.postgres[0])
    for script in scripts():
        with postgres.transaction():
            for statement in script.statements(Dialect.POSTGRES):
                postgres.execute(statement)


def _refusal(postgres: Any, query: Query) -> str:
    """Why PostgreSQL does not take a query; empty: it does."""
    text, _ = query.postgres
    try:
        if _first_word(text) not in STATEMENTS:  # only these can be prepared; others have no parameters
            postgres.execute(text)
            return ""
        postgres.execute(f"PREPARE trial AS {text}")
    except postgres.Error as error:
        return str(error)
    known = "SELECT parameter_types::text[] FROM pg_prepared_statements WHERE name = 'trial'"
    (types,) = postgres.execute(known).fetchone()
    postgres.execute("DEALLOCATE trial")
    # `real` would lose a process's start
    exact = {"bigint", "integer", "text", "double precision", "bytea", "bigint[]", "text[]", "regclass"}
    is_exact = len(types) == len(query.parameters) and {*types} <= exact
    return "" if is_exact else f"has parameters {types}"


def _first_word(text: str) -> str:
    code = [line for line in text.splitlines() if not line.startswith("--")]
    return " ".join(code).split()[0]
