"""A planner proposes a large plan through every shell, and a person approves a part of it through the same one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.story.shells import SHELLS, Refusal, Shell

if TYPE_CHECKING:
    from tests.conftest import Admit, Command, Served, Talks

pytestmark = [pytest.mark.anyio, pytest.mark.long]

TASKS = "".join(f"  - {{name: t{n}, title: Task {n}, persona: implementer, after: [t{n - 1}]}}\n" for n in range(1, 21))
PLAN = "plan: large\ntasks:\n  - {name: t0, title: Task 0, persona: implementer}\n" + TASKS


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest, served: Served, command: Command, talk: Talks) -> Shell:
    """Each shell in turn."""
    return SHELLS[request.param](served, command, talk)


async def answered(shell: Shell, token: str, name: str, **arguments: Any) -> dict[str, Any]:
    """What an operation answers, which is no error."""
    outcome = await shell.call(token, name, **arguments)
    assert not isinstance(outcome, Refusal), outcome
    return outcome


async def test_a_large_plan_waits_and_a_part_of_it_is_approved(shell: Shell, served: Served, admit: Admit) -> None:
    pam, ada = (await admit("pam", role="planner")).token, (await admit("ada")).token
    person = served.workbench.operator_token
    made = await answered(shell, pam, "create_plan", text=PLAN)
    assert "A person decides first" in made["note"]
    assert (await answered(shell, ada, "claim_task"))["task"] is None
    refused = await shell.call(pam, "approve", approval_id=made["approval_id"])
    assert isinstance(refused, Refusal)
    assert refused.code == "FORBIDDEN"

    tree = await served.workbench.call("list_proposed_tasks", approval_id=made["approval_id"])
    assert [task["name"] for task in tree["tasks"]] == [f"t{n}" for n in range(21)]
    choices = {"without": ["t18"], "comment": "Shorter.", "comments": {"t0": "Begin small."}}
    outcome = (await answered(shell, person, "approve", approval_id=made["approval_id"], choices=choices))["outcome"]
    assert (outcome["tasks"], outcome["left_out_with"]) == (18, ["t19", "t20"])
    (told,) = (await answered(shell, pam, "read_messages"))["messages"]
    assert "Comment: Shorter.\nOn task t0: Begin small." in told["text"]
    (comment,) = (await answered(shell, ada, "claim_task"))["task"]["messages"]
    assert comment["text"] == "Begin small."
