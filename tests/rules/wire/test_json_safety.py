"""What passes the check can be sent to everybody: as JSON text, in UTF-8, and through pydantic."""

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
def test_what_somebody_could_not_read_is_refused(value: Any) -> None:
    with pytest.raises(ValueError):
        json_safety.check(value)


def test_what_contains_itself_is_refused() -> None:
    knot: list[Any] = []
    knot.append(knot)
    with pytest.raises(ValueError, match="deeper"):
        json_safety.check(knot)


def test_the_deepest_value_allowed_passes() -> None:
    json_safety.check(nested(json_safety.DEPTH_LIMIT))
    json_safety.check({"ö": ["🐧", None, True, 1.5, 10**40]})
    json_safety.check("what looks like one: \\u0000")


@given(VALUES)
def test_whatever_passes_can_be_sent_to_anybody(value: Any) -> None:
    try:
        json_safety.check(value)
    except ValueError:
        return
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    assert json.loads(text.encode()) == value
    assert TypeAdapter(Any).dump_python(value, mode="json") == value
