"""The types of tasks in operations: new tasks, summaries, statuses, and tasks in full."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field
from pydantic_core import to_json

from workbench.errors import BadInput
from workbench.model import Day, Int64, Json, Micros, OnFailure, TaskState, Wire
from workbench.ops.parameters import PersonaId
from workbench.rules.needs import NeedsTerm
from workbench.rules.secrets.executed import GivenCheck, GivenCommand, GivenData, GivenText, warnings_about
from workbench.rules.tasks.check import CheckState, CheckTerm, DoneWhen, Evidence
from workbench.services.messages.inbox import Message
from workbench.services.resources.leases import Leased
from workbench.state.settings import Settings

Run = Annotated[
    str | list[str] | None,
    Field(description="Command of the task: a string for /bin/sh -c or a list, run in the worktree."),
]
Title = Annotated[str, Field(min_length=1, max_length=200, description="What is to be done, in one line.")]
Description = Annotated[
    str, Field(max_length=100_000, description="All that the agent needs to know, and how to tell that it is done.")
]
Priority = Annotated[int, Field(ge=-1_000_000, le=1_000_000, description="Higher goes first.")]
Dependencies = Annotated[list[Int64], Field(max_length=1_000, description="Ids of the tasks that it depends on.")]
Reserved = Annotated[str | None, Field(description="Reserve it for this agent.")]
Retries = Annotated[int | None, Field(ge=0, le=100, description="Retries after failures; null: the default.")]
LeaseSeconds = Annotated[
    float | None,
    Field(gt=0, le=86_400, description="How long a claim lasts without a heartbeat."),
]
ContextRef = Annotated[
    str | None, Field(max_length=1_000, description="Where to find more: a context's id, or a path.")
]
Parent = Annotated[Int64 | None, Field(description="The task that it is a part of.")]
Place = Annotated[str | None, Field(description="The worktree to do it in; see create_worktree.")]
Metadata = Annotated[dict[str, Any], Field(description="Free-form, for you and the agent.")]
SessionRef = Annotated[
    str | None,
    Field(description="Only agents of this session (id or name) may claim it; null: yours."),
]
Policy = Annotated[
    OnFailure, Field(description="When a dependency fails or is cancelled: stay blocked, be cancelled, or ignore it.")
]
NoRetry = Annotated[
    list[Annotated[str, Field(min_length=1, max_length=200)]],
    Field(max_length=50, description="Error classes after which it is not retried, such as ValueError."),
]

Due = Annotated[Day | None, Field(description="The day by which it is due.")]
Check = Annotated[
    CheckTerm,
    Field(description="Command that must pass on what was made; or {run, repeats, seconds, files, hide}."),
]
Done = Annotated[DoneWhen | None, Field(description="What makes it done.")]
Needed = Annotated[
    NeedsTerm,
    Field(description="What it needs: gpu=1,vram=12G,exclusive,cpu=4,memory=8G,license=NAME."),
]


class NewTask(Wire):
    """A task to create."""

    title: Title
    description: Description = ""
    persona_id: PersonaId
    priority: Priority = 500
    dependencies: Dependencies = []
    parent_task_id: Parent = None
    target_worktree: Place = None
    assigned_agent_id: Reserved = None
    run: Run = None
    check: Check = None
    done_when: Done = None
    needs: Needed = None
    max_retries: Retries = None
    lease_seconds: LeaseSeconds = None
    context_ref: ContextRef = None
    metadata: Metadata = {}
    session_id: SessionRef = None
    on_failure: Policy = OnFailure.BLOCK
    no_retry: NoRetry = []
    due: Due = None


class TaskToCreate(NewTask):
    """A task to create as part of a plan."""

    plan: str | None = None
    name: str | None = None


def bounded_json(value: Any, settings: Settings) -> str:
    """Serialize a value that has passed `json_safety.check`.

    Raises:
        BadInput: ``TOO_LARGE``.
    """
    text = to_json(value)
    if len(text) > settings.max_result_bytes:
        raise BadInput(
            "TOO_LARGE",
            f"The data has {len(text):,} bytes of JSON; at most {settings.max_result_bytes:,} are kept. "
            "Put it into a file and list the file as an artifact.",
        )
    return text.decode()


class TaskSummary(Wire):
    """A task in a list. It is overdue if it is open and the day by which it was due is over.

    `evidence` is what tells that a completed one is done: `said` is its agent's word alone, `changed` commits,
    `unchanged` the lack of them where there should be some, `checked` its check, `flaky` one that passed at a
    later try.
    """

    id: int
    title: GivenText
    status: TaskState
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
    not_before: Micros | None
    error_message: str | None
    due: str | None
    overdue: bool
    evidence: Evidence | None


class KeptWork(Wire):
    """The work of an attempt that did not complete its task: a reference in your repository, and what has changed since
    the commit that the attempt began at. `bytes` is its size on the disk."""

    ref: str
    commit: str
    commits: int
    files: int
    bytes: int


class Finish(TaskSummary):
    """A task that was ended. `takes_effect` says when: a supervised attempt ends when its command has ended, and
    one that is to be checked when its check has passed.

    `open_subtasks` are those below it that are still open, although it is completed.
    """

    takes_effect: Literal["now", "when the command has ended", "when its check has passed"]
    open_subtasks: list[int]


class AttemptCheck(Wire):
    """The check of what an attempt made: its state, how often it was run, and the end of what it wrote.

    `commit` is what it ran on; null: the target, outside of worktrees. `metrics` are what it measured.
    """

    state: CheckState
    commit: str | None
    tries: int
    exit_code: int | None
    started_at: Micros | None
    ended_at: Micros | None
    output: str
    metrics: dict[str, float] | None


class Attempt(Wire):
    """One claim of a task, and its outcome.

    `base_commit` is where its branch was when it began. `waits_for` says what it waits for before it begins, and
    `finishing` how its command has ended it, while the command still runs. `kept` is its work, if it did not complete
    the task; `problem` says why that could not be kept. `definition_hash` is the version of the agent's definition,
    `prompt_hash` that of the system prompt it was given, with the rules and references in `include`. `profile` is what
    the agent worked with, `leased` what it holds or held of what the task needs, and `input_tokens`, `output_tokens`
    and `cost_usd` are what its program says that it used.
    """

    attempt: int
    agent_id: str
    claimed_at: Micros
    started_at: Micros | None
    ended_at: Micros | None
    outcome: str | None
    error_class: str | None
    error_message: str | None
    worktree: str | None
    base_commit: str | None
    waits_for: str | None
    finishing: Literal["completed", "failed", "released"] | None
    kept: KeptWork | None
    problem: str | None
    definition_id: str | None
    definition_hash: str | None
    prompt_hash: str | None
    include: list[str] | None
    profile: str | None
    input_tokens: int | None
    output_tokens: int | None
    cost_usd: float | None
    check: AttemptCheck | None
    leased: Leased | None


class TaskInfo(TaskSummary):
    """A task in full. `needs` are its own, null: those of its persona; `waits_for` says what of them is not free, and
    `approval_id` is the approval that it waits for.
    """

    description: GivenText
    run: GivenCommand
    check: GivenCheck
    done_when: DoneWhen | None
    needs: dict[str, Any] | None
    waits_for: str | None
    context_ref: str | None
    metadata: GivenData
    dependencies: list[int]
    blocked_by: list[int]
    created_by: str
    created_at: Micros
    claimed_at: Micros | None
    started_at: Micros | None
    completed_at: Micros | None
    lease_expires_at: Micros | None
    max_retries: int
    lease_seconds: float
    reserved_for: str | None
    on_failure: OnFailure
    no_retry: list[str]
    result_data: Json
    artifacts: list[str]
    attempts: list[Attempt]
    approval_id: int | None


class Assignment(TaskInfo):
    """A task for the agent that is to do it: as it was given, with the secrets in it.

    `messages`: the comments on it, and what was told to the agent that it has not acted on, oldest first.
    """

    title: str
    description: str
    run: str | list[str] | None
    check: Json
    metadata: dict[str, Any]
    messages: list[Message] = []


class NewlyCreated(TaskInfo):
    """A task that was just created. `note` says who can do it, if it has no command, that its parent has ended, and
    what it needs that is not there.

    `warnings` are about secrets in it, which stay in it.
    """

    note: str | None
    warnings: list[str]


def warnings_of(new: NewTask, name: str = "") -> list[str]:
    """Warnings about the secrets in a new task.

    Args:
        name: its name in the plan, or how else it is told from others.
    """
    parts = {name: getattr(new, name) for name in ("title", "description", "run", "check", "metadata")}
    of = f"{name}: " if name else ""
    return [warning for part, value in parts.items() for warning in warnings_about(f"{of}{part}", value)]


class TaskStatus(Wire):
    """The state of a task, in brief."""

    id: int
    status: TaskState
    progress: int
    attempt: int
    assigned_agent_id: str | None
    lease_expires_at: Micros | None
    blocked_by: list[int]
    error_message: str | None
