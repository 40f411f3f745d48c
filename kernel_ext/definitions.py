"""`wb.definitions`: definitions of agents as objects of a notebook. Every read and every change is one operation.

For example:

    reviewer = wb.definitions["reviewer"]
    reviewer.settings["temperature"] = 0.2
    reviewer.rules["be-polite"] = {"text": "Use polite language.", "include": "always"}
    del reviewer.references["old-manual"]
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

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
from workbench.errors import NotFound
from workbench.present.tables import Table, TablePage
from workbench.rules.definitions.names import is_id

FOLDER = "./agents"


class Definitions(Suggests, Mapping[str, "NotebookDefinition"]):
    """The definitions of a project. The keys are names; a path or an id finds a definition too."""

    def __init__(self, caller: SectionCaller) -> None:
        self._caller = caller

    def __getitem__(self, target: str) -> NotebookDefinition:
        """A definition.

        Raises:
            Missing: ``AGENT_NOT_FOUND``. BadInput: ``AMBIGUOUS_TARGET``, ``INVALID_PATH``.
        """
        found = NotebookDefinition(self._caller, target).info
        return NotebookDefinition(self._caller, target if "/" in target else identity(found["id"], found["path"]))

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
        made = self._caller.call("agent_create", agentPath=path or f"{FOLDER}/{name}", name=name, **more)
        return NotebookDefinition(self._caller, made["agentId"])

    def _keys(self) -> list[str]:
        """The names of the definitions; the paths of those that have the same name as another."""
        found = self._caller.call("agent_list")["agents"]
        names = [one["name"] for one in found]
        return [one["path"] if names.count(one["name"]) > 1 else one["name"] for one in found]

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
    """What a definition is called for ever, whatever its name becomes: its id, or its path if it has none."""
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

    def __init__(self, caller: SectionCaller, target: str) -> None:
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
    def prompt(self) -> str:
        """Its system prompt, without rules and references; assigning to it changes it."""
        return str(self._caller.call("agent_get_system_prompt", agentTarget=self._target)["prompt"])

    @prompt.setter
    def prompt(self, text: str) -> None:
        self._caller.call("agent_set_system_prompt", agentTarget=self._target, prompt=text)

    @property
    def composed_prompt(self) -> str:
        """Its prompt with its rules and references, as its agent gets it."""
        found = self._caller.call("agent_get_system_prompt", agentTarget=self._target, composed=True)
        return str(found["prompt"])

    def clone(self, name: str, *, path: str | None = None) -> NotebookDefinition:
        """Copy it to a new directory, by default `./agents/<name>`.

        Raises:
            WorkbenchError: what the operation `agent_clone` raises.
        """
        where = path or f"{FOLDER}/{name}"
        made = self._caller.call("agent_clone", sourceAgent=self._target, targetPath=where, newName=name)
        return NotebookDefinition(self._caller, made["agentId"])

    def delete(self) -> Result:
        """Delete its files; other files in its directory stay.

        Raises:
            WorkbenchError: what the operation `agent_delete` raises.
        """
        return self._caller.call("agent_delete", agentTarget=self._target, confirm=True)

    def __repr__(self) -> str:
        return repr(self._page())

    def _repr_html_(self) -> str:
        return self._page().html()

    def _page(self) -> TablePage:
        page: TablePage = self._caller.run(["define", "show", "--", self._target])
        return page
