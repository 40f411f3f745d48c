"""One truth, several machines: whose a worktree, a process and a duty is, and what is said elsewhere."""

from __future__ import annotations

import asyncio
from pathlib import Path

import psutil
import pytest

from tests import given
from tests.code_blocks import code_blocks, run_commands
from tests.conftest import admitted, git
from tests.machines.conftest import NewMachine, serving
from tests.services.worktrees.lab import ask, commit, finished
from workbench.app import Workbench
from workbench.errors import WorkbenchError
from workbench.state.settings import Settings

pytestmark = [pytest.mark.anyio, pytest.mark.postgres]


async def refused(workbench: Workbench, name: str, **arguments: object) -> WorkbenchError:
    with pytest.raises(WorkbenchError) as raised:
        await workbench.call(name, **arguments)
    return raised.value


async def test_a_worktree_belongs_to_the_machine_that_made_it_and_others_say_which(machine: NewMachine) -> None:
    async with Workbench.open(machine("alpha")) as alpha, Workbench.open(machine("beta")) as beta:
        made = await beta.call("create_worktree", name="lab")
        assert made["machine"] == "beta"
        commit(Path(made["path"]))
        (row,) = (await alpha.call("get_worktree_status"))["worktrees"]
        assert (row["machine"], row["path"]) == ("beta", "beta:.aiswarm/worktrees/lab")
        assert row["problem"].startswith("ON_ANOTHER_MACHINE: The worktree lab is on the machine beta")
        for name, more in {
            "get_worktree_diff": {},
            "get_worktree_outputs": {"path": "a.ipynb"},
            "update_worktree": {},
            "resolve_worktree": {},
            "integrate_worktree": {},
            "discard_worktree": {},
            "request_changes": {"note": "More."},
        }.items():
            error = await refused(alpha, name, worktree_name="lab", **more)
            assert (error.code, error.details["machine"]) == ("ON_ANOTHER_MACHINE", "beta"), name
        assert (await beta.call("discard_worktree", worktree_name="lab", force=True))["status"] == "discarded"


async def test_an_integration_approved_on_one_machine_is_merged_by_the_server_of_the_worktree_s(
    machine: NewMachine,
) -> None:
    there = machine("beta")
    async with serving(machine("alpha")) as alpha, serving(there) as beta:
        made = await beta.call("create_worktree", name="lab")
        commit(Path(made["path"]))
        approval_id = await ask(beta)
        decided = await alpha.call("approve", approval_id=approval_id)
        assert decided["outcome"] == {"worktree": "lab", "state": "queued", "commit": None, "machine": "beta"}
        merged = await finished(alpha, approval_id)
        assert merged["outcome"]["state"] == "integrated"
        assert git("rev-parse", "main", cwd=there.project) == merged["outcome"]["commit"]


async def test_a_task_in_a_worktree_is_claimed_only_on_its_machine(machine: NewMachine) -> None:
    async with Workbench.open(machine("alpha")) as alpha, Workbench.open(machine("beta")) as beta:
        await beta.call("create_worktree", name="lab")
        there, anywhere = [
            (await beta.call("create_task", title=title, persona_id="implementer", **where))["id"]
            for title, where in (("There", {"target_worktree": "lab"}), ("Anywhere", {}))
        ]
        agent = (await admitted(beta, "ada", worktree="lab")).caller
        here = await alpha.current(agent)
        with pytest.raises(WorkbenchError) as raised:
            await alpha.dispatch(here, "claim_task", {"task_id": there})
        assert (raised.value.code, raised.value.details["machine"]) == ("ON_ANOTHER_MACHINE", "beta")
        claimed = (await alpha.dispatch(here, "claim_task", {}))["task"]
        assert claimed["id"] == anywhere
        await alpha.dispatch(here, "complete_task", {"task_id": anywhere})
        assert (await alpha.dispatch(here, "claim_task", {}))["task"] is None
        assert (await beta.dispatch(agent, "claim_task", {}))["task"]["id"] == there


async def test_machines_without_a_name_are_told_apart_and_a_stated_name_that_is_taken_is_refused(
    machine: NewMachine,
) -> None:
    one, other = machine("", "one"), machine("", "other")
    async with Workbench.open(one) as first, Workbench.open(other) as second:
        names = [(await workbench.call("list_servers"))["machine"] for workbench in (first, second)]
    assert names[1] == f"{names[0]}-2"
    async with Workbench.open(other) as again:  # and stays what it is
        assert (await again.call("list_servers"))["machine"] == names[1]
    with pytest.raises(WorkbenchError) as raised:
        async with Workbench.open(machine(names[0], "third")):
            pass
    assert raised.value.code == "MACHINE_NAME_TAKEN"


async def test_a_machine_that_gets_another_name_keeps_its_worktrees(machine: NewMachine) -> None:
    settings = machine("beta")
    async with Workbench.open(settings) as beta:
        await beta.call("create_worktree", name="lab")
    async with Workbench.open(settings.model_copy(update={"machine": "gamma"})) as gamma:
        (row,) = (await gamma.call("list_worktrees"))["worktrees"]
        assert (row["machine"], row["path"]) == ("gamma", str(settings.worktree("lab")))


