"""Personas: the built-in ones, overridden by the project's files, kept up to date at each start."""

from __future__ import annotations

from typing import Any

import pytest

from workbench.app import Workbench
from workbench.errors import BadInput, NotFound
from workbench.model import wall_clock
from workbench.settings import Settings

pytestmark = pytest.mark.anyio

BUILT_IN = {"implementer": "worker", "planner": "planner", "reviewer": "worker", "tester": "worker"}


def write(settings: Settings, name: str, text: str | bytes) -> None:
    """A persona of the project."""
    folder = settings.home / "personas"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.md").write_bytes(text.encode() if isinstance(text, str) else text)


async def opened(settings: Settings, name: str, **arguments: Any) -> dict[str, Any]:
    """Open the project and call one operation."""
    async with Workbench.open(settings) as workbench:
        return await workbench.call(name, **arguments)


async def saved(settings: Settings, after: int) -> list[str]:
    """The personas that were saved after an event."""
    found = await opened(settings, "list_events", after=after, kinds=["persona.saved"])
    return [event["subject"] for event in found["events"]]


async def test_the_built_in_personas_are_there_with_their_roles(settings: Settings) -> None:
    found = (await opened(settings, "get_personas"))["personas"]
    assert {persona["id"]: persona["role"] for persona in found} == BUILT_IN


async def test_a_persona_is_shown_with_its_text_whatever_the_case_of_its_id(settings: Settings) -> None:
    found = await opened(settings, "get_persona", persona_id="Planner")
    assert (found["id"], found["name"], found["role"], found["source"]) == ("planner", "Planner", "planner", "built-in")
    assert "claim" not in found["definition"].lower()
    assert "---" not in found["definition"]
    with pytest.raises(NotFound, match=r"PERSONA_NOT_FOUND.*implementer, planner, reviewer, tester"):
        await opened(settings, "get_persona", persona_id="wizard")


async def test_the_projects_own_files_add_to_the_built_in_ones_and_replace_them(settings: Settings) -> None:
    write(settings, "Editor_prompt", "---\nrole: planner\n---\nYou edit.")
    write(settings, "tester", "You test twice.")
    found = (await opened(settings, "get_personas"))["personas"]
    assert {p["id"]: p["role"] for p in found} == BUILT_IN | {"editor": "planner"}
    tester = await opened(settings, "get_persona", persona_id="tester")
    assert (tester["definition"], tester["source"]) == ("You test twice.", "project")


async def test_only_what_changed_is_saved_at_the_next_start(settings: Settings) -> None:
    last = (await opened(settings, "list_events"))["next_after"]
    assert await saved(settings, last) == []
    write(settings, "editor", "You edit.")
    assert await saved(settings, last) == ["persona:editor"]
    write(settings, "editor", "You edit well.")
    assert await saved(settings, last) == ["persona:editor", "persona:editor"]
    assert (await opened(settings, "get_persona", persona_id="editor"))["definition"] == "You edit well."


@pytest.mark.parametrize(
    "text", ["---\nrole: boss\n---\n", "---\nname: x\n", b"\xff\xfe", "---\nname: 2020-99-99\n---\n"]
)
async def test_a_damaged_file_is_named_and_keeps_the_project_from_opening(
    settings: Settings, text: str | bytes
) -> None:
    await opened(settings, "ping")
    write(settings, "editor", text)
    with pytest.raises(BadInput, match="PERSONA_INVALID: Persona editor"):
        await opened(settings, "ping")
    write(settings, "editor", "You edit.")
    assert (await opened(settings, "get_persona", persona_id="editor"))["id"] == "editor"


async def test_a_persona_says_when_it_was_changed(settings: Settings) -> None:
    before = wall_clock()
    write(settings, "editor", "You edit.")
    async with Workbench.open(settings, clock=lambda: before) as workbench:
        first = await workbench.call("get_persona", persona_id="editor")
    async with Workbench.open(settings, clock=lambda: before + 1_000_000) as workbench:
        assert await workbench.call("get_persona", persona_id="editor") == first
