"""Tasks of agents that wait until a person approves them: large plans, and many tasks in a short time."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from tests.conftest import Admit, Admitted, Clock
from tests.services.tasks.test_ownership import spawned_by
from workbench.app import Workbench
from workbench.errors import BadInput, Conflict, NotFound, Refused
from workbench.services.tasks import approval
from workbench.state.settings import Settings

pytestmark = pytest.mark.anyio

SECRET = "ghp_" + "a1" * 18

PLAN = f"""
plan: penguins
tasks:
  - {{name: load, title: Load the data, persona: implementer, budget: 2usd, run: "curl -H 'token={SECRET}' x"}}
  - {{name: model, title: Model, persona: implementer, worktree: lab, after: [load], check: pytest -q}}
  - {{name: fit, title: Fit, persona: implementer, parent: model, budget: 3usd}}
  - {{name: plot, title: Plot, persona: reviewer, after: [model], needs: "gpu=1,vram=12G"}}
  - {{name: write, title: Write, persona: reviewer, after: [plot], on_failure: ignore}}
"""


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """Settings with which more than three tasks of an agent are many."""
    return settings.model_copy(update={"plan_asks_above_tasks": 3})


@pytest.fixture
async def workbench(migrated: Settings, clock: Clock) -> AsyncIterator[Workbench]:
    """An open project with such a clock."""
    async with Workbench.open(migrated, clock=clock) as opened:
        yield opened


@pytest.fixture
async def pam(admit: Admit) -> Admitted:
    """A planner."""
    return await admit("pam", role="planner", persona_id="planner")


@pytest.fixture
async def ada(admit: Admit) -> Admitted:
    """An implementer."""
    return await admit("ada")


Call = Callable[..., Any]


@pytest.fixture
def plans(workbench: Workbench, pam: Admitted) -> Call:
    """Calls an operation as the planner."""

    async def call(name: str, /, **arguments: Any) -> Any:
        return await workbench.dispatch(pam.caller, name, arguments)

    return call


async def claimed(workbench: Workbench, agent: Admitted) -> str | None:
    """The name, or the title, of the task that an agent can claim; it is given back."""
    task = (await workbench.dispatch(agent.caller, "claim_task", {}))["task"]
    if task is None:
        return None
    await workbench.dispatch(agent.caller, "release_task", {"task_id": task["id"]})
    return str(task["name"] or task["title"])


async def messages(plans: Call) -> str:
    """What the planner was told."""
    return "\n".join(one["text"] for one in (await plans("read_messages"))["messages"])


async def question(workbench: Workbench) -> dict[str, Any]:
    """The question about tasks that waits, brought up to date."""
    (found,) = (await workbench.call("list_approvals", kind="plan"))["approvals"]
    return dict(found)


async def states(workbench: Workbench) -> dict[str, str]:
    """The states of all tasks that have a name, those out of the plan in brackets."""
    tasks = (await workbench.call("list_tasks", limit=500))["tasks"]
    return {one["name"] if one["plan"] else f"({one['name']})": one["status"] for one in tasks}


async def test_a_large_plan_of_an_agent_begins_when_a_person_approves_it(
    workbench: Workbench, plans: Call, ada: Admitted
) -> None:
    made = await plans("create_plan", text=PLAN)
    assert made["approval_id"] is not None
    assert "A person decides first" in made["note"]
    assert await claimed(workbench, ada) is None
    again = await plans("create_plan", text=PLAN)
    assert (again["approval_id"], again["changed"], again["note"]) == (
        made["approval_id"],
        False,
        approval.note_on_waiting(made["approval_id"]),
    )
    with pytest.raises(Conflict, match=r"it waits for a person's decision \(approval \d+\)") as refused:
        await workbench.dispatch(ada.caller, "claim_task", {"task_id": made["tasks"]["load"]})
    assert refused.value.details["reasons"] == ["approval"]

    asked = await question(workbench)
    assert asked["requester"] == "pam"
    assert asked["payload"] | {"agent": "pam", "plan": "penguins", "tasks": 5} == asked["payload"]
    assert asked["payload"]["why"] == ["It is 5 tasks, more than 3."]
    assert asked["payload"]["decides"] == [
        "It is 5 tasks, more than 3.",
        "3 for implementer, 2 for reviewer; in lab; 1 with a command; 1 with a check.",
        "At most $5.00; without a limit: 3 tasks.",
    ]
    tree = await workbench.call("list_proposed_tasks", approval_id=asked["id"])
    assert [(one["name"], one["depth"]) for one in tree["tasks"]] == [
        ("load", 0),
        ("model", 0),
        ("fit", 1),
        ("plot", 0),
        ("write", 0),
    ]
    assert SECRET not in str(tree)
    assert tree["tasks"][3]["needs"] == "1 GPU with 12G"

    decided = await workbench.call("approve", approval_id=asked["id"])
    assert decided["outcome"]["tasks"] == 5
    assert await claimed(workbench, ada) == "load"
    assert "Your plan penguins: approved; 5 tasks may begin." in await messages(plans)
    with pytest.raises(Conflict) as twice:
        await workbench.call("approve", approval_id=asked["id"], choices={"without": ["write"]})
    assert twice.value.code == "ALREADY_DECIDED"
    assert set((await states(workbench)).values()) == {"pending"}


async def test_a_part_is_approved_and_what_needs_the_rest_is_left_out_with_it(
    workbench: Workbench, plans: Call, ada: Admitted
) -> None:
    made = await plans("create_plan", text=PLAN)
    choices = {
        "without": ["model"],
        "comment": "No models yet.",
        "comments": {"load": "Use the cache.", "plot": "Why?"},
    }
    decided = await workbench.call("approve", approval_id=made["approval_id"], choices=choices | {"usd": 4})
    outcome = decided["outcome"]
    assert (outcome["tasks"], outcome["left_out"], outcome["left_out_with"]) == (2, ["model"], ["fit", "plot"])
    assert await states(workbench) == {
        "load": "pending",
        "(model)": "cancelled",
        "(fit)": "cancelled",
        "(plot)": "cancelled",
        "write": "pending",
    }
    told = await messages(plans)
    for part in (
        "2 tasks may begin",
        "Left out: model.",
        "part of them: fit, plot.",
        "No models yet.",
        "On task plot: Why?",
    ):
        assert part in told
    (load,) = (await workbench.dispatch(ada.caller, "claim_task", {}))["task"]["messages"]
    assert (load["kind"], load["text"]) == ("comment", "Use the cache.")
    (budget,) = [one for one in (await workbench.call("list_budgets"))["budgets"] if one["scope"] == "plan:penguins"]
    assert (budget["usd"], budget["stated_by"]) == (4.0, "person")
    for task in ("model", "plot"):
        with pytest.raises(Refused) as refused:
            await plans("retry_task", task_id=made["tasks"][task])
        assert refused.value.code == "NOT_APPROVED"


@pytest.mark.long
async def test_what_cannot_be_approved_so_is_refused_and_changes_nothing(workbench: Workbench, plans: Call) -> None:
    made = await plans("create_plan", text=PLAN)

    async def approve(**choices: Any) -> None:
        await workbench.call("approve", approval_id=made["approval_id"], choices=choices)

    for error, code, choices in (
        (NotFound, "TASK_NOT_FOUND", {"without": ["modle"]}),
        (NotFound, "TASK_NOT_FOUND", {"comments": {"modle": "x"}}),
        (BadInput, "NOTHING_LEFT", {"without": ["load", "model", "write", "plot"]}),
        (BadInput, "INVALID_ARGUMENTS", {"without": "model"}),
        (BadInput, "INVALID_ARGUMENTS", {"with": ["model"]}),
        (BadInput, "INVALID_ARGUMENTS", {"comment": 7}),
        (BadInput, "INVALID_ARGUMENTS", {"usd": -1}),
        (BadInput, "TOO_LARGE", {"comments": {"model": "x" * 20_001}}),
    ):
        with pytest.raises(error) as refused:
            await approve(**choices)
        assert refused.value.code == code
    assert (await question(workbench))["payload"]["tasks"] == 5
    assert await messages(plans) == ""


@pytest.mark.long
async def test_a_rejected_plan_is_no_more_and_its_name_is_free(workbench: Workbench, plans: Call) -> None:
    made = await plans("create_plan", text=PLAN.replace("tasks:", "budget: 9usd\ntasks:", 1))
    await workbench.call("reject", approval_id=made["approval_id"], reason="Too much.")
    assert "rejected. What waited, 5 tasks, is cancelled.\nThe reason: Too much." in await messages(plans)
    assert (await workbench.call("list_plans"))["plans"] == []
    assert "plan:penguins" not in {one["scope"] for one in (await workbench.call("list_budgets"))["budgets"]}
    assert set((await states(workbench)).values()) == {"cancelled"}
    small = "plan: penguins\ntasks:\n  - {name: load, title: Load, persona: implementer}\n"
    assert (await plans("create_plan", text=small))["approval_id"] is None


@pytest.mark.long
async def test_tasks_one_by_one_count_together_for_a_while_and_with_those_of_spawned_planners(
    workbench: Workbench, plans: Call, admit: Admit, pam: Admitted, clock: Clock
) -> None:
    async def create(title: str, **more: Any) -> int | None:
        made = await plans("create_task", title=title, persona_id="implementer", **more)
        number: int | None = made["approval_id"]
        assert ("A person decides first" in (made["note"] or "")) == (number is not None)
        return number

    assert [await create(f"Task {n}") for n in range(3)] == [None] * 3
    waiting = await create("One too many")
    assert waiting is not None
    assert await create("And another") == waiting  # one question for all
    assert (await question(workbench))["payload"]["tasks"] == 2
    await workbench.call("approve", approval_id=waiting)
    clock.forward(1)
    assert await create("After the approval it counts anew") is None
    spawned = await spawned_by(workbench, pam, "pim")
    new = {"persona_id": "implementer"}
    answers = [
        await workbench.dispatch(spawned.caller, "create_task", {"title": f"Of pim {n}", **new}) for n in range(3)
    ]
    assert [one["approval_id"] is None for one in answers] == [True, True, False]
    clock.forward(3_601)
    assert await create("An hour later") is None


@pytest.mark.long
async def test_a_plan_that_may_spend_much_is_asked_about_and_the_person_s_own_is_not(
    workbench: Workbench, plans: Call
) -> None:
    text = "plan: rich\nbudget: 21usd\ntasks:\n  - {name: one, title: One, persona: implementer}\n"
    made = await plans("create_plan", text=text)
    assert (await question(workbench))["payload"]["why"] == ["It may spend $21.00, more than $20.00."]
    more = text + "  - {name: two, title: Two, persona: implementer}\n"
    assert (await plans("create_plan", text=more, update=True))["approval_id"] == made["approval_id"]
    assert (await question(workbench))["payload"]["tasks"] == 2
    assert (await workbench.call("create_plan", text=PLAN))["approval_id"] is None
    for number in range(9):
        await plans("create_plan", text=text.replace("rich", f"rich-{number}"))
    with pytest.raises(Conflict) as refused:
        await plans("create_plan", text=text.replace("rich", "richer"))
    assert refused.value.code == "TOO_MANY_QUESTIONS"
    assert "richer" not in {one["plan"] for one in (await workbench.call("list_plans"))["plans"]}


@pytest.mark.long
async def test_subtasks_of_what_waits_wait_with_it_and_what_is_cancelled_is_asked_about_no_more(
    workbench: Workbench, plans: Call, pam: Admitted, clock: Clock
) -> None:
    made = await plans("create_plan", text=PLAN)
    clock.forward(3_601)  # they alone would not be asked about
    below = await plans("create_subtask", parent_task_id=made["tasks"]["fit"], title="Below", run="true")
    assert below["approval_id"] == made["approval_id"]
    await plans("cancel_task", task_id=made["tasks"]["fit"])
    assert (await question(workbench))["payload"]["tasks"] == 4
    for name in ("load", "model", "plot", "write"):
        await plans("cancel_task", task_id=made["tasks"][name])
    assert (await workbench.call("list_approvals", kind="plan"))["approvals"] == []
    with pytest.raises(Refused, match="never approved"):
        await plans("retry_task", task_id=made["tasks"]["load"])
    assert (await workbench.call("retry_task", task_id=below["id"]))["approval_id"] is None  # the person decides so


@pytest.mark.long
async def test_a_plan_outlives_its_planner_and_a_person_decides_about_it_all_the_same(
    workbench: Workbench, plans: Call, ada: Admitted
) -> None:
    made = await plans("create_plan", text=PLAN)
    await workbench.call("revoke_agent", agent_id="pam", reason="Gone.")
    decided = await workbench.call("approve", approval_id=made["approval_id"], choices={"comment": "Go on."})
    assert decided["outcome"]["tasks"] == 5
    assert await claimed(workbench, ada) == "load"
    assert (await workbench.call("list_messages"))["messages"] == []
