"""The hash of contents is the one that every other node computes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rid_lib.ext.utils import sha256_hash_json

from workbench.koi.payloads import LARGEST_EXACT, hash_of

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(TEXT, VALUES, max_size=4))
@example({"a": 1.0, "b": 1e21, "c": 1e-7, "d": -0.0})
@example({"a": LARGEST_EXACT, "b": LARGEST_EXACT + 1, "c": -LARGEST_EXACT - 1, "d": 10**21})
@example({"\U0001f600": 1, "\uffee": 2})
@example({"a": '\x00\x1f\x7f\u2028\\"/é'})
@example({"a": [], "b": {}, "": None, "c": [True, False, [{}]]})
def test_the_hash_of_contents_is_that_of_their_canonical_json(contents: dict[str, Any]) -> None:
    assert hash_of(contents) == sha256_hash_json(contents)


def test_a_number_that_is_not_finite_has_no_canonical_form() -> None:
    with pytest.raises(ValueError):
        hash_of({"a": float("inf")})
