"""The model of a definition. Field names in files and operations are camelCase, as the format defines them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    field_validator,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from workbench.errors import BadInput
from workbench.model import Json
from workbench.rules.definitions.component import Component
from workbench.rules.definitions.mcp_servers import McpServer
from workbench.rules.definitions.names import DefinitionName, EntryName, repeated
from workbench.rules.definitions.program_tools import PermissionMode, ProgramTools, ToolLimits
from workbench.rules.naming import Name
from workbench.rules.wire import json_safety
from workbench.rules.wire.json_schema import draft_of
from workbench.rules.workplace import KEYS, as_json
from workbench.rules.workplace import parse as parse_workplace

DEFAULT_PROMPT = "You are a helpful AI assistant that can use tools to help accomplish tasks."
TEXT_LIMIT = 200_000
"""Characters of a prompt, a rule or a reference: a file of them stays below a megabyte."""


def _not_empty(text: str) -> str:
    if not text.strip():
        raise ValueError("must not be empty")
    return text


def normal(text: str) -> str:
    """A text with one kind of line endings, no blank lines around it, and no byte order mark before it."""
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").strip("\n")


Prompt = Annotated[str, Field(max_length=TEXT_LIMIT), AfterValidator(normal)]
Text = Annotated[str, Field(max_length=TEXT_LIMIT), AfterValidator(normal), AfterValidator(_not_empty)]
Summary = Annotated[str, Field(max_length=2_000)]
Link = Annotated[str, Field(max_length=2_000)]


class ModelChanges(Component):
    """Base of changes. Fields that are not set stay, so their defaults mean nothing, and schemas do not state them."""

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        made = handler(schema)
        for described in handler.resolve_ref_schema(made)["properties"].values():
            described.pop("default", None)
        return made


class Mode(StrEnum):
    """How an agent is used: in a conversation, on tasks, or as a set of tools."""

    INTERACTIVE = "interactive"
    AUTONOMOUS = "autonomous"
    TOOLS = "tools"


class Include(StrEnum):
    """When a rule or reference is used: always, when a person asks, or when the agent asks."""

    ALWAYS = "always"
    MANUAL = "manual"
    AGENT = "agent"


class PromptEntry(Component):
    """A rule or a reference. The lowest priority level comes first."""

    name: EntryName = Field(description="Letters, digits, - and _; unique.")
    description: Summary = Field("", description="What it is about.")
    priority_level: int = Field(500, ge=0, le=999, strict=True, description="The lowest comes first.")
    include: Include = Field(
        Include.MANUAL,
        description="When it is part of the prompt: always, manual (a person chooses it) or agent (it asks).",
    )
    text: Text = Field(description="Markdown.")


class EntryChanges(ModelChanges):
    """Changes of a rule or a reference; fields that are not set stay."""

    name: EntryName = Field("", description="Its new name.")
    description: Summary = Field("", description="What it is about.")
    priority_level: int = Field(500, ge=0, le=999, strict=True, description="The lowest comes first.")
    include: Include = Field(Include.MANUAL, description="When it is part of the prompt: always, manual or agent.")
    text: Text = Field("", description="Markdown.")


class ExportedTool(Component):
    """A tool that a definition in mode `tools` exports: its prompt is filled in and sent to the agent's model."""

    name: EntryName = Field(description="Letters, digits, - and _; unique.")
    description: Summary = Field("", description="What it does, for the model that calls it.")
    parameters: dict[str, Json] = Field(description="JSON Schema of an object.")
    prompt: Text = Field(
        description="Template: {parameter} is replaced by the parameter's value, {name} by the tool's name."
    )

    @field_validator("parameters")
    @classmethod
    def _is_schema(cls, value: dict[str, Any]) -> dict[str, Any]:
        json_safety.check(value)
        if value.get("type") != "object":
            raise ValueError('must have "type": "object"')
        try:
            draft_of(value)
        except ValueError as error:
            raise ValueError(f"is no JSON Schema: {error}") from None
        return value

    @model_validator(mode="after")
    def _names_only_parameters(self) -> Self:
        declared = self.parameters.get("properties", {})
        known = {"name", *(declared if isinstance(declared, dict) else ())}
        if unknown := sorted(placeholders(self.prompt) - known):
            raise ValueError(f"the prompt uses {{{unknown[0]}}}, which is no parameter; parameters: {sorted(known)}")
        return self


class AgentToolChanges(ModelChanges):
    """Changes of an exported tool; fields that are not set stay."""

    name: EntryName = Field("", description="Its new name.")
    description: Summary = Field("", description="What it does, for the model that calls it.")
    parameters: dict[str, Json] = Field({}, description="JSON Schema of an object.")
    prompt: Text = Field("", description="Template with {parameter}.")


class Organization(Component):
    """Who provides an agent."""

    organization: Name = Field(description="Its name.")
    url: Link = Field("", description="Its website.")


class Skill(Component):
    """Something an agent is good at."""

    id: EntryName = Field(description="Letters, digits, - and _.")
    name: Name
    description: Summary = Field("", description="What it can do.")
    tags: list[Name] = Field([], max_length=50, description="For searches.")
    examples: list[Summary] = Field([], max_length=50, description="Requests that it can answer.")


