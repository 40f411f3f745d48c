"""An agent that has a definition reads and changes its own rules and references, as far as its grant allows."""

from __future__ import annotations

from typing import Any

import pytest

from tests import given
from tests.conftest import Admit
from tests.services.definitions.conftest import Reviewer
from workbench.app import Workbench
from workbench.errors import Refused, WorkbenchError

pytestmark = pytest.mark.anyio

READING = ("list_rules", "get_rule", "list_references", "get_reference")
CHANGING = ("add_rule", "update_rule", "delete_rule", "add_reference", "update_reference", "delete_reference")
TEXT = {"name": "notes", "text": "The tests are in `tests`."}


@pytest.mark.parametrize("noun", ["rule", "reference"])
async def test_an_agent_keeps_its_own_rules_and_references(reviewer: Reviewer, admit: Admit, noun: str) -> None:
    workbench, ada = reviewer.workbench, await admit("ada", definition="reviewer")

    async def call(name: str, **arguments: Any) -> dict[str, Any]:
        return await workbench.dispatch(ada.caller, name, arguments)

    async def refused(code: str, name: str, **arguments: Any) -> None:
        assert (await given.refusal(call(name, **arguments))).code == code

    await call(f"add_{noun}", **{noun: TEXT})
    await call(f"update_{noun}", **{f"{noun}_name": "notes", noun: {"include": "always", "description": "Where"}})
    listed = {"name": "notes", "description": "Where", "priorityLevel": 500, "include": "always"}
    assert await call(f"list_{noun}s") == {f"{noun}s": [listed]}
    assert await call(f"get_{noun}", **{f"{noun}_name": "notes"}) == {noun: listed | {"text": TEXT["text"]}}
    assert (await reviewer(f"agent_list_{noun}s"))["count"] == 1
    event = (await workbench.call("list_events", kinds=["definition.changed"], limit=1))["events"][0]
    assert (event["actor"], event["data"]["summary"]) == ("ada", f"{noun} notes added")
    await refused("ALREADY_EXISTS", f"add_{noun}", **{noun: TEXT})
    wrong = {f"{noun}_name": "notes", noun: {"include": "sometimes"}}
    await refused("VALIDATION_ERROR", f"update_{noun}", **wrong)
    await call(f"delete_{noun}", **{f"{noun}_name": "notes"})
    assert await call(f"list_{noun}s") == {f"{noun}s": []}
    for name in (f"get_{noun}", f"delete_{noun}"):
        await refused("NOT_FOUND", name, **{f"{noun}_name": "notes"})


@pytest.mark.parametrize(
    ("choices", "permitted"),
    [
        ({"self_tools": "off"}, ()),
        ({"self_tools": "read"}, READING),
        ({"self_tools": "write"}, READING + CHANGING),
        ({"self_tools": "write", "tool": "read"}, READING),
        ({"definition": ""}, ()),
    ],
)
async def test_the_grant_decides_which_operations_on_its_definition_an_agent_may_call(
    reviewer: Reviewer, admit: Admit, choices: dict[str, str], permitted: tuple[str, ...]
) -> None:
    workbench = reviewer.workbench
    ada = await admit("ada", **({"definition": "reviewer"} | choices))
    for name in READING + CHANGING:
        try:
            await workbench.dispatch(ada.caller, name, {})
            code = ""
        except WorkbenchError as error:
            code = error.code
        assert (code != "FORBIDDEN") == (name in permitted), (name, code)
        assert workbench.catalogue[name].permits(ada.caller) == (name in permitted)


async def test_a_caller_without_a_definition_is_refused_with_the_reason(workbench: Workbench, admit: Admit) -> None:
    ada = await admit("ada")
    with pytest.raises(Refused, match="it has no definition of its own"):
        await workbench.dispatch(ada.caller, "list_rules", {})
    with pytest.raises(Refused, match="FORBIDDEN"):
        await workbench.call("list_rules")