async def test_one_server_has_the_turn_and_another_takes_it_when_that_stops(machine: NewMachine) -> None:
    async with serving(machine("alpha")) as alpha:
        await has_turn(alpha, "alpha")
        async with serving(machine("beta")) as beta:
            listed = (await beta.call("list_servers"))["servers"]
            assert {(row["machine"], row["state"], row["is_this"]) for row in listed} == {
                ("alpha", "running", False),
                ("beta", "running", True),
            }
            assert not beta._ctx.has_turn
            await alpha.serving(None)
            await has_turn(beta, "beta")
            assert [row["machine"] for row in (await beta.call("list_servers"))["servers"]] == ["beta"]


async def has_turn(workbench: Workbench, machine: str) -> None:
    """Wait until the project's turn is a machine's."""
    await workbench.duties["telling that the server runs"].perform(workbench._ctx)
    listed = (await workbench.call("list_servers"))["servers"]
    assert [row["machine"] for row in listed if row["has_turn"]] == [machine]


async def test_what_is_recorded_of_a_machine_that_is_gone_can_be_given_to_another(machine: NewMachine) -> None:
    async with Workbench.open(machine("beta")) as beta:
        await beta.call("create_worktree", name="lab")
    async with Workbench.open(machine("alpha")) as alpha:
        assert (await alpha.call("forget_machine", machine="beta"))["to"] == "alpha"
        assert (await refused(alpha, "integrate_worktree", worktree_name="lab")).code == "WORKTREE_GONE"
        assert (await alpha.call("discard_worktree", worktree_name="lab"))["status"] == "discarded"


@pytest.mark.parametrize("end_workers", [False, True])
async def test_a_server_that_starts_leaves_the_agents_of_other_machines_alone(
    machine: NewMachine, end_workers: bool
) -> None:
    async with serving(machine("beta")) as beta:
        spawned = await beta.call("spawn_agent", persona_id="implementer")
        async with serving(machine("alpha"), end_workers=end_workers) as alpha:
            (agent,) = (await alpha.call("get_managed_agents"))["agents"]
            assert (agent["process"]["machine"], agent["process"]["running"]) == ("beta", True)
        assert (await beta.call("get_agent_process_info", agent_id=spawned["agent_id"]))["pid"] == spawned["pid"]
        assert psutil.pid_exists(spawned["pid"])


async def test_an_agent_of_another_machine_is_ended_by_its_server(machine: NewMachine) -> None:
    async with serving(machine("alpha")) as alpha, serving(machine("beta")) as beta:
        spawned = await beta.call("spawn_agent", persona_id="implementer")
        there = [(await each.call("list_agents"))["agents"][0]["machine"] for each in (alpha, beta)]
        assert there == ["beta", None], "an agent's machine is named on others only"
        await alpha.call("terminate_agent", agent_id=spawned["agent_id"], reason="It is late.")
        process = await beta.call("get_agent_process_info", agent_id=spawned["agent_id"])
        assert (process["running"], process["reason"]) == (False, "It is late.")
        assert not psutil.pid_exists(spawned["pid"])


async def test_what_an_attempt_on_another_machine_made_is_read_there(machine: NewMachine) -> None:
    async with serving(machine("alpha")) as alpha, serving(machine("beta")) as beta:
        await beta.call("create_worktree", name="lab")
        run = "echo done > made.txt; exit 1"
        task = await beta.call(
            "create_task", title="T", persona_id="implementer", target_worktree="lab", run=run, max_retries=0
        )
        await beta.call("spawn_agent", persona_id="implementer", assigned_worktree="lab")
        await given.reached(beta, task["id"], "failed")
        assert (await beta.call("get_attempt_diff", task_id=task["id"], attempt=1))["files"][0]["path"] == "made.txt"
        error = await refused(alpha, "get_attempt_diff", task_id=task["id"], attempt=1)
        assert (error.code, error.details["machine"]) == ("ON_ANOTHER_MACHINE", "beta")


async def test_each_machine_lends_what_it_has(machine: NewMachine) -> None:
    def with_devices(name: str, number: int) -> Settings:
        return machine(name).model_copy(update={"resources": {"licenses": {"solver": number}}})

    async with Workbench.open(with_devices("alpha", 1)) as alpha, Workbench.open(with_devices("beta", 2)) as beta:
        for workbench, number in ((alpha, 1), (beta, 2), (alpha, 1)):
            await workbench.duties["looking for resources"].perform(workbench._ctx)
            listed = (await workbench.call("list_resources"))["resources"]
            assert [row["amount"] for row in listed if row["name"] == "license:solver"] == [number]


async def test_the_commands_of_the_page_show_the_machines_and_forget_one(
    machine: NewMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Workbench.open(machine("gpu")) as gpu:
        await gpu.call("create_worktree", name="lab")
    here = machine("alpha")
    async with Workbench.open(here):
        assert here.database_url is not None
    monkeypatch.setenv("WORKBENCH_DATABASE_URL", here.database_url.conninfo)
    monkeypatch.setenv("WORKBENCH_MACHINE", here.machine)
    (block,) = (
        one for one in code_blocks() if (one.path.name, one.heading) == ("machines.md", "Which machine is which")
    )
    await asyncio.to_thread(run_commands, block.commands, here.project)
    async with Workbench.open(here) as alpha:
        (row,) = (await alpha.call("list_worktrees"))["worktrees"]
        assert row["machine"] == "alpha"
