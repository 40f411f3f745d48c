"""The panel of `%workbench panel`: the inbox, and the state of agents, tasks, worktrees and processes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar

import traitlets

from kernel_ext.panels import STATIC, may_have_reader, try_to_send
from kernel_ext.panels.panel import Panel
from kernel_ext.panels.publisher import Publisher
from kernel_ext.panels.request_handler import RequestHandler
from kernel_ext.panels.rows import Row, Tables, in_tree, waits_for
from kernel_ext.panels.sources import SOURCES, UNSENT, Call
from workbench.cli.approvals import budget_text, failure_text, plan_text, question_text
from workbench.cli.grants import session_text
from workbench.cli.integration import merge_lines
from workbench.cli.output import counted
from workbench.cli.runs import COLUMNS, NO_RUNS, run_table
from workbench.errors import BadInput, Unavailable, WorkbenchError
from workbench.present.tables import StateCell, Table
from workbench.rules.personalities.addresses import node_label
from workbench.rules.tools.results import as_json, shortened

if TYPE_CHECKING:
    from kernel_ext.hosting.host import KernelHost

SHOWN_AGENTS = 50
SHOWN_DEFINITIONS = 50
SHOWN_TASKS = 50
SHOWN_RUNS = 50
"""The most rows of the static tables; the panel itself shows all."""
SHOWN_ARGUMENTS = 200
"""Longer arguments of a tool call are cut in the static tables."""
OPTIONAL = ("Definitions", "Worktrees", "Processes", "Runs")
"""The static tables that are left out when they are empty."""
SECTIONS = {"Inbox": "Waiting for you"} | {
    name: name for name in ("Tasks", "Worktrees", "Agents", "Definitions", "Runs")
}
"""How the title of a tab's static table begins."""
LIVE_ONLY = "It is shown only live, in a notebook whose kernel runs. Run this cell to see it."
"""Stands for a tab without a static table."""
INDENT = "· "
END_SECONDS = 2.0
"""How long a stop may wait for the last state of a panel without a page."""


class Desk(Panel):
    """The panel of `%workbench panel`, live: inbox, tasks, worktrees, agents, projects, administration.

    Args:
        host: a started `KernelHost`. When it stops, the panel says so; when it runs again, the panel continues.
        traits: values of `tab`, `alone` and `docked`.
    """

    tab = traitlets.Unicode("").tag(sync=True)
    """The label of the tab that is shown first."""
    alone = traitlets.Bool(False).tag(sync=True)
    """Whether that tab is the only one."""
    docked = traitlets.Bool(False).tag(sync=True)
    """Whether it is put beside the notebook, where the page can do so."""

    _esm = STATIC / "desk.js"
    _css = STATIC / "desk.css"
    _summarised: ClassVar[Sequence[str]] = (
        *("approvals", "agents", "definitions", "tasks", "worktrees", "processes"),
        "runs",
    )
    """The tables that `sections` needs."""

    def __init__(self, host: KernelHost, **traits: Any) -> None:
        self._workbench_host = host
        self._publisher = Publisher(host, self._send_to_page, self._keep)
        self._requests = RequestHandler(host, self.post)
        self._closed_with: WorkbenchError | None = None
        super().__init__(**traits)

    def _ipython_display_(self) -> None:
        super()._ipython_display_()
        if may_have_reader():  # its tables are kept up to date until a page is live
            self._publisher.resync()

    def _send_to_page(self, content: Mapping[str, Any], buffers: list[bytes]) -> None:
        if self._has_page:
            self.post(content, buffers)

    def on_message(self, content: Mapping[str, Any]) -> None:
        """`resync` asks for a snapshot, `action` for an operation, `asset` for a bundle; `look`: somebody looks."""
        self._has_page = True
        self._is_shared = self._is_shared or content.get("shared") is True
        if self._closed_with is not None:
            try_to_send(self.post, {"kind": "stopped", "error": self._closed_with.as_dict()})
        elif content.get("kind") == "resync":
            self._publisher.resync()
        elif content.get("kind") == "look":
            self._publisher.note_look()
        elif content.get("kind") in ("action", "asset"):
            self._requests.take(content)

    def close(self) -> None:
        """Stop following the feed. The page keeps its content and says how to continue. May be called twice."""
        if self._closed_with is None:
            self._keep_at_end()
        self._closed_with = Unavailable(
            "PANEL_CLOSED", "Workbench was stopped. Run `%workbench start`, then run the panel's cell again."
        )
        self._publisher.stop(self._closed_with)

    def summary(self) -> list[tuple[str, Table]]:
        """The inbox, the first agents and tasks, the worktrees and processes; or why Workbench does not answer."""
        try:
            return self.sections(self._read().result())
        except WorkbenchError as error:
            return [("Workbench", Table([], [], f"{error.code}: {error.message}"))]

    def _read(self) -> Future[Tables]:
        host = self._workbench_host
        return host.submit(read_tables(host.acall, self._summarised))

    def _keep_at_end(self) -> None:
        """Keep the tables that the page has. Without a page they are read, if that takes no longer than a moment."""
        with suppress(WorkbenchError, TimeoutError):
            if tables := self._publisher.tables:
                self._keep(tables, ended=True)
            elif self._displayed:
                self._keep(self._read().result(END_SECONDS), ended=True)

    def _keep(self, tables: Tables, *, ended: bool = False) -> None:
        self.keep_last_state(self.sections(tables), ended=ended)

    def sections(self, tables: Tables) -> list[tuple[str, Table]]:
        """What is shown where the panel is not live: titled tables. A project may be without some of them."""
        if self.alone and self.tab not in SECTIONS:
            return [(self.tab, Table([], [], LIVE_ONLY))]
        only = SECTIONS[self.tab] if self.alone else ""
        sections = [(title, table) for title, table in self._all(tables) if title.startswith(only)]
        return [(title, table) for title, table in sections if only or table.rows or title not in OPTIONAL]

    def _all(self, tables: Tables) -> list[tuple[str, Table]]:
        """What a panel with all tabs shows."""
        return [
            ("Waiting for you", inbox_table(list(tables["approvals"].values()))),
            ("Agents", agent_table(list(tables["agents"].values()))),
            ("Definitions", definition_table(_without_error(tables.get("definitions", {})))),
            (task_heading(tables["tasks"]), task_table(tables["tasks"])),
            ("Worktrees", worktree_table(_without_error(tables.get("worktrees", {})))),
            ("Processes", process_table(_without_error(tables.get("processes", {})))),
            ("Runs", runs_table(list(tables.get("runs", {}).values()))),
        ]


