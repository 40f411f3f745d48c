"""Any order of everything that can happen to tasks under leases."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from functools import partial
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)

from tests.chance import SOAK
from tests.conftest import Clock, NewDatabase, with_store
from tests.services.tasks.leases.calls import HOLDING
from workbench.app import Workbench
from workbench.errors import WorkbenchError
from workbench.model import SECOND
from workbench.ops import OPERATOR, Caller
from workbench.services import SERVICES
from workbench.services.access import personas
from workbench.services.tasks import attempts, expiry
from workbench.state.settings import Settings
from workbench.store.queries import Query
from workbench.trust.project_store import open_store

pytestmark = pytest.mark.anyio


# Any order of all of it


LINES = Query(
    "lines",
    """
    SELECT s.*, t.max_retries, t.parent_id, t.on_failure, t.no_retry,
        a.assigned_agent_id AS holder, r.assigned_agent_id AS only_for
    FROM task_status s JOIN tasks t ON t.id = s.task_id
    LEFT JOIN agents a ON a.id = s.assigned_agent_id LEFT JOIN agents r ON r.id = s.reserved_for
    ORDER BY s.task_id
    """,
)

ATTEMPTS = Query(
    "attempts",
    """
    SELECT x.*, a.assigned_agent_id AS agent FROM task_attempts x JOIN agents a ON a.id = x.agent_id
    ORDER BY x.task_id, x.attempt
    """,
)

EVENTS = Query("events", "SELECT kind, subject FROM events WHERE subject LIKE 'task:%' ORDER BY id")

EDGES = Query("edges", "SELECT task_id, depends_on FROM task_dependencies")

NONE: frozenset[str] = frozenset()

LIFE: dict[str, tuple[frozenset[str], str]] = {
    "created": (NONE, "pending"),
    "claimed": (frozenset({"pending"}), "claimed"),
    "started": (frozenset({"claimed"}), "in_progress"),
    "completed": (frozenset({"in_progress"}), "completed"),
    **{kind: (frozenset({"claimed", "in_progress"}), "pending") for kind in ("released", "retried", "expired")},
    "failed": (frozenset({"claimed", "in_progress"}), "failed"),
    "cancelled": (frozenset({"pending", "claimed", "in_progress"}), "cancelled"),
    "revived": (frozenset({"failed", "cancelled"}), "pending"),
}
"""What an event says of a task: where it was, and where it is now. Others change nothing of that."""

ENDS = ("completed", "failed", "cancelled")

DEAD = ("failed", "cancelled")

NAMES = st.sampled_from(["ada", "bob", "rex"])

PERSONA_OF = {"ada": "implementer", "bob": "implementer", "rex": "reviewer"}

MOST = 8
"""Tasks there are at most: so few that they meet."""

TASKS = st.integers(1, MOST)


Line = dict[str, Any]


class Leases(RuleBasedStateMachine):
    """Three agents, a person and a jumping clock do what they like to tasks in a real store."""

    claims: Bundle[tuple[str, int, int]] = Bundle("claims")

    def __init__(self, new_database: NewDatabase, empty_store: Path) -> None:
        super().__init__()
        self.closing = ExitStack()
        self.clock = Clock()
        self.runner = self.closing.enter_context(asyncio.Runner())
        folder = self.closing.enter_context(TemporaryDirectory())
        chosen = {"retry_base_seconds": 10, "retry_cap_seconds": 30, "lease_seconds": 100, **new_database()}
        self.settings = with_store(Settings(project=Path(folder), **chosen), empty_store)
        self.store = open_store(self.settings, self.clock)
        self.closing.callback(self.store.close)
        self.agents = self.runner.run(self.begin())
        self.ended: dict[int, Line] = {}
        self.before: list[Line] = []
        self.told_to_cancel: set[int] = set()

    async def begin(self) -> dict[str, Caller]:
        """Without `Workbench.open`: nothing happens but what the rules do."""
        self.workbench = Workbench(self.settings, self.store, SERVICES)
        await personas.sync(self.store, self.settings)
        found = {}
        for name, persona in PERSONA_OF.items():
            registration = await self.workbench.call("register", name=name, persona_id=persona)
            await self.workbench.call("approve", approval_id=registration["approval_id"])
            found[name] = await self.workbench.identify(registration["token"])
        return found

    def call(self, agent: str | None, name: str, **arguments: Any) -> dict[str, Any]:
        caller = self.agents[agent] if agent else OPERATOR
        return self.runner.run(self.workbench.dispatch(caller, name, arguments))

    def tried(self, agent: str | None, name: str, **arguments: Any) -> tuple[Any, str]:
        """The result of a call, and the code of its error."""
        try:
            return self.call(agent, name, **arguments), ""
        except WorkbenchError as error:
            return None, error.code

    def rows(self, query: Query) -> list[Line]:
        return [dict(row) for row in self.runner.run(self.store.read(lambda tx: tx.all(query)))]

    def lines(self) -> dict[int, Line]:
        """The tasks by id, each with what it depends on and what it waits for."""
        lines, edges = {line["task_id"]: line for line in self.rows(LINES)}, self.edges()
        for task, line in lines.items():
            line["above"] = above(lines, task)
        for task, line in lines.items():
            open_above = [one for one in line["above"][1:] if lines[one]["status"] not in ENDS]
            holding = waits_among(edges, lines, task, open_above)
            line["waits"] = {on for by, on in holding if is_unmet(lines[by], lines[on])}
            line["own_waits"] = {on for by, on in holding if by == task and is_unmet(line, lines[on])}
        return lines

    def line(self, task_id: int) -> Line | None:
        return self.lines().get(task_id)

    def waiting(self, *more: tuple[int, int]) -> set[tuple[int, int]]:
        """Which task waits for which, by dependencies of its own (with `more`) and of those above it."""
        lines, edges = self.lines(), self.edges() | {*more}
        return {(task, on) for task in lines for _, on in waits_among(edges, lines, task, lines[task]["above"][1:])}

    def edges(self) -> set[tuple[int, int]]:
        return {(row["task_id"], row["depends_on"]) for row in self.rows(EDGES)}

    def dead(self) -> set[int]:
        return {line["task_id"] for line in self.rows(LINES) if line["status"] in DEAD}

    def teardown(self) -> None:
        self.closing.close()

    @initialize()
    def begin_with_tasks(self) -> None:
        for more in ({}, {"dependencies": [1]}, {"assigned_agent_id": "bob"}, {"max_retries": 0}):
            self.call(None, "create_task", title="t", persona_id="implementer", **more)

    # Making

    @rule(
        persona=st.sampled_from(["implementer", "implementer", "reviewer"]),
        priority=st.sampled_from([0, 0, 5]),
        retries=st.integers(0, 2),
        reserved=st.none() | NAMES,
        policy=st.sampled_from(["block", "cancel", "ignore"]),
        waits=st.data(),
    )
    def create(
        self, persona: str, priority: int, retries: int, reserved: str | None, policy: str, waits: st.DataObject
    ) -> None:
        task_ids = [line["task_id"] for line in self.rows(LINES)]
        if len(task_ids) < MOST:
            chosen = waits.draw(st.lists(st.sampled_from(task_ids), max_size=2, unique=True)) if task_ids else []
            more: dict[str, Any] = {
                "priority": priority,
                "max_retries": retries,
                "assigned_agent_id": reserved,
                "on_failure": policy,
            }
            more |= {"no_retry": ["Fatal"], "dependencies": chosen}
            made, code = self.tried(None, "create_task", title="t", persona_id=persona, **more)
            dead = policy == "cancel" and self.dead() & set(chosen)
            assert code == ("DEPENDENCY_DEAD" if dead else "")
            assert dead or made["blocked"] == bool(made["blocked_by"])

    @rule(claim=claims, blocks=st.booleans())
    def break_down(self, claim: tuple[str, int, int], blocks: bool) -> None:
        agent, task_id, _ = claim
        lines = {line["task_id"]: line for line in self.rows(LINES)}
        if len(lines) == MOST:
            return
        part = {"parent_task_id": task_id, "title": "part", "blocks_parent": blocks}
        made, code = self.tried(agent, "create_subtask", **part)
        above = [lines[task_id]]
        while above[-1]["parent_id"]:
            above.append(lines[above[-1]["parent_id"]])
        mine = any(line["holder"] == agent and line["status"] not in ENDS for line in above)
        if not mine:
            assert code == "FORBIDDEN"
        elif blocks and lines[task_id]["status"] in ENDS:
            assert code == "WRONG_STATE"
        else:
            assert (task_id, made["id"]) in self.edges() or not blocks

    @rule(task=TASKS, first=TASKS)
    def add_dependency(self, task: int, first: int) -> None:
        line, edges = self.line(task), self.edges()
        there = line and self.line(first)
        circle = there and not has_no_circle(self.waiting((task, first)))
        expected = "" if there else "TASK_NOT_FOUND"
        if there and line:
            expected = "WRONG_STATE" if line["status"] in ENDS else "DEPENDENCY_CYCLE" if circle else ""
            if not expected and line["on_failure"] == "cancel" and first in self.dead():
                expected = "DEPENDENCY_DEAD"
        assert self.tried(None, "add_dependency", task_id=task, depends_on=first)[1] == expected
        assert self.edges() == edges | ({(task, first)} if not expected else set())

    @rule(edge=st.data())
    def remove_dependency(self, edge: st.DataObject) -> None:
        edges = self.edges()
        task, first = edge.draw(st.sampled_from(sorted(edges | {(1, 1)})))
        line = self.line(task)
        assert line
        expected = "WRONG_STATE" if line["status"] in ENDS else "" if (task, first) in edges else "NO_DEPENDENCY"
        assert self.tried(None, "remove_dependency", task_id=task, depends_on=first)[1] == expected

    # Doing

    @rule(target=claims, agent=NAMES)
    def claim_the_best(self, agent: str) -> Any:
        lines = list(self.lines().values())
        held = [line["task_id"] for line in lines if line["holder"] == agent and line["status"] not in ENDS]
        free = [line for line in lines if self.is_free_for(agent, line)]
        free.sort(key=lambda line: (line["only_for"] is None, -line["priority"], line["task_id"]))
        expected = next(iter([*held, *(line["task_id"] for line in free)]), None)
        task = self.call(agent, "claim_task")["task"]
        assert (task and task["id"]) == expected
        return (agent, task["id"], task["attempt"]) if task else multiple()

    @rule(target=claims, agent=NAMES, which=TASKS)
    def claim_by_id(self, agent: str, which: int) -> Any:
        line = self.line(which)
        mine = line and line["holder"] == agent and line["status"] not in ENDS
        claim, code = self.tried(agent, "claim_task", task_id=which)
        if line and (mine or self.is_free_for(agent, line)):
            return (agent, which, claim["task"]["attempt"])
        assert code == ("TASK_NOT_CLAIMABLE" if line else "TASK_NOT_FOUND")
        return multiple()

    def is_free_for(self, agent: str, line: Line) -> bool:
        ready = line["status"] == "pending" and not line["waits"] and line["not_before"] is None
        fits = line["only_for"] == agent if line["only_for"] else line["persona_id"] == PERSONA_OF[agent]
        return ready and fits

    @rule(
        claim=claims,
        name=st.sampled_from(HOLDING),
        retryable=st.booleans(),
        error_class=st.sampled_from([None, "Fatal"]),
        says=st.booleans(),
    )
    def use_a_claim(
        self, claim: tuple[str, int, int], name: str, retryable: bool, error_class: str | None, says: bool
    ) -> None:
        agent, task_id, attempt = claim
        line = self.lines()[task_id]
        current = line["status"] not in ENDS and line["holder"] == agent and (not says or line["attempt"] == attempt)
        more: dict[str, Any] = {"attempt": attempt} if says else {}
        if name == "fail_task":
            more |= {"error_message": "no", "retryable": retryable, "error_class": error_class}
        done, code = self.tried(agent, name, task_id=task_id, **more)
        waits = name == "complete_task" and line["waits"]
        assert code == ("LEASE_LOST" if not current else "DEPENDENCIES_OPEN" if waits else "")
        if name == "fail_task" and done:
            never = error_class is not None and error_class in line["no_retry"]
            again = retryable and not never and line["retry_count"] < line["max_retries"]
            assert done["status"] == ("pending" if again else "failed")

    @rule(agent=NAMES)
    def beat(self, agent: str) -> None:
        work = self.call(agent, "heartbeat_and_get_tasks")
        for line in self.rows(LINES):
            if line["holder"] == agent and line["status"] not in ENDS:
                assert line["lease_expires_at"] == self.clock.now + 100 * SECOND
                assert line["task_id"] in {t["id"] for t in work["holding"]}
        assert all(t["assigned_agent_id"] == agent for t in work["holding"])

    @rule(agent=NAMES)
    def lose_the_process(self, agent: str) -> None:
        internal = str(self.agents[agent].agent)
        self.runner.run(self.store.write(lambda tx: attempts.release_all(tx, internal, "it died")))
        assert [line for line in self.rows(LINES) if line["holder"] == agent and line["status"] not in ENDS] == []

    # Steering

    @rule(which=TASKS)
    def cancel(self, which: int) -> None:
        lines = self.lines()
        self.told_to_cancel = {task for task, line in lines.items() if which in line["above"]}
        is_over = all(lines[task]["status"] in ENDS for task in self.told_to_cancel)
        _, code = self.tried(None, "cancel_task", task_id=which)
        assert code == ("TASK_NOT_FOUND" if which not in lines else "WRONG_STATE" if is_over else "")

    @rule(which=TASKS, retries=st.none() | st.integers(0, 2))
    def retry(self, which: int, retries: int | None) -> None:
        line = self.line(which)
        made, code = self.tried(None, "retry_task", task_id=which, max_retries=retries)
        pauses = line and line["not_before"] is not None
        expected = "TASK_NOT_FOUND" if not line else "" if line["status"] in DEAD or pauses else "WRONG_STATE"
        if line and not expected and not pauses and line["on_failure"] == "cancel":
            waits = {first for task, first in self.edges() if task == which}
            expected = "DEPENDENCY_DEAD" if waits & self.dead() else ""
        assert code == expected
        if made:
            assert line
            assert (made["status"], made["retry_count"]) == ("pending", line["retry_count"] if pauses else 0)
            assert made["max_retries"] == (line["max_retries"] if retries is None else made["retry_count"] + retries)
            self.ended.pop(which, None)

    @rule(which=TASKS, agent=st.none() | NAMES)
    def reassign(self, which: int, agent: str | None) -> None:
        line = self.line(which)
        expected = "" if line else "TASK_NOT_FOUND"
        if line:
            theirs = agent and line["holder"] == agent
            expected = "WRONG_STATE" if line["status"] in ENDS else "ALREADY_THEIRS" if theirs else ""
        assert self.tried(None, "reassign_task", task_id=which, assigned_agent_id=agent)[1] == expected
        after = self.line(which)
        assert expected or (after and (after["status"], after["only_for"]) == ("pending", agent))

    @rule(which=TASKS, priority=st.sampled_from([-5, 0, 5, 9]))
    def prioritise(self, which: int, priority: int) -> None:
        line = self.line(which)
        _, code = self.tried(None, "set_priority", task_id=which, priority=priority)
        assert code == ("TASK_NOT_FOUND" if not line else "WRONG_STATE" if line["status"] in ENDS else "")

    # Time

    @rule(seconds=st.sampled_from([1, 12, 40, 99, 101]))
    def let_time_pass(self, seconds: int) -> None:
        self.clock.forward(seconds)
        self.runner.run(self.store.write(lambda tx: expiry.expire(tx, self.settings, lambda: 0.5)))
        for line in self.rows(LINES):
            assert line["lease_expires_at"] is None or line["lease_expires_at"] > self.clock.now
            assert line["not_before"] is None or line["not_before"] > self.clock.now

    @rule(seconds=st.sampled_from([1, 101]))
    def let_time_pass_unseen(self, seconds: int) -> None:
        self.clock.forward(seconds)

    @rule(seconds=st.sampled_from([-3_600, -50, 50, 3_600]))
    def set_the_clock(self, seconds: int) -> None:
        """Set the host's clock, as an open project notices it."""
        held = [(line["task_id"], line["attempt"]) for line in self.rows(LINES) if line["lease_expires_at"]]
        self.clock.forward(seconds)
        self.runner.run(self.store.write(expiry.restart_leases))
        self.runner.run(self.store.write(expiry.restart_pauses))
        self.runner.run(self.store.write(lambda tx: expiry.expire(tx, self.settings, lambda: 0.5)))
        after = [line for line in self.rows(LINES) if line["lease_expires_at"]]
        assert [(line["task_id"], line["attempt"]) for line in after] == held
        assert {line["lease_expires_at"] for line in after} <= {self.clock.now + 100 * SECOND}

    # What is always so

    @invariant()
    def a_task_is_held_by_one_and_its_attempts_say_so(self) -> None:
        attempts = self.rows(ATTEMPTS)
        for line in self.rows(LINES):
            mine = [a for a in attempts if a["task_id"] == line["task_id"]]
            running = [a for a in mine if a["ended_at"] is None]
            held = line["status"] in ("claimed", "in_progress")
            assert [a["attempt"] for a in mine] == list(range(1, line["attempt"] + 1)), "a row for each attempt"
            assert [a["agent"] for a in running] == ([line["holder"]] if held else []), "at most one holder"
            assert (line["lease_expires_at"] is not None) == held
            assert line["not_before"] is None or line["status"] == "pending"
            assert sum(a["outcome"] == "completed" for a in mine) == (line["status"] == "completed"), "once at most"

    @invariant()
    def every_step_has_its_event(self) -> None:
        lived: dict[int, list[str]] = {}
        for event in self.rows(EVENTS):
            task_id, kind = event["subject"].removeprefix("task:"), event["kind"].removeprefix("task.")
            lived.setdefault(int(task_id), []).append(kind)
        attempts = self.rows(ATTEMPTS)
        for line in self.rows(LINES):
            state, retries, told = "", 0, lived[line["task_id"]]
            for kind in told:
                if kind in LIFE:
                    before, after = LIFE[kind]
                    assert state in before or kind == "created", f"{kind} after {state}"
                    state = after
                    retries = 0 if kind == "revived" else retries + (kind in ("retried", "expired"))
            assert state == line["status"]
            assert line["retry_count"] == retries <= line["max_retries"]
            assert told.count("claimed") == line["attempt"]
            bad = [a for a in attempts if a["task_id"] == line["task_id"] and a["outcome"] in ("failed", "expired")]
            assert len(bad) == sum(told.count(kind) for kind in ("failed", "retried", "expired"))

    @invariant()
    def what_waits_for_what_is_counted_and_never_a_circle(self) -> None:
        assert has_no_circle(self.waiting())
        for line in self.lines().values():
            assert line["status"] in ENDS or line["unmet"] == len(line["waits"])
            assert line["status"] != "completed" or not line["own_waits"] or line["on_failure"] == "ignore"

    @invariant()
    def nothing_waits_for_the_dead_that_it_was_to_be_cancelled_with(self) -> None:
        lines = {line["task_id"]: line for line in self.rows(LINES)}
        waiting = {task for task, first in self.edges() if lines[first]["status"] in DEAD}
        assert not [t for t in waiting if lines[t]["on_failure"] == "cancel" and lines[t]["status"] not in ENDS]

    @invariant()
    def what_ended_stays_as_it_was_unless_it_is_revived(self) -> None:
        for line in self.rows(LINES):
            if line["status"] in ENDS:
                left = line | {"unmet": 0}
                assert self.ended.setdefault(line["task_id"], left) == left

    @invariant()
    def an_end_means_for_others_what_their_policy_says(self) -> None:
        lines = {line["task_id"]: line for line in self.rows(LINES)}
        was = {line["task_id"]: line["status"] for line in self.before}
        died = {task for task, line in lines.items() if line["status"] in DEAD and was.get(task) not in DEAD}
        cancelled = {task for task in died if lines[task]["status"] == "cancelled"}
        doomed = {task for task, first in self.edges() if first in died and lines[task]["on_failure"] == "cancel"}
        doomed |= {task for task, line in lines.items() if line["parent_id"] in cancelled}
        assert {lines[task]["status"] for task in doomed} <= set(ENDS)
        assert cancelled <= doomed | self.told_to_cancel
        self.before = list(lines.values())


