"""A person's SQL: statements that change nothing, with parameters, DataFrames, a time limit and interrupts."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, TypeVar

from workbench.analytics.frames import used
from workbench.errors import BadInput, Interrupted, Refused, Unavailable
from workbench.rules.plain import is_frame, native

if TYPE_CHECKING:
    import duckdb

T = TypeVar("T")

READ_ONLY = "A query cannot change the project. CREATE TEMP TABLE and CREATE TEMP VIEW make what is yours."
_WRITES = re.compile(r"launched in read-only mode|Can only \w+( from)? base table|is not an? table$")
"""DuckDB's answers to statements that would change a table or view of the project."""
FILES_ADVICE = "To let the query read and write files, use --files, or in Python wb.sql(…, files=True)."
STOP_SECONDS = 5.0
"""How long an interrupted query may take to end."""
POLL_SECONDS = 0.05
DECIMAL_DIGITS = 38
"""Of a decimal in DuckDB; longer ones would become floats."""
SILENT = {"CREATE", "DROP", "SET", "VARIABLE_SET", "PREPARE"}
"""Statements whose result has nothing to show."""


def query_interrupted() -> Interrupted:
    """The error for a query that a person interrupted; it has ended."""
    return Interrupted("SQL_INTERRUPTED", "The query was interrupted. Narrow it, and run it again.")


def ended_by_interrupt(error: RuntimeError) -> bool:
    """Whether DuckDB raised it in place of the `KeyboardInterrupt` that came while the main thread was in it."""
    return type(error) is RuntimeError and str(error) == "Query interrupted"


@dataclass(frozen=True)
class SqlQuestion:
    """What a person asks.

    Attributes:
        query: one or more statements of SQL; the last one gives the answer.
        values: those of the parameters, such as ``$persona``, by name. Others may be among them.
        frames: DataFrames that the query may use as tables, by name; see `frames.used`.
        seconds: how long it may take; None: any time.
        projects: the roots of other projects that the query may use, by the names of their catalogues; None: those of
            the last question.
    """

    query: str
    values: Mapping[str, object] = field(default_factory=dict)
    frames: Mapping[str, object] = field(default_factory=dict)
    seconds: float | None = None
    projects: Mapping[str, Path] | None = None


def answer(db: duckdb.DuckDBPyConnection, question: SqlQuestion) -> duckdb.DuckDBPyRelation | None:
    """Run a question; None if its last statement has no rows, such as CREATE TEMP VIEW, which stays for the connection.

    Raises:
        BadInput: ``SQL_FAILED``, with DuckDB's explanation. Refused: ``FILES_NOT_ALLOWED``.
        Unavailable: ``SQL_TOO_SLOW``. Interrupted: ``SQL_INTERRUPTED``.
    """
    import duckdb

    try:
        frames = used(db, question.query, question.frames)
        for name, frame in frames.items():
            db.register(name, frame)
        try:
            return _interruptible(db, lambda: _run(db, question), question.seconds)
        finally:
            for name in frames:
                db.unregister(name)
    except duckdb.PermissionException as error:
        raise Refused("FILES_NOT_ALLOWED", f"{error}\n{FILES_ADVICE}") from None
    except duckdb.Error as error:
        raise BadInput("SQL_FAILED", READ_ONLY if _WRITES.search(str(error)) else str(error)) from None


def _run(db: duckdb.DuckDBPyConnection, question: SqlQuestion) -> duckdb.DuckDBPyRelation | None:
    import duckdb

    relation = None
    statements = duckdb.extract_statements(question.query)
    if not statements:
        raise BadInput("SQL_FAILED", "The query is empty. Use SELECT.")
    for statement in statements:
        if statement.type.name == "TRANSACTION":
            raise BadInput("SQL_FAILED", "Each statement is a transaction of its own. Leave out BEGIN and COMMIT.")
        if statement.type.name == "DETACH":
            raise BadInput("SQL_FAILED", "Projects stay until a query names others: wb.sql(query, projects={…}).")
        relation = _run_one(db, statement, _values(statement, question.values))
    return None if statement.type.name in SILENT else relation


