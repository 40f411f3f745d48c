"""The magics `%workbench`, `%wsql`, `%%wsql`, `%%plan`, `%%persona`, `%%chat`; subcommands are as in the terminal."""

from __future__ import annotations

import dis
import re
import shlex
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from IPython.core.completer import CompletionContext, SimpleCompletion, SimpleMatcherResult, context_matcher
from IPython.core.error import UsageError
from IPython.core.extensions import ExtensionManager
from IPython.core.magic import Magics, cell_magic, line_magic, magics_class, no_var_expand
from IPython.core.magic_arguments import argument, magic_arguments

from kernel_ext import kernel_status
from kernel_ext.objects.queries import answer, query_options, split
from kernel_ext.wording import bad_command
from workbench.errors import Conflict, Unavailable, WorkbenchError, unreadable_file
from workbench.rules.naming import similar
from workbench.system.interpreter import importing

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from kernel_ext.objects.completion import Completion
    from kernel_ext.session import WorkbenchSession

_ATTRIBUTE = "workbench_magics"
SQL = re.compile(r"\s*sql\s+(?!-h\b|--help\b)(.*)", re.DOTALL)
"""`%workbench sql …`: its query is kept as it is written."""
CALLER = 4
"""Frames between `%workbench` and the cell or function that uses it: `raising`, `showing` and `run_line_magic`."""
NOT_OURS = "`wb` is a variable of yours, and stays. After `del wb`, the next cell has Workbench's."
_ALONE = re.compile(r"%%(plan|persona|wsql|chat)(\s|$)")
_COMMAND = re.compile(r"%workbench\s")
_UNKNOWN = re.compile(r"unrecognized arguments: (--\S+)")
_WORD = re.compile(r"""(?:\\.|"(?:\\.|[^"\\])*"|'[^']*'|[^\s"'\\])+""")


def load(shell: InteractiveShell) -> None:
    """Register the magics once; loading again changes nothing."""
    if getattr(shell, _ATTRIBUTE, None) is not None:
        return
    magics = WorkbenchMagics(shell)
    shell.events.register("pre_run_cell", magics.offer)
    shell.register_magics(magics)
    shell.Completer.custom_matchers.append(magics.matcher)
    shell.input_transformers_cleanup.append(with_body)
    _show_facts(shell)
    setattr(shell, _ATTRIBUTE, magics)
    magics.offer()


def _show_facts(shell: InteractiveShell) -> None:
    """Show the server and the settings as tables; of the settings, those that are not the defaults."""

    def table(model: Any) -> Any:
        from workbench.present.tables import Table

        values = {name: (getattr(model, name), field.default) for name, field in type(model).model_fields.items()}
        rows = [[name, value] for name, (value, default) in values.items() if value != default]
        return Table(["", ""], rows, "They are the defaults.")

    if (formatter := shell.display_formatter) is None:
        return
    for module, name in (("workbench.model", "ServerInfo"), ("workbench.state.settings", "Settings")):
        plain, html = (formatter.formatters[kind] for kind in ("text/plain", "text/html"))
        plain.for_type_by_name(module, name, lambda model, printer, _: printer.text(table(model).text()))
        html.for_type_by_name(module, name, lambda model: table(model).html())


def unload(shell: InteractiveShell) -> None:
    """Unregister the magics and stop the servers; the magics are removed even if stopping fails. Not for a reload."""
    magics = getattr(shell, _ATTRIBUTE, None)
    if magics is None or _is_reloading():
        return
    for kind, name in (
        ("line", "workbench"),
        ("cell", "plan"),
        ("cell", "persona"),
        ("cell", "wsql"),
        ("line", "wsql"),
        ("cell", "chat"),
    ):
        shell.magics_manager.magics[kind].pop(name, None)
    delattr(shell, _ATTRIBUTE)
    shell.Completer.custom_matchers.remove(magics.matcher)
    shell.input_transformers_cleanup.remove(with_body)
    shell.events.unregister("pre_run_cell", magics.offer)
    kernel_status.restore(getattr(shell, "kernel", None))
    magics.close()


def with_body(lines: list[str]) -> list[str]:
    """A cell that is only the first line of a magic, with an empty line below.

    IPython refuses such a cell itself, by a `UsageError`, before the magic can say what is missing.
    """
    return [f"{lines[0].rstrip()}\n", "\n"] if len(lines) == 1 and _ALONE.match(lines[0]) else lines


def _is_reloading() -> bool:
    """Whether `%reload_ext` unloads the extension, to load it again at once. IPython does not tell extensions."""
    frame = sys._getframe().f_back
    while frame is not None:
        if frame.f_code is ExtensionManager.reload_extension.__code__:
            return True
        frame = frame.f_back
    return False