def above(lines: dict[int, Line], task: int) -> list[int]:
    """A task and those above it, from it upwards."""
    chain: list[int] = []
    at: int | None = task
    while at is not None:
        chain.append(at)
        at = lines[at]["parent_id"]
    return chain


def waits_among(
    edges: set[tuple[int, int]], lines: dict[int, Line], task: int, over: list[int]
) -> set[tuple[int, int]]:
    """The dependencies that may hold back a task: its own, and those of tasks above it but for their own parts."""
    theirs = {(by, on) for by, on in edges if by in over and on in lines and by not in lines[on]["above"]}
    return theirs | {(by, on) for by, on in edges if by == task}


def is_unmet(line: Line, first: Line) -> bool:
    """Whether a task still waits for one that it depends on."""
    return first["status"] != "completed" and not (line["on_failure"] == "ignore" and first["status"] in DEAD)


def has_no_circle(edges: set[tuple[int, int]]) -> bool:
    """Whether no task waits for itself, at however many removes."""
    waits: dict[int, set[int]] = {}
    for task, first in edges:
        waits.setdefault(task, set()).add(first)
    try:
        TopologicalSorter(waits).prepare()
    except CycleError:
        return False
    return True


@pytest.mark.timeout(400)  # it takes long only when it looks for a short example
def test_leases_hold_whatever_happens_in_any_order(new_database: NewDatabase, empty_store: Path) -> None:
    few = hypothesis.settings(max_examples=5, stateful_step_count=50, deadline=None)
    run_state_machine_as_test(partial(Leases, new_database, empty_store), settings=few)


@pytest.mark.chaos
@pytest.mark.timeout(3_000)
def test_leases_hold_in_many_more_orders(new_database: NewDatabase, empty_store: Path) -> None:
    many = hypothesis.settings(max_examples=600 * SOAK or 30, stateful_step_count=50, deadline=None)
    run_state_machine_as_test(partial(Leases, new_database, empty_store), settings=many)
