"""The beginning of the query on a line of `%wsql`."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from IPython.core.error import UsageError

from kernel_ext.objects.queries import split


@pytest.mark.parametrize(
    ("line", "options", "query"),
    [
        ("SELECT 'a  b' AS \"c d\"", [], "SELECT 'a  b' AS \"c d\""),
        ("found from tasks", ["found"], "from tasks"),
        ("--chart bar persona 'a b' (SELECT 1)", ["--chart", "bar", "persona", "a b"], "(SELECT 1)"),
        ("-p n=1 \"SELECT $n AS 'n' FROM tasks\"", ["-p", "n=1"], "SELECT $n AS 'n' FROM tasks"),
        ("'SELECT 1' --as arrow", ["--as", "arrow"], "SELECT 1"),
        ("--project from=../a WITH x AS (SELECT 1) FROM x", ["--project", "from=../a"], "WITH x AS (SELECT 1) FROM x"),
        ('--files "CHECKPOINT"', ["--files"], "CHECKPOINT"),
    ],
)
def test_the_options_come_before_the_query(line: str, options: list[str], query: str) -> None:
    assert split(line) == (options, query)


def test_a_line_without_a_query_is_refused() -> None:
    for line in ("", "--files", "-p n='1 SELECT 1"):
        with pytest.raises(UsageError):
            split(line)


@given(st.text(max_size=40))
def test_a_query_without_options_is_kept_as_it_is_written(rest: str) -> None:
    assert split(f"SELECT {rest}") == ([], f"SELECT {rest}")
