"""The tools that definitions in the mode `tools` export: a prompt is filled in and sent to the definition's model."""

from __future__ import annotations

from asyncio import to_thread
from collections.abc import Iterator
from contextlib import suppress
from functools import partial

from workbench.chat.answers import answer
from workbench.chat.frames import Completed
from workbench.chat.question import Question
from workbench.chat.tools import NoTools
from workbench.definitions import Registry, Snapshot
from workbench.errors import NotFound, WorkbenchError
from workbench.model import Level
from workbench.ops import Caller, Ctx
from workbench.rules.definitions import composition, templates
from workbench.rules.definitions.model import AgentTool, Mode
from workbench.rules.tools.names import exported
from workbench.services.definitions import changes, models
from workbench.services.tools.tool import Call, Hints, Kind, Offerer, OffererKind, Outcome, Scope, Source, Tool

MARK = "-"
"""In the name of every tool that a definition exports; see `exported`."""


async def tools(ctx: Ctx, scope: Scope) -> list[Tool]:
    """The tools of all definitions, unless the caller can be granted none: reading definitions takes time. Of those
    with the same id, the first one counts."""
    if not _may_use_some(scope.caller):
        return []
    found: dict[str, Tool] = {}
    for snapshot in await to_thread(_exporting, ctx.definitions):
        for tool in snapshot.definition.tools:
            made = _tool(snapshot, tool)
            found.setdefault(made.name, made)
    return list(found.values())


async def find(ctx: Ctx, scope: Scope, name: str) -> Tool | None:
    """The tool with a name. That reads all definitions, so names that no such tool has are not looked up."""
    if MARK not in name:
        return None
    return next((tool for tool in await tools(ctx, scope) if tool.name == name), None)


def _may_use_some(caller: Caller) -> bool:
    granted = caller.tools
    return caller.level is Level.OPERATOR or "*" in granted or any(MARK in name for name in granted)


def _exporting(registry: Registry) -> list[Snapshot]:
    """The definitions that export tools, sorted by path; those that cannot be read are left out. Blocks."""

    def readable() -> Iterator[Snapshot]:
        for directory, head in registry.heads():
            if head.mode is Mode.TOOLS:
                with suppress(WorkbenchError):
                    yield registry.read(directory)

    return list(readable())


def _tool(snapshot: Snapshot, tool: AgentTool) -> Tool:
    definition = snapshot.definition
    return Tool(
        name=exported(definition.metadata.id, tool.name),
        title=f"{definition.metadata.name}: {tool.name}",
        description=tool.description,
        parameters=tool.parameters,
        source=Source.LOCAL,
        kind=Kind.DEFINITION,
        hints=Hints(destructive=False),
        version=snapshot.hash,
        problem=None if definition.settings.model else "its definition names no model",
        run=partial(_run, str(snapshot.path), tool.name),
        offered_by=Offerer(OffererKind.DEFINITION, definition.metadata.id, definition.metadata.name),
    )


async def _run(path: str, name: str, ctx: Ctx, call: Call) -> Outcome:
    """Ask the model of the definition, as both are now.

    Raises:
        WorkbenchError: see `changes.read`, `models.ready` and `chat.answers.answer`; `models.require_whole`.
    """
    snapshot = await changes.read(ctx, path)
    definition = snapshot.definition
    tool = next((one for one in definition.tools if one.name == name), None)
    if tool is None:
        raise NotFound("UNKNOWN_TOOL", f"The definition {definition.metadata.name} has no tool {name!r} any more.")
    ready = await models.ready(ctx, snapshot)
    question = Question(
        instructions=composition.system_prompt(definition),
        prompt=templates.fill(tool.prompt, {**call.arguments, "name": tool.name}),
        **models.sampling(definition),
    )
    try:
        return _outcome([frame async for frame in answer(ready.choice, question, NoTools())][-1])
    except WorkbenchError as error:
        error.message = ready.redacted(error.message)
        raise


def _outcome(last: object) -> Outcome:
    assert isinstance(last, Completed)
    models.require_whole(last)
    return Outcome([{"type": "text", "text": last.text}], usage=last.usage)
