"""`wb.definitions`: definitions of agents as objects of a notebook. Every read and every change is one operation.

For example:

    reviewer = wb.definitions["reviewer"]
    reviewer.settings["temperature"] = 0.2
    reviewer.rules["be-polite"] = {"text": "Use polite language.", "include": "always"}
    del reviewer.references["old-manual"]
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import click

from kernel_ext.definition_sections import (
    Entries,
    MetadataSection,
    Missing,
    ProvidersSection,
    SectionCaller,
    ServersSection,
    SettingsSection,
)
from kernel_ext.objects.mistakes import Fixed, Suggests
from kernel_ext.objects.rows import shown_or_why
from kernel_ext.result import Result
from kernel_ext.wording import in_objects
from workbench.errors import NotFound, unreadable_file
from workbench.present.inert import inert_line
from workbench.present.tables import Table, TablePage
from workbench.rules.definitions.names import is_id

if TYPE_CHECKING:
    from kernel_ext.chat import Chat

FOLDER = "./agents"


class DefinitionCaller(SectionCaller, Protocol):
    """A caller that can begin conversations."""

    def chat(
        self, definition: NotebookDefinition | None = ..., *, conversation: str | None = ..., **options: Any
    ) -> Chat:
        """Begin a conversation with the agent of a definition."""
        ...


class Definitions(Suggests, Mapping[str, "NotebookDefinition"]):
    """The definitions of a project. The keys are names; a path or an id finds a definition too."""

    def __init__(self, caller: DefinitionCaller) -> None:
        self._caller = caller

    def __getitem__(self, target: str) -> NotebookDefinition:
        """A definition.

        Raises:
            Missing: ``AGENT_NOT_FOUND``. BadInput: ``AMBIGUOUS_TARGET``, ``INVALID_PATH``.
        """
        info = NotebookDefinition(self._caller, target).info
        return NotebookDefinition(self._caller, target if "/" in target else identity(info["id"], info["path"]))

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys())

    def __len__(self) -> int:
        return len(self._keys())

    def create(self, name: str, *, path: str | None = None, **more: Any) -> NotebookDefinition:
        """Create a definition.

        Args:
            path: its directory; by default `./agents/<name>`.
            more: other arguments of the operation `agent_create`, such as `description` and `initialPrompt`.

        Raises:
            WorkbenchError: what the operation raises.
        """
        definition = self._caller.call("agent_create", agentPath=path or f"{FOLDER}/{name}", name=name, **more)
        return NotebookDefinition(self._caller, definition["agentId"])

    def import_(self, file: str | Path, name: str | None = None, *, path: str | None = None) -> NotebookDefinition:
        """Create a definition from a file: an export, or a file of another program, such as a subagent.

        Args:
            name: its name; by default that in the file, or the file's stem.
            path: its directory; by default `./agents/<name>`.

        Raises:
            BadInput: ``FILE_UNREADABLE``. WorkbenchError: what the operation `agent_import` raises.
        """
        where = Path(file).expanduser().absolute()
        try:
            content = where.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise unreadable_file(where, error) from None
        more = {"newName": name, "agentPath": path, "fileName": "/".join(where.parts[-2:])}
        definition = self._caller.call("agent_import", content=content, **more)
        for place in definition["leftOut"]:
            click.echo(f"Left out: {inert_line(place)}.")
        return NotebookDefinition(self._caller, definition["agentId"])

    def _keys(self) -> list[str]:
        """The names of the definitions; the paths of those that have the same name as another."""
        agents = self._caller.call("agent_list")["agents"]
        names = [agent["name"] for agent in agents]
        return [agent["path"] if names.count(agent["name"]) > 1 else agent["name"] for agent in agents]

    def _ipython_key_completions_(self) -> list[str]:
        return self._keys()

    def __repr__(self) -> str:
        return repr(shown_or_why(self._table))

    def _repr_html_(self) -> str:
        return shown_or_why(self._table).html()

    def _table(self) -> Table:
        table: Table = self._caller.run(["define", "list"])
        return table


def identity(definition_id: str, path: str) -> str:
    """The lasting identity of a definition: its id, or its path if it has none."""
    return definition_id if is_id(definition_id) else path


class NotebookDefinition(Fixed):
    """One definition; a cell shows it whole. It stays the same one if its name changes, or another one gets its name.

    `metadata` and `settings` are its fields; `rules`, `references`, `tools`, `servers` and `providers` are what it
    consists of, by name. All are mappings: assigning, and deleting, changes the definition.
    """

    metadata: MetadataSection
    settings: SettingsSection
    rules: Entries
    references: Entries
    tools: Entries
    servers: ServersSection
    providers: ProvidersSection

    def __init__(self, caller: DefinitionCaller, target: str) -> None:
        self._caller = caller
        self._target = target
        # Attributes, because completion of keys does not evaluate properties.
        self.metadata = MetadataSection(caller, target)
        self.settings = SettingsSection(caller, target)
        self.rules = Entries(caller, target, "rule")
        self.references = Entries(caller, target, "reference")
        self.tools = Entries(caller, target, "tool")
        self.servers = ServersSection(caller, target)
        self.providers = ProvidersSection(caller, target)

    @property
    def info(self) -> Result:
        """What it is, and what it consists of.

        Raises:
            Missing: ``AGENT_NOT_FOUND``. WorkbenchError: what the operation `agent_get_info` raises.
        """
        try:
            return self._caller.call("agent_get_info", agentTarget=self._target)
        except NotFound as error:
            raise Missing(error.code, in_objects(error).message, **error.details) from None

    @property
    def id(self) -> str:
        """What identifies it for ever."""
        return str(self.info["id"])

    @property
    def name(self) -> str:
        """Its name, for people."""
        return str(self.info["name"])

    @property
    def path(self) -> str:
        """Its directory."""
        return str(self.info["path"])

    @property
    def hash(self) -> str:
        """What identifies all that it says now; runs record it."""
        return str(self.info["contentHash"])

    @property
    def prompt(self) -> str:
        """Its system prompt, without rules and references; assigning to it changes it."""
        return str(self._caller.call("agent_get_system_prompt", agentTarget=self._target)["prompt"])

    @prompt.setter
    def prompt(self, text: str) -> None:
        self._caller.call("agent_set_system_prompt", agentTarget=self._target, prompt=text)

    @property
    def composed_prompt(self) -> str:
        """Its prompt with its rules and references, as its agent gets it."""
        composed = self._caller.call("agent_get_system_prompt", agentTarget=self._target, composed=True)
        return str(composed["prompt"])

    def clone(self, name: str, *, path: str | None = None) -> NotebookDefinition:
        """Copy it to a new directory, by default `./agents/<name>`.

        Raises:
            WorkbenchError: what the operation `agent_clone` raises.
        """
        where = path or f"{FOLDER}/{name}"
        copy = self._caller.call("agent_clone", sourceAgent=self._target, targetPath=where, newName=name)
        return NotebookDefinition(self._caller, copy["agentId"])

    def history(self, limit: int = 20) -> Table:
        """Its versions, newest first."""
        table: Table = self._caller.run(["define", "history", f"--limit={limit}", "--", self._target])
        return table

    def diff(
        self, other: NotebookDefinition | str | None = None, *, since: str | None = None, to: str | None = None
    ) -> Any:
        """What changed in it since the last commit or version; or how another definition differs from it.

        Args:
            since, to: versions or commits of `history`; by default the last commit or version, and the files.
        """
        versions = [*([f"--from={since}"] if since else ()), *([f"--to={to}"] if to else ())]
        others = [] if other is None else [other if isinstance(other, str) else other._target]
        return self._caller.run(["define", "diff", *versions, "--", self._target, *others])

    def validate(self) -> Table:
        """What is wrong in it, and what is missing."""
        table: Table = self._caller.run(["define", "validate", "--", self._target])
        return table

    def restore(self, version: str) -> Result:
        """Give it back what a version of `history` said. Where that has a masked secret, the present one stays.

        Raises:
            WorkbenchError: what the operation `agent_restore` raises.
        """
        return self._caller.call("agent_restore", agentTarget=self._target, version=version)

    def export(self, form: str = "workbench") -> str:
        """It as one file, without secrets.

        Args:
            form: ``workbench``: all of it; ``claude-subagent`` or ``skill``: what such a file can say.
        """
        return str(self._caller.call("agent_export", agentTarget=self._target, form=form)["content"])

    def spawn(self, **options: Any) -> Result:
        """Start an agent with it.

        Args:
            options: other arguments of the operation `spawn_agent`, such as `profile` and `persona_id`.

        Raises:
            WorkbenchError: what the operation raises.
        """
        return self._caller.call("spawn_agent", definition=self._target, **options)

    def chat(self, **options: Any) -> Chat:
        """Begin a conversation with its agent.

        Args:
            options: other arguments of the operation `create_conversation`, such as `model` and `tools`.

        Raises:
            WorkbenchError: what the operation raises.
        """
        return self._caller.chat(self, **options)

    def delete(self) -> Result:
        """Delete its files; other files in its directory stay.

        Raises:
            WorkbenchError: what the operation `agent_delete` raises.
        """
        return self._caller.call("agent_delete", agentTarget=self._target, confirm=True)

    def _as_argument_(self) -> str:
        """What names it in the arguments of an operation."""
        return self._target

    def __repr__(self) -> str:
        return repr(self._page())

    def _repr_html_(self) -> str:
        return self._page().html()

    def _page(self) -> TablePage:
        page: TablePage = self._caller.run(["define", "show", "--", self._target])
        return page
