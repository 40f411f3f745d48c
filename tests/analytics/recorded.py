"""A project with a history known to the second, for `test_questions.py` and `test_reports.py`.

Every row comes from a real operation. The clock stands still between them, so that the answers can be computed by hand
from the times below, which are seconds since the beginning.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests import given
from tests.conftest import Clock, git
from tests.services.conversations.conftest import define
from tests.services.tools.conftest import Shelf, as_agent, begin, question
from workbench.analytics.live import Live, read_closed
from workbench.app import Workbench
from workbench.model import SECOND
from workbench.ops import ANONYMOUS, Caller, Ctx
from workbench.services.processes import samples
from workbench.services.tasks import expiry
from workbench.services.tools import catalogue
from workbench.services.tools.tool import ToolInvocation, ToolOutcome
from workbench.shells.serve import Servers
from workbench.state.settings import Settings

PERSON = "Ann Lee"
BEGAN = Clock().now / SECOND
"""When it begins, in seconds since the epoch."""
PASSES, FAILS = "test -f new.txt", "exit 3"
ALPHA = """
plan: alpha
tasks:
- {name: build, title: Build, persona: implementer, worktree: lab}
- {name: check, title: Check, persona: implementer, worktree: lab, after: [build]}
- {name: review, title: Review, persona: reviewer, after: [check]}
"""
BETA = "plan: beta\ntasks:\n- {name: note, title: Note, persona: reviewer}\n"
SCRIPT = [{"say": "Four."}]


def settings_of(project: Path) -> Settings:
    """The settings that the times depend on."""
    return Settings(
        project=project,
        port=0,
        person=PERSON,
        retry_base_seconds=10.0,
        lease_seconds=120.0,
        silent_seconds=100_000.0,
        integration_gates=(PASSES, FAILS),
    )


def record(project: Path) -> Settings:
    """Make the project's history; its settings."""
    settings, shelf = settings_of(project), Shelf()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(catalogue, "SOURCES", (*catalogue.SOURCES, shelf))
        asyncio.run(_Recording(settings, shelf).run())
    return settings


def live_of(settings: Settings) -> Any:
    """`ask(query)`: the answer, as a relation; with the options of a `Question`."""
    live = Live()
    return lambda query, **options: live.answer(read_closed(live, settings), query, **options)


