"""YAML that people write: read strictly, and edited without losing its comments."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import assume, example, given
from hypothesis import strategies as st

from workbench.rules.yaml_lines import is_same
from workbench.rules.yaml_text import InvalidYaml, edit, load, write

LIKE_OTHERS = ["on", "yes", "010", "1e3", "~", "null", "true", "2026-01-01", "1:30", "=", "<<", "---", "..."]
STRUCTURED = ["a: b", "- a", "# a", "a\nb\n", "\n a\n"]
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30) | st.sampled_from(LIKE_OTHERS + STRUCTURED)
SCALARS = (
    st.none() | st.booleans() | st.integers(-(10**40), 10**40) | st.floats(allow_nan=False, allow_infinity=False) | TEXT
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)
MAPPINGS = st.dictionaries(TEXT, VALUES, max_size=4)


@given(MAPPINGS, MAPPINGS)
def test_written_and_edited_yaml_is_read_back_equal(old: Any, new: Any) -> None:
    text = f"# about this\n{write(old)}"
    assert (load(write(old)), edit(text, old)) == (old, text)
    assert load(edit(write(old), new)) == new


COMMENTED = """\
# The whole.
a: 1  # one

# About b.
b:
  c: 2  # two
  # About d.
  d: [x, y]

# About e.
e:
  - f  # three
