"""`python -m tests.saved_project.make ARCHIVE`: make a project with every kind of row, and save it as an archive.

An archive is never made anew: it is what users of its day have on their disks. When the project learns something that
no archive has, this script makes a further one, under a name of its own.

Each row comes from a real operation. A process does them all, begins a worker that runs a task, and is killed while it
creates a worktree; what it leaves is saved, with the configuration of the worker. A project holds absolute paths: its
own is `PLACE`, and `test_saved_projects.py` puts it at another path of the same length, byte by byte.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tarfile
from contextlib import AsyncExitStack, closing
from pathlib import Path
from typing import Any

import httpx2
import nbformat
import papermill
import psutil
from websockets.asyncio.client import connect

from tests import given
from tests.conftest import Clock, git
from tests.services.personalities.nodes import Here, Other, forget, reject
from tests.services.personalities.two_nodes import Side, side
from workbench.app import Workbench
from workbench.git import Repository
from workbench.koi.identity import load_or_create
from workbench.model import ServerInfo
from workbench.ops import ANONYMOUS, Caller
from workbench.services.processes import samples
from workbench.shells.serve import Servers
from workbench.state.settings import Settings

PLACE = Path("/tmp/workbench-saved-00000000")
PROJECT = PLACE / "project"
WORKER = "worker.json"
"""The configuration with which the worker that runs was started, without what is of its machine."""
UNTIL_GO = "touch begun; until [ -e go ]; do sleep 0.05; done; echo made > made.txt"
SETTINGS = 'person = "Ann Lee"\nkoi_retry_base_seconds = 8.0\nintegration_gates = ["test -f README.md"]\n'
PLAN = """
plan: harvest
tasks:
- {name: build, title: Build, persona: implementer}
- {name: check, title: Check, persona: tester, after: [build]}
"""
NOTEBOOK = ["%load_ext workbench\n%workbench start", "%workbench panel", "wb.tasks()", "%workbench stop --end-workers"]


class _Making:
    """The operations in order."""

    def __init__(self, workbench: Workbench, servers: Servers, info: ServerInfo) -> None:
        self.workbench = workbench
        self.servers = servers
        self.info = info
        self.call = workbench.call
        self.agents: dict[str, Caller] = {}
        self.tokens: dict[str, str] = {}

    async def run(self, network: Side) -> None:
        await self._spaces_and_agents()
        await self._tasks()
        await self._worktrees()
        await self._definitions_and_tools()
        await self._conversation()
        await self._runs()
        await self._network(network)
        await self._worker()
        await self.call("save_view", area="tasks", name="Mine", state={"text": "mine"})

    async def do(self, agent: str, operation: str, **arguments: Any) -> dict[str, Any]:
        """An operation of an agent."""
        return await self.workbench.dispatch(await self.workbench.renewed(self.agents[agent]), operation, arguments)

    async def register(self, name: str, **choices: Any) -> int:
        """Register an agent, and admit it if there are choices; the question about it."""
        made = await self.workbench.dispatch(ANONYMOUS, "register", {"name": name, "persona_id": "implementer"})
        self.tokens[name] = made["token"]
        if choices:
            await self.call("approve", approval_id=made["approval_id"], choices={"agent_id": name, **choices})
        self.agents[name] = await self.workbench.identify(made["token"])
        return int(made["approval_id"])

    async def _spaces_and_agents(self) -> None:
        """An agent in each state, one of them under its second id."""
        persona = "---\nname: Tester\nrole: worker\n---\nTest what others have built.\n"
        await self.call("save_persona", persona_id="tester", text=persona)
        await self.call("save_persona", persona_id="tester", text=f"{persona}Be thorough.\n")
        project = await self.call("create_project", name="Atlas")
        session = await self.call("create_session", project_id=project["id"], name="Spring")
        team = await self.call("create_team", name="North", session_id=session["id"])
        await self.call("add_admission_rule", name="scouts", pattern="scout-*")
        await self.register("pending")
        await self.call("reject", approval_id=await self.register("rejected"), reason="Not known.")
        for name in ("assigned", "active", "inactive", "revoked"):
            await self.register(name, session_id=session["id"], team_id=team["id"])
        await self.call("revoke_agent", agent_id="revoked", reason="It has left.")
        await self.do("active", "heartbeat")
        async with connect(f"{self.info.ws_url}/inactive") as socket:
            await socket.recv()
            await socket.send(json.dumps(["inactive", "authenticate", {"token": self.tokens["inactive"]}]))
            await socket.recv()
        await self.call("update_agent", agent_id="active", changes={"agent_id": "ada"})
        await self.call("write", content={"title": "Soil", "content": "It is dry."}, session_id=session["id"])

    async def _tasks(self) -> None:
        """A task in each status, beside the one that the worker runs."""
        await self.call("create_plan", text=PLAN)
        for title in ("completed", "failed", "cancelled", "claimed"):
            made = await self.call("create_task", title=title, persona_id="implementer", max_retries=0)
            if title != "cancelled":
                await self.do("active", "claim_task", task_id=made["id"])
                note = {"progress_note": "Begun.", "percent_complete": 10}
                await self.do("active", "report_task_progress", task_id=made["id"], **note)
            if title == "completed":
                await self.do("active", "complete_task", task_id=made["id"], result_data={"rows": 7})
            elif title == "failed":
                await self.do("active", "fail_task", task_id=made["id"], error_message="No such file.")
            elif title == "cancelled":
                await self.call("cancel_task", task_id=made["id"], reason="No longer needed.")

    async def _worktrees(self) -> None:
        """One that is merged, one that is discarded, and one whose merge waits, with a request for changes."""
        for name in ("merged", "dropped", "review"):
            place = Path((await self.call("create_worktree", name=name))["path"])
            (place / f"{name}.txt").write_text(f"{name}\n")
            git("add", ".", cwd=place)
            git("commit", "-qm", f"Add {name}", cwd=place)
        await self.call("discard_worktree", worktree_name="dropped", reason="Not needed.", force=True)
        asked = await self.call("integrate_worktree", worktree_name="merged")
        await self.call("approve", approval_id=asked["approval_id"])
        await self.call("integrate_worktree", worktree_name="review")
        comment = {"path": "review.txt", "line": 1, "text": "Say more."}
        await self.call("request_changes", worktree_name="review", comments=[comment], note="Nearly there.")

    async def _definitions_and_tools(self) -> None:
        await self.call("agent_create", agentPath="./agents/helper", name="Helper", description="Helps.")
        server = {"command": "npx", "args": ["-y", "server"]}
        await self.call("agent_add_mcp_server", agentTarget="./agents/helper", serverName="files", config=server)
        await self.call("set_tool_permission", name="list_tasks", permission="always")
        await self.call("call_tool", name="list_tasks", arguments={})

    async def _conversation(self) -> None:
        made = await self.call("create_conversation", model="test:echo", title="Talk")
        await self.call("ask", conversation_id=made["id"], content="Two and two?")
        while (await self.call("list_turns", conversation_id=made["id"]))["turns"][-1]["state"] == "running":
            await asyncio.sleep(0.01)

    async def _runs(self) -> None:
        about = {"notebook": "panel.ipynb", "notebook_sha256": "0" * 64, "specification": {"runs": 1}}
        sweep = await self.call("start_sweep", name="grid", **about)
        run = (await self.call("start_run", name="trial", sweep_id=sweep["id"], tags=["first"]))["id"]
        await self.call("record_metrics", run_id=run, metrics={"loss": 0.5})
        await self.call("record_metrics", run_id=run, metrics={"loss": 0.25})
        await self.call("add_run_artifact", run_id=run, path="README.md")
        await self.call("end_run", run_id=run, state="completed")

    async def _network(self, network: Side) -> None:
        """A neighbour that has said something, taken something back and gone away, and others that are refused."""
        await network.workbench.call("publish_personality", name="rosa", traits={"mood": "calm"})
        await network.workbench.call("publish_personality", name="gone", traits={"mood": "calm"})
        directory = self.workbench._ctx.node.directory
        await given.until(lambda: directory.find("rosa") is not None and directory.find("gone") is not None)
        await network.workbench.call("withdraw_personality", name="gone")
        await given.until(lambda: directory.find("gone") is None)
        await self.call("set_peer_permission", peer="neighbour", permission="never", trait="mood")
        await self.call("publish_personality", name="walt", traits={"mood": "keen"})
        clock = Clock()
        clock.now = self.workbench._ctx.store.now()
        stock = Other(load_or_create(PLACE / "stock.pem", "stock"), clock)
        here = Here(self.workbench, self.workbench._ctx, clock)
        await here.receive(stock, *stock.handshake(), stock.personality("odo"))
        await here.receive(stock, forget("odo"))
        await reject(self.workbench, PLACE / "picky.pem")
        async with httpx2.AsyncClient() as client:
            await client.post(f"{self.info.url}/koi-net/events/broadcast", content=b"nothing")
        await self.call("release_personality_name", name="gone", to="picky")
        await network.servers.stop()
        await self.call("update_traits", name="walt", traits={"mood": "weary"})

    async def _worker(self) -> None:
        await self.call("create_worktree", name="lab")
        started = self.workbench._ctx.local.processes.start

        def recorded(*arguments: Any, stdin_text: str, **more: Any) -> Any:
            kept = {name: value for name, value in json.loads(stdin_text).items() if name not in ("box", "scratch")}
            (PLACE / WORKER).write_text(json.dumps(kept))
            return started(*arguments, stdin_text=stdin_text, **more)

        self.workbench._ctx.local.processes.start = recorded
        await self.call("spawn_agent", persona_id="implementer", name="walt", assigned_worktree="lab")
        await self.call("create_task", title="running", persona_id="implementer", run=UNTIL_GO, target_worktree="lab")
        while not (PROJECT / ".aiswarm" / "worktrees" / "lab" / "begun").exists():
            await asyncio.sleep(0.02)
        await samples.sample(self.workbench._ctx)


async def _make() -> None:
    """Make everything, and be killed in the middle of a step."""
    async with AsyncExitStack() as stack:
        network = await stack.enter_async_context(side(PLACE / "neighbour", "neighbour"))
        workbench = await stack.enter_async_context(Workbench.open(Settings(project=PROJECT, port=0)))
        servers = await stack.enter_async_context(Servers(workbench, end_workers=False))
        info = await servers.start(0)
        await workbench.call("join_network", name="saved", first_contact=f"{network.info.url}/koi-net")
        await _Making(workbench, servers, info).run(network)
        Repository.add_worktree = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
        await workbench.call("create_worktree", name="half")


def _notebook() -> None:
    """A notebook with the outputs of the panel, whose kernel serves the project while it runs."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in NOTEBOOK])
    notebook.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    path = PROJECT / "panel.ipynb"
    nbformat.write(notebook, path)
    papermill.execute_notebook(str(path), str(path), kernel_name="python3", cwd=str(PROJECT), progress_bar=False)


