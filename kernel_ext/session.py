"""`wb`: a notebook's interface to a project. A kernel has one, which `%workbench` creates."""

from __future__ import annotations

import concurrent.futures.thread  # noqa: F401 (see Session.__init__)
import threading
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from os import PathLike
from pathlib import Path
from types import MappingProxyType, NoneType
from typing import TYPE_CHECKING, Any

import click

from kernel_ext import answers, sweeps
from kernel_ext.chat import Chat, Chats
from kernel_ext.commands import PANEL_TABS, tree
from kernel_ext.decisions import wait_for_decisions
from kernel_ext.definitions import Definitions, NotebookDefinition
from kernel_ext.hosting import detached
from kernel_ext.hosting.host import KernelHost, not_started
from kernel_ext.objects.agents import Agents, NotebookAgent, Personas, Processes
from kernel_ext.objects.approvals import Approvals, Decided
from kernel_ext.objects.events import Events
from kernel_ext.objects.help import described
from kernel_ext.objects.mistakes import Suggests, checked
from kernel_ext.objects.runs import Runs
from kernel_ext.objects.sessions import Sessions
from kernel_ext.objects.spending import Spending, spending
from kernel_ext.objects.tasks import Plan, Plans, Task, Tasks
from kernel_ext.objects.worktrees import Worktrees
from kernel_ext.personalities import Personalities
from kernel_ext.querying import Querying
from kernel_ext.recording import Recording, RunCaller
from kernel_ext.result import Result
from kernel_ext.tools.notebook import NotebookTools
from kernel_ext.wording import CALL_INTERRUPTED, bad_command, in_objects, interruptible, worded
from workbench import cli
from workbench.cli.client import ProjectClient
from workbench.errors import BadInput, Interrupted, NotFound, WorkbenchError
from workbench.functions.progress import progress
from workbench.model import ServerInfo
from workbench.present.graph import Graph
from workbench.present.tables import Table, TablePage
from workbench.rules.naming import suggestion
from workbench.rules.wire.arguments import plain
from workbench.rules.wording import in_magics
from workbench.state.settings import Settings
from workbench.trust.withheld import notice

if TYPE_CHECKING:
    from kernel_ext.panels.desk import Desk

ANSWER_SECONDS = 2.0
INTERNAL = frozenset({"tree", "host", "recorder", "find_server", "create_project", "require_operator"})
"""What other modules use of a session; Tab does not offer it."""