Version = Annotated[str, Field(min_length=1, max_length=50, description="Of the definition, such as 1.0.0.")]
Purpose = Annotated[Summary, Field(description="What the agent is for.")]
ModeOfUse = Annotated[Mode, Field(description="interactive: chat; autonomous: tasks; tools: it exports tools.")]
Icon = Annotated[Link | None, Field(description="Address of its icon.")]
Documentation = Annotated[Link | None, Field(description="Address of its documentation.")]
Provider = Annotated[Organization | None, Field(description="Who provides the agent.")]
Skills = Annotated[list[Skill], Field(max_length=100, description="What the agent is good at.")]
Persona = Annotated[Annotated[str, Field(max_length=50)] | None, Field(description="The persona: the work it takes.")]


class DefinitionMetadata(Component):
    """What a definition is."""

    id: EntryName = Field(description="A UUID. Older files may have a word, by which nobody can name the agent.")
    name: DefinitionName
    version: Version = "1.0.0"
    description: Purpose = ""
    mode: ModeOfUse = Mode.INTERACTIVE
    icon_url: Icon = None
    documentation_url: Documentation = None
    provider: Provider = None
    skills: Skills = []
    created: Annotated[str, Field(max_length=40)] | None = Field(None, description="ISO 8601")
    persona: Persona = None


class MetadataChanges(ModelChanges):
    """Changes of metadata; fields that are not set stay. The id and the time of creation never change."""

    name: DefinitionName = ""
    version: Version = ""
    description: Purpose = ""
    mode: ModeOfUse = Mode.INTERACTIVE
    icon_url: Icon = None
    documentation_url: Documentation = None
    provider: Provider = None
    skills: Skills = []
    persona: Persona = None


class ModelSettings(Component):
    """How a definition's model is used. What is null is not set: the provider's own value applies, or the program's.
    Unknown settings are kept."""

    model_config = ConfigDict(extra="allow")

    max_chat_turns: Annotated[int, Field(ge=1, le=1_000)] | None = None
    max_output_tokens: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Annotated[float, Field(ge=0, le=1)] | None = None
    tool_permission: Literal["always", "never", "tool"] = "tool"
    model: Annotated[str, Field(max_length=200, pattern=r"^([a-z]+:.+)?$")] = Field("", description="provider:model")
    allowed_tools: ProgramTools | None = Field(None, description="The only own tools that its program may use.")
    disallowed_tools: ProgramTools | None = Field(None, description="Own tools that its program may not use.")
    permission_mode: PermissionMode | None = Field(
        None, description="A permission mode of its program, if it is stricter than that of the profile."
    )

    @property
    def limits(self) -> ToolLimits:
        """What its program may do with its own tools."""
        allowed = None if self.allowed_tools is None else tuple(self.allowed_tools)
        return ToolLimits(allowed=allowed, refused=tuple(self.disallowed_tools or ()), mode=self.permission_mode)

    @model_validator(mode="after")
    def _can_travel(self) -> Self:
        json_safety.check(self.model_extra)
        return self


class Definition(Component):
    """A definition, whole. Rules and references are sorted by priority level, then name."""

    metadata: DefinitionMetadata
    settings: ModelSettings = ModelSettings()
    prompt: Prompt = DEFAULT_PROMPT
    rules: list[PromptEntry] = Field([], max_length=1_000)
    references: list[PromptEntry] = Field([], max_length=1_000)
    tools: list[ExportedTool] = Field([], max_length=1_000)
    providers: dict[EntryName, dict[str, str]] = {}
    mcp_servers: dict[EntryName, McpServer] = {}
    workplace: dict[str, Json] = Field(
        {}, description="What its agents' commands find in a worktree; in agent.yaml its keys are at the top level."
    )

    @model_validator(mode="before")
    @classmethod
    def _gather_workplace(cls, values: Any) -> Any:
        stated = {key: values[key] for key in KEYS if key in values} if isinstance(values, Mapping) else {}
        if not stated:
            return values
        rest = {key: value for key, value in values.items() if key not in stated}
        return {**rest, "workplace": {**rest.get("workplace", {}), **stated}}

    @field_validator("workplace")
    @classmethod
    def _is_workplace(cls, value: dict[str, Any]) -> dict[str, Any]:
        try:
            checked = parse_workplace(value, "workplace")
        except BadInput as error:
            raise ValueError(error.message.removeprefix("workplace: ").rstrip(".")) from None
        return as_json(checked)

    @field_validator("rules", "references")
    @classmethod
    def _in_order(cls, value: list[PromptEntry]) -> list[PromptEntry]:
        return sorted(value, key=lambda entry: (entry.priority_level, entry.name))

    @model_validator(mode="after")
    def _names_are_unique(self) -> Self:
        parts: dict[str, Any] = {"rules": self.rules, "references": self.references, "tools": self.tools}
        for noun, entries in parts.items():
            if twice := repeated(entry.name for entry in entries):
                raise ValueError(f"{noun}: {', '.join(twice)} occurs twice; upper and lower case are the same")
        if twice := repeated(self.mcp_servers):
            raise ValueError(f"mcpServers: {', '.join(twice)} occurs twice; upper and lower case are the same")
        return self


_PLACEHOLDER = re.compile(r"\{([A-Za-z_][A-Za-z0-9_-]*)\}")


def placeholders(template: str) -> set[str]:
    """The names in braces."""
    return set(_PLACEHOLDER.findall(template))


def fill(template: str, values: Mapping[str, Any]) -> str:
    """Replace each placeholder by its value, once: braces in values stay. Values other than text are JSON.

    A placeholder without a value, such as that of an optional parameter, becomes empty.
    """
    return _PLACEHOLDER.sub(lambda found: _as_text(values.get(found[1])), template)


def _as_text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