def _without_error(table: Mapping[str, Row]) -> Mapping[str, Row]:
    """The rows without the one that holds an error, whose id is empty."""
    return {name: row for name, row in table.items() if name}


async def read_tables(call: Call, names: Sequence[str]) -> Tables:
    """Some tables; those that the project cannot have, without a repository, are empty."""
    tables: dict[str, Mapping[Any, Row]] = {}
    sources = {**SOURCES, **UNSENT}
    for name in names:
        try:
            tables[name] = await sources[name].read(call)
        except BadInput:
            tables[name] = {}
    return tables


def inbox_table(approvals: Sequence[Mapping[str, Any]], note: str = "") -> Table:
    """Pending approvals without ids, times and commits; `note` stands below them."""
    rows = [[_name(a), a["kind"], _request(a)] for a in approvals]
    return Table(["Name", "Kind", "Request"], rows, "Nothing is waiting for you.", note=note)


def agent_table(agents: Sequence[Mapping[str, Any]]) -> Table:
    """The first admitted agents, without values that change with time."""
    admitted = [a for a in agents if a["registration_status"] not in ("pending", "rejected")]
    rows = [
        [
            agent["agent_id"],
            agent["name"],
            agent["registration_status"],
            agent.get("persona_id"),
            agent.get("role"),
            agent.get("tool"),
            agent.get("session"),
            agent.get("team"),
        ]
        for agent in admitted[:SHOWN_AGENTS]
    ]
    more = len(admitted) - SHOWN_AGENTS
    heads = ["Agent", "Name", "State", "Persona", "Role", "Permission", "Session", "Team"]
    return Table(heads, rows, "No agents yet.", note=f"… and {more:,} more" if more > 0 else "")


def task_table(tasks: Mapping[Any, Row]) -> Table:
    """The first tasks of the tree, indented by depth."""
    rows = [
        [
            row["id"],
            INDENT * depth + row["title"],
            StateCell(_state(row, tasks)),
            row["persona_id"],
            row.get("worktree"),
            row.get("assigned_agent_id"),
            f"{row['progress']} %",
        ]
        for row, depth in islice(in_tree(tasks), SHOWN_TASKS)
    ]
    if len(tasks) > SHOWN_TASKS:
        rows.append(["", f"… and {len(tasks) - SHOWN_TASKS:,} more", "", "", "", "", ""])
    return Table(["Id", "Task", "State", "Persona", "Worktree", "Agent", "Progress"], rows, "No tasks yet.")


