"""Agents that are spawned on another machine, by ssh: a real SSH server, whose home is a directory of its own."""

from __future__ import annotations

import asyncio
import os
import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests import given
from tests.conftest import Admit, Served, git
from tests.elsewhere import workers_in
from tests.worker.ssh_server import ssh_server

pytestmark = pytest.mark.anyio


async def test_what_cannot_be_spawned_on_another_machine_is_refused_with_what_to_do(
    served: Served, machines: dict[str, Any], admit: Admit, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workbench = served.workbench
    machines |= {"node": {"kind": "ssh", "host": "n1"}, "other": {"kind": "ssh", "host": "n2"}}
    spawn = {"persona_id": "implementer", "on": "node"}
    error = await given.refuses("MACHINE_NOT_FOUND", workbench.call("spawn_agent", **spawn | {"on": "gpu"}))
    assert "they have: node, other" in error.message
    for stays in ({"new_worktree": True}, {"function": "a:b"}, {"task_id": 1}, {"approve": "ask"}):
        error = await given.refuses("NOT_ELSEWHERE", workbench.call("spawn_agent", **spawn | stays))
        assert error.message.startswith(next(iter(stays)))
    await given.refuses("BAD_FUNCTION", workbench.call("spawn_agent", profile="python", **spawn))
    planner = (await admit("pam", role="planner")).caller
    await given.refuses("FORBIDDEN", workbench.dispatch(planner, "spawn_agent", spawn))
    monkeypatch.setenv("PATH", "/nowhere")
    await given.refuses("SSH_NOT_HERE", workbench.call("spawn_agent", **spawn))
    assert (await workbench.call("get_managed_agents"))["agents"] == []


@pytest.mark.long
async def test_an_agent_spawned_on_another_machine_works_there_until_it_is_terminated(
    served: Served,
    machines: dict[str, Any],
    repository: Path,
    on_disk: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    workbench = served.workbench
    monkeypatch.setitem(workbench.settings.__dict__, "terminate_grace_seconds", 30.0)  # to send what is left
    with ssh_server(on_disk) as there:
        machines["node"] = there.machine()
        agent = await workbench.call("spawn_agent", persona_id="implementer", on="node", name="far")
        (shown,) = (await workbench.call("list_machines"))["machines"]
        assert (shown["name"], shown["kind"], shown["workers"]) == ("node", "ssh", 1)
        first = await given.task(workbench, "work", run="pwd > made.txt")
        task = await given.reached(workbench, first, "completed", "failed")
        (commit,) = (one.removeprefix("commit:") for one in task["artifacts"])
        assert str(there.home) in git("show", f"{commit}:made.txt", cwd=repository)
        there_is = there.machine()
        machines["node"] = there_is | {"host": "nobody@192.0.2.1"}  # nobody answers there, and nobody is asked
        (shown,) = (await workbench.call("list_machines"))["machines"]
        cores = len(os.sched_getaffinity(0))
        assert (shown["facts"]["cores"], f", {cores} core" in shown["has"]) == (cores, True)
        assert shown["used_at"] is not None
        machines["node"] = there_is
        process = await workbench.call("get_agent_process_info", agent_id=agent["agent_id"])
        assert (process["machine"], process["worktree"]) == ("node", task["attempts"][0]["worktree"])
        listed = [(await workbench.call(name))["agents"] for name in ("list_agents", "get_managed_agents")]
        assert [agent["machine"] for agents in listed for agent in agents] == ["node", "node"]
        assert any("admitted as far" in line for line in process["log_tail"])

        await workbench.call("restart_agent", agent_id=agent["agent_id"])
        second = await given.task(workbench, "long", run="cat made.txt > kept; echo begun; exec sleep 600")
        await given.until(lambda: "| begun" in Path(agent["log"]).read_text())
        (worker,) = await given.until(lambda: workers_in(there.home))
        arguments, environment = " ".join(worker.cmdline()), str(worker.environ())
        assert "wba_" not in arguments + environment
        await workbench.call("terminate_agent", agent_id=agent["agent_id"])
        await given.until(lambda: not workers_in(there.home))
        task = await given.reached(workbench, second, "pending")
        assert len(task["attempts"]) == 1
        await given.until(lambda: given.is_kept(served.workbench, second))
        diff = await workbench.call("get_attempt_diff", task_id=second, attempt=1)
        assert [file["path"] for file in diff["files"]] == ["kept"]


@pytest.mark.long
async def test_an_agent_whose_machine_cannot_be_used_ends_with_the_last_line_of_ssh_and_the_next_step(
    served: Served, machines: dict[str, Any], repository: Path, on_disk: Path
) -> None:
    says = {
        "nokey": "SSH_FAILED: .*Permission denied",
        "nohost": "SSH_FAILED: .*resolve hostname",
        "noport": "SSH_FAILED: .*forwarding failed",
        "noworkbench": "WORKBENCH_NOT_THERE: .*not found",
        "noplace": "WORKER_FAILED: .*BAD_SETTINGS",
    }
    with ssh_server(on_disk) as there:
        machines["nokey"] = there.machine(options=["-o", "PubkeyAuthentication=no"])
        machines["nohost"] = there.machine(host="unknown.invalid")
        machines["noport"] = there.machine(options=["-R", f"127.0.0.1:{there.port}:127.0.0.1:9"])
        machines["noworkbench"] = there.machine(command="no-workbench")
        machines["noplace"] = there.machine(command=f"export WORKBENCH_CONFINEMENT=x; {there.command}")
        spawn = partial(served.workbench.call, "spawn_agent", persona_id="implementer")
        agents = await asyncio.gather(*(spawn(on=name, name=name) for name in says))
        ends = await asyncio.gather(*(given.ended(served.workbench, agent["agent_id"]) for agent in agents))
    for name, process in zip(says, ends, strict=True):
        assert re.match(says[name], process["reason"])
        assert ("restart it" in process["reason"]) == (name != "noplace")
