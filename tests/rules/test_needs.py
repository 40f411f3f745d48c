"""What tasks need: how it is written, what is wrong with it, and how it is met."""

from __future__ import annotations

import re
from typing import Any, get_args

import pytest

from workbench.errors import BadInput
from workbench.rules.needs import Device, Needs, StatedGpu, Stock, in_short, needs_of, stated_resources, told
from workbench.rules.tasks import plan as plans

GB = 1 << 30


@pytest.mark.parametrize(
    ("value", "short"),
    [
        (None, None),
        ({}, {}),
        ("", {}),
        ("gpu", {"gpu": 1}),
        ({"vram": "12G"}, {"gpu": 1, "vram": "12G"}),
        ("gpu=2, vram=12288M, exclusive", {"gpu": 2, "vram": "12G", "exclusive": True}),
        ({"gpu": 1, "exclusive": False}, {"gpu": 1}),
        ({"memory": 8 * GB, "cpu": 4}, {"cpu": 4, "memory": "8G"}),
        ({"license": "matlab"}, {"license": {"matlab": 1}}),
        ("license=matlab, license=stata, microscope", {"microscope": 1, "license": {"matlab": 1, "stata": 1}}),
    ],
)
def test_needs_have_one_form_for_all_that_say_the_same(value: Any, short: Any) -> None:
    assert in_short(value) == short
    assert in_short(short) == short


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ({"gpu": 0}, "gpu: it must be a whole number from 1 to 64"),
        ({"gpu": -1}, "gpu: it must be a whole number from 1 to 64"),
        ({"gpu": 10**30}, "gpu: it must be a whole number from 1 to 64"),
        ({"gpu": True}, "gpu: it must be a whole number from 1 to 64"),
        ({"gpu": "some"}, "gpu: it must be a whole number from 1 to 64"),
        ({"gpu": float("nan")}, "gpu: it must be a whole number from 1 to 64"),
        ({"cpu": 1.5}, "cpu: it must be a whole number from 1 to 4,096"),
        ({"memory": "8 apples"}, "memory: it must be a number of bytes, such as 512M or 2G"),
        ({"memory": "8T"}, "memory: it must be a number of bytes, such as 512M or 2G"),
        ({"memory": "1k"}, "memory: it must be from 1M to 16384G"),
        ({"memory": "999999999999999G"}, "memory: it must be from 1M to 16384G"),
        ({"vram": -1}, "vram: it must be from 1M to 16384G"),
        ({"exclusive": "yes"}, "exclusive: it must be true or false"),
        ({"license": []}, "license: it must be a name, or a mapping of names to numbers"),
        ({"license": {"matlab": 0}}, "license.matlab: it must be a whole number from 1 to 10,000"),
        ({"license": {"../etc": 1}}, "'../etc' is no name of a resource"),
        ({"Ünknown": 1}, "'Ünknown' is no name of a resource"),
        ({"gpus": 1}, "'gpus' is no name of a resource; say gpu, vram"),
        ({1: 1}, "'1' is no name of a resource"),
        (
            {"ram": "8G"},
            "ram: it must be a whole number from 1 to 10,000; it is none of gpu, vram, exclusive, cpu, memory",
        ),
        ({f"r{n}": 1 for n in range(21)}, "it has more than 20 names"),
        ([1], "it must be a mapping, such as {gpu: 1}"),
        (7, "it must be a mapping, such as {gpu: 1}"),
        ("gpu=1, gpu=2", "'gpu' is said twice"),
        ("exclusive=maybe", "exclusive: it must be true or false"),
    ],
)
def test_what_is_no_need_is_refused_in_words(value: Any, says: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(says)}"):
        needs_of(value)


def test_needs_in_a_plan_are_refused_with_their_line_and_kept_through_an_export() -> None:
    head = "plan: p\nneeds: {gpu: 1}\ntasks:\n- {name: a, title: A, persona: p}\n"
    text = head + "- {name: b, title: B, persona: p, needs: %s}"
    with pytest.raises(BadInput) as caught:
        plans.parse(text % "{gpu: -1}")
    assert caught.value.code == "PLAN_INVALID"
    assert caught.value.details["problems"] == [
        {"line": 5, "reason": "needs: gpu: it must be a whole number from 1 to 64"}
    ]
    plan = plans.parse(text % "{vram: 12G, license: matlab}")
    assert [task.needs for task in plan.tasks] == [{"gpu": 1}, {"gpu": 1, "vram": "12G", "license": {"matlab": 1}}]
    for form in get_args(plans.Format):
        assert plans.digest(plans.parse(plans.write(plan, form))) == plans.digest(plan)
    listed = plans.parse(
        "# p\n\n- [ ] A {persona=p needs=gpu}\n- [ ] B {persona=p}\n  needs: {gpu: 2, exclusive: true}\n"
    )
    assert [task.needs for task in listed.tasks] == [{"gpu": 1}, {"gpu": 2, "exclusive": True}]


def test_the_smallest_device_that_is_enough_is_chosen() -> None:
    stock = Stock(devices=[Device("big", 24 * GB), Device("small", 8 * GB), Device("unknown", None)])
    assert stock.choose(Needs(gpu=1, vram=4 * GB)) == ["small"]
    assert stock.choose(Needs(gpu=1, vram=12 * GB)) == ["big"]
    assert "the memory of 1 is not known, say it in [resources]" in stock.lacking(Needs(gpu=3, vram=GB))[0]


def test_needs_are_told_in_words() -> None:
    assert told(Needs(2, 12 * GB, True, {"cpu": 1, "license:matlab": 1, "memory": GB})) == (
        "2 GPUs with 12G, 1 processor, the licence matlab, 1G of memory, the machine alone"
    )


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ({"gpus": 2}, 'gpus: it must be "all", or a list'),
        ({"gpus": ["0", 0]}, "gpus: one is named twice"),
        ({"gpus": [{"name": "a", "vrom": 1}]}, "gpus: each is a name or a number"),
        ({"gpus": [{"name": "../x"}]}, "gpus: each is a name or a number"),
        ({"gpus": [{"name": "a", "devices": ["x"]}]}, "gpus: the devices of a are whole paths"),
        ({"gpu": 1}, "there is no 'gpu'; the keys are gpus"),
        ({"cpu": 0}, "cpu: it must be a whole number from 1 to 4,096"),
        ({"memory": "much"}, "memory: it must be a number of bytes"),
        ({"licenses": {"matlab": -1}}, "license.matlab: it must be a whole number"),
        ({"microscope": "1"}, "microscope: it must be a whole number"),
    ],
)
def test_what_cannot_be_there_is_refused(value: Any, says: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(says)}"):
        stated_resources(value)


def test_the_settings_say_what_there_is() -> None:
    said = stated_resources({"gpus": [0, {"name": "a", "vram": "8G"}], "licenses": {"matlab": 2}, "microscope": 1})
    assert said.gpus == (StatedGpu("0"), StatedGpu("a", 8 * GB))
    assert said.amounts == {"license:matlab": 2, "microscope": 1}
    assert stated_resources({"gpus": "all"}).gpus is None
