"""Sweeps that are described wrongly: the error names what is wrong, and what would be right."""

from __future__ import annotations

import pytest

from workbench.errors import BadInput
from workbench.rules.sweeps.specification import check_options, from_yaml

WRONG = {
    "plan: []": "A sweep has no key 'plan'. It has notebook, name, parameters, over, repeat, workers, timeout, memory, "
    "share, dask.",
    "parametrs: {}": "A sweep has no key 'parametrs'. Did you mean parameters?",
    "workers: many": "workers is 'many'. It takes a whole number.",
    "timeout: 10m": "timeout is '10m'. It takes a number of seconds, such as 600.",
    "share: 1": "share is 1. It takes true or false.",
    "parameters: {day: 2026-01-02}": "day has the value 2026-01-02, which JSON has not. Give a number, a text, true, "
    "false, null, a list or a mapping.",
}


@pytest.mark.parametrize("line", WRONG)
def test_what_is_wrong_in_a_file_is_said_in_plain_words(line: str) -> None:
    with pytest.raises(BadInput) as refused:
        from_yaml(f"notebook: experiment.ipynb\n{line}\n", 100)
    assert refused.value.message == WRONG[line]


def test_an_option_that_is_not_known_is_answered_with_the_nearest_or_all() -> None:
    with pytest.raises(BadInput, match=r"has no option memry.*Did you mean memory"):
        check_options({"memry": "1GB"})
    with pytest.raises(BadInput, match=r"has no option qqqq.*Its options are .*memory"):
        check_options({"qqqq": 1})
    assert check_options({"memory": None}) == {}
