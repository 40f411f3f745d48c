"""Any arguments of an operation get a result or an error that the manual lists."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import pytest

from docs.generator.op_codes import EVERYWHERE
from docs.generator.pages import documented_codes
from tests import given
from tests.chance import SOAK, chance
from tests.conftest import Admit, nested
from workbench.app import Workbench
from workbench.errors import WorkbenchError
from workbench.ops import OPERATOR, collect
from workbench.services import SERVICES

CATALOGUE = collect(SERVICES)
GOOD: dict[str, Any] = {
    **{"status": 0, "outcome": "It is done."},
    **dict.fromkeys(("peer", "assigned_agent_id", "agent_id"), "ada"),
    **{name: [1] for name in ("task_ids", "run_ids", "approval_ids")},
    **dict.fromkeys(("task_id", "run_id", "attempt", "approval_id", "parent_task_id", "priority", "view_id"), 1),
    **dict.fromkeys(("agentTarget", "templateName", "sourceAgent"), "reviewer"),
    "version": "HEAD",
    "model": "claude-test",
    "description": "It is wrong. Mend it.",
    **dict.fromkeys(("ruleName", "rule_name"), "brief"),
    **dict.fromkeys(("referenceName", "reference_name"), "style"),
    "traits": {"mood": "calm"},
    "metrics": {"loss": 0.5},
    "notebook": "experiment.ipynb",
    **dict.fromkeys(("notebook_sha256", "sha256"), 64 * "0"),
    "bytes": 1,
    "specification": {"runs": 1},
    "path": "README.md",
    "key": "k" * 43,
    "outcome": "completed",
    "scratch": "/tmp",
    **dict.fromkeys(("program", "runner"), "claude"),
    "scope": "profile:claude",
    "machine": "beta",
    "title": "Title",
    "question": "Which?",
    "persona_id": "implementer",
    "name": "name",
    "conversation_id": "0",
    "agent_ids": ["ada"],
    "depends_on": 2,
    "pattern": "script-*",
    "plan": "x",
    "changes": {"tool": "read"},
    "tasks": [{"title": "Title", "persona_id": "implementer"}],
    "project_id": "penguins",
    "session_id": "november",
    "team_id": "readers",
    "context_id": "c",
    "content": {"title": "T"},
    "tool_id": "read",
    "call_id": "0198",
    "permission": "ask",
    "resource": "agents",
    "text": "plan: x\ntasks: []",
    "area": "tasks",
    "state": {"text": "failed"},
    "subject": "task:1",
    "kind": "task.cancelled",
    "worktree_name": "tree",
    "error_message": "It failed.",
    "personaId": "planner",
    "agentPath": "./agents/other",
    "targetPath": "./agents/copy",
    "serverName": "files",
    "rule": {"name": "brief", "text": "Be brief."},
    "reference": {"name": "style", "text": "Short sentences."},
    "toolName": "sum",
    "tool": {"name": "sum", "parameters": {"type": "object"}, "prompt": "Add."},
    "value": "0.2",
    "prompt": "You review.",
    "metadata": {"version": "1.1.0"},
    "providerType": "openai",
    "host_id": "kernel",
    "tools": [{"name": "add", "description": "", "parameters": {"type": "object"}}],
    "progress": 0.5,
    "config": {"OPENAI_API_KEY": "env://OPENAI_API_KEY"},
}


STRANGE = [
    *(None, True, -1, 2**63, 10**40, 1.5, "", "\0", "a\0b", "x" * 300, "../..", "-x", "é🐧", "*", "%s", "';--"),
    *([], ["\0"], [2**70], [[]], {}, {"\0": 1}, {"agent_id": 5}, {"agent_id": ["x"]}, {"persona_id": 7}, {"role": []}),
    *(nested(66), nested(960), [{"title": "t", "persona_id": "implementer", "dependencies": [2**63]}]),
    [{"title": "t", "persona_id": "implementer", "parent_task_id": 2**70}],
]
LIMITS = {"NO_SERVER", "TOO_MANY_PENDING"}


def strange_calls(values: Sequence[Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for operation in CATALOGUE.values():
        fields = operation.arguments.model_fields
        good = {name: GOOD[name] for name, field in fields.items() if field.is_required()}
        good |= {"wait_seconds": 0} if "wait_seconds" in fields else {}
        for name, value in product(fields, values):
            if name != "wait_seconds":
                yield operation.name, good | {name: value}


@pytest.mark.timeout(180)
@pytest.mark.anyio
async def test_strange_arguments_get_a_result_or_a_coded_error(workbench: Workbench, admit: Admit) -> None:
    planner = (await admit("pam", role="planner")).caller
    await given.task(workbench, "A task")
    values = STRANGE if SOAK else chance().sample(STRANGE, len(STRANGE) // 3)
    for caller, (name, arguments) in product((planner, OPERATOR), strange_calls(values)):
        try:
            await workbench.dispatch(caller, name, arguments)
        except WorkbenchError as error:
            assert error.status < 500 or error.code in LIMITS, (name, arguments, error)
            assert error.code in EVERYWHERE.union(documented_codes()[name]), (name, error.code, "is not in the manual")
        except Exception as error:
            pytest.fail(f"{name}({arguments}): {error!r}")
