"""The error that a tool's caller reads, also of an exception group."""

from __future__ import annotations

import io

from workbench.errors import named
from workbench.functions.calls import failure


def test_the_first_error_of_an_exception_group_is_reported() -> None:
    group = ExceptionGroup("g", [ExceptionGroup("h", [ValueError("deep")]), KeyError("k")])
    said = "ExceptionGroup: g (2 sub-exceptions): ValueError: deep"
    assert named(group) == said
    assert failure(group, io.StringIO()).message == f"The tool failed: {said}"  # type: ignore[arg-type]
    assert failure(ValueError("bad"), io.StringIO()).message == "The tool failed: ValueError: bad"  # type: ignore[arg-type]