def definition_table(definitions: Mapping[str, Row]) -> Table:
    """The first definitions by name; of one that cannot be read, why."""
    ordered = sorted(definitions.values(), key=lambda row: (row.get("name", ""), row["id"]))
    rows = [[row.get("name"), row.get("mode"), row.get("problem") or row.get("description")] for row in ordered]
    more = len(rows) - SHOWN_DEFINITIONS
    note = f"… and {more:,} more" if more > 0 else ""
    return Table(["Definition", "Mode", "Description"], rows[:SHOWN_DEFINITIONS], "No definitions.", note=note)


def worktree_table(worktrees: Mapping[str, Row]) -> Table:
    """Open worktrees without commits and times."""
    rows = [
        [
            name,
            f"{row['branch_name']} → {row['integration_target']}",
            StateCell(row["status"]),
            f"{row['ahead']} ahead, {row['behind']} behind",
            row["changed"],
            row["uncommitted"],
            ", ".join(row["conflicts"]),
        ]
        for name, row in sorted(worktrees.items())
    ]
    heads = ["Worktree", "Branch", "State", "Commits", "Files", "Uncommitted", "Conflicts"]
    return Table(heads, rows, "No worktrees.")


def process_table(processes: Mapping[str, Row]) -> Table:
    """Agents that Workbench started, without values that change with time."""
    rows = [
        [
            agent_id,
            row["persona_id"],
            row["profile"],
            StateCell(_process_state(row)),
            row.get("worktree"),
            confinement_words(row.get("confinement")),
        ]
        for agent_id, row in sorted(processes.items())
    ]
    return Table(["Agent", "Persona", "Profile", "State", "Worktree", "Confinement"], rows, "No agent was started.")


def runs_table(runs: Sequence[Row]) -> Table:
    """The newest runs, without how long they took."""
    columns = {name: head.capitalize() for name, head in COLUMNS.items() if name != "seconds"}
    table = run_table(runs[:SHOWN_RUNS], NO_RUNS, columns)
    return Table(table.columns, table.rows, table.empty, note="… and more" if len(runs) > SHOWN_RUNS else "")


def confinement_words(confinement: Mapping[str, Any] | None) -> str:
    """How a process is confined: `confined, but for ports`."""
    if not confinement or not confinement["enforced"]:
        return "not confined"
    return f"confined, but for {', '.join(confinement['missing'])}" if confinement["missing"] else "confined"


def task_heading(tasks: Mapping[Any, Row]) -> str:
    """`Tasks: 3 of 8 completed`"""
    counts = Counter(row["status"] for row in tasks.values())
    total = counts.total() - counts["cancelled"]
    return f"Tasks: {counts['completed']:,} of {total:,} completed" if total else "Tasks"


def _state(row: Row, every: Mapping[Any, Row]) -> str:
    waits = waits_for(row, every)
    return f"blocked, waits for {', '.join(map(str, waits))}" if waits else row["status"].replace("_", " ")


def _process_state(row: Row) -> str:
    if row["state"] == "queued":
        return f"queued, number {row.get('queue_place', '?')}"
    if row["state"] == "ended" and "exit_code" in row:
        return f"ended with {row['exit_code']}"
    return str(row["state"])


def _name(approval: Mapping[str, Any]) -> str:
    payload = approval["payload"]
    names = (payload.get(key) for key in ("name", "worktree", "definition", "tool", "what"))
    return str(next(filter(None, names), approval["subject"]))


def _request(approval: Mapping[str, Any]) -> str:
    payload = approval["payload"]
    if approval["kind"] == "registration":
        session = session_text(payload.get("suggested_session"))
        return f"{payload.get('persona_id') or 'no persona'}, as {payload.get('suggested_id')}, {session}"
    if approval["kind"] == "integration":
        size = f"{counted(payload['ahead'], 'commit')}, {counted(len(payload['files']), 'file')}"
        return merge_lines(payload, size)
    if approval["kind"] == "trust":
        return "; ".join(need["summary"] for need in payload["needs"])
    if approval["kind"] in ("tool_call", "peer_call"):
        origin = payload.get("origin")  # the node that sent the call
        sender = f"the node {node_label(origin['node'])}, whose caller says it is {origin['says']}," if origin else None
        caller = sender or payload["caller"]
        return f"called by {caller} with {shortened(as_json(payload['arguments']), SHOWN_ARGUMENTS)}"
    if approval["kind"] == "failure":
        return failure_text(payload)
    if approval["kind"] == "budget":
        return budget_text(payload)
    if approval["kind"] == "plan":
        return plan_text(payload)
    return question_text(payload) if approval["kind"] in ("question", "agent_question") else ""
