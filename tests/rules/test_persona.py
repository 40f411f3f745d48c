"""Personas: what the front matter says, and what is wrong with it."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.errors import BadInput
from workbench.model import Role
from workbench.rules.persona import check_id, parse

TEXT = "---\nname: The Editor\nrole: planner\ncolour: red\n---\n\nYou edit.\n"


def test_the_front_matter_names_a_persona_and_the_rest_is_its_text() -> None:
    persona = parse("editor", TEXT)
    assert (persona.id, persona.name, persona.role, persona.definition) == (
        *("editor", "The Editor", Role.PLANNER, "You edit."),
    )


def test_without_front_matter_a_persona_is_a_worker_named_after_its_file() -> None:
    persona = parse("Copy_Editor_prompt", "You edit.\n--- \nStill you.")
    assert (persona.id, persona.name, persona.role) == ("copy_editor", "Copy Editor", Role.WORKER)
    assert persona.definition == "You edit.\n--- \nStill you."


def test_the_hash_changes_with_any_letter() -> None:
    assert parse("a", TEXT).sha256 == parse("b", TEXT).sha256 != parse("a", TEXT + " ").sha256


def test_the_ends_of_lines_are_no_part_of_a_text() -> None:
    for end in ("\r\n", "\r"):
        assert parse("editor", TEXT.replace("\n", end)) == parse("editor", TEXT)


@pytest.mark.parametrize(("written", "seconds"), [("1", 1.0), ("0.5", 0.5), ("86400", 86_400.0), ("null", None)])
def test_the_front_matter_says_how_long_its_leases_last(written: str, seconds: float | None) -> None:
    assert parse("editor", f"---\nlease_seconds: {written}\n---\n").lease_seconds == seconds


@pytest.mark.parametrize("written", ["0", "-1", "86401", "true", "soon", "[1]", ".nan", ".inf"])
def test_a_lease_that_cannot_be_is_refused(written: str) -> None:
    with pytest.raises(BadInput, match="PERSONA_INVALID: Persona editor: `lease_seconds`"):
        parse("editor", f"---\nlease_seconds: {written}\n---\n")


@pytest.mark.parametrize(
    ("persona_id", "allowed"),
    [
        *[(fine, True) for fine in ("a", "7", "a-b_c", "x" * 50)],
        *[(bad, False) for bad in ("", "A", "-a", "_a", "a b", "../a", "a/b", "a.md", "é", "x" * 51, "a\n", "none")],
    ],
)
def test_an_id_is_fit_to_name_a_file(persona_id: str, allowed: bool) -> None:
    if allowed:
        assert check_id(persona_id) == persona_id
    else:
        with pytest.raises(BadInput, match="PERSONA_INVALID"):
            check_id(persona_id)


@pytest.mark.parametrize(
    "text",
    [
        "---\nname: x\nYou edit.",
        "---\n- a list\n---\n",
        "---\njust text\n---\n",
        "---\nname: [\n---\n",
        "---\nrole: boss\n---\n",
        "---\nrole: [worker]\n---\n",
        "---\nname: !other x\n---\n",
        "---\nrole: worker\nrole: planner\n---\n",
        "---\nname: &n x\nrole: *n\n---\n",
    ],
)
def test_damaged_front_matter_is_refused_by_the_personas_name(text: str) -> None:
    with pytest.raises(BadInput, match="PERSONA_INVALID: Persona editor"):
        parse("editor", text)


def test_the_line_of_a_mistake_counts_from_the_first_line_of_the_file() -> None:
    with pytest.raises(BadInput, match="Persona editor: line 3: the key 'role' is given twice"):
        parse("editor", "---\nrole: worker\nrole: planner\n---\n")


def test_words_and_dates_in_the_front_matter_are_text() -> None:
    assert [parse("a", f"---\nname: {name}\n---\n").name for name in ("yes", "2020-99-99")] == ["yes", "2020-99-99"]


@given(st.text(alphabet=st.characters(exclude_categories=("Cs",))), st.booleans())
def test_no_text_makes_it_fail_otherwise(text: str, front_matter: bool) -> None:
    whole = f"---\n{text}\n---\n" if front_matter else text
    with suppress(BadInput):
        assert parse("editor", whole).id == "editor"
