"""One execution of a plan: what there is to do now, step by step, until nothing goes on."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from workbench.errors import BadInput, NotFound, Unavailable, WorkbenchError
from workbench.execution.account import BATCH, Call
from workbench.model import TaskState
from workbench.rules.execution import ANY, SCRIPT, Integrate, Staff
from workbench.rules.tasks import lifecycle
from workbench.rules.tasks.check import Evidence

Place = tuple[str, str | None]
"""A persona, and the worktree that it works in."""

PAGE = 500
MOST_STARTS = 3
"""How often an agent is started in one place that ends although there is work, and has completed none."""
PASSING = ("DISK_FULL", "STORE_FULL", "STORE_BUSY", "STORE_UNAVAILABLE", "STORE_CROWDED")
"""Errors of the disk or the store that pass: what met one is tried again."""
KINDS = ("task.*", "approval.*", "agent.*", "worktree.*", "hold.*", "check.*", "budget.*", "resource.*")
"""The events after which there may be something to do."""


class Verdict(StrEnum):
    """How an execution has ended: all tasks are completed, some failed, only questions are left, nobody goes on."""

    COMPLETED = "completed"
    FAILED = "failed"
    QUESTIONS = "questions"
    STUCK = "stuck"


@dataclass(frozen=True, slots=True)
class Standing:
    """How far an execution is.

    Args:
        counts: tasks by state.
        agents: those that this execution keeps at work, by place.
        questions: the ids of approvals that wait for a person.
        notes: what a person should know, in a sentence each.
        verdict: None: it goes on.
    """

    counts: Mapping[str, int]
    agents: Mapping[Place, str]
    questions: Sequence[int]
    notes: Sequence[str]
    verdict: Verdict | None

    @property
    def line(self) -> str:
        """It in one line."""
        total = sum(self.counts.values())
        parts = [f"{self.counts.get(TaskState.COMPLETED, 0)} of {total} tasks completed"]
        states = (TaskState.IN_PROGRESS, TaskState.CLAIMED, TaskState.PENDING, TaskState.FAILED, TaskState.CANCELLED)
        parts += [f"{self.counts[state]} {state.replace('_', ' ')}" for state in states if self.counts.get(state)]
        parts += [f"{len(self.questions)} waiting for you"] if self.questions else []
        return ", ".join(parts)


@dataclass
class Execution:
    """A plan that is carried out. `begin`, then `step` whenever something has happened, then `end`.

    Args:
        partly: leave what nobody is there to do, instead of refusing to begin.
    """

    call: Call
    plan: str
    staff: Sequence[Staff] = ()
    integrate: Integrate = Integrate.ASK
    partly: bool = False
    record: Path | None = None
    """Where it notes the agents that it starts, so that the next execution ends them if this one is killed."""
    _crew: dict[Place, str] = field(default_factory=dict)
    _own: set[str] = field(default_factory=set)
    """The agents that it has started itself, which it ends."""
    _starts: Counter[Place] = field(default_factory=Counter)
    """How often agents were started in each place since a task there was completed."""
    _completed: Counter[Place] = field(default_factory=Counter)
    _has_command: dict[int, bool] = field(default_factory=dict)
    _asked: dict[str, int] = field(default_factory=dict)
    """The approvals of its worktrees' merges, by worktree."""
    _held_up: Mapping[str, Sequence[int]] = field(default_factory=dict)
    """The tasks that wait for a budget, by its scope."""
    _made: set[str] = field(default_factory=set)
    """The worktrees that are there, or were made."""
    _notes: dict[str, None] = field(default_factory=dict)

    def require_staff(self) -> None:
        """Refuse to begin without those who are needed: each open task has somebody, and each profile its program.

        Raises:
            BadInput: ``NO_STAFF``, with the `personas` in its details; ``BAD_STAFF``. NotFound:
                ``PROFILE_NOT_FOUND``. Unavailable: ``PROFILE_UNAVAILABLE``.
        """
        tasks = self._tasks()
        self._require_personas(tasks)
        to_do = self._to_do(tasks)
        if not self.partly:
            self._require_somebody(to_do)
        profiles = {one["name"]: one for one in self.call("list_profiles")["profiles"]}
        for name in dict.fromkeys(filter(None, map(self._profile, to_do))):
            if name not in profiles:
                known = ", ".join(sorted(profiles))
                raise NotFound("PROFILE_NOT_FOUND", f"There is no profile {name!r}. Available: {known}.")
            if not profiles[name]["available"]:
                needs = ", ".join(profiles[name]["needs"])
                raise Unavailable(
                    "PROFILE_UNAVAILABLE",
                    f"The profile {name} needs {needs}, which is not installed or set here. `workbench profiles` lists "
                    "the others.",
                )

    def begin(self) -> None:
        """Make the worktrees that are missing, and retry what has failed before.

        Raises:
            WorkbenchError: of ``create_worktree``, ….
        """
        to_do = self._to_do(self._tasks())
        self._own |= self._recorded()
        self._make_worktrees(to_do)
        for task in to_do:
            if task["status"] == TaskState.FAILED:
                self.call("retry_task", task_id=task["id"], reason="the plan is carried out again")

    def step(self) -> Standing:
        """Do what is to do now: start agents where there is work, end those without, ask for merges.

        Raises:
            WorkbenchError: of ``spawn_agent``, ….
        """
        tasks = self._tasks()
        self._make_worktrees([task for task in tasks if task["status"] in lifecycle.OPEN])
        self._keep_crew(tasks)
        merging = self._merge(tasks)
        pending = self.call("list_approvals", status="pending", limit=PAGE)["approvals"]
        own = {*self.merges.values()}
        ids = {task["id"] for task in tasks}
        questions = [one["id"] for one in pending if one["id"] in own or self._concerns(one, ids)]
        return Standing(
            counts=Counter(task["status"] for task in tasks),
            agents=dict(self._crew),
            questions=questions,
            notes=list(self._notes),
            verdict=None if merging else self._verdict(tasks, bool({*questions} - own)),
        )

    def _concerns(self, question: Mapping[str, Any], tasks: set[int]) -> bool:
        """Whether a question that is not about a merge may be about the plan: not if it is about tasks of others."""
        about, _, name = question["subject"].partition(":")
        match about:
            case "task":
                return int(name) in tasks
            case "budget":
                return not tasks.isdisjoint(self._held_up.get(name, ()))
        return str(question["kind"]) != "integration"

    def end(self) -> None:
        """End the agents that this execution has started; what they hold can be claimed again."""
        for agent in sorted(self._own):
            try:
                self.call("terminate_agent", agent_id=agent, reason="the execution of the plan has ended")
            except WorkbenchError as error:
                self._note(f"{agent} could not be ended: {error.message}")
        self._crew.clear()
        self._own.clear()
        if self.record is not None:
            self.record.unlink(missing_ok=True)

    def note_events(self, events: Iterable[Mapping[str, Any]]) -> None:
        """Take note of what has happened since the last step."""
        if any(event["kind"] == "task.changed" for event in events):
            self._has_command.clear()

    @property
    def merges(self) -> Mapping[str, int]:
        """The approvals of merges that it has asked for, by worktree."""
        return {name: approval for name, approval in self._asked.items() if approval}

    def _tasks(self) -> list[dict[str, Any]]:
        """The tasks of the plan; those that wait for a budget, or for what is not there, are blocked."""
        budgets = self.call("list_budgets")["budgets"]
        self._held_up = {budget["scope"]: budget["waiting"] for budget in budgets}
        waiting = self.call("list_resources")["waiting"]
        absent = {task["task_id"]: task["waits_for"] for task in waiting if not task["is_there"]}
        held_up = {task for tasks in self._held_up.values() for task in tasks} | absent.keys()
        tasks: list[dict[str, Any]] = []
        cursor = None
        while True:
            page = self.call("list_tasks", plan=self.plan, limit=PAGE, **({"cursor": cursor} if cursor else {}))
            tasks += [task | {"blocked": task["blocked"] or task["id"] in held_up} for task in page["tasks"]]
            cursor = page["next_cursor"]
            if cursor is None:
                break
        for task in tasks:
            if task["id"] in absent:
                self._note(f"Task {task['id']} waits for what is not there: {absent[task['id']]}.")
        return tasks

    def _runs(self, task: Mapping[str, Any]) -> bool:
        """Whether a task has a command."""
        if task["id"] not in self._has_command:
            self._has_command[task["id"]] = self.call("get_task", task_id=task["id"])["run"] is not None
        return self._has_command[task["id"]]

    def _staff_of(self, persona: str) -> Staff | None:
        return next((one for name in (persona, ANY) for one in self.staff if one.persona == name), None)

    def _profile(self, task: Mapping[str, Any]) -> str | None:
        """The profile that a task needs here; None: it is left to other agents."""
        if staff := self._staff_of(task["persona_id"]):
            return staff.profile if staff.profile != SCRIPT or self._runs(task) else None
        return SCRIPT if self._runs(task) else None

    def _to_do(self, tasks: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
        """The tasks that are open or have failed."""
        return [task for task in tasks if task["status"] in lifecycle.OPEN or task["status"] == TaskState.FAILED]

    def _require_personas(self, tasks: Iterable[Mapping[str, Any]]) -> None:
        personas = {task["persona_id"] for task in tasks}
        if strange := [one.persona for one in self.staff if one.persona not in (ANY, *personas)]:
            raise BadInput(
                "BAD_STAFF",
                f"The plan {self.plan} has no task for {', '.join(strange)}, only for {', '.join(sorted(personas))}. "
                "Name these as staff.",
            )

    def _recorded(self) -> set[str]:
        """The agents that an execution has left which was killed."""
        try:
            return set(json.loads(self.record.read_text("utf-8"))) if self.record is not None else set()
        except (OSError, ValueError):
            return set()

    def _require_somebody(self, tasks: Iterable[Mapping[str, Any]]) -> None:
        alone = [task for task in tasks if self._profile(task) is None]
        if not alone:
            return
        agents = self.call("list_agents", limit=PAGE)["agents"]
        there = {agent["persona_id"] for agent in agents if agent["presence"] not in ("inactive", "terminated")}
        if missing := sorted({task["persona_id"] for task in alone} - there):
            ids = [task["id"] for task in alone if task["persona_id"] in missing]
            named = ",".join(f"{persona}=1:claude" for persona in missing)
            raise BadInput(
                "NO_STAFF",
                f"Nobody is there to do {_tasks_named(ids)}, which {'has' if len(ids) == 1 else 'have'} no command. "
                f"Say who does: --staff {named}, or with another profile of `workbench profiles`.",
                tasks=ids,
                personas=missing,
            )

    def _make_worktrees(self, tasks: Iterable[Mapping[str, Any]]) -> None:
        to_make = [task for task in tasks if task["worktree"] and task["worktree"] not in self._made]
        proposed = self._proposed() if to_make else set()
        names = dict.fromkeys(task["worktree"] for task in to_make if task["id"] not in proposed)
        there = {one["name"] for one in self.call("get_worktree_status")["worktrees"]} if names else set()
        for name in names:
            if name not in there:
                closed = self.call("list_closed_worktrees", worktree_name=name, limit=1)["worktrees"]
                branch = closed[0]["branch_name"] if closed and closed[0]["branch_kept"] else None
                self.call("create_worktree", name=name, branch_name=branch)
        self._made |= {*names}

    def _proposed(self) -> set[int]:
        """The tasks of the plan about which a person has not decided yet."""
        asked = self.call("list_approvals", kind="plan", subject=f"plan:{self.plan}")["approvals"]
        pages = [self.call("list_proposed_tasks", approval_id=one["id"], limit=10_000) for one in asked]
        return {task["id"] for page in pages for task in page["tasks"]}

    def _keep_crew(self, tasks: Sequence[Mapping[str, Any]]) -> None:
        """Have an agent in each place with work, as far as the staff allows."""
        running = {
            agent["agent_id"]: agent
            for agent in self.call("get_managed_agents")["agents"]
            if agent["process"] and (agent["process"]["running"] or agent["process"]["state"] == "queued")
        }
        self._crew = {place: agent for place, agent in self._crew.items() if agent in running}
        self._own &= running.keys()
        completed = Counter(
            (one["persona_id"], one["worktree"]) for one in tasks if one["status"] == TaskState.COMPLETED
        )
        for place in [place for place in self._starts if completed[place] > self._completed[place]]:
            del self._starts[place]
        self._completed = completed
        wanted: dict[Place, bool] = {}
        profiles: dict[Place, str] = {}
        for task in tasks:
            if task["status"] in lifecycle.OPEN and (profile := self._profile(task)) is not None:
                place = (task["persona_id"], task["worktree"])
                wanted[place] = wanted.get(place, False) or not task["blocked"]
                profiles[place] = profile
        for place in [place for place in self._crew if not wanted.get(place)]:
            if self._crew[place] in self._own and (place not in wanted or self._is_short(place, wanted)):
                agent = self._crew.pop(place)
                self._own.remove(agent)
                self.call("terminate_agent", agent_id=agent, reason="no work is left there")
        for place in sorted(wanted, key=lambda place: not wanted[place]):
            if wanted[place] and place not in self._crew and self._has_room(place[0]):
                profile = profiles[place]
                if started := self._existing(running, place, profile) or self._start(place, profile):
                    self._crew[place] = started

    def _has_room(self, persona: str) -> bool:
        staff = self._staff_of(persona)
        return staff is None or sum(self._staff_of(place[0]) is staff for place in self._crew) < staff.count

    def _is_short(self, place: Place, wanted: Mapping[Place, bool]) -> bool:
        """Whether an agent that waits takes the room of one that could work elsewhere."""
        staff, others = self._staff_of(place[0]), (one for one, has_work in wanted.items() if has_work)
        return not self._has_room(place[0]) and any(
            self._staff_of(one[0]) is staff and one not in self._crew for one in others
        )

    def _existing(self, running: Mapping[str, Mapping[str, Any]], place: Place, profile: str) -> str | None:
        """An agent that an earlier execution, or a person, has started there; any runs commands."""
        fit = {name: agent for name, agent in running.items() if (agent["persona_id"], agent["worktree"]) == place}
        return next(
            (
                name
                for name, agent in fit.items()
                if name in self._own or profile in (SCRIPT, agent["process"]["profile"])
            ),
            None,
        )

    def _start(self, place: Place, profile: str) -> str | None:
        """Start an agent; None: it has ended too often."""
        persona, worktree = place
        where = f"in {worktree}" if worktree else "outside of worktrees"
        if self._starts[place] >= MOST_STARTS:
            self._note(
                f"The agent {persona} {where} has ended {MOST_STARTS} times although there is work, and is not started "
                "again. `workbench ps` lists the processes, and `workbench logs AGENT` shows what it wrote."
            )
            return None
        name = f"{worktree}-{persona}" if worktree else persona
        spawned = self.call("spawn_agent", persona_id=persona, assigned_worktree=worktree, name=name, profile=profile)
        self._starts[place] += 1
        self._own.add(spawned["agent_id"])
        for what in spawned["unused"]:
            self._note(what)
        if self.record is not None:
            self.record.write_text(json.dumps(sorted(self._own)), "utf-8")
        return str(spawned["agent_id"])

    def _merge(self, tasks: Sequence[Mapping[str, Any]]) -> bool:
        """Ask for the merge of each worktree whose tasks are completed; whether a merge is under way."""
        places: dict[str, list[Mapping[str, Any]]] = {}
        for task in tasks:
            if task["worktree"]:
                places.setdefault(task["worktree"], []).append(task)
        done = [name for name, own in places.items() if all(one["status"] == TaskState.COMPLETED for one in own)]
        for name in sorted(done, key=lambda name: max(one["id"] for one in places[name])):
            if name not in self._asked:
                self._asked[name] = self._ask(name, places[name])
        approvals = [self.call("get_approval", approval_id=one) for one in self._asked.values() if one]
        return any(approval["status"] == "approved" and not approval["settled"] for approval in approvals)

    def _ask(self, name: str, tasks: Sequence[Mapping[str, Any]]) -> int:
        """Ask for the merge of a worktree; the approval, or 0 if there is nothing to merge."""
        try:
            asked = self.call("integrate_worktree", worktree_name=name)
        except WorkbenchError as error:
            if error.code in PASSING:
                raise
            if error.code not in ("WORKTREE_CLOSED", "WORKTREE_NOT_FOUND", "NOTHING_TO_INTEGRATE"):
                self._note(f"{name} is not merged: {error.message}")
            return 0
        is_checked = all(task["evidence"] == Evidence.CHECKED for task in tasks) and not asked["open_tasks"]
        if (
            self.integrate is Integrate.AUTO_IF_CHECKED
            and is_checked
            and self._is_as_checked(asked["approval_id"], tasks)
        ):
            self.call("approve", approval_id=asked["approval_id"])
        return int(asked["approval_id"])

    def _is_as_checked(self, approval: int, tasks: Sequence[Mapping[str, Any]]) -> bool:
        """Whether a check has passed on exactly the commit that is asked for: a worktree may have newer ones."""
        payload = self.call("get_approval", approval_id=approval)["payload"]
        ids = [task["id"] for task in tasks]
        for start in range(0, len(ids), BATCH):
            whole = self.call("get_tasks", task_ids=ids[start : start + BATCH])["tasks"]
            checks = [task["attempts"][-1]["check"] for task in whole]
            if any(check["commit"] == payload["source_commit"] for check in checks if check):
                return True
        self._note(f"{payload['worktree']} has changed since its last check, so it is not merged at once.")
        return False

    def _verdict(self, tasks: Sequence[Mapping[str, Any]], waits: bool) -> Verdict | None:
        left = [task for task in tasks if task["status"] in lifecycle.OPEN]
        if not left:
            is_completed = all(task["status"] == TaskState.COMPLETED for task in tasks)
            return Verdict.COMPLETED if is_completed else Verdict.FAILED
        if any(self._goes_on(task) for task in left):
            return None
        if waits:
            return Verdict.QUESTIONS
        return Verdict.FAILED if any(task["status"] in lifecycle.DEAD for task in tasks) else Verdict.STUCK

    def _goes_on(self, task: Mapping[str, Any]) -> bool:
        """Whether something happens to an open task by itself."""
        if task["status"] != TaskState.PENDING:
            return True
        if task["blocked"]:
            return False
        place = (task["persona_id"], task["worktree"])
        if self._profile(task) is not None:
            return place in self._crew or self._starts[place] < MOST_STARTS
        return not self.call("get_unattended_work", task_id=task["id"])["tasks"]

    def _note(self, text: str) -> None:
        self._notes[text] = None


def _tasks_named(ids: Sequence[int]) -> str:
    listed = ", ".join(map(str, ids[:5])) + (f" and {len(ids) - 5} more" if len(ids) > 5 else "")
    return f"{'task' if len(ids) == 1 else 'tasks'} {listed}"
