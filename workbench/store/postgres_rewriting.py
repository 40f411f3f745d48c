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
_FUNCTION = "CREATE OR REPLACE FUNCTION pg_temp.{name}(given TEXT) RETURNS TEXT STRICT LANGUAGE plpgsql AS $${body}$$"
_DIGEST = "encode(sha256(convert_to(given, 'UTF8')), 'hex')"
_NOTE = f"""BEGIN
    INSERT INTO calls (called, digest, given) VALUES ('{{name}}', {_DIGEST}, given) ON CONFLICT DO NOTHING;
    RETURN given;
END"""
_ANSWER = f"""BEGIN
    RETURN COALESCE((SELECT answer FROM calls WHERE called = '{{name}}' AND digest = {_DIGEST}), given);
END"""


def rewrite(db: PostgresConnection, statements: Iterable[str], functions: Mapping[str, Callable[..., Any]]) -> None:
    """See `Store.rewrite`. Blocks. The statements are updates; their functions take and return texts.

    The server cannot call the functions. So the statements are run twice: first each function notes its argument and
    returns it, then it returns the answer. The rows are as they were if no answer differs.
    """
    call = re.compile(rf"\b({'|'.join(functions)})(?=\()")
    texts = [call.sub(r"pg_temp.\1", text) for text in statements]
    with db.alone():
        db.query(SQL.make_calls)
        _run(db, texts, functions, _NOTE)
        calls = ((name, given, functions[name](given)) for name, given in db.query(SQL.noted))
        answers = [
            {"called": name, "given": given, "answer": answer} for name, given, answer in calls if answer != given
        ]
        if not answers:
            db.roll_back()
            db.execute("BEGIN")
            return
        db.many(SQL.answer, answers)
        _run(db, texts, functions, _ANSWER)
    for table in sorted({name for text in texts for name in re.findall(r"\bUPDATE (\w+)", text)}):
        db.execute(f"VACUUM FULL {table}")


def _run(db: PostgresConnection, statements: Iterable[str], functions: Iterable[str], body: str) -> None:
    for name in functions:
        db.execute(_FUNCTION.format(name=name, body=body.format(name=name)))
    for statement in statements:
        db.execute(statement)
