"""A Python function as a tool: its signature is the schema, its docstring the description."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Annotated, Any, Literal

import pytest
from jsonschema import Draft202012Validator
from pydantic import BaseModel, Field, ValidationError

from tests.given import refused
from workbench.rules.tools.function import function_tool


class Point(BaseModel):
    """A point."""

    x: float
    y: float = 0.0


def scale(point: Point, factor: Annotated[float, Field(gt=0, description="How much.")] = 2.0) -> Point:
    """Scale a point.

    From the origin.
    """
    return Point(x=point.x * factor, y=point.y * factor)


def test_the_signature_is_the_schema_of_what_arrives_and_the_docstring_the_description() -> None:
    tool = function_tool(scale)
    Draft202012Validator.check_schema(tool.input_schema)
    assert (tool.name, tool.description) == ("scale", "Scale a point.\n\nFrom the origin.")
    assert tool.input_schema["required"] == ["point"]
    assert tool.input_schema["properties"]["factor"]["description"] == "How much."
    assert tool.returned.schema is not None
    assert set(tool.returned.schema["properties"]) == {"x", "y"}
    assert tool.fn(**tool.bound({"point": {"x": 1.5}})) == Point(x=3.0, y=0.0)


def test_arguments_that_do_not_fit_are_refused() -> None:
    for wrong in ({}, {"point": 1}, {"point": {"x": 1}, "factor": -1}, {"point": {"x": 1}, "z": 1}):
        with pytest.raises(ValidationError):
            function_tool(scale).bound(wrong)


def test_a_function_without_types_takes_anything_and_says_nothing_of_its_result() -> None:
    tool = function_tool(lambda a, b=None: (a, b), name="pair")
    assert tool.bound({"a": [1]}) == {"a": [1], "b": None}
    assert (tool.returned.schema, tool.description) == (None, "")


def test_parameters_may_have_names_that_models_use_themselves() -> None:
    tool = function_tool(lambda json, copy, _own=1, model_config=2: (json, copy), name="pair")
    assert set(tool.input_schema["properties"]) == {"json", "copy", "_own", "model_config"}
    assert tool.bound({"json": 1, "copy": 2}) == {"json": 1, "copy": 2, "_own": 1, "model_config": 2}


def test_an_asynchronous_function_is_known_as_one() -> None:
    async def wait(mode: Literal["short", "long"]) -> None:
        """Wait."""

    assert function_tool(wait).is_async
    assert not function_tool(scale).is_async


def test_a_function_without_a_name_needs_one_that_a_tool_may_have() -> None:
    for fn in (lambda: 1, functools.partial(scale)):
        assert "a name has up to 64 letters" in refused("BAD_TOOL", function_tool, fn).message
    for name in ("a__b", "1st", "x" * 65, "mit leer", ""):
        refused("BAD_TOOL", function_tool, lambda: 1, name=name)


def test_a_parameter_without_a_name_or_a_schema_is_refused() -> None:
    def many(*values: int) -> int:
        return len(values)

    def strange(value: Callable[[], int]) -> None:
        value()

    def unknown(value: Nowhere) -> None:  # type: ignore[name-defined]  # noqa: F821
        value()

    for fn in (many, strange, unknown):
        refused("BAD_TOOL", function_tool, fn)


def test_the_version_changes_with_the_source() -> None:
    def made(step: int) -> Callable[[int], int]:
        namespace: dict[str, Any] = {}
        exec(f"def more(x): return x + {step}", namespace)
        return namespace["more"]

    def other(x: int) -> int:
        return x + 2

    def another(x: int) -> int:
        return x + 3

    assert function_tool(other).version == function_tool(other, name="more").version
    assert len({function_tool(fn).version for fn in (other, another, made(1), made(2))}) == 4