"""


@pytest.mark.parametrize(
    ("changes", "old", "new"),
    [
        ({"a": 5}, "a: 1", "a: 5"),
        ({"g": 7}, "  - f  # three\n", "  - f  # three\ng: 7\n"),
        ({"b": {"c": 2, "d": ["x", "y"], "h": 3}}, "  d: [x, y]\n", "  d: [x, y]\n  h: 3\n"),
        ({"b": {"c": 2, "d": ["x", "y"], "h": [3]}}, "  d: [x, y]\n", "  d: [x, y]\n  h:\n    - 3\n"),
        ({"b": {"c": 2, "d": ["x", "y"], "h": {"i": 3}}}, "  d: [x, y]\n", "  d: [x, y]\n  h:\n    i: 3\n"),
        ({"b": {"c": 4, "d": ["x", "y"]}}, "c: 2", "c: 4"),
        ({"b": {"c": 2, "d": ["x", "z"]}}, "[x, y]", "[x, z]"),
        ({"e": ["f", "g"]}, "# three\n", "# three\n  - g\n"),
    ],
)
def test_an_edit_changes_one_place_and_keeps_every_comment(changes: dict[str, Any], old: str, new: str) -> None:
    assert edit(COMMENTED, load(COMMENTED) | changes) == COMMENTED.replace(old, new)


@pytest.mark.parametrize(
    ("text", "reason", "line"),
    [
        ("a: &x [1]\nb: [*x, *x]", "aliases are not allowed", 2),
        ("a: !!python/object/apply:os.system [id]", "tag tag:yaml.org,2002:python/object/apply:os.system", 1),
        ("a: !!int 3", "tag tag:yaml.org,2002:int is not allowed", 1),
        ("a: 1\n<<: {b: 2}", "a key must be a word", 2),
        ("[a]: 1", "a key must be a word", 1),
        ("a: 1\nb: 2\na: 3", "'a' is given twice", 3),
        ("a: 1\n---\nb: 2", "single document", 2),
        ("a: [1", "did not find expected", 2),
        (f"a: 1{'0' * 4_000}", "too large a number", 1),
        ("a: \x01", "control characters are not allowed", None),
    ],
)
def test_yaml_beyond_plain_data_is_refused_with_its_line(text: str, reason: str, line: int | None) -> None:
    with pytest.raises(InvalidYaml, match=reason) as caught:
        load(text)
    assert caught.value.line == line


@pytest.mark.parametrize("opening", ["[", "{a: ", "- ", "? ", "&a ["])
@pytest.mark.parametrize("closing", ["", "]"])
def test_a_text_that_nests_half_a_million_levels_is_refused(opening: str, closing: str) -> None:
    with pytest.raises(InvalidYaml, match=r"nested too deeply|a key must be a word"):
        load(opening * 500_000 + closing * 500_000)


def test_a_document_without_content_is_nothing() -> None:
    assert [load(text) for text in ("", "# nothing\n", "---\n", "---\n...\n")] == [None] * 4


@pytest.mark.parametrize(
    ("text", "value", "edited"),
    [
        ("a:\n- x: 1\n  y: 2\n# b\nb: 1\n", {"a": [{"x": 1, "y": 2}], "b": 2}, "a:\n- x: 1\n  y: 2\n# b\nb: 2\n"),
        ("a:\n    x: 1\nb: 1\n", {"a": {"x": 1}, "b": 2}, "a:\n    x: 1\nb: 2\n"),
        ("a: 1\n# b\nb: 2\n", {"b": 2}, "# b\nb: 2\n"),
        ("a: 1\n# b\nb: 2\n\n# c\nc: 3\n", {"a": 1, "c": 3}, "a: 1\n# b\n\n# c\nc: 3\n"),
        ("a:\n  x: 1\n  # of x\n  y: 2\n# b\nb: 2\n", {"b": 2}, "# b\nb: 2\n"),
        ("- a\n- b  # 2\n- c\n", ["a", "c"], "- a\n- c\n"),
        ("x:\n  - a: 1\n    b: |\n      # text\n\n  # c\n  - c: 1\n", {"x": [{"c": 1}]}, "x:\n\n  # c\n  - c: 1\n"),
        ("a: {b: 1, c: 2}\n# d\nd: 1", {"a": {"c": 2}, "d": 1}, "a: {c: 2}\n# d\nd: 1\n"),
        ("a: 1\x85# b\nb: 2\n", {"b": 2}, "b: 2\n"),
        ("a: 'x'  # 1\nb: y\n", {"a": "z", "b": "y"}, "a: z  # 1\nb: y\n"),
        ("a:  # 1\nb: y\n", {"a": 5, "b": "y"}, "a: 5  # 1\nb: y\n"),
        ("a: [x,  y]  # 1\nb: y\n", {"a": ["x", "z"], "b": "y"}, "a: [x, z]  # 1\nb: y\n"),
        ("a: {}\n# b\nb: y\n", {"a": {"x": {"z": 1}}, "b": "y"}, "a:\n  x:\n    z: 1\n# b\nb: y\n"),
        ("a:\n  x: 1\n# b\nb: y\n", {"a": {}, "b": "y"}, "a: {}\n# b\nb: y\n"),
        ("a:\n    x: 1\n\n# b\nb: y\n", {"a": {"x": 1, "z": 2}, "b": "y"}, "a:\n    x: 1\n    z: 2\n\n# b\nb: y\n"),
        ("a:\n- x\n# b\nb: 1\n", {"a": ["w", "x", "y"], "b": 1}, "a:\n- w\n- x\n- y\n# b\nb: 1\n"),
        ("a:\n- x: 1  # x\n  y: 2\n", {"a": [{"x": 1, "y": 3}, {"z": 1}]}, "a:\n- x: 1  # x\n  y: 3\n- z: 1\n"),
        ("a:\n- x: 1\n  y: 2\n# b\nb: 1\n", {"a": [{"y": 2}], "b": 1}, "a:\n- y: 2\n# b\nb: 1\n"),
        ("a: |\n  one\n  two\n# b\nb: 1\n", {"a": "one\nthree\n", "b": 1}, "a: |\n  one\n  three\n# b\nb: 1\n"),
        ("a: one\n# b\nb: 1\n", {"a": "one\ntwo", "b": 1}, "a: |-\n  one\n  two\n# b\nb: 1\n"),
        ("a: 1\nb: [0, x]\n", {"a": True, "b": [False, "x"]}, "a: true\nb: [false, x]\n"),
        ("a: ä  # ü\nö: 1  # ß\n", {"a": "ä", "ö": 2}, "a: ä  # ü\nö: 2  # ß\n"),
    ],
)
def test_everything_but_the_change_stays_as_it_is_written(text: str, value: Any, edited: str) -> None:
    assert edit(text, value) == edited
    assert edit(text.replace("\n", "\r\n"), value) == edited.replace("\n", "\r\n")


NAMES = st.from_regex(r"[a-z][a-z0-9_-]{0,9}", fullmatch=True)
NAMED_VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=12,
)
SECTIONS = st.dictionaries(st.sampled_from(["a", "b", "c", "d"]), NAMED_VALUES, min_size=1)


@given(SECTIONS, SECTIONS)
def test_the_comment_above_a_key_stays_above_it(old: dict[str, Any], new: dict[str, Any]) -> None:
    text = "".join(f"# about {key}\n{write({key: value})}\n" for key, value in old.items())
    lines = edit(text, new).split("\n")
    for key in old.keys() & new.keys():
        assert lines[lines.index(f"# about {key}") + 1].startswith(f"{key}:")


@given(NAMED_VALUES, NAMED_VALUES, st.booleans())
@example(None, "0\n", False)
def test_an_edited_text_parses_to_the_new_value(old: Any, new: Any, in_flow_style: bool) -> None:
    text = yaml.safe_dump(old, default_flow_style=True) if in_flow_style else write(old)
    assume(load(text) == old)
    assert is_same(load(edit(text, new)), new)