def raising(magic: Callable[..., Any]) -> Callable[..., Any]:
    """Raise a `BadInput` in place of IPython's `UsageError`.

    IPython prints a `UsageError` and sends no error message, so that nbval takes the cell for passed.
    """

    @wraps(magic)
    def guarded(self: WorkbenchMagics, *args: str) -> Any:
        try:
            return magic(self, *args)
        except UsageError as error:
            help_of = (
                "%workbench --help" if magic.__name__ == "workbench" else f"%%{magic.__name__.removesuffix('_line')}?"
            )
            raise bad_command(f"{error}.{_suggest(error, magic)}", help_of) from None

    return guarded


def showing(magic: Callable[..., Any]) -> Callable[..., Any]:
    """Display what a line magic returns where the value is dropped: in the middle of a cell, in a loop, in a function.

    IPython displays only the last value of a cell, and a magic's says what its user must know, such as settings that
    are not used.
    """

    @wraps(magic)
    def displayed(self: WorkbenchMagics, *args: str) -> Any:
        result = magic(self, *args)
        if result is not None and _is_dropped(sys._getframe(2)):
            from IPython.display import display

            display(result)
        return result

    return displayed


def _is_dropped(frame: FrameType) -> bool:
    """Whether a frame drops the value of the call that it is in, as a statement does that is only an expression."""
    after = (step.opname for step in dis.get_instructions(frame.f_code) if step.offset > frame.f_lasti)
    return next(after, "") == "POP_TOP"


def _suggest(error: UsageError, magic: Any) -> str:
    """The options that the first unknown one may mean."""
    unknown = _UNKNOWN.match(str(error))
    options = similar(unknown[1], _options_of(magic)) if unknown and hasattr(magic, "parser") else ""
    return options and f" Did you mean {options}?"


def naming_commands(magic: Callable[..., Any]) -> Callable[..., Any]:
    """Name commands where an error names operations: the magic runs some, but its user has typed none of them."""

    @wraps(magic)
    def reworded(self: WorkbenchMagics, *args: str) -> Any:
        try:
            return magic(self, *args)
        except WorkbenchError as error:
            from workbench.cli import global_options

            raise global_options.reworded(error, "%workbench") from error

    return reworded


def words(line: str) -> list[str]:
    """The words of a line up to a comment, quoted as in a shell; IPython's own parser would keep the quotes.

    Raises:
        UsageError: a quotation is not closed.
    """
    try:
        return shlex.split(without_comment(line))
    except ValueError as error:
        raise UsageError(f"{error}: {line}") from None


def without_comment(line: str) -> str:
    """A line up to a word that begins with ``#``."""
    comment = next((word for word in _WORD.finditer(line) if word[0].startswith("#")), None)
    return line[: comment.start()] if comment else line


def require_text(cell: str, what: str) -> str:
    """Check that a cell has text, and return it.

    Raises:
        UsageError: it is empty.
    """
    if not cell.strip():
        raise UsageError(f"The cell has no {what}. Write it below the first line")
    return cell


def parse_line(magic: Any, line: str) -> Any:
    """Parse the line of a magic into its arguments."""
    return magic.parser.parse_args(words(line))


def read(file: str) -> str:
    """The text of a file.

    Raises:
        BadInput: ``FILE_UNREADABLE``: it cannot be read, or is not UTF-8 text.
    """
    try:
        return Path(file).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise unreadable_file(file, error) from None


def require_success(result: Any) -> Any:
    """Return what a command returned, to show in the cell; None if it has printed it.

    Raises:
        Conflict: ``PARTLY_FAILED``: what failed is shown. Unavailable: ``COMMAND_FAILED``.
    """
    from IPython.display import display

    from workbench.cli.output import PartialFailure

    if isinstance(result, PartialFailure):
        display(result)
        raise Conflict("PARTLY_FAILED", "Some of it failed: see the table above.")
    if isinstance(result, int):
        if result != 0:
            raise Unavailable("COMMAND_FAILED", f"The command ended with status {result}: see its output above.")
        return None
    return result


def _display_note(text: str) -> None:
    from IPython.display import display

    from workbench.cli.output import Note

    display(Note(text, None))


