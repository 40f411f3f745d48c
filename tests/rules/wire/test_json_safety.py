"""A value that passes the check can be sent to everybody: as JSON text, in UTF-8, and through pydantic."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from tests.conftest import nested
from workbench.rules.wire import json_safety

BAD = {
    "NaN": {"x": math.nan},
    "infinity": [-math.inf],
    "half a character": {"x": "\ud800"},
    "half a character as a name": {"\udfff": 1},
    "NUL": {"x": ["a\0b"]},
    "NUL as a name": {"\0": 1},
    "one level too many": nested(json_safety.DEPTH_LIMIT + 1),
    "objects without end": {"x": nested(900)},
    "no JSON at all": {"x": object()},
    "bytes": [b"x"],
}
NUMBERS = st.integers(-(10**30), 10**30) | st.floats()
TEXTS = st.text(st.sampled_from('aö🐧\ud800\udfff\0\u2028"\\'), max_size=5)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=10,
)


@pytest.mark.parametrize("value", BAD.values(), ids=BAD)
def test_a_value_that_is_not_safe_json_is_refused(value: Any) -> None:
    with pytest.raises(ValueError):
        json_safety.check(value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        *((text, "a number that is NaN or infinite") for text in ('{"loss": NaN}', "[-Infinity]", "[1e999]")),
        (r'["\ud800"]', "half of a character"),
    ],
)
def test_what_json_does_not_have_is_named(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=f"it contains {said}"):
        json_safety.decode(text)


def test_the_deepest_value_allowed_passes_and_what_contains_itself_does_not() -> None:
    deepest = nested(json_safety.DEPTH_LIMIT)
    for value in (deepest, {"ö": ["🐧", None, True, 1.5, 10**40]}, "what looks like one: \\u0000", ["{[" * 100]):
        json_safety.check(value)
        assert json_safety.decode(json.dumps(value)) == value
    knot: list[Any] = []
    knot.append(knot)
    with pytest.raises(ValueError, match="deeper"):
        json_safety.check(knot)


@given(VALUES)
def test_a_value_that_passes_the_check_can_be_sent(value: Any) -> None:
    try:
        json_safety.check(value)
    except ValueError:
        return
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    assert json.loads(text.encode()) == value
    assert TypeAdapter(Any).dump_python(value, mode="json") == value


BAD_TEXTS = {
    "no JSON": "{",
    "more than one value": "1 2",
    "NaN": '{"x": NaN}',
    "infinity": "[-Infinity]",
    "a number beyond all": '{"x": 1e999}',
    "a long number beyond all": "[" + "1" * 400 + ".0]",
    "half a character": r'{"x": "\ud800"}',
    "half a character as a name": r'{"\udfff": 1}',
    "NUL": r'{"x": ["a\u0000b"]}',
    "one level too many": "[" * (json_safety.DEPTH_LIMIT + 1) + "]" * (json_safety.DEPTH_LIMIT + 1),
    "levels without end": "[" * 100_000,
    "invalid UTF-8": b'"\xff"',
}


@pytest.mark.parametrize("text", BAD_TEXTS.values(), ids=BAD_TEXTS)
def test_text_of_an_unsafe_value_is_refused(text: str | bytes) -> None:
    with pytest.raises(ValueError):
        json_safety.decode(text)


@given(VALUES | st.text(), st.booleans())
def test_decode_returns_the_value_that_python_reads_if_it_passes_the_check(value: Any, ascii: bool) -> None:
    try:
        text = json.dumps(value, ensure_ascii=ascii)
        text.encode()
        value = json.loads(text)  # two surrogates that are escaped side by side are one character
    except UnicodeEncodeError:
        return
    try:
        json_safety.check(value)
    except ValueError:
        with pytest.raises(ValueError):
            json_safety.decode(text)
    else:
        assert json_safety.decode(text) == json_safety.decode(text.encode()) == value
