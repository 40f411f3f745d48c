"""Definitions to begin with: the templates that come with Workbench, and personas."""

from __future__ import annotations

from asyncio import to_thread
from typing import Annotated

from pydantic import Field

from workbench.definition_files import Registry, Snapshot
from workbench.errors import NotFound
from workbench.ops import Command, Ctx
from workbench.ops.parameters import PersonaId
from workbench.rules.definitions.model import Definition, Mode
from workbench.rules.definitions.names import NewDefinitionName
from workbench.services.access.personas import require_persona
from workbench.services.definitions import changes
from workbench.services.definitions.lifecycle import Created, created, new_metadata
from workbench.services.definitions.operation import DefinitionAnswer, NewPath, definition_op, validated
from workbench.services.definitions.trust import OURS
from workbench.state.settings import shipped

NewName = Annotated[NewDefinitionName | None, Field(description="Its name, for people; null: the same.")]


class Template(DefinitionAnswer):
    """A definition to begin with. `rules`, `references` and `tools` are their names."""

    name: str
    title: str
    description: str
    mode: Mode
    rules: list[str]
    references: list[str]
    tools: list[str]


class Templates(DefinitionAnswer):
    """Templates, by name."""

    templates: list[Template]


@definition_op(
    reads=True, command=Command("define templates", help="List the templates that definitions can begin with.")
)
async def agent_list_templates(ctx: Ctx) -> Templates:
    """List the templates for agent definitions."""
    return Templates(
        templates=await to_thread(lambda: [_template(name, snapshot) for name, snapshot in _templates().items()])
    )


@definition_op(command="define from-template")
async def agent_create_from_template(
    ctx: Ctx,
    templateName: Annotated[str, Field(max_length=1_000, description="See agent_list_templates.")],
    agentPath: NewPath = None,
    name: NewName = None,
) -> Created:
    """Create an agent definition from a template. It is yours to change."""
    template = (await to_thread(_require_template, templateName)).definition
    named = {"name": name} if name else {}
    metadata = new_metadata(ctx, dict(template.metadata) | named)
    path = agentPath or f"./agents/{templateName}"
    summary = f"created from the template {templateName}"
    definition = template.model_copy(update={"metadata": metadata})
    return created(ctx, await changes.create(ctx, path, definition, summary, OURS))


@definition_op(command="define from-persona")
async def agent_create_from_persona(
    ctx: Ctx, personaId: PersonaId, agentPath: NewPath = None, name: NewName = None
) -> Created:
    """Create an agent definition that takes the work of a persona, with the persona's instructions as its prompt."""
    persona = await ctx.read(lambda tx: require_persona(tx, personaId))
    metadata = new_metadata(
        ctx,
        {
            "name": name or persona.name,
            "description": f"Takes the tasks of the persona {persona.name}.",
            "mode": Mode.AUTONOMOUS,
            "persona": persona.id,
        },
    )
    definition = validated(Definition, {"metadata": metadata, "prompt": persona.definition})
    path = agentPath or f"./agents/{persona.id}"
    return created(ctx, await changes.create(ctx, path, definition, f"created from the persona {persona.id}", OURS))


def _templates() -> dict[str, Snapshot]:
    """The templates that come with Workbench, by the names of their directories."""
    home = shipped("data", "definitions")
    registry = Registry(home, [home])
    return {directory.path.name: registry.read(directory) for directory in registry.directories()}


def _require_template(name: str) -> Snapshot:
    templates = _templates()
    if name not in templates:
        raise NotFound("NOT_FOUND", f"There is no template {name!r}. The templates: {', '.join(templates)}.")
    return templates[name]


def _template(name: str, snapshot: Snapshot) -> Template:
    definition = snapshot.definition
    return Template(
        name=name,
        title=definition.metadata.name,
        description=definition.metadata.description,
        mode=definition.metadata.mode,
        rules=[rule.name for rule in definition.rules],
        references=[reference.name for reference in definition.references],
        tools=[tool.name for tool in definition.tools],
    )
