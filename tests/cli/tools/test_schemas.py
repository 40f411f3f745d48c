"""Tables of JSON Schemas: those of operations, and whatever else somebody calls a schema."""

from __future__ import annotations

from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from workbench.cli.tools.schemas import arguments_table, result_table

KEYWORDS = ["type", "properties", "items", "anyOf", "oneOf", "enum", "const", "default", "description", "required"]
VALUES = st.one_of(st.none(), st.booleans(), st.integers(), st.sampled_from(["object", "array", "string", "x"]))
SCHEMAS = st.recursive(
    VALUES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*KEYWORDS, "$ref", "$defs"]), inner),
    max_leaves=20,
)


def test_arguments_have_a_type_in_words_and_a_default() -> None:
    schema = {
        "type": "object",
        "required": ["who"],
        "properties": {
            "who": {"type": "string", "description": "A name."},
            "how": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": 3},
            "where": {"type": "array", "items": {"$ref": "#/$defs/Place"}},
            "when": {"type": ["string", "number"]},
            "what": {"const": "it"},
        },
        "$defs": {"Place": {"enum": ["here", "there"]}},
    }
    assert arguments_table(schema).rows == [
        ["who", "string", "required", "A name."],
        ["how", "integer or null", "3", ""],
        ["where", "list of here | there", "", ""],
        ["when", "string or number", "", ""],
        ["what", "it", "", ""],
    ]


def test_a_type_that_refers_to_itself_is_shown_to_some_depth() -> None:
    tree = {"$ref": "#/$defs/Tree"}
    schema = {"properties": {"tree": tree}, "$defs": {"Tree": {"type": "array", "items": tree}}}
    assert result_table(schema).rows == [["tree", f"{'list of ' * 5}anything", ""]]


@given(schema=st.dictionaries(st.sampled_from(["properties", "required", "$defs"]), SCHEMAS) | SCHEMAS)
@example(schema={"properties": {"a": True}, "required": True})
def test_any_schema_is_shown_as_a_table(schema: Any) -> None:
    for table in (arguments_table(schema), result_table(schema)):
        assert table.text()
        assert table.html()
