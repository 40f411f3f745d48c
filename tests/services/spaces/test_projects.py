"""Projects: made, found, listed, renamed, deleted with all that is under them, and brought back."""

from __future__ import annotations

from typing import Any

import pytest

from tests import given
from tests.conftest import Admit, Clock
from workbench.app import Workbench
from workbench.errors import BadInput, NotFound
from workbench.ops import Caller
from workbench.state.settings import Settings

pytestmark = pytest.mark.anyio


async def names(workbench: Workbench, caller: Caller | None = None, **how: Any) -> list[str]:
    """The names of the projects that a caller sees; the operator, if not said."""
    listed = workbench.dispatch(caller, "list_projects", how) if caller else workbench.call("list_projects", **how)
    return [project["name"] for project in (await listed)["projects"]]


async def events(workbench: Workbench) -> list[tuple[str, str, dict[str, Any]]]:
    """The events of projects."""
    found = (await workbench.call("list_events", kinds=["project.*"], limit=1000))["events"]
    return [(event["kind"], event["subject"], event["data"]) for event in found]


async def test_a_project_is_found_by_id_and_by_name_with_the_number_of_its_sessions(workbench: Workbench) -> None:
    project = await given.project(workbench, "  alpha ", description="First.")
    assert (project["name"], project["description"], project["sessions"], project["deleted_at"]) == (
        "alpha",
        "First.",
        0,
        None,
    )
    assert project["created_at"] == project["updated_at"]
    assert await events(workbench) == [("project.created", f"project:{project['id']}", {"name": "alpha"})]
    for name in ("one", "two"):
        await given.session(workbench, name)
    for ref in (project["id"], "alpha"):
        assert await workbench.call("get_project", project_id=ref) == project | {"sessions": 2}
    await workbench.call("delete_session", session_id="one")
    assert (await workbench.call("get_project", project_id="alpha"))["sessions"] == 1


async def test_an_invalid_project_is_refused_and_leaves_nothing(workbench: Workbench) -> None:
    for wrong in ({"name": ""}, {"name": "  "}, {"name": "x" * 101}, {"names": "x"}, {"description": "x" * 10_001}):
        with pytest.raises(BadInput, match="INVALID_ARGUMENTS"):
            await workbench.call("create_project", **({"name": "x"} if "description" in wrong else {}), **wrong)
    assert (await names(workbench), await events(workbench)) == ([], [])


@pytest.mark.parametrize("noun", ["project", "session", "team"])
async def test_the_name_none_or_null_is_refused(workbench: Workbench, noun: str) -> None:
    await given.project(workbench, "alpha")
    place = {"project_id": "alpha"} if noun == "session" else {}
    for name in ("none", "NULL"):
        await given.refuses("BAD_NAME", workbench.call(f"create_{noun}", name=name, **place))
    made = await workbench.call(f"create_{noun}", name="one", **place)
    await given.refuses("BAD_NAME", workbench.call(f"update_{noun}", **{f"{noun}_id": made["id"], "name": "None"}))


async def test_the_name_of_a_project_is_unique_until_it_is_deleted(workbench: Workbench) -> None:
    first = await given.project(workbench, "alpha")
    beta = await given.project(workbench, "beta")
    await given.refuses("NAME_TAKEN", given.project(workbench, "alpha"))
    await given.refuses("NAME_TAKEN", workbench.call("update_project", project_id=beta["id"], name="alpha"))
    await workbench.call("delete_project", project_id="alpha")
    second = await given.project(workbench, "alpha")
    assert (await workbench.call("get_project", project_id="alpha"))["id"] == second["id"]
    await given.refuses("NAME_TAKEN", workbench.call("restore_project", project_id=first["id"]))
    await workbench.call("update_project", project_id=second["id"], name="gamma")
    assert (await workbench.call("restore_project", project_id=first["id"]))["id"] == first["id"]


async def test_an_update_of_a_project_keeps_the_fields_it_omits(settings: Settings, clock: Clock) -> None:
    async with Workbench.open(settings, clock=clock) as workbench:
        project = await given.project(workbench, "alpha", description="First.")
        clock.forward(1)
        same = await workbench.call("update_project", project_id="alpha")
        assert same == project
        renamed = await workbench.call("update_project", project_id="alpha", name="beta")
        assert renamed == project | {"name": "beta", "updated_at": renamed["updated_at"]}
        assert renamed["updated_at"] > project["updated_at"]
        again = await workbench.call("update_project", project_id="beta", name="beta", description="")
        assert (again["name"], again["description"]) == ("beta", "")
        told = [data for kind, _, data in await events(workbench) if kind == "project.updated"]
        assert told == [{"changes": ["name"]}, {"changes": ["description", "name"]}]


