"""Changes rows so that no file of the database holds their old values any more.

What the server archives of its write-ahead log, and its backups, are beyond reach.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from workbench.store.postgres_connection import PostgresConnection
from workbench.store.queries import beside

SQL = beside(__file__)
_FUNCTION = (
    "CREATE OR REPLACE FUNCTION pg_temp.{name}(argument TEXT) RETURNS TEXT STRICT LANGUAGE plpgsql AS $${body}$$"
)
_DIGEST = "encode(sha256(convert_to(argument, 'UTF8')), 'hex')"
_NOTE = f"""BEGIN
    INSERT INTO calls (called, digest, given) VALUES ('{{name}}', {_DIGEST}, argument) ON CONFLICT DO NOTHING;
    RETURN argument;
END"""
_ANSWER = f"""BEGIN
    RETURN COALESCE((SELECT answer FROM calls WHERE called = '{{name}}' AND digest = {_DIGEST}), argument);
END"""


def rewrite(db: PostgresConnection, statements: Iterable[str], functions: Mapping[str, Callable[..., Any]]) -> None:
    """See `Store.rewrite`. Blocks. The statements are updates; their functions take and return texts.

    The server cannot call the functions. So the statements are run twice: first each function notes its argument and
    returns it, then it returns the answer. The rows are as they were if no answer differs.
    """
    call = re.compile(rf"\b({'|'.join(functions)})(?=\()")
    texts = [call.sub(r"pg_temp.\1", text) for text in statements]
    try:
        with db.alone():
            _rewrite(db, texts, functions)
    except _Unchanged:
        return
    for table in sorted({name for text in texts for name in re.findall(r"\bUPDATE (\w+)", text)}):
        db.execute(f"VACUUM FULL {table}")


class _Unchanged(Exception):
    """No answer of a function differs from its argument."""


def _rewrite(db: PostgresConnection, statements: Iterable[str], functions: Mapping[str, Callable[..., Any]]) -> None:
    db.query(SQL.make_calls)
    _run(db, statements, functions, _NOTE)
    answers = [
        {"called": name, "digest": digest, "answer": answer}
        for name, digest, given in db.query(SQL.noted)
        if (answer := functions[name](given)) != given
    ]
    if not answers:
        raise _Unchanged
    db.many(SQL.answer, answers)
    _run(db, statements, functions, _ANSWER)


def _run(db: PostgresConnection, statements: Iterable[str], functions: Iterable[str], body: str) -> None:
    for name in functions:
        db.execute(_FUNCTION.format(name=name, body=body.format(name=name)))
    for statement in statements:
        db.execute(statement)
