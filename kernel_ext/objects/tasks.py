"""Tasks and plans as objects of a notebook: `wb.tasks`, `wb.task(7)`, `wb.plans`."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from functools import partial
from types import NoneType
from typing import Any, ClassVar

from kernel_ext.objects.artifacts import TaskArtifacts
from kernel_ext.objects.kinds import NotebookSession, ObjectKind
from kernel_ext.objects.mistakes import checked
from kernel_ext.objects.progress import wait_for_task
from kernel_ext.objects.rows import Listing, Row, Rows
from kernel_ext.objects.spending import Spending, Transcript, spending, transcript
from workbench.cli.tasks import task_table
from workbench.errors import BadInput, NotFound
from workbench.present.declared import empty_of, table_of
from workbench.present.graph import NO_TASKS, Graph
from workbench.present.tables import Table, TablePage

PAGE = 1_000


class Task(Row):
    """A task. `await task` waits until it is completed; a cell shows its state, attempts, result and log."""

    _KIND: ClassVar[ObjectKind[Task]]

    id: int
    title: str
    status: str
    persona_id: str
    priority: int
    worktree: str | None
    plan: str | None
    name: str | None
    parent_task_id: int | None
    session_id: str | None
    assigned_agent_id: str | None
    progress: int
    attempt: int
    retry_count: int
    blocked: bool
    not_before: str | None
    error_message: str | None
    due: str | None
    overdue: bool
    evidence: str | None
    description: str
    run: str | list[str] | None
    check: Any
    done_when: str | None
    needs: dict[str, Any] | None
    waits_for: str | None
    context_ref: str | None
    metadata: dict[str, Any]
    dependencies: list[int]
    blocked_by: list[int]
    created_by: str
    created_at: str
    claimed_at: str | None
    started_at: str | None
    completed_at: str | None
    lease_expires_at: str | None
    max_retries: int
    lease_seconds: float | None
    reserved_for: str | None
    on_failure: str
    no_retry: list[str]
    result_data: Any
    artifacts: TaskArtifacts
    attempts: list[dict[str, Any]]
    approval_id: int | None

    def cancel(self, reason: str = "") -> None:
        """Cancel it and its unfinished subtasks.

        Raises:
            WorkbenchError: see the operation ``cancel_task``.
        """
        self._change("cancel_task", task_id=self.id, reason=reason)

    def retry(self, reason: str = "", *, also_cancelled: bool = False) -> None:
        """Retry it after it failed or was cancelled; `also_cancelled`: with what was cancelled with it.

        Raises:
            WorkbenchError: see the operation ``retry_task``.
        """
        self._change("retry_task", task_id=self.id, reason=reason, also_cancelled=also_cancelled)

    def reopen(self, reason: str = "") -> None:
        """Make it pending again after it was completed.

        Raises:
            WorkbenchError: see the operation ``reopen_task``.
        """
        self._change("reopen_task", task_id=self.id, reason=reason)

    def prioritize(self, priority: int) -> None:
        """Set its priority: tasks with a higher one are claimed first.

        Raises:
            WorkbenchError: see the operation ``set_priority``.
        """
        self._change("set_priority", task_id=self.id, priority=priority)

    def assign(self, agent_id: str | None, reason: str = "") -> None:
        """Reserve it for an agent; None lifts the reservation. Its holder loses it.

        Raises:
            WorkbenchError: see the operation ``reassign_task``.
        """
        self._change("reassign_task", task_id=self.id, assigned_agent_id=agent_id, reason=reason)

    def comment(self, text: str) -> None:
        """Comment on it: its agent gets the comment, and so does everyone who does it later.

        Raises:
            WorkbenchError: see the operation ``comment_on_task``.
        """
        self._call("comment_on_task", task_id=self.id, text=text)

    @property
    def messages(self) -> Table:
        """The comments on it, and the questions of its agents, the newest first."""
        table: Table = self._notebook.run(["messages", "--task", str(self.id)])
        return table

    def diff(self, attempt: int) -> Any:
        """What an attempt made that did not complete the task, as a unified diff.

        Raises:
            WorkbenchError: see `%workbench task --diff`.
        """
        return self._notebook.run(["task", str(self.id), "--diff", str(attempt)])

    @property
    def cost(self) -> Spending:
        """What its attempts used of models, and what that cost."""
        return spending(self._notebook, "attempt", task_id=self.id)

    def transcript(self, attempt: int | None = None, *, containing: str = "") -> Transcript:
        """What an attempt's program and its model said to each other: `task.transcript(containing="error")`.

        Args:
            attempt: None: the last one that asked a model.
            containing: only messages that contain this text.

        Raises:
            WorkbenchError: see the operation ``get_transcript``.
        """
        return transcript(self._notebook, self.id, attempt, containing)

    @property
    def subtasks(self) -> Rows[Task]:
        """Its direct subtasks."""
        return Tasks(self._notebook)(parent=self.id)

    def __getattr__(self, name: str) -> Any:
        value = super().__getattr__(name)
        return TaskArtifacts(self._notebook, self.id, value or ()) if name == "artifacts" else value

    def __await__(self) -> Generator[Any, None, Task]:
        """Wait until it is completed; its cell shows meanwhile how far it is. See `wait`."""
        return self.wait().__await__()

    async def wait(self, timeout: float | None = None) -> Task:
        """Wait until it is completed: `await wb.task(7).wait(timeout=60)`. An interrupt ends the wait, not the task.

        Args:
            timeout: seconds; None: as long as it takes.

        Raises:
            Conflict: ``TASK_FAILED``, ``TASK_CANCELLED``: it has ended otherwise. TimeoutError: ``TASK_NOT_ENDED``.
        """
        checked(timeout, (int, float, NoneType), ".wait(…)", "a number of seconds")
        try:
            await wait_for_task(self._notebook.host, self.id, timeout)
        finally:
            self.refresh()
        return self

    def _render(self) -> TablePage:
        page: TablePage = self._notebook.run(["task", str(self.id)])
        return page


class Tasks(Listing[Task]):
    """The tasks: `wb.tasks[7]`, or `wb.tasks["lint"]` by the name in a plan.

    The filters of a call are those of `list_tasks`; `persona`, `agent`, `session` and `parent` also name theirs.
    """

    def __init__(self, notebook: NotebookSession) -> None:
        super().__init__(notebook, Task._KIND)

    def create(self, title: str, persona: str, **more: Any) -> Task:
        """Create a task: `wb.tasks.create("Read the paper", "reviewer", dependencies=[3])`.

        Args:
            persona: the id of the persona that may do it.
            more: other arguments of the operation `create_task`.

        Raises:
            WorkbenchError: see the operation ``create_task``.
        """
        return Task(self._notebook, self._make("create_task", title=title, persona_id=persona, **more))


def _task(notebook: NotebookSession, key: Any) -> Mapping[str, Any]:
    """The task with an id, or else the one with this name in its plan.

    Raises:
        NotFound: ``TASK_NOT_FOUND``. BadInput: ``AMBIGUOUS_NAME``: tasks of several plans have the name.
    """
    if not isinstance(key, str) or key.isdecimal():
        return notebook.call("get_task", task_id=key)
    ids = [task["id"] for page, _ in Task._KIND.pages(notebook, {}) for task in page if task["name"] == key]
    if not ids:
        raise NotFound("TASK_NOT_FOUND", f"No task of a plan is called {key!r}. wb.tasks lists the tasks.")
    if len(ids) > 1:
        text = f"{len(ids)} tasks are called {key!r}: {', '.join(map(str, ids))}. Give the id of one."
        raise BadInput("AMBIGUOUS_NAME", text, candidates=ids)
    return notebook.call("get_task", task_id=ids[0])


Task._KIND = ObjectKind(
    Task,
    "list_tasks",
    "tasks",
    "id",
    task_table,
    NO_TASKS,
    _task,
    first={"limit": PAGE},
    names=("name",),
    get_many=lambda notebook, keys: notebook.call("get_tasks", task_ids=keys)["tasks"],
    words={
        "persona": "persona_id",
        "agent": "assigned_agent_id",
        "session": "session_id",
        "parent": "parent_task_id",
    },
)


class Plan(Row):
    """A plan and its progress; a cell shows its tasks."""

    _KIND: ClassVar[ObjectKind[Plan]]

    plan: str
    tasks: int
    completed: int
    failed: int
    cancelled: int
    open: int
    blocked: int
    version: str

    @property
    def all_tasks(self) -> Rows[Task]:
        """Its tasks."""
        return Tasks(self._notebook)(plan=self.plan)

    @property
    def cost(self) -> Spending:
        """What its tasks used of models, and what that cost."""
        return spending(self._notebook, "task", plan=self.plan)

    @property
    def graph(self) -> Graph:
        """Its dependencies, drawn from left to right."""
        graph: Graph = self._notebook.run(["graph", f"--plan={self.plan}"])
        return graph

    def text(self, format: str = "yaml") -> str:
        """It as a text that `%%plan` reads.

        Args:
            format: ``yaml`` or ``markdown``.

        Raises:
            WorkbenchError: see the operation ``export_plan``.
        """
        return str(self._call("export_plan", plan=self.plan, format=format)["text"])

    def _render(self) -> TablePage:
        lead = f"{self.completed} of {self.tasks} tasks are completed, {self.open} are open."
        tasks = task_table([task.as_dict() for task in self.all_tasks], NO_TASKS)
        return TablePage([(f"Plan {self.plan}", Table([], [], lead)), ("", tasks)], self.as_dict())


class Plans(Listing[Plan]):
    """The plans and their progress: `wb.plans["tidy"]`."""

    def __init__(self, notebook: NotebookSession) -> None:
        super().__init__(notebook, Plan._KIND)

    def create(self, text: str, **more: Any) -> Plan:
        """Create a plan, or change one: `wb.plans.create(text, update=True)`.

        Args:
            text: YAML or a Markdown checklist; see `%%plan`.
            more: other arguments of the operation `create_plan`.

        Raises:
            WorkbenchError: see the operation ``create_plan``.
        """
        return self[self._make("create_plan", text=text, **more)["plan"]]


def _plan(notebook: NotebookSession, key: Any) -> Mapping[str, Any]:
    """The plan of a name.

    Raises:
        NotFound: ``PLAN_NOT_FOUND``.
    """
    for plan in notebook.call("list_plans")["plans"]:
        if plan["plan"] == key:
            return dict(plan)
    raise NotFound("PLAN_NOT_FOUND", f"There is no plan {key!r}.")


Plan._KIND = ObjectKind(
    Plan, "list_plans", "plans", "plan", partial(table_of, "list_plans"), empty_of("list_plans"), _plan, tab="tasks"
)