def _run_one(
    db: duckdb.DuckDBPyConnection, statement: duckdb.Statement, values: Mapping[str, object]
) -> duckdb.DuckDBPyRelation | None:
    """Run a statement, which may change nothing but what is temporary."""
    import duckdb

    db.execute("BEGIN TRANSACTION READ ONLY")
    try:
        relation = db.sql(statement, params=dict(values) or None)
        materialized = None if relation is None else relation.materialize()
        db.execute("COMMIT")
    except BaseException:
        with suppress(duckdb.Error):
            db.execute("ROLLBACK")
        raise
    return materialized


def _values(statement: duckdb.Statement, values: Mapping[str, object]) -> Mapping[str, object]:
    """Those of a statement's parameters: DuckDB refuses others."""
    names = sorted(statement.named_parameters)
    unknown = [f"${name}" for name in names if name not in values]
    if unknown:
        raise BadInput(
            "SQL_FAILED",
            f"No value for {', '.join(unknown)}. Pass it by name, as in wb.sql(query, persona='tester') for $persona, "
            "or assign the variable in the notebook.",
        )
    try:
        return {name: _value(f"${name}", values[name]) for name in names}
    except RecursionError:
        raise BadInput("SQL_FAILED", "A parameter contains itself, or nests too deeply.") from None


def _value(name: str, value: object) -> object:
    """A value as DuckDB takes it: those of NumPy and pandas, sets and paths as what Python has.

    Raises:
        BadInput: ``SQL_FAILED``: SQL has no value of this type, or not all of its digits.
    """
    if is_frame(value):
        what = f"{name} is a {type(value).__name__}: it is a table, not a value. Use it by its name, as in FROM df."
        raise BadInput("SQL_FAILED", what)
    value = native(value)
    match value:
        case Decimal() if value.is_finite() and len(value.as_tuple().digits) > DECIMAL_DIGITS:
            raise BadInput("SQL_FAILED", f"{name} is {value}: SQL has decimals of {DECIMAL_DIGITS} digits.")
        case list() | tuple() | set() | frozenset() | range():
            return [_value(name, item) for item in value]
        case dict():
            return {key: _value(name, item) for key, item in value.items()}
        case PurePath():
            return str(value)
    return value


def _interruptible(db: duckdb.DuckDBPyConnection, work: Callable[[], T], seconds: float | None) -> T:
    """Do some work in another thread: DuckDB in the main thread would hold up the interrupt of a notebook.

    Raises:
        Unavailable: ``SQL_TOO_SLOW``. Interrupted: ``SQL_INTERRUPTED``. Exception: what the work raises.
    """
    outcome: Future[T] = Future()

    def run() -> None:
        try:
            outcome.set_result(work())
        except BaseException as error:  # raised to whoever asked
            outcome.set_exception(error)

    thread = threading.Thread(target=run, name="workbench-sql", daemon=True)
    thread.start()
    try:
        return outcome.result(seconds)
    except BaseException as error:
        if outcome.done():
            raise
        _interrupt(db, thread)
        if isinstance(error, TimeoutError):
            raise Unavailable(
                "SQL_TOO_SLOW",
                f"The query was stopped after {seconds:g} s. Narrow it, or raise the setting `sql_seconds`.",
            ) from None
        if isinstance(error, KeyboardInterrupt):
            raise query_interrupted() from None
        raise


def _interrupt(db: duckdb.DuckDBPyConnection, thread: threading.Thread) -> None:
    """End what a connection does; an interrupt that comes before the query has begun is lost.

    One that comes while the query ends can leave its transaction open, which would refuse the next one.
    """
    import duckdb

    for _ in range(int(STOP_SECONDS / POLL_SECONDS)):
        db.interrupt()
        thread.join(POLL_SECONDS)
        if not thread.is_alive():
            with suppress(duckdb.Error):  # mostly there is none
                db.rollback()
            return
