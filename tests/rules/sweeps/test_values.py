"""What a person types for a parameter, read exactly."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.given import refused
from workbench.errors import BadInput
from workbench.rules.sweeps.values import assignment, parse_values

MOST = 1_000


def values(text: str) -> tuple[Any, ...]:
    return parse_values("a", text, MOST)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1,2,5", (1, 2, 5)),
        ("1..4", (1, 2, 3, 4)),
        ("10..1:-3", (10, 7, 4, 1)),
        ("0..1:0.1", (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)),
        ("1..2,9", (1, 2, 9)),
        ("-3..-1", (-3, -2, -1)),
        ("1e-3,2.5", (0.001, 2.5)),
        ("true,False,null,None", (True, False, None, None)),
        ("adam, sgd", ("adam", "sgd")),
        ('\'a,b\',"c\\"d"', ("a,b", 'c"d')),
        ('""', ("",)),
        ('"1"', ("1",)),
        ("[1,2],[3]", ([1, 2], [3])),
        ('{"depth": 2, "name": "a,]"}', ({"depth": 2, "name": "a,]"},)),
        ("data/a.csv,don't", ("data/a.csv", "don't")),
        ("007,1.2.3", ("007", "1.2.3")),
    ],
)
def test_values_are_read_as_they_are_typed(text: str, expected: tuple[Any, ...]) -> None:
    found = values(text)
    assert found == expected
    assert [type(one) for one in found] == [type(one) for one in expected]


@pytest.mark.parametrize(
    "text", ["", "1,,2", "[1", "'a", '{"a": }', "0..1:0", "3..1", "0.5..1", "1..2:-1", "1e999", "[NaN]"]
)
def test_what_cannot_be_read_is_one_coded_line(text: str) -> None:
    assert "\n" not in refused("BAD_PARAMETER", values, text).message


@pytest.mark.parametrize("text", ["1..100000", "0..1:1e-200", "1..999999999999999999999999999"])
def test_a_range_of_too_many_values_is_never_made(text: str) -> None:
    refused("SWEEP_TOO_LARGE", values, text)


def test_an_assignment_has_a_name_and_keeps_equals_signs_of_its_values() -> None:
    assert assignment("query=a=b") == ("query", "a=b")
    for text in ("seed", "=1", "a b=1", "1=2"):
        refused("BAD_PARAMETER", assignment, text)


@given(st.integers(-1000, 1000), st.integers(0, 99), st.integers(1, 50))
def test_a_range_of_integers_is_pythons_own(low: int, steps: int, step: int) -> None:
    high = low + steps * step
    assert values(f"{low}..{high}:{step}") == tuple(range(low, high + 1, step))


@given(st.decimals(-10, 10, places=3), st.integers(0, 50), st.decimals(Decimal("0.001"), 2, places=3))
def test_a_range_of_decimals_does_not_drift(low: Decimal, steps: int, step: Decimal) -> None:
    found = values(f"{low}..{low + steps * step}:{step}")
    assert found == tuple(float(low + number * step) for number in range(steps + 1))


@given(
    st.lists(
        st.recursive(
            st.none() | st.booleans() | st.integers(-(10**12), 10**12) | st.text(),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
            max_leaves=6,
        ),
        min_size=1,
        max_size=5,
    )
)
def test_whatever_json_has_can_be_typed(wanted: list[Any]) -> None:
    assert list(values(",".join(map(json.dumps, wanted)))) == wanted


@given(st.text(max_size=40))
def test_no_text_is_a_defect(text: str) -> None:
    try:
        assert 1 <= len(values(text)) <= MOST
    except BadInput as error:
        assert error.code in ("BAD_PARAMETER", "SWEEP_TOO_LARGE")
