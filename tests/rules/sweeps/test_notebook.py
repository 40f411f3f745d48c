"""What a notebook declares, and what it refuses."""

from __future__ import annotations

from typing import Any

import pytest

from tests.given import refused
from workbench.errors import BadInput
from workbench.rules.sweeps.notebook import Parameter, check, content_hash, declared, is_python, language


def notebook(source: str, tags: tuple[str, ...] = ("parameters",), **cell: Any) -> dict[str, Any]:
    made = {"cell_type": "code", "source": source, "metadata": {"tags": [*tags]}, "outputs": [], **cell}
    return {"cells": [made], "metadata": {"kernelspec": {"language": "python", "name": "python3"}}}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("a: int = 1", (int,)),
        ("a: float = 1", (float, int)),
        ("a: float | None = None", (float, int, type(None))),
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
