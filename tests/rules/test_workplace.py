"""The keys of a workplace: which level wins, what an untrusted one may do, and which values are refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.errors import BadInput
from workbench.rules.workplace import KEYS, Workplace, from_options, opens, parse

VALUES: dict[str, st.SearchStrategy[Any]] = {
    **dict.fromkeys(("include", "read", "hide"), st.lists(st.sampled_from(["data", "a/b", ".env"]), max_size=3)),
    **dict.fromkeys(("network", "private"), st.lists(st.sampled_from(["pypi.org:443", "nas.local"]), max_size=3)),
    "environment": st.sampled_from(["", ".venv", "/opt/lab"]),
    "setup": st.sampled_from(["", "make data"]),
    "setup_seconds": st.floats(1, 1_000),
    "submodules": st.booleans(),
    "env": st.dictionaries(st.sampled_from(["LAB", "SEED"]), st.text("ab", max_size=2)),
    "shm": st.sampled_from(["64M", "2G", 1 << 30]),
    "gpu": st.integers(0, 1),
}
LEVEL = st.fixed_dictionaries({}, optional=VALUES)


@given(LEVEL, LEVEL)
def test_an_untrusted_level_never_opens_more_than_the_levels_above_it(
    above: dict[str, Any], level: dict[str, Any]
) -> None:
    before = Workplace().narrowed(parse(above, "above"), "settings")
    after = before.narrowed(parse(level, "level"), "plan", trusted=False)
    for key in KEYS:
        assert not opens(key, getattr(before, key), getattr(after, key))
    assert Workplace.from_json(json.loads(json.dumps(after.as_json()))) == after


def test_the_narrowest_level_wins_key_by_key_and_variables_one_by_one() -> None:
    settings = Workplace().narrowed(parse({"read": ["a"], "env": {"A": "1", "B": "1"}, "gpu": 1}, "x"), "settings")
    spawn = settings.narrowed(parse({"read": "b", "env": {"B": "2"}}, "x"), "spawn")
    assert (spawn.read, spawn.env, spawn.gpu) == (("b",), {"A": "1", "B": "2"}, 1)
    assert spawn.sources == {"read": "spawn", "env": "spawn", "gpu": "settings"}


def test_what_is_withheld_is_said_with_what_to_do() -> None:
    persona = parse({"read": ["/srv/data"], "hide": ["data/secret"]}, "The persona")
    workplace = Workplace(hide=("data/own",)).narrowed(persona, "persona", trusted=False)
    assert workplace.hide == ("data/own", "data/secret")
    (warning, *_) = workplace.warnings
    assert warning == (
        "The key read of the persona is not used, because you have not trusted it. "
        "`workbench trust` shows and trusts it."
    )


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"include": ["../x"]}, "leads out of the project"),
        ({"include": [".git/config"]}, "belongs to git or to Workbench"),
        ({"include": ["!data"]}, "selects nothing"),
        ({"include": [5]}, "must be a list of texts"),
        ({"read": ["data/*"]}, "is a pattern and no path"),
        ({"read": ["/"]}, "is everything"),
        ({"read": ["."]}, "is the project itself"),
        ({"environment": "a\0b"}, "no path or command can have"),
        ({"env": {"LD_PRELOAD": "x"}}, "are reserved"),
        ({"env": {"A": 1}}, "must be a mapping of names to texts"),
        ({"shm": "much"}, "must be a number of bytes"),
        ({"gpu": 2}, "must be a whole number from 0 to 1"),
        ({"setup_seconds": 0}, "must be a number from 1"),
        ({"network": ["https://pypi.org"]}, "is no pattern of hosts"),
        ({"network": ["pypi.org:99999"]}, "is no pattern of hosts"),
        ({"private": ["10.0.0.0/8/8"]}, "is no pattern of hosts"),
        ({"reads": ["data"]}, "there is no such key"),
    ],
)
def test_a_wrong_value_is_refused_with_its_key_and_the_reason(values: dict[str, Any], reason: str) -> None:
    with pytest.raises(BadInput, match=reason) as caught:
        parse(values, "The plan")
    is_of_hosts = {"network", "private"} & set(values)
    assert caught.value.code == ("BAD_HOST_PATTERN" if is_of_hosts else "BAD_WORKPLACE")
    assert caught.value.details["key"] == next(iter(values))


def test_options_state_lists_variables_numbers_and_switches() -> None:
    options = ["read=data", "read=/srv/x", "env=A=b=c", "gpu=1", "submodules=false", "shm=64M", "network="]
    assert from_options(options) == {
        "read": ("data", "/srv/x"),
        "env": {"A": "b=c"},
        "gpu": 1,
        "submodules": False,
        "shm": 64 << 20,
        "network": (),
    }
