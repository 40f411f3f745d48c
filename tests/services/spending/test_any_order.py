"""Whatever happens in any order, the sums of what is spent are those of the ledger and of the attempts."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from tests.chance import SOAK
from tests.conftest import Clock, NewDatabase, with_store
from workbench.app import Workbench
from workbench.errors import WorkbenchError
from workbench.model import SECOND
from workbench.ops import OPERATOR, Caller
from workbench.rules.models.prices import Prices
from workbench.rules.models.usage import ModelUsage
from workbench.services import SERVICES
from workbench.services.access import personas
from workbench.services.spending import ledger, spent
from workbench.services.tasks import expiry
from workbench.state.settings import Settings
from workbench.store.base import Row
from workbench.store.migrate import scripts
from workbench.store.queries import Dialect, Query
from workbench.trust.project_store import open_store

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]

SUMS = Query("sums", "SELECT * FROM spent")
REQUESTS = Query("requests", "SELECT * FROM spending")
ATTEMPTS = Query("attempts", "SELECT * FROM task_attempts ORDER BY claimed_at")
TASKS = Query("tasks", "SELECT id, parent_id FROM tasks")
RUNS = Query("runs", "SELECT id, parent_id FROM runs")
FORGET = Query("forget", "DELETE FROM spent")
MIGRATION = next(
    Query("migration", f"{{{{sqlite}}}}{of_sqlite}{{{{end}}}}{{{{postgres}}}}{of_postgres}{{{{end}}}}")
    for script in scripts()
    if script.name == "073_spent"
    for of_sqlite, of_postgres in zip(*map(script.statements, Dialect), strict=True)
    if of_sqlite.lstrip().startswith("INSERT INTO spent")
)
NAMES = ("a", "b", "c", "d")
AGENTS = st.sampled_from(["ada", "rex"])
NUMBERS = st.integers(1, 6)


class Spending(RuleBasedStateMachine):
    """Two agents of a session, and a person, work, ask models, record runs and change a plan."""

    def __init__(self, new_database: NewDatabase, empty_store: Path) -> None:
        super().__init__()
        self.closing, self.clock = ExitStack(), Clock()
        self.runner = self.closing.enter_context(asyncio.Runner())
        folder = self.closing.enter_context(TemporaryDirectory())
        chosen = {"retry_base_seconds": 1, "lease_seconds": 100, **new_database()}
        self.settings = with_store(Settings(project=Path(folder), **chosen), empty_store)
        self.store = open_store(self.settings, self.clock)
        self.closing.callback(self.store.close)
        self.parents: dict[str, str | None] = dict.fromkeys(NAMES)
        self.agents: dict[str, Caller] = {}

    @initialize()
    def begin(self) -> None:
        self.runner.run(self.admitted())
        self.plan()

    async def admitted(self) -> None:
        self.workbench = Workbench(self.settings, self.store, SERVICES)
        await personas.sync(self.store, self.settings)
        await self.workbench.call("create_project", name="p")
        self.session = (await self.workbench.call("create_session", project_id="p", name="s"))["id"]
        for name, persona in (("ada", "implementer"), ("rex", "reviewer")):
            asked = await self.workbench.call("register", name=name, persona_id=persona)
            await self.workbench.call("approve", approval_id=asked["approval_id"], choices={"session_id": self.session})
            self.agents[name] = await self.workbench.identify(asked["token"])

    def tried(self, who: str | None, name: str, /, **arguments: Any) -> dict[str, Any]:
        """The result of a call; empty if it is refused."""
        caller = self.agents[who] if who else OPERATOR
        try:
            return self.runner.run(self.workbench.dispatch(caller, name, arguments))
        except WorkbenchError:
            return {}

    def rows(self, query: Query) -> list[Row]:
        return self.runner.run(self.store.read(lambda tx: tx.all(query)))

    def teardown(self) -> None:
        """In the end, a project of an older version with these rows comes to the same sums."""
        before = self.summed()
        self.runner.run(self.store.write(lambda tx: (tx.run(FORGET), tx.run(MIGRATION))))
        after = self.summed()
        self.closing.close()
        kept = ("tokens", "usd", "unpriced")  # the attempts in runs were not known
        for scope in before.keys() | after.keys():
            old, new = (sums.get(scope, dict.fromkeys(("attempts", "seconds", *kept), 0)) for sums in (before, after))
            of_run = scope.startswith("run:")
            assert all(new[name] == pytest.approx(old[name]) for name in (kept if of_run else old)), scope

    def summed(self) -> dict[str, dict[str, Any]]:
        return {
            row["scope"]: spent.amounts(row, self.clock.now) | {"unpriced": row["unpriced"]} for row in self.rows(SUMS)
        }

    def plan(self) -> None:
        persona = {"a": "implementer", "b": "reviewer", "c": "implementer", "d": "reviewer"}
        lines = [
            f"- {{name: {name}, title: t, persona: {persona[name]}, max_retries: 9"
            + (f", parent: {self.parents[name]}}}" if self.parents[name] else "}")
            for name in NAMES
        ]
        self.tried(None, "create_plan", text="plan: p\ntasks:\n" + "\n".join(lines) + "\n", update=True)

    @rule(name=st.sampled_from(NAMES), parent=st.none() | st.sampled_from(NAMES))
    def move_a_task(self, name: str, parent: str | None) -> None:
        self.parents[name] = parent
        self.plan()

    @rule(parent=NUMBERS)
    def break_down(self, parent: int) -> None:
        if len(self.rows(TASKS)) < 7:
            self.tried(None, "create_task", title="part", persona_id="implementer", parent_task_id=parent)

    @rule(agent=AGENTS, task=st.none() | NUMBERS)
    def claim(self, agent: str, task: int | None) -> None:
        self.tried(agent, "claim_task", task_id=task)

    @rule(agent=AGENTS, task=NUMBERS, how=st.sampled_from(["fail_task", "complete_task", "release_task"]))
    def end(self, agent: str, task: int, how: str) -> None:
        task = next((row["task_id"] for row in self.rows(ATTEMPTS) if row["ended_at"] is None), task)
        self.tried(agent, how, task_id=task, **({"error_message": "no"} if how == "fail_task" else {}))

    @rule(task=NUMBERS, how=st.sampled_from(["cancel_task", "retry_task"]))
    def steer(self, task: int, how: str) -> None:
        self.tried(None, how, task_id=task)

    @rule(seconds=st.sampled_from([1, 7, 101]))
    def let_time_pass(self, seconds: int) -> None:
        self.clock.forward(seconds)
        self.runner.run(self.store.write(lambda tx: expiry.expire(tx, self.settings, lambda: 0.5)))

    @rule(run=st.none() | st.integers(1, 3))
    def begin_a_run(self, run: int | None) -> None:
        self.tried(None, "start_run", name="r", parent_id=run, session_id=self.session)

    @rule(run=st.integers(1, 3))
    def end_a_run(self, run: int) -> None:
        self.tried(None, "end_run", run_id=run)

    @rule(
        agent=st.none() | AGENTS,
        task=st.none() | NUMBERS,
        counts=st.tuples(*[st.none() | st.integers(0, 10**6)] * 5),
        usd=st.none() | st.floats(0, 100),
    )
    def ask_a_model(
        self, agent: str | None, task: int | None, counts: tuple[int | None, ...], usd: float | None
    ) -> None:
        uid = self.agents[agent].agent if agent else None
        task = task if any(row["id"] == task for row in self.rows(TASKS)) else None
        request = ledger.ModelSpending(
            self.clock.now, "reported", "x", "m", ModelUsage(*counts), uid, task, cost_usd=usd
        )
        self.runner.run(self.store.write(lambda tx: ledger.add(tx, request, Prices())))

    @invariant()
    def the_sums_are_those_of_the_rows(self) -> None:
        expected: dict[str, dict[str, Any]] = {}
        tasks, runs = ({row["id"]: row["parent_id"] for row in self.rows(query)} for query in (TASKS, RUNS))
        for row in self.rows(REQUESTS):
            classes = ("input", "cached", "cache_write", "cache_write_hour", "output")
            for scope in scopes(row, tasks, runs):
                sums = expected.setdefault(
                    scope, dict.fromkeys(("tokens", "usd", "attempts", "seconds", "unpriced"), 0)
                )
                sums["tokens"] += sum(row[f"{name}_tokens"] or 0 for name in classes)
                sums["usd"] += row["cost_usd"] or 0
                sums["unpriced"] += row["cost_usd"] is None and row["input_tokens"] is not None
        worked: dict[str, list[tuple[int, int]]] = {}
        for row in self.rows(ATTEMPTS):
            for scope in scopes(row, tasks, runs):
                end = self.clock.now if row["ended_at"] is None else row["ended_at"]
                worked.setdefault(scope, []).append((row["claimed_at"], end))
        for scope, spans in worked.items():
            sums = expected.setdefault(scope, dict.fromkeys(("tokens", "usd", "attempts", "seconds", "unpriced"), 0))
            sums |= {"attempts": len(spans), "seconds": length(spans) / SECOND}
        found = self.summed()
        nothing = {scope for scope, sums in found.items() if not any(sums.values())}
        assert {scope: sums for scope, sums in found.items() if scope not in nothing} == {
            scope: sums | {"usd": pytest.approx(sums["usd"], abs=1e-8)}
            for scope, sums in expected.items()
            if any(sums.values())
        }


def scopes(row: Row, tasks: dict[int, int | None], runs: dict[int, int | None]) -> list[str]:
    """What counts a row."""
    found = ["project"]
    found += [
        f"{kind}:{row[column]}"
        for kind, column in (("plan", "plan"), ("session", "session_id"), ("persona", "persona_id"))
        if row[column]
    ]
    for kind, number, above in (("task", row["task_id"], tasks), ("run", row["run_id"], runs)):
        at = number
        while at is not None:
            found.append(f"{kind}:{at}")
            at = above[at]
    return found


def length(spans: list[tuple[int, int]]) -> int:
    """How long at least one of some spans lasts."""
    total, until = 0, 0
    for start, end in sorted(spans):
        total += max(end - max(start, until), 0)
        until = max(until, end)
    return total


def test_the_sums_hold_whatever_happens_in_any_order(new_database: NewDatabase, empty_store: Path) -> None:
    few = hypothesis.settings(max_examples=200 if SOAK else 12, stateful_step_count=25)
    run_state_machine_as_test(partial(Spending, new_database, empty_store), settings=few)
