"""The settings, the system prompt and the metadata of a definition."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from workbench.model import Int64, Json
from workbench.ops import Command, Ctx
from workbench.rules.definitions.composition import system_prompt
from workbench.rules.definitions.model import Definition, DefinitionMetadata, MetadataChanges, ModelSettings, Prompt
from workbench.rules.naming import similar
from workbench.services.definitions import changes
from workbench.services.definitions.changes import updated
from workbench.services.definitions.operation import AgentTarget, DefinitionAnswer, DefinitionChanged, definition_op

Key = Annotated[
    str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_.-]{0,99}$", description="Such as temperature; see agent_get_settings.")
]
Value = Annotated[
    Annotated[str, Field(max_length=10_000)]
    | Int64
    | float
    | bool
    | Annotated[list[Json], Field(max_length=1_000)]
    | Annotated[dict[str, Json], Field(max_length=1_000)]
    | None,
    Field(description="Its new value; null removes it."),
]


class FoundSettings(DefinitionAnswer):
    """All settings. What is null is not set: the provider's own value applies, or the program's."""

    settings: ModelSettings


class FoundPrompt(DefinitionAnswer):
    """A system prompt."""

    prompt: str


class FoundMetadata(DefinitionAnswer):
    """Metadata."""

    metadata: DefinitionMetadata


@definition_op(reads=True, command=Command("define settings AGENT", help="Show the settings of a definition."))
async def agent_get_settings(ctx: Ctx, agentTarget: AgentTarget) -> FoundSettings:
    """Get the settings of an agent definition."""
    return FoundSettings(settings=(await changes.without_secrets(ctx, agentTarget)).settings)


@definition_op(command="define set")
async def agent_set_setting(ctx: Ctx, agentTarget: AgentTarget, key: Key, value: Value) -> DefinitionChanged:
    """Change a setting of an agent definition."""

    def edit(definition: Definition) -> Definition:
        settings = definition.settings.model_dump(by_alias=True, exclude_defaults=True)
        return updated(definition, settings=_without_none({**settings, _alias(key): value}))

    what = f"setting {key} {'removed' if value is None else 'changed'}"
    changed = await changes.change(ctx, agentTarget, edit, what)
    known = [field.alias or name for name, field in ModelSettings.model_fields.items()]
    if value is None or _alias(key) in known or not (meant := similar(key, known)):
        return changed
    warning = f"{key} is no setting that a program or provider is known to take. Did you mean {meant}?"
    return changed.model_copy(update={"warnings": [*changed.warnings, warning]})


@definition_op(reads=True, command="define prompt")
async def agent_get_system_prompt(
    ctx: Ctx,
    agentTarget: AgentTarget,
    composed: Annotated[bool, Field(description="Whole, as a run gets it.")] = False,
) -> FoundPrompt:
    """Get the system prompt of an agent definition."""
    definition = await changes.without_secrets(ctx, agentTarget)
    return FoundPrompt(prompt=system_prompt(definition, offers=True) if composed else definition.prompt)


@definition_op(command="define prompt")
async def agent_set_system_prompt(
    ctx: Ctx, agentTarget: AgentTarget, prompt: Annotated[Prompt, Field(description="The new system prompt.")]
) -> DefinitionChanged:
    """Change the system prompt of an agent definition."""

    def edit(definition: Definition) -> Definition:
        return updated(definition, prompt=prompt)

    return await changes.change(ctx, agentTarget, edit, "system prompt changed")


@definition_op(reads=True, command="define describe")
async def agent_get_metadata(ctx: Ctx, agentTarget: AgentTarget) -> FoundMetadata:
    """Get the metadata of an agent definition."""
    return FoundMetadata(metadata=(await changes.without_secrets(ctx, agentTarget)).metadata)


@definition_op(command="define describe")
async def agent_update_metadata(
    ctx: Ctx,
    agentTarget: AgentTarget,
    metadata: Annotated[MetadataChanges, Field(description="What is to be changed; all else stays.")],
) -> DefinitionChanged:
    """Change the metadata of an agent definition: its name, mode, description and others."""
    fields = metadata.model_dump(exclude_unset=True, by_alias=False)

    def edit(definition: Definition) -> Definition:
        return updated(definition, metadata=definition.metadata.model_dump(by_alias=False) | fields)

    names = ", ".join(sorted(metadata.model_dump(exclude_unset=True))) or "nothing"
    return await changes.change(ctx, agentTarget, edit, f"{names} changed")


def _alias(key: str) -> str:
    """The name of a setting in files, also for its name in Python."""
    field = ModelSettings.model_fields.get(key)
    return (field.alias if field else None) or key


def _without_none(values: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}