async def test_a_deleted_project_is_hidden_until_it_is_restored(workbench: Workbench) -> None:
    project = await given.project(workbench, "alpha")
    deleted = await workbench.call("delete_project", project_id="alpha")
    assert deleted["deleted_at"] is not None
    assert (await names(workbench), await names(workbench, deleted=True)) == ([], ["alpha"])
    for name in ("get_project", "update_project", "delete_project"):
        await given.refuses("PROJECT_NOT_FOUND", workbench.call(name, project_id=project["id"]))
    assert await workbench.call("restore_project", project_id="alpha") == project
    assert (await names(workbench), await names(workbench, deleted=True)) == (["alpha"], [])
    with pytest.raises(NotFound, match="PROJECT_NOT_FOUND: There is no deleted project"):
        await workbench.call("restore_project", project_id="alpha")
    kinds = [kind for kind, _, _ in await events(workbench)]
    assert kinds == ["project.created", "project.deleted", "project.restored"]


async def test_a_name_of_several_deleted_projects_needs_an_id(workbench: Workbench) -> None:
    ids = []
    for _ in range(2):
        ids.append((await given.project(workbench, "alpha"))["id"])
        await workbench.call("delete_project", project_id="alpha")
    error = await given.refuses("AMBIGUOUS_NAME", workbench.call("restore_project", project_id="alpha"))
    assert sorted(error.details["candidates"]) == sorted(ids)
    assert (await workbench.call("restore_project", project_id=ids[1]))["id"] == ids[1]


async def test_projects_are_found_by_a_part_of_their_name_or_description(workbench: Workbench) -> None:
    await given.project(workbench, "Alpha", description="about 50% of it")
    await given.project(workbench, "beta", description="on alpha_2")
    assert sorted(await names(workbench, search="ALPHA")) == ["Alpha", "beta"]
    assert await names(workbench, search="50% of") == ["Alpha"]
    assert await names(workbench, search="%") == ["Alpha"]
    assert await names(workbench, search="_") == ["beta"]
    assert sorted(await names(workbench, search=" ")) == ["Alpha", "beta"]
    assert await names(workbench, search="nowhere") == []


async def test_pages_neither_skip_nor_repeat_while_projects_come_and_go(settings: Settings, clock: Clock) -> None:
    async with Workbench.open(settings, clock=clock) as workbench:
        for number in range(7):
            clock.forward(number % 2)  # some are of the same moment
            await given.project(workbench, f"p{number}")
        whole = await names(workbench)
        seen, cursor = [], None
        for round_ in range(4):
            page = await workbench.call("list_projects", limit=2, cursor=cursor)
            seen += [project["name"] for project in page["projects"]]
            cursor = page["next_cursor"]
            if round_ == 0:
                assert page["total"] == 7
                await workbench.call("delete_project", project_id=seen[0])
                await workbench.call("update_project", project_id=seen[1], name="renamed")
        assert (seen, cursor) == (whole, None)
        assert (await workbench.call("list_projects", limit=1, search="p"))["total"] == 5
        for wrong in ("x", "WzEsIjIiXQ", "é", "A" * 1000):
            await given.refuses("BAD_CURSOR", workbench.call("list_projects", cursor=wrong))


async def test_an_agent_sees_the_project_of_its_session_only(workbench: Workbench, admit: Admit) -> None:
    for name in ("alpha", "beta"):
        await given.project(workbench, name)
        await workbench.call("create_session", project_id=name, name=f"in {name}")
    ada, stray = await admit("ada", session_id="in alpha"), await admit("stray", session_id=None)
    assert await names(workbench, ada.caller) == ["alpha"]
    assert await names(workbench, stray.caller) == []
    assert (await workbench.dispatch(ada.caller, "get_project", {"project_id": "alpha"}))["name"] == "alpha"
    await given.refuses("PROJECT_NOT_FOUND", workbench.dispatch(ada.caller, "get_project", {"project_id": "beta"}))
    await workbench.call("delete_project", project_id="alpha")
    assert await names(workbench, ada.caller) == []
    assert await names(workbench, ada.caller, deleted=True) == []
