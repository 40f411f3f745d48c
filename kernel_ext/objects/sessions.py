"""Sessions as objects of a notebook: `wb.sessions`."""

from __future__ import annotations

from functools import partial
from typing import ClassVar

from kernel_ext.objects.agents import Agent, Agents
from kernel_ext.objects.kinds import NotebookSession, ObjectKind, got_by
from kernel_ext.objects.rows import Listing, Row, Rows
from kernel_ext.objects.tasks import Task, Tasks
from workbench.present.declared import empty_of, table_of


class Session(Row):
    """A session of a project of the team; a cell shows what is in it."""

    _KIND: ClassVar[ObjectKind[Session]]

    id: str
    project_id: str
    project: str
    name: str
    description: str
    teams: int
    agents: int
    contexts: int
    created_at: str
    updated_at: str
    deleted_at: str | None

    def update(self, *, name: str | None = None, description: str | None = None) -> None:
        """Rename it, or change its description.

        Raises:
            WorkbenchError: see the operation ``update_session``.
        """
        self._change("update_session", session_id=self.id, name=name, description=description)

    def delete(self) -> None:
        """Delete it with its teams and contexts; `restore` takes it back.

        Raises:
            WorkbenchError: see the operation ``delete_session``.
        """
        self._call("delete_session", session_id=self.id)

    def restore(self) -> None:
        """Restore it after it was deleted.

        Raises:
            WorkbenchError: see the operation ``restore_session``.
        """
        self._change("restore_session", session_id=self.id)

    @property
    def tasks(self) -> Rows[Task]:
        """The tasks that only its agents may claim."""
        return Tasks(self._notebook)(session=self.id)

    @property
    def members(self) -> Rows[Agent]:
        """Its agents."""
        return Agents(self._notebook)(session=self.id)


class Sessions(Listing[Session]):
    """The sessions: `wb.sessions["night"]`."""

    def __init__(self, notebook: NotebookSession) -> None:
        super().__init__(notebook, Session._KIND)

    def create(self, name: str, project: str, description: str = "") -> Session:
        """Create a session: `wb.sessions.create("night", "penguins")`.

        Args:
            project: the id or name of one that `create_project` made.

        Raises:
            WorkbenchError: see the operation ``create_session``.
        """
        made = self._make("create_session", project_id=project, name=name, description=description)
        return Session(self._notebook, made, whole=True)


Session._KIND = ObjectKind(
    Session,
    "list_sessions",
    "sessions",
    "id",
    partial(table_of, "list_sessions"),
    empty_of("list_sessions"),
    got_by("get_session", "session_id"),
    first={"limit": 500},
    words={"project": "project_id"},
    tab="projects",
    names=("name",),
)
