import pytest

from clean import COLUMNS, CONSTANT, describe, number, species, tidy, without_duplicates
from penguins.script import Failed


def test_every_raw_column_is_kept_or_dropped_on_purpose(raw):
    assert set(raw[0]) == {*COLUMNS, *CONSTANT}


def test_missing_values_become_empty_and_stay(raw):
    unsampled = next(row for row in raw if row["Comments"] == "Adult not sampled.")
    clean = tidy(unsampled)
    assert (clean["species"], clean["bill_length_mm"], clean["sex"]) == ("Adelie", "", "")


@pytest.mark.parametrize(
    ("raw_number", "tidied"),
    [("8.2346800000000009", "8.23468"), ("-24.69454", "-24.69454"), ("18", "18"), ("3750", "3750")],
)
def test_numbers_lose_float_noise_and_nothing_else(raw_number, tidied):
    assert number(raw_number) == tidied


def test_an_unknown_species_stops_the_cleaning():
    with pytest.raises(Failed, match="Emperor"):
        species("Emperor Penguin (Aptenodytes forsteri)")


def test_a_row_that_is_there_twice_is_kept_once(raw):
    clean = [tidy(row) for row in raw[:3]]
    assert without_duplicates([*clean, clean[0]]) == clean


def test_a_column_is_only_dropped_if_it_says_nothing(raw):
    rows = [raw[0], {**raw[1], "Region": "elsewhere"}]
    with pytest.raises(Failed, match="Region"):
        describe(rows, [tidy(row) for row in rows])


def test_the_description_counts_rows_and_changes(raw):
    description = describe(raw, [tidy(row) for row in raw])
    assert (description["rows_read"], description["rows_kept"]) == (344, 344)
    assert description["missing"]["sex"] == sum(row["Sex"] == "NA" for row in raw)
    assert description["values_changed"]["species"] == 344
