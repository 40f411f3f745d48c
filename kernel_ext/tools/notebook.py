"""`wb.tool` and `wb.tools`: a notebook makes tools of its functions, and calls all tools of the project.

For example:

    @wb.tool(read_only=True)
    def mean(values: list[float]) -> float:
        \"\"\"The mean of some numbers.\"\"\"
        return sum(values) / len(values)

    wb.tools["mean"](values=[1, 2, 4])
    del wb.tools["mean"]
"""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from kernel_ext.definition_sections import Missing
from kernel_ext.objects.mistakes import Suggests, WrongType
from kernel_ext.objects.rows import shown_or_why
from kernel_ext.wording import in_objects
from workbench.cli.tools.catalogue import tool_page
from workbench.errors import Conflict, NotFound, Unavailable, WorkbenchError
from workbench.functions import output
from workbench.functions.hosts import WORKBENCH
from workbench.functions.offered import OfferedFunction, trait_owner
from workbench.present.inert import inert_line
from workbench.present.tables import Table
from workbench.recording.surroundings import notebook
from workbench.rules.tools.function import function_tool

if TYPE_CHECKING:
    from kernel_ext.hosting.host import KernelHost
    from kernel_ext.result import Result
    from workbench.functions.host import ToolHost

CLOSE_SECONDS = 2.0
LONGEST_NAME = 100
_SAVED_HANDLER = "saved_sigint_handler"
"""The attribute of ipykernel with the handler that it restores after each cell."""
Fn = TypeVar("Fn", bound=Callable[..., Any])

log = logging.getLogger(__name__)


