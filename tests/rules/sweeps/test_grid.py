"""The runs of a sweep and their keys."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.given import refused
from workbench.errors import BadInput
from workbench.rules.sweeps.grid import count, digest, grid, run_key, run_mark, sweep_mark
from workbench.rules.sweeps.specification import (
    Specification,
    SweepLimits,
    check_options,
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
    large = Specification("n.ipynb", {"a": tuple(range(1_000)), "b": tuple(range(100))})
    assert refused("SWEEP_TOO_LARGE", grid, large, "h", MOST).details == {"runs": 100_000, "limit": MOST}


@given(VALUES, st.integers(1, 3))
def test_every_run_has_a_key_of_its_own_in_any_order(parameters: dict[str, tuple[Any, ...]], repeat: int) -> None:
    specification = Specification("n.ipynb", parameters, repeat=repeat)
    turned = Specification("n.ipynb", dict(reversed(parameters.items())), repeat=repeat)
    keys = {run.key for run in grid(specification, "h", MOST)}
    assert len(keys) == len(grid(specification, "h", MOST)) == count(specification)
    assert keys == {run.key for run in grid(turned, "h", MOST)}


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
    refused("BAD_PARAMETER", Specification, "n.ipynb", parameters, over, repeat)


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
    conversion = from_yaml(text, MOST)
    parameters = typed(["seed=1..3", "rate=0.1,0.2", "label=x", "shape=[1,2]"], MOST)
    assert conversion.specification == Specification(
        "experiment.ipynb", parameters, typed_over(["persona=a,b"], MOST), 2
    )
    assert conversion.options == {"name": "night", "memory": 2_000_000_000, "timeout": 60}


def test_yaml_that_is_no_sweep_is_one_coded_line() -> None:
    for text in (
        "",
        "[1]",
        "a: b: c",
        "notebook: 1",
        "notebook: n.ipynb\nrepat: 2",
        "notebook: n.ipynb\nworkers: many",
    ):
        assert "\n" not in refused("BAD_SWEEP", from_yaml, text, MOST).message


WRONG = {
    "plan: []": "A sweep has no key 'plan'. It has notebook, name, parameters, over, repeat, workers, timeout, memory, "
    "share, dask.",
    "parametrs: {}": "A sweep has no key 'parametrs'. Did you mean parameters?",
    "workers: many": "workers is 'many'. It takes a whole number.",
    "timeout: 10m": "timeout is '10m'. It takes a number of seconds, such as 600.",
    "share: 1": "share is 1. It takes true or false.",
    "repeat: 010": "repeat is '010'. It is a whole number.",
    "parameters: {rate: 1e999}": "This is not YAML in line 2: 1e999 is too large a number.",
}


@pytest.mark.parametrize(
    "value", ["1e-3", "1E4", ".5", "010", "0x10", "1_000", "12:30", "yes", "2026-01-02", "true", "-1"]
)
def test_a_value_in_a_file_is_what_it_is_on_the_command_line(value: str) -> None:
    parameters = from_yaml(f"notebook: n.ipynb\nparameters: {{lr: [{value}]}}\n", MOST).specification.parameters
    assert repr(parameters) == repr(typed([f"lr={value}"], MOST))


@pytest.mark.parametrize("line", WRONG)
def test_a_mistake_in_a_sweep_file_is_named_in_plain_words(line: str) -> None:
    assert refused("BAD_SWEEP", from_yaml, f"notebook: experiment.ipynb\n{line}\n", 100).message == WRONG[line]


def test_an_option_that_is_not_known_is_answered_with_the_nearest_or_all() -> None:
    misspelt, unknown = (refused("BAD_SWEEP", check_options, {option: 1}).message for option in ("memry", "qqqq"))
    assert re.search("has no option memry.*Did you mean memory", misspelt)
    assert re.search(r"has no option qqqq.*Its options are .*memory", unknown)
    assert check_options({"memory": None}) == {}


def test_only_personas_and_definitions_can_be_swept_over_by_kind() -> None:
    assert "-p model=VALUES" in refused("BAD_PARAMETER", typed_over, ["model=a,b"], MOST).message


def test_sizes_are_parsed() -> None:
    sizes = {"500": 500, "1.5 GB": 1_500_000_000, "2k": 2_000, "7 MB": 7_000_000}
    assert {text: parse_size(text) for text in sizes} == sizes


def test_limits_of_zero_are_refused() -> None:
    for limit in ("workers", "timeout", "memory"):
        with pytest.raises(BadInput):
            SweepLimits(**{limit: 0})


def test_a_sweep_is_named_after_its_notebook() -> None:
    assert [default_name(path) for path in ("a/My Notebook (2).ipynb", "x/ß.ipynb")] == ["my-notebook-2", "sweep"]


# What stays what it is, so that an update finds the runs that are done and the processes that run


def test_the_key_of_a_run_and_the_marks_of_processes_stay_the_same_across_versions() -> None:
    assert run_key("h", {"a": 1}, {"x": "y"}, 2) == "30325195a59d61a7c22258cf6797d81f7a8fc86de4122aa7205c59dce757c20c"
    assert sweep_mark("one", "/p") == "sweep-889fbbb2f6583a0f9d4fe3e41ae95cc9"
    assert run_mark("one", "/p") == "run-889fbbb2f6583a0f9d4fe3e41ae95cc9"