class WorkbenchSession(Suggests, Querying, Recording):
    """A notebook's interface to a project: start and stop, call operations, query.

    `tasks`, `plans`, `agents`, `personas`, `processes`, `sessions`, `approvals`, `worktrees`, `runs` and `events` are
    lists of objects, which show themselves, filter and sort, and have the actions of the panel. `definitions` are the
    definitions of agents, and `tools` what can be called, by name; `tool` makes a function one of them. `chats` are the
    conversations that `%%chat` continues, and `personalities` the agents of the KOI network. `run`, `record` and
    `artifact` record runs.
    """

    def __init__(self) -> None:
        super().__init__()
        self._host: KernelHost | None = None
        self._desks: list[Desk] = []
        self.tree = tree()
        self.definitions = Definitions(self)
        self.chats = Chats(self)
        self.personalities = Personalities(self)
        self.tasks, self.plans = Tasks(self), Plans(self)
        self.agents, self.personas, self.processes = Agents(self), Personas(self), Processes(self)
        self.sessions = Sessions(self)
        self.approvals, self.worktrees, self.events = Approvals(self), Worktrees(self), Events(self)
        self.runs = Runs(RunCaller(self, self._operate))
        self.tools = NotebookTools(self.call)
        self.tool = self.tools.tool
        self.progress = progress
        # atexit is too late: the executors that stopping needs are closed by then.
        # Callbacks run last in, first out, so the executors' own, registered by their import, has to come first.
        threading._register_atexit(self._stop_at_exit)  # type: ignore[attr-defined]

    @property
    def host(self) -> KernelHost:
        """The servers' host.

        Raises:
            Unavailable: ``NOT_STARTED``.
        """
        if self._host is None or self._host.is_stopped:
            raise not_started()
        return self._host

    @property
    def settings(self) -> Settings:
        """The settings of the open project; before the start, those of the project of the current directory.

        Raises:
            BadInput: ``BAD_SETTINGS``, ``NOT_A_DIRECTORY``.
        """
        return self.host.settings if self._host is not None and not self._host.is_stopped else Settings.load()

    @property
    def server(self) -> ServerInfo:
        """The running server.

        Raises:
            Unavailable: ``NOT_STARTED``.
        """
        if self.host.info is None:
            raise not_started()
        return self.host.info

    def start(
        self,
        project: str | Path | None = None,
        port: int | None = None,
        *,
        end_workers: bool = False,
        detach: bool = False,
    ) -> cli.Note:
        """Start the servers for a project, or attach to the process that serves it.

        A start that fails or is interrupted leaves nothing behind, except what `stop` stops.

        Args:
            project: None: the project that runs, or that of the current directory.
            end_workers: end the agents' processes that an earlier server left; otherwise they are taken back.
            detach: run the servers in a process of their own, which a restart of the kernel does not end. Panels that
                this kernel's own servers show are closed.

        Raises:
            BadInput: ``BAD_SETTINGS``, ``NOT_A_DIRECTORY``. Unavailable: ``SERVER_NOT_STARTED``. Other errors: see
                `KernelHost.start`; the project that ran before then runs again.
        """
        if project is not None:
            project = Path(checked(project, (str, PathLike), "wb.start", "the directory of a project"))
        settings, running = Settings.load(project), self._running_settings
        if detach:
            return self._detach(running, settings, port, end_workers)
        if running is None or running.project == settings.project:
            return self._start(settings, port, end_workers)
        if project is not None:
            return self._change(running, settings, port, end_workers)
        note = self._start(running, port, end_workers)
        return cli.Note(f"{note.message} {answers.other_project(settings.project)}", note.data)

    @property
    def _running_settings(self) -> Settings | None:
        """The settings of the project that runs."""
        return None if self._host is None or self._host.is_stopped else self._host.settings

    def _change(self, running: Settings, settings: Settings, port: int | None, end_workers: bool) -> cli.Note:
        """Leave the project that runs, and start another one."""
        departure = self._leave(end_workers=False, project=running.project)
        try:
            note = self._start(settings, port, end_workers)
        except WorkbenchError:
            self._start(running)
            raise
        return cli.Note(f"{departure.message} {note.message}", note.data)

    def _detach(self, running: Settings | None, settings: Settings, port: int | None, end_workers: bool) -> cli.Note:
        """Run a project's servers in a process of their own, and attach to it."""
        if running is not None and self._host is not None:
            stays = self._host.attached and running.project == settings.project
            if not stays:
                self._stop(self._host, end_workers=False)
        detachment = detached.start(settings, port, end_workers=end_workers)
        note = self._start(settings)
        return cli.Note(f"{note.message} {detachment}", note.data)

    def _start(self, settings: Settings, port: int | None = None, end_workers: bool = False) -> cli.Note:
        """Start a project's servers, unless they run."""
        if self._host is None or self._host.is_stopped:
            self.recorder.connection.use(settings)  # closed meanwhile: the host opens the store
            self._host = KernelHost(settings)
            self._forget_queries()
        before = self._host.info
        info = self._host.start(port, end_workers=end_workers)
        where = answers.started(settings.project, info, attached=self._host.attached)
        ran_before = self._host.attached or before == info
        options = {"--port": port, "--end-workers": end_workers} if ran_before else {}
        ignored = [name for name, is_given in options.items() if is_given]
        taken = answers.taken(self.tools.open(self._host))
        parts = [where, answers.unused(ignored, info), taken, notice(settings.project)]
        return cli.Note(" ".join(filter(None, parts)), info.model_dump())

    def stop(self, *, end_workers: bool = False) -> cli.Note:
        """Stop the servers that were started from here; may be called twice.

        If other processes use the project, one of them serves it from now on, and the agents' processes go on.

        Args:
            end_workers: also end the agents' processes; otherwise they go on, and the next start takes them back.

        Raises:
            Unavailable: ``STILL_STOPPING``; see `KernelHost.stop`.
        """
        if self._host is None or self._host.is_stopped:
            return cli.Note("Workbench was not running.")
        return self._leave(end_workers)

    def _leave(self, end_workers: bool, project: Path | None = None) -> cli.Note:
        """Stop what runs.

        Args:
            project: named in the answer.
        """
        assert self._host is not None
        agents = self._running_agents()
        ends_detached = detached.used_only_by(self._host)
        self._stop(self._host, end_workers and not ends_detached)
        departure = self._host.departure
        if ends_detached and departure is not None:
            departure = detached.end(self._host.settings, departure, end_workers=end_workers)
        others = departure.others if departure else ()
        working = [] if end_workers and not others else agents
        return cli.Note(answers.stopped(departure, agents, project), {"kept": working, "others": list(others)})

    def _stop(self, host: KernelHost, end_workers: bool) -> None:
        with ExitStack() as stack:
            stack.callback(host.stop, end_workers=end_workers)
            stack.callback(self.tools.close)
            while self._desks:
                stack.callback(self._desks.pop().close)

    def _running_agents(self) -> list[str]:
        """The agents whose processes run, if the server answers soon."""
        if self._host is None or not self._host.running:
            return []
        with suppress(WorkbenchError, TimeoutError):
            agents = self._host.submit(self._host.acall("get_managed_agents")).result(ANSWER_SECONDS)["agents"]
            return [agent["agent_id"] for agent in agents if agent["process"] and agent["process"]["running"]]
        return []

    def _stop_at_exit(self) -> None:
        if self._host is not None:
            with suppress(WorkbenchError):  # no cell is left to show it in
                self._stop(self._host, end_workers=not _is_restarting())

    def run(
        self,
        name: str | Sequence[str],
        /,
        *,
        tags: Sequence[str] = (),
        definitions: Sequence[str] = (),
        **parameters: Any,
    ) -> Any:
        """A run for a block: `with wb.run("baseline", lr=0.1) as run: run.record(loss=0.5)`.

        It is completed with the block; an error in it makes it `failed`, an interrupt `cancelled`. In a notebook that a
        sweep runs, it is the run of the sweep.

        Args:
            name: given the words of a `%workbench` command instead, this runs the command and returns its result.
            tags: the run's tags.
            definitions: the agent definitions that it uses.
            parameters: the run's parameters.

        Raises:
            BadInput: ``BAD_COMMAND``. Other errors: see `start_run`; the command fails.
        """
        if isinstance(name, str):
            return self._begin(name, tags, definitions, parameters)
        words = checked(name, Sequence, "wb.run", "the name of a run, or the words of a command")
        return self._command([str(word) for word in words])

    def _command(self, words: Sequence[str]) -> Any:
        """Run a command of `%workbench` and return its result. The status needs no start."""
        if self._running_settings is None and list(words[:1]) == ["status"]:
            client = ProjectClient(self.settings.project)
            status = detached.in_thread(lambda: self._run_with(client, words))
            return replace(status, note=f"{status.note} {not_started().message}".strip()) if status else status
        return self._run_with(self, words)

    def _run_with(self, client: WorkbenchSession | ProjectClient, words: Sequence[str]) -> Any:
        try:
            return worded(self.tree.main(list(words), prog_name="%workbench", obj=client, standalone_mode=False))
        except click.Abort as abort:  # click's error for an interrupt
            cause = abort.__cause__
            is_call = isinstance(cause, Interrupted) and cause.code == CALL_INTERRUPTED
            raise cli.interruption(click.Abort() if is_call else abort) from None
        except click.ClickException as error:
            context = getattr(error, "ctx", None)
            command = context.command_path if context else "%workbench"
            raise bad_command(in_magics(error.format_message()), f"{command} --help") from None

    def panel(self, tab: str = "inbox", *, alone: bool = False, dock: bool = False) -> Desk:
        """Open the panel, which shows the inbox, agents, tasks and worktrees live.

        Args:
            tab: the one that is shown first; see `PANEL_TABS`.
            alone: without the others.
            dock: put it beside the notebook, which JupyterLab can do; elsewhere it is shown in the cell.

        Raises:
            BadInput: ``UNKNOWN_TAB``.
        """
        from kernel_ext.panels.desk import Desk

        if checked(tab, str, "wb.panel", "the name of a tab").lower() not in PANEL_TABS:
            hint = f"{suggestion(tab, PANEL_TABS)}It has {', '.join(PANEL_TABS)}."
            raise BadInput("UNKNOWN_TAB", f"The panel has no tab {tab!r}. {hint}")
        desk = Desk(self.host, tab=tab.capitalize(), alone=alone, docked=dock)
        self._desks.append(desk)
        return desk

    def call(self, name: str, /, **arguments: Any) -> Result:
        """Run any operation as the operator. The result is a dict, which a cell shows as tables.

        Raises:
            WorkbenchError: what the operation raises. Interrupted: ``CALL_INTERRUPTED``.
        """
        checked(name, str, "wb.call", "the name of an operation")
        try:
            with interruptible(name):
                return Result(self.host.call(name, **plain(name, arguments)))
        except NotFound as error:
            if error.code != "UNKNOWN_OPERATION":
                raise
            raise error.with_hint(lambda _: "wb.help() lists them by subject.") from None

    def chat(
        self, definition: str | NotebookDefinition | None = None, *, conversation: str | None = None, **options: Any
    ) -> Chat:
        """Begin a conversation with the agent of a definition, or with a model; or continue one.

        Args:
            conversation: the id of the one to continue.
            options: other arguments of the operation `create_conversation`, such as `model`, `tools` and `limits`.

        Raises:
            WorkbenchError: what the operation raises. NotFound: ``CONVERSATION_NOT_FOUND``.
        """
        if conversation is None:
            return Chat(self, self.call("create_conversation", definition=definition, **options)["id"])
        return Chat(self, conversation).update(**options)

    def find_server(self) -> ServerInfo | None:
        """The server of the project, while this kernel serves it or is attached to it."""
        return self._host.info if self._host is not None else None

    def create_project(self) -> None:
        """See `OperatorClient.create_project`."""
        if self._running_settings is None:  # else the start has created it
            detached.in_thread(ProjectClient(self.settings.project).create_project)

    def sweep(
        self,
        notebook: str | Path | None = None,
        *,
        parameters: Mapping[str, Any] = MappingProxyType({}),
        persona: str | Sequence[str] | None = None,
        definition: str | Sequence[str] | None = None,
        repeat: int = 1,
        resume: bool = False,
        retry_failed: bool = False,
        changed: bool = False,
        dry_run: bool = False,
        **options: Any,
    ) -> Any:
        """Run a notebook once for each combination of values, several at a time; each is a run with a record.

        Args:
            notebook: its path; None, with a `name` and `resume` or `retry_failed`: go on as the sweep was begun.
            changed: go on, although the notebook has changed since; the runs record its new hash.
            parameters: lists of values by name, or ranges as texts, such as ``"1..50"``.
            persona, definition: go over these, besides the parameters.
            options: `name`, `workers`, `timeout` (seconds of a run), `memory` (of a run, such as ``"2 GB"``), `share`,
                `dask` (``"local"``, or the address of a scheduler), `kernel` (its name).

        Raises:
            BadInput: the notebook does not take these values. NotFound: ``SWEEP_NOT_FOUND``. Conflict:
                ``SWEEP_EXISTS``, ``SWEEP_CHANGED``, ``SWEEP_RUNNING``.
        """
        over = {"persona": sweeps.strings(persona), "definition": sweeps.strings(definition)}
        dimensions = {name: names for name, names in over.items() if names}
        how = (repeat, resume, retry_failed, dry_run, changed)
        largest = self.settings.max_sweep_runs
        with sweeps.errors_in_python():
            request = sweeps.request_of(largest, notebook, parameters, dimensions, *how, **options)
            return sweeps.run(self, request, sweeps.in_python)

    async def carry_out(
        self,
        plan: str | Plan,
        *,
        staff: str = "",
        integrate: str = "ask",
        budget: str = "",
        partly: bool = False,
    ) -> Table:
        """Carry out a plan: make its worktrees, start agents, wait, ask for the merges; `await wb.carry_out("tidy")`.

        The cell shows how far it is. An interrupt ends the agents; called again, it goes on with what is left. The
        result is the account: each task with its outcome, its check, what it took and cost, and what waits for you.

        Args:
            plan: its name, or one of `wb.plans`.
            staff: who works, such as ``implementer=2:claude,reviewer=1``; empty: a worker for each worktree runs the
                commands of its tasks.
            integrate: ``ask``, or ``auto-if-checked``: merge what is checked at once.
            budget: what the plan may spend, such as ``20usd, 500k tokens``; empty: what is set.
            partly: leave what nobody is there to do, instead of refusing to begin.

        Raises:
            NotFound: ``PLAN_NOT_FOUND``. BadInput: ``NO_STAFF``, ``BAD_STAFF``, ``BAD_BUDGET``. Conflict:
                ``PLAN_UNDER_WAY``. Other errors: see the operation ``spawn_agent``.
        """
        from kernel_ext.execution import carry_out_plan

        name = plan if isinstance(plan, str) else plan.plan
        try:
            self.call("export_plan", plan=name)
            return await carry_out_plan(self.host, name, staff, integrate, budget, partly)
        except WorkbenchError as error:
            raise in_objects(error) from None

    def account(self, plan: str | Plan) -> TablePage:
        """What has become of a plan: its tasks, what waits for what, and what happened when; `wb.account("tidy")`.

        Args:
            plan: its name, or one of `wb.plans`.

        Raises:
            NotFound: ``PLAN_NOT_FOUND``.
        """
        from workbench.cli.account import account_page
        from workbench.execution.account import account_of

        try:
            page: TablePage = worded(account_page(account_of(self.call, plan if isinstance(plan, str) else plan.plan)))
        except WorkbenchError as error:
            raise in_objects(error) from None
        return page

    def as_agent(self, token: str) -> NotebookAgent:
        """An agent that is code in the notebook, and makes its calls with this token."""
        return NotebookAgent(self.host, token)

    async def decided(self, *approval_ids: int, auto: bool = False) -> Decided:
        """Wait until the operator has decided and approved work is done; with `auto`, approve everything first.

        The cell shows what it waits for, with buttons to decide; the panel stays usable meanwhile. Returns the
        approvals in the order of the given ids. Their `outcome` is the new agent, or whether the worktree was
        integrated or refused.

        Raises:
            NotFound: ``APPROVAL_NOT_FOUND``. Other errors, with `auto`: see the operation ``approve``.
        """
        if auto:
            for number in approval_ids:
                self.call("approve", approval_id=number)
        try:
            return Decided(await wait_for_decisions(self.host, approval_ids))
        except WorkbenchError as error:
            raise in_objects(error) from None

    def require_operator(self, command: str) -> None:
        """The person at the notebook is the operator."""

    def task(self, task_id: int) -> Task:
        """A task. A cell shows its state, attempts, result and the end of its log; `await` waits until it has ended.

        Raises:
            NotFound: ``TASK_NOT_FOUND``.
        """
        return self.tasks[task_id]

    def spending(self, by: str = "model", *, days: int = 30, **which: Any) -> Spending:
        """What requests to models used and cost: `wb.spending("day")`, `wb.spending("agent", plan="tidy")`.

        Args:
            by: `model`, `provider`, `day`, `agent`, `plan`, `task`, `attempt` or `definition`.
            days: of the last so many.
            which: other arguments of the operation `list_costs`.

        Raises:
            WorkbenchError: see the operation ``list_costs``.
        """
        return spending(self, by, days, **which)

    def graph(self, plan: str | None = None) -> Graph | cli.Note:
        """The graph of dependencies, from left to right, of one plan or of all tasks.

        More than 200 tasks are only counted; the panel's Tasks tab shows the graph of all.
        """
        options = [] if plan is None else [f"--plan={plan}"]
        graph: Graph | cli.Note = self.run(["graph", *options])
        return graph

    def help(self, about: str | None = None) -> Table | TablePage:
        """What an operation does, takes and returns, or which there are about a subject; without a name, the subjects.

        Raises:
            NotFound: ``UNKNOWN_OPERATION``.
        """
        return described(checked(about, (str, NoneType), "wb.help", "the name of an operation or a subject"))

    def _label(self) -> str:
        return "wb"

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if name not in INTERNAL]

    def __repr__(self) -> str:
        if self._host is None or self._host.is_stopped:
            return "Workbench is not running. `%workbench start` starts it."
        server = self._host.info
        where = f", at {server.url}" if server else ""
        return f"Workbench of {self.settings.project.name}{where}. `%workbench` shows its status."


def _is_restarting() -> bool:
    """Whether this kernel ends in order to be started again."""
    from IPython import get_ipython

    kernel = getattr(get_ipython(), "kernel", None)
    message = getattr(kernel, "_shutdown_message", None) or {}
    return bool(message.get("content", {}).get("restart"))