def _end_workers() -> None:
    """End the processes that the killed server left: they are not saved."""
    for process in psutil.process_iter(["environ", "cwd"]):
        is_worker = (process.info["environ"] or {}).get("WORKBENCH_PROJECT") == str(PROJECT)
        if process.pid != os.getpid() and (is_worker or Path(process.info["cwd"] or "/").is_relative_to(PLACE)):
            process.kill()


def main(archive: Path) -> None:
    """Make the project and save it."""
    assert not archive.exists(), "an archive is never made anew"
    PLACE.mkdir(mode=0o700)
    try:
        (PROJECT / ".aiswarm").mkdir(parents=True)
        (PROJECT / "README.md").write_text("# A project\n")
        (PROJECT / ".aiswarm" / "settings.toml").write_text(SETTINGS)
        git("init", "-qb", "main", cwd=PROJECT)
        git("add", "README.md", cwd=PROJECT)
        git("commit", "-qm", "Start", cwd=PROJECT)
        shutil.rmtree(PROJECT / ".git" / "hooks")
        environment = {**os.environ, "WORKBENCH_CONFIG": str(PLACE / "config"), "WORKBENCH_PROJECT": str(PROJECT)}
        environment |= {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1", "TMPDIR": str(PLACE)}
        for step, status in (("--notebook", 0), ("--operations", -signal.SIGKILL)):
            done = subprocess.run([sys.executable, "-m", "tests.saved_project.make", step], env=environment)
            assert done.returncode == status, f"{step}: {done.returncode}"
        _end_workers()
        with closing(sqlite3.connect(PROJECT / ".aiswarm" / "coordination.db")) as store:
            store.execute("PRAGMA wal_checkpoint (TRUNCATE)")  # of what is in the log, SQLite checks every byte
        with tarfile.open(archive, "w:xz") as saved:
            for name in ("project", WORKER):
                saved.add(PLACE / name, name)
    finally:
        _end_workers()
        shutil.rmtree(PLACE)


if __name__ == "__main__":
    match sys.argv[1]:
        case "--notebook":
            _notebook()
        case "--operations":
            asyncio.run(_make())
        case path:
            main(Path(path))
