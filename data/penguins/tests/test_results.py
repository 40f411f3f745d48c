"""The results that are there, against the raw table, without the package that made them."""

import csv
import json
from collections import Counter
from statistics import correlation, fmean
from typing import Any

import pytest
from conftest import ROOT

NUMBERS = {
    "Culmen Length (mm)": "bill_length_mm",
    "Culmen Depth (mm)": "bill_depth_mm",
    "Flipper Length (mm)": "flipper_length_mm",
    "Body Mass (g)": "body_mass_g",
}


def result(name: str) -> str:
    path = ROOT / "results" / name
    if not path.exists():
        pytest.skip(f"results/{name} is not there yet")
    return path.read_text(encoding="utf-8")


def figures(name: str) -> dict[str, Any]:
    return json.loads(result(name))["figures"]


def species(row: dict[str, str]) -> str:
    return row["Species"].split()[0]


def known(rows: list[dict[str, str]], *columns: str) -> list[dict[str, str]]:
    return [row for row in rows if all(row[name] != "NA" for name in columns)]


def test_the_clean_table_has_every_measurement_of_the_raw_one(raw):
    clean = list(csv.DictReader(result("clean.csv").splitlines()))
    assert len(clean) == len(raw)
    for before, after in zip(raw, clean, strict=True):
        assert after["species"] == species(before)
        for column, name in NUMBERS.items():
            assert (after[name] or "NA") == before[column]


def test_the_cleaning_counted_what_is_missing(raw):
    missing = json.loads(result("cleaning.json"))["missing"]
    assert {name: missing[name] for name in NUMBERS.values()} == {
        name: sum(row[column] == "NA" for row in raw) for column, name in NUMBERS.items()
    }


def test_the_islands_have_the_penguins_of_the_raw_table(raw):
    counted = Counter((row["Island"], species(row)) for row in raw)
    reported = figures("islands.json")["counts"]
    assert {(i, s): n for i, row in reported.items() for s, n in row.items() if n} == counted


def test_the_bills_show_simpsons_paradox(raw):
    length, depth = "Culmen Length (mm)", "Culmen Depth (mm)"
    rows = known(raw, length, depth)
    groups = {name: [r for r in rows if species(r) == name] for name in map(species, rows)}
    for name, birds in {**groups, "All": rows}.items():
        x, y = ([float(bird[column]) for bird in birds] for column in (length, depth))
        r = correlation(x, y)
        assert figures("bills.json")["correlation"][name] == pytest.approx(r, abs=1e-4)
        assert (r < 0) == (name == "All")


def test_the_sexes_are_evenly_likely_between_their_mean_masses(raw):
    found = figures("mass.json")
    rows = known(raw, "Body Mass (g)", "Sex")
    assert found["penguins"] == len(rows)
    for name, mass in found["even_mass_g"].items():
        females, males = (
            fmean(float(r["Body Mass (g)"]) for r in rows if (species(r), r["Sex"]) == (name, sex))
            for sex in ("FEMALE", "MALE")
        )
        assert females < mass < males


def test_the_species_helps_to_tell_the_sex_from_the_mass():
    shares = figures("mass.json")["accuracy"]
    assert shares["mass_and_species"] > shares["mass_alone"] > 0.5


@pytest.mark.parametrize("name", ["islands", "bills", "mass"])
def test_the_report_says_what_was_found(name):
    report = result("REPORT.md")
    assert json.loads(result(f"{name}.json"))["text"] in report
