"""A copy of a project that is in use: its operations, buttons, notebooks and clients leave the original alone."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from kernel_ext.hosting.host import KernelHost
from kernel_ext.panels.request_handler import RequestHandler
from tests import given
from tests.conftest import Admit, Served, git
from tests.kernel.conftest import started
from tests.panels.front_end import FrontEnd
from tests.project.copies import WAYS, contents, copied
from tests.services.definitions.rows import GOOD, PREPARATION
from tests.services.processes.running import serving
from workbench.app import Workbench
from workbench.client.discovery import find_server
from workbench.client.http import HttpClient
from workbench.client.project_server import ProjectServer
from workbench.errors import WorkbenchError
from workbench.ops import collect
from workbench.services import SERVICES
from workbench.state.settings import Settings
from workbench.trust import state_directory

pytestmark = pytest.mark.anyio

KEY = "k" * 40
PLAN = "plan: made\ntasks: [{name: t, title: T, persona: implementer}]"
NAMED: dict[str, Any] = {
    **{"task_id": 1, "parent_task_id": 1, "depends_on": 2, "attempt": 1, "key": KEY, "approval_id": 1},
    **{"agent_id": "walt", "assigned_agent_id": "ada", "agent_ids": ["ada"], "worktree_name": "lab", "name": "made"},
    **{"persona_id": "implementer", "title": "Made", "text": PLAN, "content": "Made", "approval_ids": [1]},
    **{"config": {"command": "true"}, "permission": "ask", "pattern": "made*", "subject": "task:1", "priority": 1},
    **{"rule": {"name": "made", "text": "Made."}, "reference": {"name": "made", "text": "Made."}, "path": "README.md"},
    **{"rule_name": "made", "reference_name": "made", "error_message": "It failed.", "outcome": "failed"},
    **{"metrics": {"loss": 1.0}, "notebook": "n.ipynb", "notebook_sha256": "0" * 64, "area": "tasks", "state": {}},
    **{"host_id": "host", "tools": [], "traits": {"mood": "curious"}, "progress": 0.5, "kind": "context"},
    **{"tasks": [{"title": "Made", "persona_id": "implementer"}], "changes": {"name": "Ada"}, "scratch": "made"},
}
"""What stands for the arguments that operations require."""
OPTIONAL = {
    **{"wait_seconds": 0, "force": True, "delete_branch": True, "note": "Shorter.", "model": "test:echo"},
    "persona_id": "implementer",
}
"""The arguments that are given to every operation which has them."""
OWN: dict[str, dict[str, Any]] = {
    **GOOD,
    "spawn_agent": {"persona_id": "implementer", "name": "walt", "assigned_worktree": "spare"},
    "claim_task": {"task_id": 1},
    "discard_worktree": {"worktree_name": "spare"},
    "update_traits": {"name": "made", "traits": {"mood": "calm"}},
    "write": {"content": {"title": "Made"}, "session_id": "made"},
}
BEGIN = ("join", "create", "spawn", "claim", "start", "save", "write", "add")
"""How the names of those operations begin which make what the others need; their order."""
END = (
    *("fail", "release", "cancel", "retry", "approve", "leave", "withdraw", "restart", "terminate"),
    *("deregister", "remove", "uninstall", "delete", "discard"),
)
"""And of those that take it away."""
ACCEPTED = 115
"""How many calls have an effect in the copy, at least: what is refused shows little."""


async def in_use(workbench: Workbench) -> str:
    """Prepare what the operations are tried on, besides the worktrees; the token of an agent."""
    for name, arguments in PREPARATION:
        await workbench.call(name, **arguments)
    registration = await workbench.call("register", name="ada", persona_id="implementer")
    choices = {"agent_id": "ada", "definition": "Reviewer", "self_tools": "write"}
    await workbench.call("approve", approval_id=registration["approval_id"], choices=choices)
    for title in ("First", "Second"):
        await given.task(workbench, title)
    return str(registration["token"])


def when(name: str) -> tuple[object, ...]:
    """The order in which the operations are tried: what others need is made first, and is deleted last."""
    verb, _, noun = name.removeprefix("agent_").partition("_")
    if verb in BEGIN:
        return -1, BEGIN.index(verb), name
    verb = "delete" if verb in ("restore", "revoke") else verb
    return (END.index(verb) + 1, not noun, noun, name) if verb in END else (0, name)


def ids(name: str, result: dict[str, Any]) -> dict[str, Any]:
    """The ids of what an operation has made, by the names of the parameters that take them."""
    noun = {f"{name.partition('_')[2]}_id": result["id"]} if "id" in result else {}
    return noun | {key: value for key, value in result.items() if key == "context_id"}


@pytest.mark.long
@pytest.mark.timeout(600)
async def test_no_operation_in_a_copy_changes_the_original(original: Path, tmp_path: Path) -> None:
    async with Workbench.open(Settings(project=original, port=0)) as workbench:
        token = await in_use(workbench)
    project = copied(original, tmp_path / "other")
    state_directory.adopt(project)
    before, changed, accepted = contents(original), {}, set()
    operations = collect(SERVICES)
    order = sorted(operations, key=when)
    async with serving(Settings(project=project, port=0)) as other:
        ada = await other.workbench.identify(token)

        async def call(name: str, /, **arguments: Any) -> dict[str, Any]:
            """Call an operation as the person; what only agents may do, as ada."""
            try:
                return await other.workbench.call(name, **arguments)
            except WorkbenchError as error:
                if error.code not in ("AGENT_ONLY", "FORBIDDEN"):
                    raise
                return await other.workbench.dispatch(ada, name, arguments)

        named = dict(NAMED)
        for name in order:
            optional = {field: value for field, value in OPTIONAL.items() if field in operations[name].parameters}
            required = operations[name].input_schema.get("required", ())
            arguments = OWN.get(name) or {field: named.get(field, "made") for field in required}
            try:
                result = await call(name, **optional | arguments)
                accepted |= set() if operations[name].reads else {name}
                named = ids(name, result) | named
            except WorkbenchError as error:
                assert str(original) not in error.message, name
            if (now := contents(original)) != before:
                changed[name] = sorted(path for path in before.keys() | now.keys() if before.get(path) != now.get(path))
                before = now
    assert changed == {}
    assert len(accepted) >= ACCEPTED


@contextmanager
def host_project(project: Path) -> Iterator[KernelHost]:
    """The servers of a project, in a thread of their own, as a notebook has them."""
    host = KernelHost(Settings(project=project))
    host.start(0)
    try:
        yield host
    finally:
        host.stop()


def files_kept(project: Path) -> list[dict[str, object]]:
    """The files that its own server leaves unchanged while nothing is asked of it."""
    return [contents(project / name) for name in (".git/refs", ".aiswarm/worktrees", ".aiswarm/repositories")]


def is_integrated(project: Path) -> bool:
    return git("log", "-1", "--format=%s", cwd=project) == "Integrate lab"


@pytest.mark.long
async def test_the_buttons_of_a_copys_panel_act_on_the_copy(original: Path, tmp_path: Path) -> None:
    with host_project(original) as host:
        project, page = copied(original, tmp_path / "other"), FrontEnd()
        state_directory.adopt(project)
        before = files_kept(original)
        with host_project(project) as other:
            assert (other.attached, other.info == host.info) == (False, False)
            buttons = RequestHandler(other, page.take)
            discard = {"worktree_name": "spare", "force": True, "delete_branch": True}
            for at, (op, arguments) in enumerate((("approve", {"approval_id": 1}), ("discard_worktree", discard)), 1):
                buttons.take({"kind": "action", "request": str(at), "op": op, "arguments": arguments})
                page.until(lambda at=at: len(page.answers()) == at)  # type: ignore[misc]
            assert [answer["ok"] for answer in page.answers()] == [True, True]
            given.wait_until(lambda: is_integrated(project), "it is integrated")
        assert files_kept(original) == before
        assert [approval["id"] for approval in host.call("list_approvals")["approvals"]] == [1]
        assert host.running


@pytest.mark.long
@pytest.mark.timeout(120)
async def test_a_notebook_in_a_copy_serves_the_copy(original: Path, tmp_path: Path) -> None:
    (home := tmp_path / "home").mkdir()
    with host_project(original) as host:
        project = copied(original, tmp_path / "other")
        before = files_kept(original)
        with started(home, cwd=project) as kernel:
            assert "STATE_NOT_TRUSTED" in kernel.error("%workbench start --port 0")
            state_directory.adopt(project)
            assert kernel.run("%workbench start --port 0").startswith("Workbench serves other at ")
            assert host.info is not None
            shown = kernel.run(f"print(wb.server.pid == {host.info.pid}, wb.settings.project)")
            assert shown.strip() == f"False {project}"
            kernel.run("wb.approvals[1].approve()")
            kernel.run("%workbench discard spare --force")
            kernel.run('wb.call("create_task", title="made in the copy", persona_id="implementer")')
            given.wait_until(lambda: is_integrated(project), "it is integrated")
            kernel.run("%workbench stop")
        assert files_kept(original) == before
        assert host.call("list_tasks")["tasks"] == []
        assert [approval["id"] for approval in host.call("list_approvals")["approvals"]] == [1]


async def test_clients_of_a_copy_reach_the_server_of_the_copy_or_none(
    served: Served, admit: Admit, tmp_path: Path
) -> None:
    original, ada = served.workbench.settings.project, await admit("ada")
    project = copied(original, tmp_path / "other")
    state_directory.adopt(project)
    shutil.copy2(served.workbench.settings.server_file, project / ".aiswarm")  # of the original: laid there later
    server = ProjectServer.at(served.info.url, project)
    assert (server.is_away(), server.nonce(), await server.find()) == (True, None, None)
    assert await find_server(project / ".aiswarm" / "server.json") is None
    server_info = await find_server(served.workbench.settings.server_file)
    assert server_info is not None
    async with serving(Settings(project=project, port=0)) as other:
        assert other.info.url != served.info.url
        assert ProjectServer.at(served.info.url, project).url == other.info.url
        theirs = await find_server(project / ".aiswarm" / "server.json")
        assert theirs is not None
        for url, token in ((other.info.url, server_info.operator_token), (served.info.url, theirs.operator_token)):
            async with HttpClient(url, token) as client:
                await given.refuses("INVALID_TOKEN", client.call("create_team", name="crew"))
        async with HttpClient(other.info.url, ada.token) as client:
            await client.call("deregister_agent")
        agents = [(await one.workbench.call("list_agents"))["agents"] for one in (served, other)]
        assert [agent["registration_status"] for found in agents for agent in found] == ["assigned", "inactive"]


@pytest.mark.parametrize("way", ["copied", "moved"])
async def test_a_copy_is_no_second_node_of_the_network(served: Served, way: str, tmp_path: Path) -> None:
    original = served.workbench.settings.project
    node = (await served.workbench.call("join_network", name="lab"))["rid"]
    if way == "moved":
        await served.servers.stop()
    project = WAYS[way](original, tmp_path / "other")
    state_directory.adopt(project)
    async with serving(Settings(project=project, port=0)) as other:
        network = await other.workbench.call("get_network")
        assert (network["joined"], network["is_online"]) == (True, way == "moved")
        if way == "copied":
            assert f"This project is a copy of {original}" in network["problem"]
            await given.refuses("KOI_NODE_COPIED", other.workbench.call("join_network", name="lab"))
            await other.workbench.call("leave_network")
            network = await other.workbench.call("join_network", name="lab")
        assert (network["is_online"], network["rid"] == node) == (True, way == "moved")


@pytest.mark.long
async def test_an_mcp_client_of_a_copy_is_told_that_nothing_serves_it(
    served: Served, admit: Admit, tmp_path: Path
) -> None:
    ada, project = await admit("ada"), copied(served.workbench.settings.project, tmp_path / "other")
    state_directory.adopt(project)
    env = {**os.environ, "WORKBENCH_PROJECT": str(project), "WORKBENCH_TOKEN": ada.token}
    command = [sys.executable, "-m", "workbench.cli", "mcp"]
    ran = await asyncio.to_thread(subprocess.run, command, env=env, input="", capture_output=True, text=True)
    assert ran.stderr.startswith(f"NO_SERVER: No Workbench server answers: none runs in {project}.")
