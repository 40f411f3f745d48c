"""The permissions of an agent, from its row: a table of differences from a worker with all grants."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from workbench.model import Access, Capability, GrantedAccess, Level
from workbench.ops import Caller
from workbench.services.access.authentication import COMMANDS_ONLY, OWN_TRAITS, SUPERVISED, _caller

OWN = {Capability.OWN_DEFINITION, Capability.CHANGE_OWN_DEFINITION, Capability.TOOLS, Capability.OWN_PERSONALITY}
READING = frozenset({Capability.OWN_DEFINITION, Capability.TOOLS})
ROW = {
    **{"id": "a1", "assigned_agent_id": "ada", "name": "Ada", "persona_id": "tester", "assigned_worktree": "lab"},
    **{"session_id": "s1", "team_id": "t1", "access_level": "team_level", "registration_status": "assigned"},
    **{"tool": "write", "may_write": 1, "may_read": 1, "role": "worker", "rejection": None, "token_hash": "hash"},
    **{"capabilities": "{}", "definition_id": "d1", "self_tools": "write", "may_define": 1},
    "tools": f'["search", "{OWN_TRAITS}"]',
}
WORKER = Caller(
    *(Level.WORKER, "ada", "a1", "tester", "lab", "s1", "t1", Access.TEAM_LEVEL, GrantedAccess.WRITE),
    capabilities=frozenset(OWN),
    definition="d1",
    tools=frozenset({"search", OWN_TRAITS}),
)
NOBODY = {"level": Level.ANONYMOUS, "capabilities": READING}
READER = {"level": Level.READ, "tool": GrantedAccess.READ, "capabilities": READING}
UNDEFINED = frozenset({Capability.TOOLS, Capability.OWN_PERSONALITY})


@pytest.mark.parametrize(
    ("row", "caller"),
    [
        ({}, {}),
        ({"registration_status": "active"}, {"active": True}),
        ({"registration_status": "pending"}, NOBODY),
        ({"registration_status": "rejected", "rejection": "no"}, {**NOBODY, "rejection": "no"}),
        ({"registration_status": "rejected"}, {**NOBODY, "rejection": ""}),
        ({"role": "planner"}, {"level": Level.PLANNER, "capabilities": frozenset({*OWN, Capability.DEFINITIONS})}),
        ({"role": "planner", "may_define": 0}, {"level": Level.PLANNER}),
        ({"tool": "read"}, READER),
        ({"tool": "read", "may_write": 0}, READER),
        ({"may_write": 0}, {**READER, "barred": "TOOL_DISABLED"}),
        ({"may_read": 0}, {"reads": False}),
        (
            {"tool": "read", "may_read": 0},
            {**NOBODY, "tool": GrantedAccess.READ, "barred": "TOOL_DISABLED", "reads": False},
        ),
        ({"self_tools": "read"}, {"capabilities": frozenset(OWN - {Capability.CHANGE_OWN_DEFINITION})}),
        ({"self_tools": "off"}, {"capabilities": UNDEFINED}),
        ({"definition_id": None}, {"definition": None, "capabilities": UNDEFINED}),
        ({"tools": "[]"}, {"tools": frozenset(), "capabilities": frozenset(OWN - UNDEFINED)}),
        (
            {"tools": '["search"]'},
            {"tools": frozenset({"search"}), "capabilities": frozenset(OWN - {Capability.OWN_PERSONALITY})},
        ),
        ({"role": "planner", "tool": "read"}, READER),
        ({"role": "planner", "registration_status": "pending"}, NOBODY),
        ({"capabilities": f'{{"{COMMANDS_ONLY}": true}}'}, {"commands_only": True}),
        ({"capabilities": f'{{"{SUPERVISED}": true}}'}, {"supervised": True}),
    ],
)
def test_the_row_of_an_agent_decides_the_level_of_its_caller(row: dict[str, Any], caller: dict[str, Any]) -> None:
    found = _caller({**ROW, **row})
    assert found == replace(WORKER, **caller)
    assert (found.display_name, found.token_hash) == ("Ada", "hash")
