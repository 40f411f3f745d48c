"""Times, durations and what workers wrote, as the panel writes them."""

from __future__ import annotations

import pytest

from tests.panels.conftest import Ask
from workbench.present.inert import inert
from workbench.rules.personalities.addresses import node_label

NOW = 1_700_000_000_000
"""November 14, 2023, 22:13:20 UTC."""
CHARACTERS = [chr(number) for number in (*range(0x20000), *range(0xDFFF0, 0xE1010))]
pytestmark = pytest.mark.node


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("dateTime", "2023-11-14T10:05:00Z", "Nov 14, 10:05"),
        ("dateTime", "2021-11-14T10:05:00Z", "Nov 14, 2021, 10:05"),
        ("dateTime", "2023-11-14T00:05:00Z", "Nov 14, 00:05"),
        ("timeOfDay", "2023-11-14T00:05:07Z", "00:05:07"),
        ("hourMinute", NOW - NOW % 86_400_000, "00:00"),
    ],
)
def test_a_time_has_a_day_that_begins_at_0_hours_and_its_year_if_it_is_another(
    call: Ask, name: str, value: str | int, text: str
) -> None:
    assert call("lib/format.js", name, value, NOW) == text


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [(0, "0 ms"), (20.4, "20 ms"), (999.4, "999 ms"), (999.7, "1.0 s"), (1_500, "1.5 s"), (59_900, "59 s"),
     (60_000, "1 min"), (7_500_000, "2 h 5 min"), (28_800_000, "8 h"), (-5, "0 ms")],
)  # fmt: skip
def test_a_duration_has_the_unit_that_fits_it(call: Ask, milliseconds: float, text: str) -> None:
    assert call("lib/format.js", "duration", milliseconds) == text


def test_every_character_is_shown_as_on_a_terminal_without_anything_that_is_obeyed(in_node: Ask) -> None:
    shown = in_node("call.mjs")(["lib/inert.js", "inert", [[text] for text in CHARACTERS]])
    assert [a for a, b in zip(CHARACTERS, shown, strict=True) if inert(a) != b] == []


@pytest.mark.parametrize(
    "rid", [f"orn:koi-net.node:{name}+{'830c0d' + '1' * 58}" for name in ("field", "a+b", "a·b")] + ["orn:x:y", "field"]
)
def test_a_node_is_called_as_in_python(call: Ask, rid: str) -> None:
    assert call("network/peers.js", "nodeName", rid) == node_label(rid)


def test_the_axis_of_counts_has_whole_numbers(call: Ask) -> None:
    assert [call("charts/parts.js", "ticks", highest) for highest in (0, 1, 2, 3, 9)] == [
        [0, 1],
        [0, 1],
        [0, 1, 2],
        [0, 2, 4],
        [0, 5, 10],
    ]


def test_a_number_that_is_not_finite_leaves_an_axis_of_numbers_as_it_is(call: Ask) -> None:
    found = call("charts/coordinates.js", "axis", "loss", [0.713, "NaN", None, 0.983])
    assert (found["placed"], found["ends"]) == ([0.713, None, None, 0.983], ["0.713", "0.983"])
    assert call("charts/coordinates.js", "axis", "loss", ["NaN", "high"])["ends"] == ["NaN", "high"]
