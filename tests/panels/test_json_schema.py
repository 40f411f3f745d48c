"""The form that the panel makes of a tool's schema, and the arguments that it reads from it."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel, Field

from tests.panels.conftest import Ask

pytestmark = pytest.mark.node


@pytest.fixture
def read(call: Ask) -> Ask:
    """The parameters of a schema, and the arguments in what was typed, with their problems."""

    def read(schema: Any, **typed: str) -> dict[str, Any]:
        parameters = call("tools/json_schema.js", "parametersOf", schema)
        read = parameters and call("tools/json_schema.js", "argumentsOf", parameters, typed)
        return {"parameters": parameters, **(read or {})}

    return read


class Place(BaseModel):
    x: float


class Query(BaseModel):
    words: str
    limit: int | None = Field(10, description="At most this many.")
    near: Place | None = None
    exact: bool = False
    secret: str = Field("", json_schema_extra={"format": "password"})


def test_each_type_has_its_kind_of_field(read: Ask) -> None:
    parameters = read(Query.model_json_schema())["parameters"]
    assert {one["name"]: (one["kind"], one["required"]) for one in parameters} == {
        "words": ("text", True),
        "limit": ("integer", False),
        "near": ("json", False),
        "exact": ("choice", False),
        "secret": ("secret", False),
    }
    assert (parameters[1]["initial"], parameters[1]["description"]) == ("10", "At most this many.")
    assert (parameters[3]["initial"], parameters[3]["options"]) == ("1", [True, False])


def test_typed_text_becomes_values_of_the_right_types(read: Ask) -> None:
    found = read(Query.model_json_schema(), words="", limit=" 7 ", near='{"x": 1.5}', exact="0", secret="")
    assert found["values"] == {"words": "", "limit": 7, "near": {"x": 1.5}, "exact": True}
    assert found["problems"] == {}


def test_an_invalid_value_has_a_problem_at_its_field(read: Ask) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "number"}, "c": {}, "d": {}}}
    found = read(schema | {"required": ["d"]}, a="1.5", b="many", c="{")
    assert found["values"] == {}
    assert found["problems"].keys() == {"a", "b", "c", "d"}


@pytest.mark.parametrize(
    "schema",
    [None, True, {}, {"type": "object"}, {"properties": []}, {"properties": {"a": None, "b": 7, "c": {"enum": 1}}}],
)
def test_an_unusable_schema_becomes_one_json_field(read: Ask, schema: Any) -> None:
    parameters = read(schema)["parameters"]
    assert parameters is None or {one["kind"] for one in parameters} == {"json"}


def test_a_schema_that_refers_to_itself_ends(read: Ask) -> None:
    node = {"$ref": "#/$defs/Node"}
    found = read({"properties": {"node": node}, "$defs": {"Node": node}})
    assert [one["kind"] for one in found["parameters"]] == ["json"]
