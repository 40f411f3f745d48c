"""The tools that a definition in mode `tools` exports."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from workbench.errors import Conflict, Hint
from workbench.ops import Command, Ctx
from workbench.rules.definitions.model import AgentToolChanges, Definition, ExportedTool, Mode
from workbench.services.definitions import changes
from workbench.services.definitions.operation import AgentTarget, DefinitionAnswer, DefinitionChanged, definition_op
from workbench.services.definitions.sections import entries
from workbench.services.definitions.sections.entries import Edit

ToolName = Annotated[str, Field(max_length=1_000, description="The tool's name; see agent_list_tools.")]
NewTool = Annotated[ExportedTool, Field(description="Name, description, parameters and prompt.")]
ToolChanges = Annotated[AgentToolChanges, Field(description="What is to be changed; all else stays.")]


class ExportedTools(DefinitionAnswer):
    """Exported tools."""

    tools: list[ExportedTool]
    count: int


class ExportedToolFound(DefinitionAnswer):
    """An exported tool, or null."""

    tool: ExportedTool | None


@definition_op(reads=True, command=Command("define tools list AGENT", help="List the tools that a definition exports."))
async def agent_list_tools(ctx: Ctx, agentTarget: AgentTarget) -> ExportedTools:
    """List the tools that an agent definition exports; they are offered while its mode is tools."""
    tools = (await changes.without_secrets(ctx, agentTarget)).tools
    return ExportedTools(tools=tools, count=len(tools))


@definition_op(
    reads=True, command=Command("define tools show AGENT NAME", help="Print a tool as YAML, which `update` reads.")
)
async def agent_get_tool(ctx: Ctx, agentTarget: AgentTarget, toolName: ToolName) -> ExportedToolFound:
    """Get an exported tool of an agent definition by name; null if it has no such tool."""
    return ExportedToolFound(tool=entries.find((await changes.without_secrets(ctx, agentTarget)).tools, toolName))


@definition_op(command="define tools add")
async def agent_add_tool(ctx: Ctx, agentTarget: AgentTarget, tool: NewTool) -> DefinitionChanged:
    """Add an exported tool to an agent definition in mode tools."""
    edit = _in_mode_tools(entries.adding("tools", tool))
    return await changes.change(ctx, agentTarget, edit, f"tool {tool.name} added")


@definition_op(command="define tools update")
async def agent_update_tool(
    ctx: Ctx, agentTarget: AgentTarget, toolName: ToolName, tool: ToolChanges
) -> DefinitionChanged:
    """Change an exported tool of an agent definition in mode tools."""
    edit = _in_mode_tools(entries.updating("tools", toolName, tool))
    return await changes.change(ctx, agentTarget, edit, f"tool {toolName} changed")


@definition_op(destructive=True, command=Command("define tools delete AGENT NAME", help="Delete a tool."))
async def agent_delete_tool(ctx: Ctx, agentTarget: AgentTarget, toolName: ToolName) -> DefinitionChanged:
    """Delete an exported tool from an agent definition, in any mode."""
    return await changes.change(ctx, agentTarget, entries.deleting("tools", toolName), f"tool {toolName} deleted")


def _in_mode_tools(edit: Edit) -> Edit:
    """A change of a definition in mode `tools` only; of others it raises Conflict ``WRONG_MODE``."""

    def checked(definition: Definition) -> Definition:
        name, mode = definition.metadata.name, definition.metadata.mode
        if mode is not Mode.TOOLS:
            raise Conflict(
                "WRONG_MODE",
                f"{name} is in mode {mode}, and only agents in mode tools export tools.",
                Hint("agent_update_metadata", "Change its mode with {} first."),
                mode=mode,
            )
        return edit(definition)

    return checked
