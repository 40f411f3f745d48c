import math
from xml.etree import ElementTree

import pytest

from penguins.chart import Chart
from penguins.data import Penguin, column, complete
from penguins.logistic import Budget, NotConverged, fit
from penguins.results import Finding, Table, load, save
from penguins.script import Failed
from penguins.stats import fit_line, group, summarise

FINDING = Finding("Title", "Text.", {"n": 1}, Table(["A", "B"], [["x", "1"]]))


def penguin(**known: str) -> Penguin:
    return Penguin.from_row({name: known.get(name, "") for name in Penguin.__annotations__})


def test_an_empty_cell_is_none_and_a_measurement_a_number():
    bird = penguin(species="Adelie", island="Dream", body_mass_g="3750")
    assert (bird.species, bird.body_mass_g, bird.sex) == ("Adelie", 3750.0, None)


def test_penguins_without_a_needed_value_are_left_out():
    birds = [penguin(body_mass_g="3750"), penguin(sex="male")]
    assert column(complete(birds, "body_mass_g"), "body_mass_g") == [3750.0]


def test_groups_come_in_alphabetical_order():
    assert list(group(["bb", "a", "ba"], key=lambda word: word[0]).items()) == [
        ("a", ["a"]),
        ("b", ["bb", "ba"]),
    ]


def test_summary_has_the_sample_standard_deviation():
    assert summarise([1, 2, 3]) == (3, 2.0, 1.0)


def test_points_on_a_line_give_that_line():
    line = fit_line([0, 1, 2], [5, 3, 1])
    assert (line.slope, line.intercept, line.r, line.at(4)) == pytest.approx((-2, 5, -1, -3))


def test_an_intercept_alone_becomes_the_log_odds():
    found = fit([[1.0]] * 4, [True, True, True, False], Budget(100, 1e-9))
    assert found.weights == pytest.approx([math.log(3)])


def test_a_budget_that_is_too_small_is_an_error_worth_a_retry():
    with pytest.raises(NotConverged) as caught:
        fit([[1.0]] * 4, [True, True, True, False], Budget(1, 1e-9))
    assert caught.value.exit_code == 75


def test_a_finding_is_loaded_as_it_was_saved(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    paths = save("some", FINDING, Chart("Title", (0, 1), (0, 1)))
    assert [path.name for path in paths] == ["some.json", "some.csv", "some.svg"]
    assert load("some") == FINDING


def test_a_missing_finding_says_which_script_makes_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Failed, match=r"scripts/bills\.py"):
        load("bills")


def test_a_table_in_markdown_has_its_numbers_on_the_right():
    assert FINDING.table.markdown().splitlines() == ["| A | B |", "| :-- | --: |", "| x | 1 |"]


def test_a_chart_is_well_formed_whatever_its_texts():
    chart = Chart("a < b & c", (0, 10), (0, 1))
    chart.x_axis("x", [0, 5, 10])
    chart.legend({"<one>": "#000000"})
    chart.dot(5, 0.5, "#000000")
    ElementTree.fromstring(chart.svg())
