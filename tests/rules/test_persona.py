"""Personas: their front matter, and its mistakes."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.given import refused
from workbench.errors import BadInput
from workbench.model import Role
from workbench.rules.persona import check_id, parse

TEXT = "---\nname: The Editor\nrole: planner\ncolour: red\n---\n\nYou edit.\n"


def test_the_front_matter_names_a_persona_and_the_rest_is_its_text() -> None:
    persona = parse("editor", TEXT)
    assert (persona.id, persona.name, persona.role) == ("editor", "The Editor", Role.PLANNER)
    assert persona.definition == "You edit."
    assert persona.sha256 == parse("b", TEXT).sha256 != parse("editor", TEXT + " ").sha256
    for end in ("\r\n", "\r"):
        assert parse("editor", TEXT.replace("\n", end)) == persona
    for name in ("yes", "2020-99-99"):  # words and dates are text
        assert parse("a", f"---\nname: {name}\n---\n").name == name


def test_without_front_matter_a_persona_is_a_worker_named_after_its_file() -> None:
    persona = parse("Copy_Editor_prompt", "You edit.\n--- \nStill you.")
    assert (persona.id, persona.name, persona.role) == ("copy_editor", "Copy Editor", Role.WORKER)
    assert persona.definition == "You edit.\n--- \nStill you."


@pytest.mark.parametrize(("written", "seconds"), [("1", 1.0), ("0.5", 0.5), ("86400", 86_400.0), ("null", None)])
def test_the_front_matter_says_how_long_its_leases_last(written: str, seconds: float | None) -> None:
    assert parse("editor", f"---\nlease_seconds: {written}\n---\n").lease_seconds == seconds


@pytest.mark.parametrize("written", ["0", "-1", "86401", "true", "soon", "[1]", ".nan", ".inf"])
def test_a_lease_that_cannot_be_is_refused(written: str) -> None:
    error = refused("PERSONA_INVALID", parse, "editor", f"---\nlease_seconds: {written}\n---\n")
    assert error.message.startswith("Persona editor: `lease_seconds`")


def test_an_id_is_fit_to_name_a_file() -> None:
    for fine in ("a", "7", "a-b_c", "x" * 50):
        assert check_id(fine) == fine
    for bad in ("", "A", "-a", "_a", "a b", "../a", "a/b", "a.md", "é", "x" * 51, "a\n", "none"):
        refused("PERSONA_INVALID", check_id, bad)


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
    assert refused("PERSONA_INVALID", parse, "editor", text).message.startswith("Persona editor: ")


def test_the_line_of_a_mistake_counts_from_the_first_line_of_the_file() -> None:
    error = refused("PERSONA_INVALID", parse, "editor", "---\nrole: worker\nrole: planner\n---\n")
    assert error.message.startswith("Persona editor: line 3: the key 'role' is given twice")


@given(st.text(alphabet=st.characters(exclude_categories=("Cs",))), st.booleans())
def test_any_text_is_a_persona_or_refused_with_a_code(text: str, front_matter: bool) -> None:
    whole = f"---\n{text}\n---\n" if front_matter else text
    with suppress(BadInput):
        assert parse("editor", whole).id == "editor"
