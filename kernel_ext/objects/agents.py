"""Agents, their processes and personas as objects of a notebook: `wb.agents`, `wb.processes`, `wb.personas`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from kernel_ext.objects.kinds import NotebookSession, ObjectKind, got_by
from kernel_ext.objects.rows import Listing, Row, Rows
from kernel_ext.objects.spending import Spending, spending
from kernel_ext.objects.tasks import Task, Tasks
from kernel_ext.result import Result
from workbench.cli.processes import NO_PROCESSES, process_table
from workbench.present.declared import empty_of, table_of
from workbench.present.tables import Table, TablePage
from workbench.rules.wire.arguments import plain

if TYPE_CHECKING:
    from kernel_ext.hosting.host import KernelHost

PAGE = 500


class Spawned(Row):
    """An agent, or its process: what can be done with the process."""

    agent_id: str

    def terminate(self, reason: str = "") -> None:
        """End its process and everything that it started; its tasks are released.

        Raises:
            WorkbenchError: see the operation ``terminate_agent``.
        """
        self._change("terminate_agent", agent_id=self.agent_id, reason=reason)

    def restart(self) -> None:
        """End its process, if it runs, and start another.

        Raises:
            WorkbenchError: see the operation ``restart_agent``.
        """
        self._change("restart_agent", agent_id=self.agent_id)


class Agent(Spawned):
    """An agent; a cell shows its grant, its connections and its latest events."""

    _KIND: ClassVar[ObjectKind[Agent]]

    agent_id: str
    name: str
    registration_status: str
    status: str
    presence: str
    persona_id: str | None
    role: str
    tool: str
    access_level: str
    definitions: str | None
    tools: list[str]
    self_tools: str
    session_id: str | None
    session: str | None
    team_id: str | None
    team: str | None
    worktree: str | None
    parent: str | None
    definition: str | None
    definition_id: str | None
    definition_hash: str | None
    capabilities: list[str]
    client: str | None
    address: str | None
    connection_id: str | None
    connections: int
    id_only: bool
    expires_at: str | None
    registered_at: str
    last_heartbeat: str | None
    deleted_at: str | None
    held_for: str | None
    held_until: str | None
    machine: str | None

    def update(self, *, reason: str = "", **changes: Any) -> None:
        """Change its grant, name, id, session or team: `agent.update(persona_id="tester", session_id="november")`.

        Raises:
            WorkbenchError: see the operation ``update_agent``.
        """
        self._call("update_agent", agent_id=self.agent_id, changes=changes, reason=reason)
        self._key = changes.get("agent_id", self._key)
        self.refresh()

    def tell(self, text: str, *, interrupt: bool = False) -> None:
        """Tell it something: `agent.tell("Use CSV.")`.

        Args:
            interrupt: end the turn that its program is in.

        Raises:
            WorkbenchError: see the operation ``tell``.
        """
        self._call("tell", agent_id=self.agent_id, text=text, interrupt=interrupt)

    @property
    def messages(self) -> Table:
        """What it was told, asked and answered, the newest first."""
        table: Table = self._notebook.run(["messages", "--agent", self.agent_id])
        return table

    def revoke(self, reason: str = "") -> None:
        """Revoke its admission: its token stops working at once.

        Raises:
            WorkbenchError: see the operation ``revoke_agent``.
        """
        self._change("revoke_agent", agent_id=self.agent_id, reason=reason)

    def delete(self, reason: str = "") -> None:
        """Delete it; `restore` takes it back.

        Raises:
            WorkbenchError: see the operation ``delete_agent``.
        """
        self._call("delete_agent", agent_id=self.agent_id, reason=reason)

    def restore(self) -> None:
        """Restore it after it was deleted.

        Raises:
            WorkbenchError: see the operation ``restore_agent``.
        """
        self._change("restore_agent", agent_id=self.agent_id)

    @property
    def tasks(self) -> Rows[Task]:
        """The tasks that it holds, or held last."""
        return Tasks(self._notebook)(agent=self.agent_id)

    @property
    def cost(self) -> Spending:
        """What it used of models, and what that cost, by its attempts."""
        return spending(self._notebook, "attempt", agent_id=self.agent_id)

    @property
    def changes(self) -> Table:
        """What happened to it, oldest first."""
        table: Table = self._notebook.run(["history", "--", self.agent_id])
        return table

    def _render(self) -> TablePage:
        page: TablePage = self._notebook.run(["agent", "--", self.agent_id])
        return page


class Agents(Listing[Agent]):
    """The agents: `wb.agents["ada"]`; a call has the filters of `list_agents`: `wb.agents(presence="active")`."""

    def __init__(self, notebook: NotebookSession) -> None:
        super().__init__(notebook, Agent._KIND)

    def spawn(self, persona: str | None = None, **more: Any) -> Agent:
        """Start an agent as a process of its own: `wb.agents.spawn("implementer", assigned_worktree="fix")`.

        Args:
            persona: None: that of its `definition`.
            more: other arguments of the operation `spawn_agent`.

        Raises:
            WorkbenchError: see the operation ``spawn_agent``.
        """
        return self[self._make("spawn_agent", persona_id=persona, **more)["agent_id"]]


Agent._KIND = ObjectKind(
    Agent,
    "list_agents",
    "agents",
    "agent_id",
    partial(table_of, "list_agents"),
    empty_of("list_agents"),
    got_by("get_agent", "agent_id"),
    first={"limit": PAGE},
    words={"session": "session_id", "team": "team_id"},
)


class Process(Spawned):
    """The process of an agent that was spawned; a cell shows what it uses, or how it ended, and the end of its log."""

    _KIND: ClassVar[ObjectKind[Process]]

    agent_id: str
    machine: str
    state: str
    running: bool
    pid: int | None
    profile: str
    mode: str
    task_id: int | None
    worktree: str | None
    definition: str | None
    definition_hash: str | None
    prompt_hash: str | None
    include: list[str] | None
    limits: dict[str, Any]
    confinement: dict[str, Any]
    cpu_seconds: float
    cpu_percent: float
    memory_bytes: int
    children: list[dict[str, Any]]
    exit_code: int | None
    reason: str | None
    spawned_at: str
    ended_at: str | None
    log: str
    log_tail: list[str]
    log_after: int | None
    queue_place: int | None

    @property
    def agent(self) -> Agent:
        """Its agent."""
        return Agents(self._notebook)[self.agent_id]

    def _render(self) -> TablePage:
        log = Table([], [], "", lead="\n".join(self.log_tail) or "The log is empty.")
        use = process_table([self.as_dict()], NO_PROCESSES)
        return TablePage([(f"Process of {self.agent_id}", use), ("Log", log)], self.as_dict())


class Processes(Listing[Process]):
    """The processes of agents that were spawned: `wb.processes["w1"].log_tail`."""

    def __init__(self, notebook: NotebookSession) -> None:
        super().__init__(notebook, Process._KIND)


Process._KIND = ObjectKind(
    Process,
    "get_managed_agents",
    "agents",
    "agent_id",
    process_table,
    NO_PROCESSES,
    got_by("get_agent_process_info", "agent_id"),
    called="processes",
    part="process",
    tab="agents",
)


class Persona(Row):
    """A kind of work that agents take; a cell shows the instructions for its agents."""

    _KIND: ClassVar[ObjectKind[Persona]]

    id: str
    name: str
    role: str
    definition: str
    sha256: str
    source: str
    updated_at: str
    workplace: dict[str, Any] | None
    check: Any
    budget: Any
    needs: Any

    def save(self, text: str) -> None:
        """Save it with this text, front matter included. Its agents get the text from now on.

        Raises:
            WorkbenchError: see the operation ``save_persona``.
        """
        self._change("save_persona", persona_id=self.id, text=text)

    @property
    def versions(self) -> Table:
        """Its versions, newest first."""
        table: Table = self._notebook.run(["personas", "versions", "--", self.id])
        return table

    def _render(self) -> Table:
        return Table([], [], "", self.as_dict(), lead=self.definition)


class Personas(Listing[Persona]):
    """The kinds of work that agents take: `wb.personas["reviewer"]`."""

    def __init__(self, notebook: NotebookSession) -> None:
        super().__init__(notebook, Persona._KIND)


Persona._KIND = ObjectKind(
    Persona,
    "get_personas",
    "personas",
    "id",
    partial(table_of, "get_personas"),
    empty_of("get_personas"),
    got_by("get_persona", "persona_id"),
)


class NotebookAgent:
    """An agent that is code in the notebook."""

    def __init__(self, host: KernelHost, token: str) -> None:
        self._host = host
        self._token = token

    def call(self, name: str, /, **arguments: Any) -> Result:
        """Run an operation as this agent. See `WorkbenchSession.call`.

        Raises:
            WorkbenchError: what the operation raises.
        """
        return Result(self._host.wait(self._host.acall_as(self._token, name, **plain(name, arguments))))