class _Recording:
    """The operations in order."""

    def __init__(self, settings: Settings, shelf: Shelf) -> None:
        self.settings = settings
        self.clock = Clock()
        self.began = self.clock.now
        self.agents: dict[str, Caller] = {}
        self.asked: dict[str, int] = {}
        shelf.put("hub__fetch", self._fetch)

    async def run(self) -> None:
        async with (
            Workbench.open(self.settings, clock=self.clock) as self.workbench,
            Servers(self.workbench) as servers,
        ):
            self.workbench._ctx = self.workbench._ctx._replace(random=lambda: 0.0)
            await self._alpha()
            await self._merge()
            await self._beta()
            await servers.start(0)  # answers of models need a server
            await self._chat()

    async def at(self, second: float) -> None:
        """Let time pass until a second, and end the leases and pauses that are over then."""
        self.clock.now = self.began + int(second * SECOND)
        await self.workbench.store.write(lambda tx: expiry.expire(tx, self.settings, lambda: 0.0))

    async def do(self, second: float, agent: str, name: str, **arguments: Any) -> dict[str, Any]:
        """An operation of an agent at a second."""
        await self.at(second)
        caller = await self.workbench.renewed(self.agents[agent])
        return await self.workbench.dispatch(caller, name, arguments)

    async def register(self, name: str, persona: str) -> None:
        """Register an agent, which asks for itself."""
        registration = await self.workbench.dispatch(ANONYMOUS, "register", {"name": name, "persona_id": persona})
        self.asked[name] = registration["approval_id"]
        self.agents[name] = await self.workbench.identify(registration["token"])

    async def admit(self, name: str, **choices: Any) -> None:
        await self.workbench.call("approve", approval_id=self.asked[name], choices={"agent_id": name, **choices})

    async def _alpha(self) -> None:
        """A plan with a failure, a question, a lost lease, and a reviewer who comes late."""
        await given.worktree(self.workbench)
        await self.register("ada", "implementer")
        await self.register("pia", "planner")
        await self.at(5)
        await self.admit("ada", worktree="lab", tools=["*"])
        await self.admit("pia", role="planner")
        await self.do(5, "pia", "create_plan", text=ALPHA)
        await self.do(15, "ada", "claim_task", task_id=1)
        await self.sample("tool server", "hub", 20, 0.5, 40)
        await self._ask_for_a_tool(until=27)
        await self.do(30, "ada", "fail_task", task_id=1, error_message="no such file", error_class="OSError")
        await self.at(40)
        await self.do(44, "ada", "claim_task", task_id=1)
        await self.commit(50, "new.txt")
        await self.do(60, "ada", "complete_task", task_id=1, artifacts=["report.html"])
        await self.do(70, "ada", "claim_task", task_id=2)
        ada = self.agents["ada"].agent
        await self.sample("agent", ada, 75, 1.0, 100)
        await self.sample("agent", ada, 80, 3.5, 300, 3)
        await self.sample("agent", ada, 140, 6.5, 200)
        await self.at(190)  # the lease is lost
        await self.at(200)
        await self.do(210, "ada", "claim_task", task_id=2)
        await self.commit(220, "more.txt")
        await self.do(230, "ada", "complete_task", task_id=2)
        await self.at(250)
        await self.register("rex", "reviewer")
        await self.at(280)
        await self.admit("rex")
        await self.do(285, "rex", "claim_task", task_id=3)
        await self.do(300, "rex", "complete_task", task_id=3)

    async def sample(
        self, kind: str, owner: object, second: float, cpu: float, megabytes: int, processes: int = 1
    ) -> None:
        """Record what a process has used, as sampling it would."""
        await self.at(second)
        values = {"kind": kind, "owner": str(owner), "pid": 7, "cpu_seconds": cpu, "processes": processes}
        values["memory_bytes"] = megabytes * 1_000_000
        await self.workbench.store.write(lambda tx: tx.run(samples.SQL.add, values, now=tx.now))

    async def _ask_for_a_tool(self, until: float) -> None:
        """A call of a tool of a server waits for a person, and then takes two seconds."""
        calling = begin(self.workbench, "hub__fetch", scope=as_agent(await self.workbench.renewed(self.agents["ada"])))
        approval = await question(self.workbench)
        await self.at(until)
        await self.workbench.call("approve", approval_id=approval["id"])
        await calling

    async def _fetch(self, ctx: Ctx, call: ToolInvocation) -> ToolOutcome:
        self.clock.forward(2)
        return ToolOutcome([], {})

    async def commit(self, second: float, name: str) -> None:
        """Commit a file in the worktree at a second."""
        await self.at(second)
        place = self.settings.worktrees / "lab"
        (place / name).write_text("new\n")
        git("add", "--all", cwd=place)
        date = f"@{self.clock.now // SECOND} +0000"
        environment = {**os.environ, "GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}
        who = ("-c", "user.name=ada", "-c", "user.email=ada@example.org")
        subprocess.run(["git", *who, "commit", "-qm", f"Add {name}"], cwd=place, env=environment, check=True)

    async def _merge(self) -> None:
        """One gate passes and one fails; the person merges all the same."""
        await self.at(310)
        request = await self.workbench.call("integrate_worktree", worktree_name="lab")
        await self.at(340)
        await self.workbench.call("approve", approval_id=request["approval_id"], choices={"despite_gates": True})

    async def _beta(self) -> None:
        """A plan of one task, and a registration that nobody decides."""
        await self.at(345)
        await self.workbench.call("create_plan", text=BETA)
        await self.do(350, "rex", "claim_task", task_id=4)
        await self.do(360, "rex", "complete_task", task_id=4)
        await self.at(370)
        await self.register("tom", "tester")
        await given.task(self.workbench, "Test", "tester")
        run = await self.workbench.call("start_run", name="trial")
        await self.sample("run", run["id"], 372, 2.0, 500)
        await self.sample("run", run["id"], 375, 3.5, 800, 2)

    async def _chat(self) -> None:
        """A conversation whose model reports its tokens."""
        await self.at(380)
        definition = define(self.settings, SCRIPT)
        conversation = await self.workbench.call("create_conversation", definition=definition)
        sent = await self.workbench.call("ask", conversation_id=conversation["id"], content="Two and two?")
        state = "running"
        while state == "running":
            page = await self.workbench.call("list_turns", conversation_id=conversation["id"])
            state = next(turn["state"] for turn in page["turns"] if turn["id"] == sent["answer"]["id"])
            await asyncio.sleep(0.01)
