"""The runs of a sweep and their keys."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.errors import BadInput
from workbench.rules.sweeps.grid import count, digest, grid, run_key
from workbench.rules.sweeps.specification import (
    Limits,
    Specification,
    default_name,
    from_yaml,
    parse_size,
    typed,
    typed_over,
)

MOST = 10_000
VALUES = st.dictionaries(
    st.sampled_from("abcd"),
    st.lists(st.integers() | st.booleans(), min_size=1, max_size=4, unique_by=lambda v: (type(v), v)).map(tuple),
    max_size=3,
)


def test_the_last_parameter_changes_fastest_and_repetitions_follow_each_other() -> None:
    runs = grid(Specification("n.ipynb", {"a": (1, 2), "b": ("x", "y")}, {"persona": ("p",)}, 2), "h", MOST)
    assert [(run.number, run.arguments, run.repetition) for run in runs[:3]] == [
        (1, {"a": 1, "b": "x", "persona": "p"}, 1),
        (2, {"a": 1, "b": "x", "persona": "p"}, 2),
        (3, {"a": 1, "b": "y", "persona": "p"}, 1),
    ]
    assert len(runs) == 8


def test_a_grid_of_100_000_is_refused_before_it_is_made() -> None:
    with pytest.raises(BadInput) as refused:
        grid(Specification("n.ipynb", {"a": tuple(range(1_000)), "b": tuple(range(100))}), "h", MOST)
    assert refused.value.code == "SWEEP_TOO_LARGE"
    assert refused.value.details == {"runs": 100_000, "limit": MOST}


@given(VALUES, st.integers(1, 3))
def test_every_run_has_a_key_of_its_own(parameters: dict[str, tuple[Any, ...]], repeat: int) -> None:
    wanted = Specification("n.ipynb", parameters, repeat=repeat)
    runs = grid(wanted, "h", MOST)
    assert len({run.key for run in runs}) == len(runs) == count(wanted)


@given(VALUES)
def test_a_key_does_not_depend_on_the_order_of_parameters(parameters: dict[str, tuple[Any, ...]]) -> None:
    turned = dict(reversed(parameters.items()))
    one, other = (grid(Specification("n.ipynb", some), "h", MOST) for some in (parameters, turned))
    assert {run.key for run in one} == {run.key for run in other}


def test_a_key_tells_values_types_notebooks_and_repetitions_apart() -> None:
    keys = [
        run_key("h", {"a": 1}, {}, 1),
        run_key("h", {"a": 1.0}, {}, 1),
        run_key("h", {"a": True}, {}, 1),
        run_key("h", {"a": "1"}, {}, 1),
        run_key("h", {"a": 1}, {}, 2),
        run_key("other", {"a": 1}, {}, 1),
        run_key("h", {}, {"persona": "1"}, 1),
    ]
    assert len({*keys}) == len(keys)


def test_the_digest_of_a_specification_changes_with_each_part() -> None:
    base = Specification("n.ipynb", {"a": (1, 2)})
    others = [Specification("n.ipynb", {"a": (2, 1)}), Specification("n.ipynb", {"a": (1, 2)}, repeat=2)]
    digests = [digest(base, "h"), digest(base, "other"), *(digest(one, "h") for one in others)]
    assert len({*digests}) == len(digests)


@pytest.mark.parametrize(
    ("parameters", "over", "repeat"),
    [({"a": (1, 1)}, {}, 1), ({"persona": ("x",)}, {"persona": ("x",)}, 1), ({}, {}, 0), ({"a": (object(),)}, {}, 1)],
)
def test_a_specification_that_makes_no_sense_is_refused(parameters: Any, over: Any, repeat: int) -> None:
    with pytest.raises(BadInput) as refused:
        Specification("n.ipynb", parameters, over, repeat)
    assert refused.value.code == "BAD_PARAMETER"


def test_a_sweep_as_yaml_is_the_sweep_as_typed() -> None:
    text = """
        notebook: experiment.ipynb
        name: night
        parameters: {seed: 1..3, rate: [0.1, 0.2], label: x, shape: [[1, 2]]}
        over: {persona: [a, b]}
        repeat: 2
        memory: 2 GB
        timeout: 60
    """
    found = from_yaml(text, MOST)
    parameters = typed(["seed=1..3", "rate=0.1,0.2", "label=x", "shape=[1,2]"], MOST)
    assert found.specification == Specification("experiment.ipynb", parameters, typed_over(["persona=a,b"], MOST), 2)
    assert found.options == {"name": "night", "memory": 2_000_000_000, "timeout": 60}


@pytest.mark.parametrize(
    "text",
    ["", "[1]", "a: b: c", "notebook: 1", "notebook: n.ipynb\nrepat: 2", "notebook: n.ipynb\nworkers: many"],
)
def test_yaml_that_is_no_sweep_is_one_coded_line(text: str) -> None:
    with pytest.raises(BadInput) as refused:
        from_yaml(text, MOST)
    assert refused.value.code == "BAD_SWEEP"
    assert "\n" not in str(refused.value)


def test_a_misspelt_key_is_answered_with_the_right_one() -> None:
    with pytest.raises(BadInput, match="Did you mean repeat"):
        from_yaml("notebook: n.ipynb\nrepat: 2", MOST)


def test_over_is_for_personas_and_definitions_only() -> None:
    with pytest.raises(BadInput, match="-p model=VALUES"):
        typed_over(["model=a,b"], MOST)


@pytest.mark.parametrize(
    ("text", "size"), [("500", 500), ("1.5 GB", 1_500_000_000), ("2k", 2_000), ("7 MB", 7_000_000)]
)
def test_sizes_are_read(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("limits", [{"workers": 0}, {"timeout": 0}, {"memory": 0}])
def test_limits_that_let_nothing_run_are_refused(limits: dict[str, Any]) -> None:
    with pytest.raises(BadInput):
        Limits(**limits)


@pytest.mark.parametrize(("notebook", "name"), [("a/My Notebook (2).ipynb", "my-notebook-2"), ("x/ß.ipynb", "sweep")])
def test_a_sweep_is_named_after_its_notebook(notebook: str, name: str) -> None:
    assert default_name(notebook) == name


def test_the_key_of_a_run_stays_what_it_is_so_that_an_update_finds_the_runs_that_are_done() -> None:
    assert run_key("h", {"a": 1}, {"x": "y"}, 2) == "30325195a59d61a7c22258cf6797d81f7a8fc86de4122aa7205c59dce757c20c"
