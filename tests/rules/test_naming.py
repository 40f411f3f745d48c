"""What is meant by an id or a name."""

from __future__ import annotations

import pytest

from workbench.errors import BadInput
from workbench.rules.naming import resolve_ref

ONE, TWO = {"id": "1", "name": "x"}, {"id": "2", "name": "x"}
NAMED_AS_AN_ID = {"id": "3", "name": "1"}


def test_an_id_goes_before_a_name() -> None:
    assert resolve_ref([NAMED_AS_AN_ID, ONE], "1", "thing") is ONE


def test_a_name_means_the_only_one_that_has_it() -> None:
    assert resolve_ref([TWO], "x", "thing") is TWO
    assert resolve_ref([], "x", "thing") is None


def test_a_name_of_several_names_the_candidates() -> None:
    with pytest.raises(BadInput, match=r"AMBIGUOUS_NAME: More than one thing is named 'x'\. .* 1, 2\.") as refused:
        resolve_ref([ONE, TWO], "x", "thing")
    assert refused.value.details == {"candidates": ["1", "2"]}