class UnopenedSession:
    """`wb` until it is first used: the session's imports take time. What is recorded needs no `%workbench start`."""

    def __init__(self, magics: WorkbenchMagics) -> None:
        self._magics = magics

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # a front end looks for methods that show it
            raise AttributeError(name)
        session = self._magics.session
        if self._magics.shell.user_ns.get("wb") is self:
            self._magics.shell.user_ns["wb"] = session
        return getattr(session, name)

    def __dir__(self) -> list[str]:
        return dir(self._magics.session)

    def __repr__(self) -> str:
        return "Workbench is not running. `%workbench start` starts it."


@magics_class
class WorkbenchMagics(Magics):
    """The magics of a kernel, which own its session."""

    def __init__(self, shell: InteractiveShell) -> None:
        super().__init__(shell)
        self._session: WorkbenchSession | None = None
        self._completion: Completion | None = None

        @context_matcher(identifier="workbench-commands", priority=100.0)
        def matcher(context: CompletionContext) -> SimpleMatcherResult:
            return self._complete(context.text_until_cursor.lstrip())

        self.matcher = matcher

    @property
    def session(self) -> WorkbenchSession:
        """The kernel's session, created on first use because its imports take time."""
        if self._session is None:
            with importing():
                from kernel_ext.commands import PANEL_TABS
                from kernel_ext.objects.completion import Completion
                from kernel_ext.session import WorkbenchSession

            self._session = WorkbenchSession()
            self._completion = Completion(
                self._session, {name: _options_of(magic) for name, magic in CELL_MAGICS.items()}, PANEL_TABS
            )
            self._completion.install(self.shell.Completer)
        return self._session

    @property
    def _has_name(self) -> bool:
        """Whether `wb` is Workbench's, and no variable of the person's."""
        current = self.shell.user_ns.get("wb", self._session)
        return current is self._session or isinstance(current, UnopenedSession)

    def offer(self, *_: Any) -> None:
        """Have `wb` before each cell, also after `%reset`, unless it is a variable of the person's."""
        if "wb" not in self.shell.user_ns:
            self.shell.user_ns["wb"] = self._session or UnopenedSession(self)

    def close(self) -> None:
        """Stop the servers and end the agents' processes."""
        if self._has_name:
            self.shell.user_ns.pop("wb", None)
        if self._session is not None:
            self._session.stop(end_workers=True)
        if self._completion is not None:
            self._completion.remove(self.shell.Completer)

    @no_var_expand  # the query of `sql` has parameters such as $name
    @line_magic
    @showing
    @raising
    @magic_arguments()
    @argument("subcommand", nargs="?", default="status", help="`%%workbench --help` lists them")
    @argument("arguments", nargs="...", help="as on the command line; `%%workbench SUBCOMMAND --help` explains")
    def workbench(self, line: str) -> Any:
        """Run a team of agents from this notebook.

        The subcommands are those of the `workbench` command, plus start, stop, panel and chat.
        """
        if self._has_name:
            self.shell.user_ns["wb"] = self.session
        elif line.split()[:1] == ["start"]:
            _display_note(NOT_OURS)
        if query := SQL.match(line):
            options, text = split(query[1])
            return self.session.run(["sql", *options, text])
        line = self.shell.var_expand(line, CALLER)
        return require_success(self.session.run(words(line) or ["status"]))

    @cell_magic
    @raising
    @naming_commands
    @magic_arguments()
    @argument("-o", "--out", help="bind what was created (plan, tasks, worktrees) to this variable")
    @argument("--file", default="", help="read the plan from this file instead of the cell, unless empty")
    @argument("--name", default=None, help="use this name instead of the one in the plan")
    @argument("--again", action="store_true", help="if the plan's name is taken, add a number to it")
    @argument(
        "--update",
        action="store_true",
        help="change the existing plan of this name; failed tasks that change are retried",
    )
    @argument("--dry-run", action="store_true", help="only show what would change")
    def plan(self, line: str, cell: str) -> Any:
        """Create the tasks of a plan: all of them, or none, with a list of every problem and its line.

        The cell is YAML or a Markdown checklist. Running the same text again changes nothing.
        """
        from kernel_ext.wording import worded
        from workbench.cli import plan_table

        args = parse_line(WorkbenchMagics.plan, line)
        text = read(args.file) if args.file else require_text(cell, "plan")
        how = {"number_if_taken": args.again, "update": args.update, "dry_run": args.dry_run}
        plan = self.session.call("create_plan", text=text, name=args.name, **how)
        if args.out:
            self.shell.user_ns[args.out] = plan
        return worded(plan_table(plan, args.dry_run))

    @cell_magic
    @raising
    @naming_commands
    @magic_arguments()
    @argument("name", help="its id; overrides a built-in persona with this id")
    @argument("-o", "--out", help="bind the persona to this variable")
    def persona(self, line: str, cell: str) -> Any:
        """Save a persona of this project: instructions for its agents in Markdown, with optional front matter."""
        from workbench.cli import persona_note

        args = parse_line(WorkbenchMagics.persona, line)
        persona = self.session.call("save_persona", persona_id=args.name, text=require_text(cell, "persona"))
        if args.out:
            self.shell.user_ns[args.out] = persona
        return persona_note(persona)

    @cell_magic
    @raising
    @query_options
    def wsql(self, line: str, cell: str) -> Any:
        """Query the live project with DuckDB: tasks, attempts, agents, approvals, worktrees, events.

        The notebook's DataFrames are tables too, and $name is the value of its variable. CREATE TEMP VIEW stays.
        """
        options = parse_line(WorkbenchMagics.wsql, line)
        return answer(self.session, options, require_text(cell, "query"), self.shell.user_ns)

    @no_var_expand  # $name is a parameter of the query
    @line_magic("wsql")
    @showing
    @raising
    @query_options
    def wsql_line(self, line: str) -> Any:
        """Query the live project with DuckDB on one line: `%wsql [options] SELECT title FROM tasks`.

        The options come first. Its result can be assigned: `found = %wsql SELECT title FROM tasks`.
        """
        options, query = split(line)
        return answer(self.session, WorkbenchMagics.wsql_line.parser.parse_args(options), query, self.shell.user_ns)

    @cell_magic
    @raising
    @naming_commands
    @magic_arguments()
    @argument(
        "definition", nargs="?", help="the agent's definition; by default the conversation that was continued last"
    )
    @argument("--model", default=None, help="ask this model, as PROVIDER:MODEL")
    @argument(
        "--tools", action="append", default=[], help="offer only these: see `%%workbench chat --help`; repeatable"
    )
    @argument("--include", action="append", default=[], help="use this rule or reference of the definition; repeatable")
    @argument("--file", action="append", default=[], help="attach this text file; repeatable")
    @argument("--cell", action="append", default=[], help="attach this cell and its value: 3, or 3-5; repeatable")
    @argument("--error", action="store_true", help="attach what was raised last, with its traceback")
    @argument("--new", action="store_true", help="begin a new conversation")
    @argument("--continue", dest="conversation", default=None, help="continue the conversation with this id")
    @argument("-o", "--out", help="bind the answer to this variable")
    def chat(self, line: str, cell: str) -> None:
        """Ask the agent of a definition, or a model, and show the answer as it comes.

        The conversation of this notebook with it goes on. An interrupt stops the answer. `{name}`, `{In[3]}` and
        `{Out[3]}` in the question are values of this notebook.
        """
        from kernel_ext.attachments import completed, numbers

        options = vars(parse_line(WorkbenchMagics.chat, line))
        out, files, error = options.pop("out"), options.pop("file"), options.pop("error")
        cells = numbers(options.pop("cell"))
        asked = require_text(cell, "question").strip()
        question = completed(asked, self.shell, files=files, cells=cells, error=error)
        answer = self.session.chats.open(**options).send(question)
        if out:
            self.shell.user_ns[out] = answer
        answer.show()

    def _complete(self, line: str) -> SimpleMatcherResult:
        """Complete subcommands, options and their values as in a shell; nothing else would fit there."""
        if not _COMMAND.match(line):
            return {"completions": []}
        from click.shell_completion import ShellComplete

        *complete, incomplete = re.split(r"\s+", line)
        command = ShellComplete(self.session.tree, {"obj": self.session}, "%workbench", "")
        items = command.get_completions(complete[1:], incomplete)
        values = [item.value for item in items if item.type == "plain"]
        if any(item.type == "file" for item in items):
            values += _files(incomplete)
        return {
            "completions": [SimpleCompletion(value) for value in values],
            "matched_fragment": incomplete,
            "suppress": bool(values),
        }


def _files(beginning: str) -> list[str]:
    """The files and directories whose paths begin like this, but for hidden ones."""
    directory, slash, name = beginning.rpartition("/")
    with suppress(OSError):
        paths = sorted(Path(f"{directory}{slash}" or ".").iterdir())
        fitting = [path for path in paths if path.name.startswith(name) and not re.match(r"\.|.*\s", path.name)]
        return [f"{directory}{slash}{path.name}{'/' if path.is_dir() else ''}" for path in fitting]
    return []


CELL_MAGICS = {name: getattr(WorkbenchMagics, name) for name in ("plan", "persona", "wsql", "chat")}


def _options_of(magic: Any) -> list[str]:
    """The long options of a magic."""
    return [option for action in magic.parser._actions for option in action.option_strings if option.startswith("--")]
