"""Personas: what the front matter says, and what is wrong with it."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.errors import BadInput
from workbench.model import Role
from workbench.rules.persona import parse

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


@pytest.mark.parametrize(
    "text",
    [
        "---\nname: x\nYou edit.",
        "---\n- a list\n---\n",
        "---\njust text\n---\n",
        "---\nname: [\n---\n",
        "---\nrole: boss\n---\n",
        "---\nrole: [worker]\n---\n",
        "---\nname: 2020-99-99\n---\n",
        "---\nname: !!int ''\n---\n",
    ],
)
def test_damaged_front_matter_is_refused_by_the_personas_name(text: str) -> None:
    with pytest.raises(BadInput, match="PERSONA_INVALID: Persona editor"):
        parse("editor", text)


@given(st.text(alphabet=st.characters(exclude_categories=("Cs",))), st.booleans())
def test_no_text_makes_it_fail_otherwise(text: str, front_matter: bool) -> None:
    whole = f"---\n{text}\n---\n" if front_matter else text
    with suppress(BadInput):
        assert parse("editor", whole).id == "editor"
