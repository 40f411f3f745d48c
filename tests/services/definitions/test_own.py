"""An agent that has a definition reads and changes its own rules and references, as far as its grant allows."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conftest import Admit, Admitted
from tests.services.definitions.conftest import create
from workbench.app import Workbench
from workbench.errors import BadInput, Conflict, NotFound, Refused, WorkbenchError

pytestmark = pytest.mark.anyio

READING = ("list_rules", "get_rule", "list_references", "get_reference")
CHANGING = ("add_rule", "update_rule", "delete_rule", "add_reference", "update_reference", "delete_reference")
TEXT = {"name": "notes", "text": "The tests are in `tests`."}


async def admitted(workbench: Workbench, admit: Admit, **choices: str) -> Admitted:
    """An agent with the definition `reviewer`."""
    await create(workbench)
    return await admit("ada", definition="reviewer", **choices)


@pytest.mark.parametrize("noun", ["rule", "reference"])
async def test_an_agent_keeps_its_own_rules_and_references(workbench: Workbench, admit: Admit, noun: str) -> None:
    ada = await admitted(workbench, admit)

    async def call(name: str, **arguments: Any) -> dict[str, Any]:
        return await workbench.dispatch(ada.caller, name, arguments)

    await call(f"add_{noun}", **{noun: TEXT})
    await call(f"update_{noun}", **{f"{noun}_name": "notes", noun: {"include": "always", "description": "Where"}})
    listed = {"name": "notes", "description": "Where", "priorityLevel": 500, "include": "always"}
    assert await call(f"list_{noun}s") == {f"{noun}s": [listed]}
    assert await call(f"get_{noun}", **{f"{noun}_name": "notes"}) == {noun: listed | {"text": TEXT["text"]}}
    managed = await workbench.call(f"agent_list_{noun}s", agentTarget="reviewer") if noun == "rule" else {"count": 1}
    assert managed["count"] == 1
    event = (await workbench.call("list_events", kinds=["definition.changed"], limit=1))["events"][0]
    assert (event["actor"], event["data"]["summary"]) == ("ada", f"{noun} notes added")
    with pytest.raises(Conflict, match="ALREADY_EXISTS"):
        await call(f"add_{noun}", **{noun: TEXT})
    with pytest.raises(BadInput, match="VALIDATION_ERROR"):
        await call(f"update_{noun}", **{f"{noun}_name": "notes", noun: {"include": "sometimes"}})
    await call(f"delete_{noun}", **{f"{noun}_name": "notes"})
    assert await call(f"list_{noun}s") == {f"{noun}s": []}
    for name in (f"get_{noun}", f"delete_{noun}"):
        with pytest.raises(NotFound, match="NOT_FOUND"):
            await call(name, **{f"{noun}_name": "notes"})


@pytest.mark.parametrize(
    ("choices", "permitted"),
    [
        pytest.param({"self_tools": "off"}, (), id="off"),
        pytest.param({"self_tools": "read"}, READING, id="read"),
        pytest.param({"self_tools": "write"}, READING + CHANGING, id="write"),
        pytest.param({"self_tools": "write", "tool": "read"}, READING, id="the grant is to read"),
        pytest.param({"definition": ""}, (), id="no definition"),
    ],
)
async def test_the_grant_switches_the_tools(
    workbench: Workbench, admit: Admit, choices: dict[str, str], permitted: tuple[str, ...]
) -> None:
    await create(workbench)
    ada = await admit("ada", **({"definition": "reviewer"} | choices))
    for name in READING + CHANGING:
        try:
            await workbench.dispatch(ada.caller, name, {})
            code = ""
        except WorkbenchError as error:
            code = error.code
        assert (code != "FORBIDDEN") == (name in permitted), (name, code)
        assert workbench.catalogue[name].permits(ada.caller) == (name in permitted)


async def test_a_caller_without_a_definition_is_told_why(workbench: Workbench, admit: Admit) -> None:
    ada = await admit("ada")
    with pytest.raises(Refused, match="it has no definition of its own"):
        await workbench.dispatch(ada.caller, "list_rules", {})
    with pytest.raises(Refused, match="FORBIDDEN"):
        await workbench.call("list_rules")