class NotebookTools(Suggests, Mapping[str, "NotebookTool"]):
    """The tools of the project, by name. Deleting a key withdraws a function of this notebook.

    Functions can be made tools before the servers run; they are offered as soon as these do.

    Args:
        caller: calls operations as the operator.
    """

    def __init__(self, caller: Callable[..., Result]) -> None:
        self._call = caller
        self._functions: dict[str, OfferedFunction] = {}
        self._kernel: KernelHost | None = None
        self._host: ToolHost | None = None
        self._running: Future[None] | None = None
        self._interrupt = IdleInterrupt(self._interrupt_functions)

    def tool(
        self,
        fn: Fn | None = None,
        /,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        read_only: bool = False,
        seconds: float | None = None,
        trait: bool | str = False,
        replace: bool = False,
    ) -> Any:
        """Make a function a tool that agents and conversations can call: `@wb.tool`, or `@wb.tool(read_only=True)`.

        Its signature, with its types, is the schema of the arguments; its docstring is the description. It runs in
        this kernel, in a thread of its own or, if it is asynchronous, on a loop for such functions. What it prints goes
        to the log of the call. Running the cell again replaces it.

        Args:
            fn: the function, which is returned as it is.
            name: by default that of the function.
            description: by default its docstring.
            read_only: it changes nothing, so that it may be called without asking you.
            seconds: how long a call may take; by default the setting ``tool_seconds``.
            trait: make it a trait of an agent as well, which other nodes of the KOI network can call: the agent's name,
                or True for the one that is named after this project's node.
            replace: take the name from another notebook that offers a tool with it.

        Raises:
            BadInput: ``BAD_TOOL``. Conflict: ``TOOL_NAME_TAKEN``.
        """
        agent = trait_owner(trait)

        def define(fn: Fn) -> Fn:
            tool = function_tool(fn, name, description)
            self.define(OfferedFunction(tool, title, read_only, seconds, agent, replace))
            return fn

        return define if fn is None else define(fn)

    def define(self, function: OfferedFunction) -> None:
        """Make a function a tool; it replaces one of the same name. Calls that run go on with that one.

        Raises:
            Conflict: ``TOOL_NAME_TAKEN``. Other errors: see the operation ``offer_tools``.
        """
        name = function.tool.name
        before = self._functions.get(name)
        self._functions[name] = function
        try:
            if self._kernel is not None and (owners := self._offer([function], add=True)):
                raise _taken(name, owners[name])
        except BaseException:
            del self._functions[name]
            if before is not None:
                self._functions[name] = before
            raise

    def open(self, kernel: KernelHost) -> dict[str, str]:
        """Offer the functions to the servers, which run now; the names that are taken, with who has them.

        Raises:
            WorkbenchError: see the operation ``offer_tools``.
        """
        self._kernel = kernel
        return self._offer(list(self._functions.values()), add=False) if self._functions else {}

    def close(self) -> None:
        """Withdraw the functions, and interrupt those that run; they are offered again after the next start."""
        host, kernel, self._host, self._kernel = self._host, self._kernel, None, None
        if self._running is not None:
            self._running.cancel()
            self._running = None
        if host is not None and kernel is not None:
            with suppress(WorkbenchError, TimeoutError, CancelledError):
                kernel.submit(host.withdraw()).result(CLOSE_SECONDS)
        self._interrupt.remove(_kernel())
        output.restore()

    def __getitem__(self, name: str) -> NotebookTool:
        """A tool.

        Raises:
            Missing: ``UNKNOWN_TOOL``.
        """
        try:
            return NotebookTool(self._call, self._call("get_tool", name=name))
        except NotFound as error:
            raise Missing(error.code, in_objects(error).message, **error.details) from None

    def __delitem__(self, name: str) -> None:
        """Withdraw a function of this notebook.

        Raises:
            Missing: ``UNKNOWN_TOOL``.
        """
        if name not in self._functions:
            raise Missing("UNKNOWN_TOOL", f"This notebook has no function that is a tool named {name}.")
        del self._functions[name]
        if self._kernel is not None and self._host is not None:
            self._kernel.wait(self._host.withdraw([name]))

    def __iter__(self) -> Iterator[str]:
        return iter([tool["name"] for tool in self._call("list_tools")["tools"]])

    def __len__(self) -> int:
        return len(self._call("list_tools")["tools"])

    def _ipython_key_completions_(self) -> list[str]:
        return list(self)

    def __repr__(self) -> str:
        return repr(shown_or_why(self._table))

    def _repr_html_(self) -> str:
        return shown_or_why(self._table).html()

    def _table(self) -> Table:
        every = self._call("list_tools")["tools"]
        tools = [tool for tool in every if tool["kind"] != "operation"]
        rows = [{**tool, "where": tool["server"] or tool["kind"], "summary": _first_line(tool)} for tool in tools]
        columns = {"name": "tool", "where": "from", "summary": "what it does", "problem": "problem"}
        more = f"{len(every) - len(tools)} operations of Workbench are tools, too: %workbench tools list shows them."
        return Table.of(rows, columns, "No tools besides the operations of Workbench.", note=more)

    def _offer(self, functions: list[OfferedFunction], *, add: bool) -> dict[str, str]:
        assert self._kernel is not None
        host = self._start_host(self._kernel)
        return self._kernel.wait(host.offer(functions, add=add))

    def _start_host(self, kernel: KernelHost) -> ToolHost:
        """The host of the functions, which runs what is called."""
        from workbench.functions.host import ToolHost

        self._interrupt.install(_kernel())
        if self._host is None or self._running is None or self._running.done():
            self._host = ToolHost(kernel.settings, kernel.acall, _name(kernel.settings.project), self._functions)
            self._running = kernel.submit(self._host.run())
            self._running.add_done_callback(_log_failure)
        return self._host

    def _interrupt_functions(self) -> None:
        if self._host is not None:
            self._host.interrupt()


