"""The parameters that a notebook declares and refuses, and the exact reading of typed values."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.given import refused
from workbench.errors import BadInput
from workbench.rules.sweeps.notebook import (
    Parameter,
    check,
    content_hash,
    declared,
    is_python,
    language,
    received,
    require_one_place,
)
from workbench.rules.sweeps.values import assignment, parse_values


def notebook(source: str, tags: tuple[str, ...] = ("parameters",), **cell: Any) -> dict[str, Any]:
    made = {"cell_type": "code", "source": source, "metadata": {"tags": [*tags]}, "outputs": [], **cell}
    return {"cells": [made], "metadata": {"kernelspec": {"language": "python", "name": "python3"}}}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("a: int = 1", (int,)),
        ("a: float = 1", (float,)),
        ("a: float | None = None", (float, type(None))),
        ("a: int | float = 1", (int, float)),
        ("a: Literal['x', 'y'] = 'x'", (str,)),
        ("a: Annotated[Optional['Union[int, str]'], 'how many'] = 1", (int, str, type(None))),
        ("a: Rate = 0.5", (float, int)),
        ("a: Any = 0.5", ()),
        ("a: Optional[str] = None", (str, type(None))),
        ("a: typing.List[int] = []", (list, tuple)),
        ("a = 1  # type: int", (int,)),
        ("a = 1\nimport os", (float, int)),
        ("a = True\nimport os", (bool,)),
        ("a = 'x'", (str,)),
        ("a = None", ()),
        ("a = compute()", ()),
        ("a: Model = None", ()),
        ("%matplotlib inline\na = {}", (dict,)),
    ],
)
def test_the_type_of_a_parameter_is_its_annotations_or_its_defaults(source: str, expected: tuple[type, ...]) -> None:
    assert (declared(notebook(source)) or {})["a"].types == expected


def test_a_misspelt_parameter_is_answered_with_the_nearest_name() -> None:
    parameters = declared(notebook("learning_rate = 0.1\nseed = 1"))
    error = refused("UNKNOWN_PARAMETER", check, parameters, {"learning_rat": (1,)}, "n.ipynb")
    assert error.message == "n.ipynb has no parameter learning_rat. Did you mean learning_rate?"


def test_a_notebook_without_a_cell_for_parameters_says_how_to_make_one() -> None:
    with pytest.raises(BadInput, match="tag `parameters`"):
        check(declared(notebook("a = 1", ())), {"a": (1,)}, "n.ipynb")


@pytest.mark.parametrize(
    ("source", "value"), [("a: int = 1", 0.5), ("a = 'x'", 1), ("a: int = 1", True), ("a = 1", "x")]
)
def test_a_value_of_another_type_is_one_coded_line(source: str, value: Any) -> None:
    refused("BAD_PARAMETER", check, declared(notebook(source)), {"a": (value,)}, "n.ipynb")


def test_a_whole_number_is_a_float_and_a_default_of_none_takes_anything() -> None:
    check(declared(notebook("a: float = 1.0\nb = None")), {"a": (1, 0.5), "b": ("x", 1)}, "n.ipynb")
    assert Parameter("a", (), "").takes(object())


@pytest.mark.parametrize(
    ("source", "value", "given"),
    [
        ("a: float = 0.5", 1, 1.0),
        ("a: int | float = 0.5", 1, 1),
        ("a = 0.5", 1, 1),
        ("a: float = 0.5", "NaN", math.nan),
        ("a = 0.5", "-Infinity", -math.inf),
        ("a: str = ''", "NaN", "NaN"),
        ("a = None", "NaN", "NaN"),
        ("a: bool = False", True, True),
    ],
)
def test_a_run_gets_its_parameters_in_the_annotated_types(source: str, value: Any, given: Any) -> None:
    made = notebook(source)
    check(declared(made), {"a": (value,)}, "n.ipynb")
    assert repr(received(made, {"a": value})) == repr({"a": given})


@pytest.mark.parametrize(
    ("source", "value", "said"),
    [
        ("a: Path = Path('x')", "y", 'a is "y", and n.ipynb takes Path there. No run can be given a Path: annotate'),
        ("a: tuple[int, int] = (1, 2)", [1, 2], "takes tuple there. No run can be given a tuple"),
        ("a: Color = Color.RED", "RED", "takes Color there"),
        ("a: Path | None = None", "y", "takes Path there"),
        ("a = None", math.nan, "a is NaN, and n.ipynb takes anything there. Annotate it as float."),
        ("a: int = 1", math.inf, "a is Infinity, and n.ipynb takes a whole number there."),
        ("a: float = 1", 10**400, "takes a number there."),
    ],
)
def test_an_impossible_parameter_is_refused_before_the_start(source: str, value: Any, said: str) -> None:
    assert said in refused("BAD_PARAMETER", check, declared(notebook(source)), {"a": (value,)}, "n.ipynb").message


@pytest.mark.parametrize(
    ("tags", "cells"),
    [
        ("parameters parameters", [1, 2]),
        ("- parameters injected-parameters - parameters", [3, 5]),
        ("injected-parameters parameters", [1, 2]),
        ("parameters injected-parameters injected-parameters", [2, 3]),
        ("parameters injected-parameters -", None),
        ("- injected-parameters", None),
    ],
)
def test_cells_that_would_replace_the_values_of_a_run_are_refused(tags: str, cells: list[int] | None) -> None:
    made = {"cells": [notebook("seed = 7", (tag,))["cells"][0] for tag in tags.split()]}
    if cells is None:
        require_one_place(made, "n.ipynb")
    else:
        assert refused("BAD_NOTEBOOK", require_one_place, made, "n.ipynb").details == {"cells": cells}


def test_a_parameters_cell_that_is_not_python_is_refused() -> None:
    refused("BAD_NOTEBOOK", declared, notebook("a = = 1"))


def test_outputs_do_not_change_the_content_and_source_and_tags_do() -> None:
    base = content_hash(notebook("a = 1"))
    assert content_hash(notebook("a = 1", outputs=[{"x": 1}], execution_count=3)) == base
    assert content_hash(notebook(["a ", "= 1"])) == base  # type: ignore[arg-type]
    assert base not in (content_hash(notebook("a = 2")), content_hash(notebook("a = 1", ())))


@pytest.mark.parametrize(
    ("metadata", "name", "python"),
    [
        ({}, "", True),
        (None, "", True),
        ({"kernelspec": None, "language_info": None}, "", True),
        ({"kernelspec": {"language": "Python"}}, "python", True),
        ({"language_info": {"name": "python3"}}, "python3", True),
        ({"language_info": {"name": "ipython"}}, "ipython", True),
        ({"kernelspec": {"language": "R"}, "language_info": {"name": "python"}}, "r", False),
        ({"kernelspec": {"name": "ir"}, "language_info": {"name": "R"}}, "r", False),
        ({"language_info": {"name": "julia"}}, "julia", False),
    ],
)
def test_the_language_of_a_notebook_is_its_kernels_or_else_its_own(metadata: Any, name: str, python: bool) -> None:
    one = {"cells": [], "metadata": metadata}
    assert (language(one), is_python(one)) == (name, python)


# What is typed

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
def test_typed_values_are_parsed(text: str, expected: tuple[Any, ...]) -> None:
    found = values(text)
    assert found == expected
    assert [type(one) for one in found] == [type(one) for one in expected]


@pytest.mark.parametrize(
    "text", ["", "1,,2", "[1", "'a", '{"a": }', "0..1:0", "3..1", "0.5..1", "1..2:-1", "1e999", "[NaN]"]
)
def test_an_unreadable_parameter_is_one_coded_line(text: str) -> None:
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
def test_any_json_value_can_be_typed_as_a_parameter(wanted: list[Any]) -> None:
    assert list(values(",".join(map(json.dumps, wanted)))) == wanted


@given(st.text(max_size=40))
def test_any_text_is_values_or_refused_with_a_code(text: str) -> None:
    try:
        assert 1 <= len(values(text)) <= MOST
    except BadInput as error:
        assert error.code in ("BAD_PARAMETER", "SWEEP_TOO_LARGE")
