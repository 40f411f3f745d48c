"""The rules of a definition are added, changed and deleted, by name."""

from __future__ import annotations

from typing import Any

import pytest

from tests.services.definitions.test_lifecycle import create, versions
from workbench.app import Workbench
from workbench.errors import BadInput, Conflict, NotFound

pytestmark = pytest.mark.anyio

RULE = {"name": "be-polite", "description": "Tone", "text": "Be polite.", "priorityLevel": 1, "include": "always"}


async def call(workbench: Workbench, name: str, **arguments: Any) -> dict[str, Any]:
    """Call an operation on the definition."""
    return await workbench.call(name, agentTarget="reviewer", **arguments)


async def test_a_rule_is_added_read_changed_and_deleted(workbench: Workbench) -> None:
    await create(workbench)
    await call(workbench, "agent_add_rule", rule=RULE)
    assert (await call(workbench, "agent_get_rule", ruleName="be-polite"))["rule"] == RULE
    await call(workbench, "agent_update_rule", ruleName="be-polite", rule={"text": "Be very polite."})
    listed = await call(workbench, "agent_list_rules")
    assert listed == {"rules": [RULE | {"text": "Be very polite."}], "count": 1}
    await call(workbench, "agent_delete_rule", ruleName="be-polite")
    assert (await call(workbench, "agent_get_rule", ruleName="be-polite"))["rule"] is None
    assert await versions(workbench) == [
        ("definition.created", "created"),
        ("definition.changed", "rule be-polite added"),
        ("definition.changed", "rule be-polite changed"),
        ("definition.changed", "rule be-polite deleted"),
    ]


async def test_rules_come_by_priority_level_and_then_by_name(workbench: Workbench) -> None:
    await create(workbench)
    for name, level in (("c", 500), ("b", 10), ("a", 500)):
        await call(workbench, "agent_add_rule", rule={"name": name, "text": name, "priorityLevel": level})
    listed = await call(workbench, "agent_list_rules")
    assert [rule["name"] for rule in listed["rules"]] == ["b", "a", "c"]


async def test_a_change_that_is_refused_leaves_the_rule_as_it_was(workbench: Workbench) -> None:
    await create(workbench)
    await call(workbench, "agent_add_rule", rule=RULE)
    await call(workbench, "agent_add_rule", rule={"name": "other", "text": "x"})
    with pytest.raises(Conflict, match="ALREADY_EXISTS"):
        await call(workbench, "agent_add_rule", rule={"name": "BE-polite", "text": "x"})
    with pytest.raises(Conflict, match="ALREADY_EXISTS"):
        await call(workbench, "agent_update_rule", ruleName="be-polite", rule={"name": "Other"})
    with pytest.raises(BadInput, match="VALIDATION_ERROR"):
        await call(workbench, "agent_update_rule", ruleName="be-polite", rule={"priorityLevel": 1000})
    for name in ("agent_update_rule", "agent_delete_rule"):
        with pytest.raises(NotFound, match=r"NOT_FOUND.*be-polite, other"):
            await call(workbench, name, ruleName="nothing", **({"rule": {}} if "update" in name else {}))
    assert (await call(workbench, "agent_get_rule", ruleName="be-polite"))["rule"] == RULE


async def test_a_rule_is_renamed(workbench: Workbench) -> None:
    await create(workbench)
    await call(workbench, "agent_add_rule", rule=RULE)
    await call(workbench, "agent_update_rule", ruleName="be-polite", rule={"name": "Be-Polite"})
    assert [rule["name"] for rule in (await call(workbench, "agent_list_rules"))["rules"]] == ["Be-Polite"]
