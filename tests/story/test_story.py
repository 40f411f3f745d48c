"""One story through every shell, compared with one transcript; and an operation that is added in one place."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Annotated, Any

import pytest
from pydantic import Field

from tests.story.shells import (
    SHELLS,
    CliShell,
    McpShell,
    Outcome,
    PythonShell,
    Refusal,
    RestShell,
    Shell,
    WebSocketShell,
)
from workbench import Ctx, Level, Settings, Wire, Workbench, op
from workbench.client import HttpClient, McpClient
from workbench.services import SERVICES

if TYPE_CHECKING:
    from tests.conftest import Admit, Command, Served, Talks

pytestmark = pytest.mark.anyio


class Greeting(Wire):
    """A greeting of somebody."""

    text: str
    by: str


@op(allow=Level.READ, reads=True)
async def greet(ctx: Ctx, name: Annotated[str, Field(min_length=1)], times: int = 1) -> Greeting:
    """Greet somebody, once or more often."""
    return Greeting(text=" ".join([f"Hello {name}!"] * times), by=ctx.caller.name)


@op(allow=Level.READ, reads=True)
async def stumble(ctx: Ctx) -> Greeting:
    """Fail in a way that nobody has thought of."""
    raise RuntimeError("a secret of the house")


@pytest.fixture
async def workbench(migrated: Settings) -> AsyncIterator[Workbench]:
    """An open project that has the operations above."""
    async with Workbench.open(migrated, services=(*SERVICES, sys.modules[__name__])) as opened:
        yield opened


@pytest.fixture(params=[pytest.param(name, marks=[pytest.mark.long] * (name == "cli")) for name in SHELLS])
def shell(request: pytest.FixtureRequest, served: Served, command: Command, talk: Talks) -> Shell:
    """Each shell in turn."""
    return SHELLS[request.param](served, command, talk)


def empty(*names: str) -> dict[str, Any]:
    """Fields of which nothing is known yet."""
    return dict.fromkeys(names)


LINE: dict[str, Any] = {
    "id": 1,
    "title": "Zähle die Pinguine 🐧",
    "status": "pending",
    "persona_id": "implementer",
    "priority": 700,
    "progress": 0,
    "attempt": 0,
    "retry_count": 0,
    "blocked": False,
    "overdue": False,
    **empty("due", "worktree", "plan", "name", "parent_task_id", "session_id", "assigned_agent_id", "not_before"),
    **empty("error_message", "evidence"),
}
TASK: dict[str, Any] = LINE | {
    "description": "",
    "metadata": {"island": "Dream"},
    "created_by": "operator",
    "created_at": "<time>",
    "max_retries": 2,
    "lease_seconds": 120.0,
    "on_failure": "block",
    **{"dependencies": [], "blocked_by": [], "no_retry": [], "artifacts": [], "attempts": []},
    **empty(
        "run",
        "check",
        "done_when",
        "approval_id",
        "needs",
        "waits_for",
        "context_ref",
        "claimed_at",
        "started_at",
        "completed_at",
        "lease_expires_at",
        "reserved_for",
    ),
    **empty("result_data"),
}
ATTEMPT: dict[str, Any] = {
    **{"attempt": 1, "agent_id": "ada", "claimed_at": "<time>"},
    **empty("definition_id", "definition_hash", "prompt_hash", "include"),
    **empty("started_at", "ended_at", "outcome", "error_class", "error_message"),
    **empty("worktree", "base_commit", "waits_for", "finishing", "kept", "problem"),
    **empty("profile", "input_tokens", "output_tokens", "cost_usd", "check", "leased"),
}
CREATED = TASK | {"note": "Task 1 has no command (run): only an LLM agent or a person can do it.", "warnings": []}
REGISTERED = {
    "agent_id": "pending_<uuid>",
    "status": "pending",
    "token": "<token>",
    "approval_id": 1,
    "message": "Registration successful. Waiting for human assignment of permanent agent_id.",
}
HELD = {"status": "claimed", "assigned_agent_id": "ada", "attempt": 1}
DONE = {"status": "completed", "assigned_agent_id": "ada", "attempt": 1, "progress": 100, "evidence": "said"}
RESULT = {"penguins": 344, "names": ["Ánh", "\u2028"], "share": 0.5}

TRANSCRIPT: dict[str, Outcome] = {
    "register": REGISTERED,
    "claim before approval": Refusal("NOT_ASSIGNED", 403),
    "approve": {
        "agent_id": "ada",
        "status": "assigned",
        "granted": {
            **{"name": "Ada", "persona_id": "implementer", "role": "worker", "tool": "write"},
            **{"access_level": "self_only", "session": None, "team": None, "worktree": None},
            **{"expires_at": None, "definition": None, "self_tools": "write", "definitions": False, "tools": []},
        },
    },
    "register in vain": REGISTERED | {"approval_id": 2},
    "claim when rejected": Refusal("REJECTED", 403, "Full house"),
    "ask why": {
        **{"agent_id": "pending_<uuid>", "status": "rejected", "tool": "write", "role": "worker"},
        **{"persona_id": None, "session_id": None, "reason": "Full house"},
        **{"worktree": None, "worktree_path": None},
        "message": "Your registration was rejected: Full house. Ask the operator before you register again.",
    },
    "create": CREATED,
    "create another's": CREATED
    | {"note": "Task 2 has no command (run): only an LLM agent or a person can do it.", "warnings": []}
    | {"id": 2, "title": "Review", "persona_id": "reviewer", "priority": 500, "metadata": {}},
    "claim": {
        "task": TASK
        | HELD
        | {"claimed_at": "<time>", "lease_expires_at": "<time>", "attempts": [ATTEMPT], "messages": []},
        "worktree_path": None,
        "variables": {},
    },
    "wrong type": Refusal("INVALID_ARGUMENTS", 400),
    "missing field": Refusal("INVALID_ARGUMENTS", 400),
    "unknown field": Refusal("INVALID_ARGUMENTS", 400),
    "unknown operation": Refusal("UNKNOWN_OPERATION", 404),
    "unknown task": Refusal("TASK_NOT_FOUND", 404),
    "claim another's": Refusal("TASK_NOT_CLAIMABLE", 409),
    "complete another's": Refusal("LEASE_LOST", 409),
    "approve without being a person": Refusal("FORBIDDEN", 403),
    "ask without a token": Refusal("TOKEN_REQUIRED", 401),
    "ask with a wrong token": Refusal("INVALID_TOKEN", 401),
    "complete": LINE | DONE | {"takes_effect": "now", "open_subtasks": []},
    "complete twice": Refusal("LEASE_LOST", 409),
    "read back": TASK
    | DONE
    | {
        "claimed_at": "<time>",
        "started_at": "<time>",
        "completed_at": "<time>",
        "result_data": RESULT,
        "artifacts": ["report.md"],
        "attempts": [ATTEMPT | {"started_at": "<time>", "ended_at": "<time>", "outcome": "completed"}],
    },
}

DIFFERENCES: dict[type[Shell], dict[str, Outcome]] = {
    PythonShell: {},
    RestShell: {},
    WebSocketShell: {
        # Spec 1: what is not known is echoed.
        "unknown operation": {
            "type": "echo",
            "original": {"agent": "story", "action": "paint_task", "data": {"task_id": 1}},
        },
        # A rejected agent cannot authenticate, and learns why from that.
        "ask why": Refusal("REJECTED", 403, "Full house"),
    },
    McpShell: {
        # The request is refused with HTTP 401 before it is MCP; the library's client says no more than this.
        "ask with a wrong token": Refusal("Server returned an error response"),
    },
    CliShell: {
        # Whoever sits at the terminal without a token is the operator.
        "ask without a token": {
            **{"agent_id": "operator", "level": "operator", "tool": "write", "access_level": "session_level"},
            **{"persona_id": None, "session_id": None, "team_id": None, "worktree": None},
            **{"worktree_path": None, "supervised": False},
        },
    },
}
"""All that may differ from shell to shell."""


def expected(shell: Shell) -> dict[str, Outcome]:
    return TRANSCRIPT | DIFFERENCES[type(shell)]


VARIES = {
    r"wba_[\w-]{43}": "<token>",
    r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}": "<uuid>",
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z": "<time>",
}


def without_what_varies(outcome: Outcome) -> Outcome:
    if isinstance(outcome, Refusal):
        return outcome
    text = json.dumps(outcome)
    for pattern, name in VARIES.items():
        text = re.sub(pattern, name, text)
    plain: dict[str, Any] = json.loads(text)
    return plain


async def tell(shell: Shell, operator: str) -> dict[str, Outcome]:
    """Live the story; what each step answered."""
    told: dict[str, Outcome] = {}

    async def step(what: str, token: str | None, operation: str, /, **arguments: Any) -> Any:
        told[what] = await shell.call(token, operation, **arguments)
        return told[what]

    made = await step("register", None, "register", name="Ada", persona_id="implementer", capabilities={"q": [1]})
    ada = made["token"]
    await step("claim before approval", ada, "claim_task")
    decided = await shell.call(operator, "approve", approval_id=made["approval_id"], choices={"agent_id": "ada"})
    assert isinstance(decided, dict)
    told["approve"] = decided["outcome"]
    eve = await step("register in vain", None, "register", name="Eve")
    await shell.call(operator, "reject", approval_id=eve["approval_id"], reason="Full house")
    await step("claim when rejected", eve["token"], "claim_task")
    await step("ask why", eve["token"], "registration_status")
    task = {"title": LINE["title"], "persona_id": "implementer", "priority": 700, "metadata": {"island": "Dream"}}
    await step("create", operator, "create_task", **task)
    await step("create another's", operator, "create_task", title="Review", persona_id="reviewer")
    await step("claim", ada, "claim_task")
    await asyncio.gather(
        step("wrong type", ada, "get_task", task_id="one"),
        step("missing field", ada, "get_task"),
        step("unknown field", ada, "get_task", task_id=1, colour="red"),
        step("unknown operation", ada, "paint_task", task_id=1),
        step("unknown task", ada, "get_task", task_id=999),
        step("claim another's", ada, "claim_task", task_id=2),
        step("complete another's", ada, "complete_task", task_id=2),
        step("approve without being a person", ada, "approve", approval_id=made["approval_id"]),
        step("ask without a token", None, "whoami"),
        step("ask with a wrong token", f"wba_{'x' * 43}", "whoami"),
    )
    await step("complete", ada, "complete_task", task_id=1, result_data=RESULT, artifacts=["report.md"])
    await asyncio.gather(
        step("complete twice", ada, "complete_task", task_id=1),
        step("read back", ada, "get_task", task_id=1),
    )
    return {what: without_what_varies(outcome) for what, outcome in told.items()}


async def test_the_story_is_the_same_through_every_shell(shell: Shell, served: Served) -> None:
    told = await tell(shell, served.workbench.operator_token)
    assert {what: told[what] for what in TRANSCRIPT} == expected(shell)
    assert told.keys() == TRANSCRIPT.keys()


async def test_an_operation_in_one_file_is_callable_through_every_shell(
    shell: Shell, served: Served, admit: Admit
) -> None:
    ada = await admit("ada")
    assert await asyncio.gather(
        shell.call(ada.token, "greet", name="Grace", times=2),
        shell.call(served.workbench.operator_token, "greet", name="Grace"),
        shell.call(ada.token, "greet", name=""),
    ) == [
        {"text": "Hello Grace! Hello Grace!", "by": "ada"},
        {"text": "Hello Grace!", "by": "operator"},
        Refusal("INVALID_ARGUMENTS", 400),
    ]
    if isinstance(shell, PythonShell):
        with pytest.raises(RuntimeError):
            await shell.call(ada.token, "stumble")
    else:
        assert await shell.call(ada.token, "stumble") == Refusal("INTERNAL_ERROR", 500)
    assert await shell.call(ada.token, "greet", name="Grace") == {"text": "Hello Grace!", "by": "ada"}


async def test_an_operation_of_one_file_is_described_wherever_operations_are(served: Served, admit: Admit) -> None:
    ada = await admit("ada")
    described = served.workbench.catalogue["greet"]
    assert described.summary == "Greet somebody, once or more often."
    async with McpClient(served.info.mcp_url, ada.token) as mcp, HttpClient(served.info.url, ada.token) as http:
        assert "greet" in await mcp.tools()
        listed = (await http._http.get("/api/ops")).json()["data"]["operations"]
    assert {"name": "greet", "help": described.help, "input_schema": described.input_schema} in listed
