"""Personas: the built-in ones, overridden by the project's files, kept up to date at each start."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests import given
from tests.conftest import Admit, Clock
from workbench.app import Workbench
from workbench.errors import BadInput, NotFound, Refused, Unavailable
from workbench.model import SECOND, iso
from workbench.state.settings import Settings

pytestmark = pytest.mark.anyio

BUILT_IN = {"implementer": "worker", "planner": "planner", "reviewer": "worker", "tester": "worker"}


def write(settings: Settings, name: str, text: str | bytes) -> None:
    """A persona of the project."""
    folder = settings.home / "personas"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.md").write_bytes(text.encode() if isinstance(text, str) else text)


async def open_and_call(settings: Settings, name: str, **arguments: Any) -> dict[str, Any]:
    """Open the project and call one operation."""
    async with Workbench.open(settings) as workbench:
        return await workbench.call(name, **arguments)


async def test_a_persona_is_shown_with_its_text_for_an_id_in_any_case(workbench: Workbench) -> None:
    listed = (await workbench.call("get_personas"))["personas"]
    assert {persona["id"]: persona["role"] for persona in listed} == BUILT_IN
    found = await workbench.call("get_persona", persona_id="Planner")
    assert (found["id"], found["name"], found["role"], found["source"]) == ("planner", "Planner", "planner", "built-in")
    assert "claim" not in found["definition"].lower()
    assert "---" not in found["definition"]
    with pytest.raises(NotFound, match=r"PERSONA_NOT_FOUND.*implementer, planner, reviewer, tester"):
        await workbench.call("get_persona", persona_id="wizard")


async def test_project_files_add_to_and_replace_built_in_personas(settings: Settings) -> None:
    write(settings, "Editor_prompt", "---\nrole: planner\n---\nYou edit.")
    write(settings, "tester", "You test twice.")
    personas = (await open_and_call(settings, "get_personas"))["personas"]
    assert {p["id"]: p["role"] for p in personas} == BUILT_IN | {"editor": "planner"}
    tester = await open_and_call(settings, "get_persona", persona_id="tester")
    assert (tester["definition"], tester["source"]) == ("You test twice.", "project")


async def test_only_a_changed_persona_is_saved_again_at_the_next_start(settings: Settings, clock: Clock) -> None:
    async def saved() -> list[str]:
        clock.forward(1)
        async with Workbench.open(settings, clock=clock) as workbench:
            return await given.kinds(workbench, "persona.saved", subject="persona:editor")

    assert await saved() == []
    write(settings, "editor", "You edit.")
    assert [len(await saved()) for _ in range(2)] == [1, 1]
    first = await open_and_call(settings, "get_persona", persona_id="editor")
    assert await open_and_call(settings, "get_persona", persona_id="editor") == first
    write(settings, "editor", "You edit well.")
    assert len(await saved()) == 2
    found = await open_and_call(settings, "get_persona", persona_id="editor")
    assert found["definition"] == "You edit well."
    versions = (await open_and_call(settings, "list_persona_versions", persona_id="editor"))["versions"]
    assert [version["saved_at"] for version in versions] == [iso(clock.now), iso(clock.now - 2 * SECOND)]
    assert first["sha256"] == versions[1]["sha256"]


DAMAGED = [
    *("---\nrole: boss\n---\n", "---\nname: x\n", b"\xff\xfe", "---\nrole: worker\nrole: planner\n---\n"),
    *('---\nname: "\\ud800"\n---\n', "a\0b", "---\nname: [\n---\n"),
]


async def test_a_damaged_file_is_named_and_keeps_the_project_from_opening(settings: Settings) -> None:
    for text in DAMAGED:
        write(settings, "editor", text)
        with pytest.raises(BadInput, match=r"PERSONA_INVALID: Persona editor.*personas/editor\.md") as refused:
            await open_and_call(settings, "ping")
        assert "<unicode string>" not in refused.value.message
    write(settings, "editor", "You edit.")
    assert (await open_and_call(settings, "get_persona", persona_id="editor"))["id"] == "editor"


# Saved while the project is open

TEXT = "---\nname: The Editor\nrole: planner\n---\nYou edit."


async def test_a_saved_persona_is_a_project_file_and_takes_effect_at_once(
    workbench: Workbench, settings: Settings
) -> None:
    saved = await workbench.call("save_persona", persona_id="editor", text=TEXT)
    assert (saved["id"], saved["name"], saved["role"], saved["definition"]) == (
        *("editor", "The Editor", "planner", "You edit."),
    )
    assert (settings.home / "personas" / "editor.md").read_text() == TEXT
    assert await workbench.call("get_persona", persona_id="editor") | {"warnings": []} == saved
    assert (await given.whole_task(workbench, "t", "Editor"))["persona_id"] == "editor"
    events = (await workbench.call("list_events", subject="persona:editor"))["events"]
    told = {"sha256": saved["sha256"], "source": "project"}
    assert [(e["kind"], e["actor"], e["data"]) for e in events] == [("persona.saved", "operator", told)]


async def test_a_saved_persona_is_the_same_at_the_next_start(settings: Settings) -> None:
    await open_and_call(settings, "save_persona", persona_id="editor", text=TEXT.replace("\n", "\r\n"))
    assert (await open_and_call(settings, "get_persona", persona_id="editor"))["role"] == "planner"
    assert len((await open_and_call(settings, "list_persona_versions", persona_id="editor"))["versions"]) == 1


async def test_a_saved_persona_overrides_its_older_settings_file(settings: Settings) -> None:
    write(settings, "planner_prompt", "You plan as before.")
    assert (await open_and_call(settings, "get_persona", persona_id="planner"))["definition"] == "You plan as before."
    await open_and_call(settings, "save_persona", persona_id="planner", text="You plan anew.")
    assert (await open_and_call(settings, "get_persona", persona_id="planner"))["definition"] == "You plan anew."


async def test_every_version_of_a_persona_is_kept(settings: Settings, clock: Clock) -> None:
    async with Workbench.open(settings, clock=clock) as workbench:
        for text in ("One.", "Two.", "Two.", "One."):
            clock.forward(1)
            await workbench.call("save_persona", persona_id="tester", text=text)
        versions = (await workbench.call("list_persona_versions", persona_id="Tester"))["versions"]
        assert [v["definition"] for v in versions[:2]] == ["One.", "Two."]
        assert [v["saved_at"] for v in versions[:2]] == [iso(clock.now), iso(clock.now - 2 * SECOND)]
        assert [(v["source"], v["saved_by"]) for v in versions] == [
            *(("project", "operator"), ("project", "operator"), ("built-in", "system")),
        ]
        now = await workbench.call("get_persona", persona_id="tester")
        assert now["sha256"] == versions[0]["sha256"]
        assert len((await workbench.call("list_events", subject="persona:tester"))["events"]) == 4
        with pytest.raises(NotFound, match="PERSONA_NOT_FOUND"):
            await workbench.call("list_persona_versions", persona_id="wizard")


NO_PERSONAS = [
    *[(bad, "You edit.") for bad in ("", "../x", "a/b", "A", "x" * 51, ".hidden")],
    ("editor", "---\nrole: boss\n---\n"),
    ("editor", ""),
    ("editor", "x" * 200_001),
]


async def test_an_invalid_persona_and_a_planner_who_saves_one_are_refused(
    workbench: Workbench, settings: Settings, admit: Admit
) -> None:
    for persona_id, text in NO_PERSONAS:
        with pytest.raises(BadInput, match=r"PERSONA_INVALID|INVALID_ARGUMENTS"):
            await workbench.call("save_persona", persona_id=persona_id, text=text)
    planner = await admit("pam", role="planner")
    with pytest.raises(Refused, match="FORBIDDEN"):
        await workbench.dispatch(planner.caller, "save_persona", {"persona_id": "tester", "text": "x"})
    assert not (settings.home / "personas").exists()
    assert {p["id"] for p in (await workbench.call("get_personas"))["personas"]} == set(BUILT_IN)


async def test_a_persona_whose_file_cannot_be_written_stays_as_it_is(workbench: Workbench, settings: Settings) -> None:
    (settings.home / "personas").write_text("a file where the directory should be")
    before = await workbench.call("get_persona", persona_id="tester")
    with pytest.raises(Unavailable, match="PROJECT_UNWRITABLE"):
        await workbench.call("save_persona", persona_id="tester", text="You test twice.")
    assert await workbench.call("get_persona", persona_id="tester") == before


async def test_concurrent_saves_of_a_persona_leave_the_file_and_the_project_equal(
    workbench: Workbench, settings: Settings
) -> None:
    texts = [f"You test {n} times.\n" * 2_000 for n in range(40)]
    await asyncio.gather(*(workbench.call("save_persona", persona_id="tester", text=text) for text in texts))
    (file,) = (settings.home / "personas").iterdir()
    persona = await workbench.call("get_persona", persona_id="tester")
    assert (file.name, file.read_text("utf-8").strip()) == ("tester.md", persona["definition"])
    assert len((await workbench.call("list_persona_versions", persona_id="tester"))["versions"]) == 41


async def test_the_lease_is_that_of_the_task_else_of_its_persona_else_of_the_settings(
    workbench: Workbench, settings: Settings
) -> None:
    await workbench.call("save_persona", persona_id="slow", text="---\nlease_seconds: 900\n---\nTake your time.")
    for persona, said, seconds in (("slow", None, 900), ("slow", 5, 5), ("tester", None, settings.lease_seconds)):
        assert (await given.whole_task(workbench, "t", persona, lease_seconds=said))["lease_seconds"] == seconds
