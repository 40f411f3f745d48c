"""Agents and personas as objects of a notebook: `wb.agents`, `wb.personas`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from kernel_ext.objects.kinds import NotebookSession, ObjectKind, got_by
from kernel_ext.objects.rows import Listing, Row
from kernel_ext.result import Result
from workbench.present.declared import empty_of, table_of
from workbench.present.tables import Table, TablePage
from workbench.rules.wire.arguments import plain

if TYPE_CHECKING:
    from kernel_ext.hosting.host import KernelHost

PAGE = 500


class Agent(Row):
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

    def update(self, *, reason: str = "", **changes: Any) -> None:
        """Change its grant, name, id, session or team: `agent.update(persona_id="tester", session_id="november")`.

        Raises:
            WorkbenchError: see the operation ``update_agent``.
        """
        self._call("update_agent", agent_id=self.agent_id, changes=changes, reason=reason)
        self._key = changes.get("agent_id", self._key)
        self.refresh()

    def terminate(self, reason: str = "") -> None:
        """End its process and everything that it started; its tasks are released.

        Raises:
            WorkbenchError: see the operation ``terminate_agent``.
        """
        self._changed("terminate_agent", agent_id=self.agent_id, reason=reason)

    def restart(self) -> None:
        """End its process, if it runs, and start another.

        Raises:
            WorkbenchError: see the operation ``restart_agent``.
        """
        self._changed("restart_agent", agent_id=self.agent_id)

    def revoke(self, reason: str = "") -> None:
        """Revoke its admission: its token stops working at once.

        Raises:
            WorkbenchError: see the operation ``revoke_agent``.
        """
        self._changed("revoke_agent", agent_id=self.agent_id, reason=reason)

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
        self._changed("restore_agent", agent_id=self.agent_id)

    @property
    def changes(self) -> Table:
        """What happened to it, oldest first."""
        table: Table = self._notebook.run(["history", "--", self.agent_id])
        return table

    def _shown(self) -> TablePage:
        page: TablePage = self._notebook.run(["agent", "--", self.agent_id])
        return page


class Agents(Listing[Agent]):
    """The agents: `wb.agents["ada"]`; a call has the filters of `list_agents`: `wb.agents(presence="active")`."""

    def __init__(self, notebook: NotebookSession) -> None:
        super().__init__(notebook, Agent._KIND)


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

    def save(self, text: str) -> None:
        """Save it with this text, front matter included. Its agents get the text from now on.

        Raises:
            WorkbenchError: see the operation ``save_persona``.
        """
        self._changed("save_persona", persona_id=self.id, text=text)

    @property
    def versions(self) -> Table:
        """Its versions, newest first."""
        table: Table = self._notebook.run(["personas", "versions", "--", self.id])
        return table

    def _shown(self) -> Table:
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
