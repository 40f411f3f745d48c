"""The tools that definitions in the mode `tools` export: a prompt is filled in and sent to the definition's model."""

from __future__ import annotations

from asyncio import to_thread
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from itertools import groupby

from workbench.definition_files import Registry, Snapshot
from workbench.errors import NotFound, WorkbenchError
from workbench.model import Level
from workbench.ops import Ctx
from workbench.providers.answers import answer
from workbench.providers.frames import Completed
from workbench.providers.question import ModelQuestion
from workbench.providers.tools import NoTools
from workbench.rules.chat.transcript import remark
from workbench.rules.definitions import composition, model
from workbench.rules.definitions.model import ExportedTool, Mode
from workbench.rules.tools.names import SEPARATOR, qualified
from workbench.services.definitions import changes, models, tool_names
from workbench.services.tools.sources import upstream
from workbench.services.tools.tool import (
    Hints,
    Offerer,
    OffererKind,
    ToolInfo,
    ToolInvocation,
    ToolKind,
    ToolOutcome,
    ToolPlace,
    ToolScope,
)


async def tools(ctx: Ctx, scope: ToolScope) -> list[ToolInfo]:
    """The tools of all definitions, unless the caller is granted none: reading definitions takes time. Those of two
    definitions, or of a definition and an MCP server, that are called the same cannot be called."""
    if scope.caller.level is not Level.OPERATOR and not scope.caller.tools:
        return []
    exporting = await to_thread(_read_exporting, ctx.definitions)
    servers = {name.lower(): name for name in upstream.server_names(ctx, scope)}
    tools_by_name: dict[str, ToolInfo] = {}
    for place, alike in groupby(sorted(exporting, key=_place), _place):
        first, *others = alike
        paths = ", ".join(ctx.definitions.display_path(snapshot.path) for snapshot in (first, *others))
        problem = f"the definitions {paths} are called the same" if others else None
        if place in servers:
            problem = f"an MCP server is named {servers[place]}, too"
        exported = (_tool(first, tool, problem) for tool in first.definition.tools)
        tools_by_name |= {tool.name: tool for tool in exported}
    return list(tools_by_name.values())


async def find(ctx: Ctx, scope: ToolScope, name: str) -> ToolInfo | None:
    """The tool with a name. That reads all definitions, so names that no such tool has are not looked up."""
    if SEPARATOR not in name and "-" not in name:
        return None
    return next((tool for tool in await tools(ctx, scope) if tool.name == name), None)


def _read_exporting(registry: Registry) -> list[Snapshot]:
    """The definitions that export tools, sorted by path; those that cannot be read are left out. Blocks."""

    def readable() -> Iterator[Snapshot]:
        for directory, head in registry.heads():
            if head.mode is Mode.TOOLS:
                with suppress(WorkbenchError):
                    yield registry.read(directory)

    return list(readable())


def _place(snapshot: Snapshot) -> str:
    return tool_names.place(snapshot.definition.metadata).lower()


def _tool(snapshot: Snapshot, tool: ExportedTool, problem: str | None) -> ToolInfo:
    definition, place = snapshot.definition, tool_names.place(snapshot.definition.metadata)
    return ToolInfo(
        name=qualified(place, tool.name),
        server=place,
        own_name=tool.name,
        title=f"{definition.metadata.name}: {tool.name}",
        description=tool.description,
        parameters=tool.parameters,
        source=ToolPlace.LOCAL,
        kind=ToolKind.DEFINITION,
        hints=Hints(destructive=False),
        version=snapshot.hash,
        problem=problem or (None if definition.settings.model else "its definition names no model"),
        run=partial(_run, str(snapshot.path), tool.name),
        offered_by=Offerer(OffererKind.DEFINITION, definition.metadata.id, definition.metadata.name),
    )


async def _run(path: str, name: str, ctx: Ctx, call: ToolInvocation) -> ToolOutcome:
    """Ask the model of the definition, as both are now.

    Raises:
        WorkbenchError: see `changes.read`, `models.ready` and `chat.answers.answer`; `models.require_whole`.
    """
    snapshot = await changes.read(ctx, path)
    definition = snapshot.definition
    tool = next((exported for exported in definition.tools if exported.name == name), None)
    if tool is None:
        raise NotFound("UNKNOWN_TOOL", f"The definition {definition.metadata.name} has no tool {name!r} any more.")
    ready = await models.ready(ctx, snapshot)
    question = ModelQuestion(
        instructions=composition.system_prompt(definition),
        prompt=model.fill(tool.prompt, {**call.arguments, "name": tool.name}),
        **models.sampling(definition),
    )
    try:
        return _outcome([frame async for frame in answer(ready.choice, question, NoTools())][-1])
    except WorkbenchError as error:
        error.mask(ready.redacted)
        raise


def _outcome(last: object) -> ToolOutcome:
    assert isinstance(last, Completed)
    models.require_whole(last)
    said = filter(None, (last.text, remark(last.end, last.cut_at, last.text)))
    return ToolOutcome([{"type": "text", "text": text} for text in said], usage=last.usage)