class NotebookTool(Suggests):
    """One tool. Calling it runs it; a cell shows what it takes and returns."""

    def __init__(self, caller: Callable[..., Result], info: Result) -> None:
        self._call = caller
        self.info = info

    def __call__(self, *values: Any, **arguments: Any) -> Any:
        """Call the tool with these arguments, and return its result as JSON value.

        The protocol lets tools return objects only, so another value is in an object as `result`: it is taken out.

        Args:
            values: those of its first arguments, in the order in which it declares them.

        Raises:
            Unavailable: ``TOOL_ERROR``: the tool says that it failed. WrongType: ``INVALID_ARGUMENTS``: it takes fewer
                arguments, or one is given twice. WorkbenchError: see the operation ``call_tool``.
        """
        call_arguments = {**self._name_values(values, arguments), **arguments}
        call = self._call("call_tool", name=self.info["name"], arguments=call_arguments)
        if call["is_error"]:
            raise Unavailable("TOOL_ERROR", f"{self.info['name']} failed: {call['result']}", call_id=call["call_id"])
        is_wrapped = isinstance(call["result"], dict) and [*call["result"]] == ["result"] == self._fields
        return call["result"]["result"] if is_wrapped else call["result"]

    def _name_values(self, values: Sequence[Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Values by the names of the arguments that they are of."""
        names = [*self.info["parameters"].get("properties", {})]
        if len(values) > len(names):
            takes = f"{self.info['name']} takes {len(names)} arguments ({', '.join(names)}), not {len(values)}."
            raise WrongType("INVALID_ARGUMENTS", takes, problems=[])
        by_name = dict(zip(names, values, strict=False))
        if twice := [name for name in by_name if name in arguments]:
            raise WrongType("INVALID_ARGUMENTS", f"{self.info['name']} got {', '.join(twice)} twice.", problems=[])
        return by_name

    @property
    def _fields(self) -> list[str]:
        """The names of what the tool declares that it returns."""
        return [*(self.info["result"] or {}).get("properties", {})]

    def __repr__(self) -> str:
        return tool_page(self.info).text()

    def _repr_html_(self) -> str:
        return tool_page(self.info).html()


class IdleInterrupt:
    """The kernel's interrupt between two cells: it interrupts the functions that run for tools.

    While a cell runs, an interrupt is the cell's, as always. Otherwise ipykernel ignores it: it sets the handler of
    SIGINT before each cell, and afterwards restores the handler before it, which is replaced here.

    Call its methods in a cell.
    """

    def __init__(self, handle: Callable[[], None]) -> None:
        self._handle = handle

    def install(self, kernel: Any) -> None:
        """Begin with it. Does nothing without a kernel, nor where another program handles interrupts."""
        if getattr(kernel, _SAVED_HANDLER, None) in (signal.SIG_IGN, signal.SIG_DFL):
            setattr(kernel, _SAVED_HANDLER, self)

    def remove(self, kernel: Any) -> None:
        """End with it."""
        if getattr(kernel, _SAVED_HANDLER, None) is self:
            setattr(kernel, _SAVED_HANDLER, signal.SIG_IGN)

    def __call__(self, number: int, frame: Any) -> None:
        """The signal handler."""
        self._handle()


def _taken(name: str, owner: str) -> Conflict:
    if owner == WORKBENCH:
        return Conflict("TOOL_NAME_TAKEN", f"{name} is an operation of Workbench. Choose another name.")
    how = "Choose another name, or take this one with @wb.tool(replace=True)"
    return Conflict("TOOL_NAME_TAKEN", f"{owner} offers a tool named {name} already. {how}.")


def _name(project: Path) -> str:
    """What people call this process: its notebook, if that is known, and its process id."""
    kernel, notebook_name = f"kernel {os.getpid()}", notebook(project)
    return inert_line(f"{notebook_name} ({kernel})"[:LONGEST_NAME]) if notebook_name else kernel


def _first_line(tool: Mapping[str, Any]) -> str:
    return str(tool["description"]).strip().partition("\n")[0]


def _kernel() -> Any:
    from IPython import get_ipython

    return getattr(get_ipython(), "kernel", None)


def _log_failure(running: Future[None]) -> None:
    """Log why the host of the functions ended, if nothing had stopped it."""
    error = None if running.cancelled() else running.exception()
    if error is not None and not isinstance(error, WorkbenchError):
        log.error("the functions of this notebook can no longer be called as tools", exc_info=error)
