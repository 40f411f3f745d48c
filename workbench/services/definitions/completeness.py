"""Checking a definition as a whole: its files, what they say, and what this machine has of what they name."""

from __future__ import annotations

import shutil
from asyncio import to_thread
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from workbench.definition_files import DefinitionDirectory, Snapshot
from workbench.definition_files.older import OlderDefinition
from workbench.definition_files.secret_sources import is_unset
from workbench.errors import BadInput, NotFound
from workbench.model import Level
from workbench.ops import Command, Ctx
from workbench.rules.definitions.completeness import CompletenessFinding, Severity, by_severity, findings
from workbench.rules.definitions.mcp_servers import StdioServer
from workbench.rules.definitions.model import Definition
from workbench.rules.definitions.secrets.references import parse
from workbench.services.access.personas import require_persona
from workbench.services.definitions import changes, tool_names
from workbench.services.definitions.operation import AgentTarget, DefinitionAnswer, definition_op
from workbench.store.base import Reader


class Problem(DefinitionAnswer):
    """One thing to mend. `place`: such as ``rules.cite``, or a file; `line`: in the file, if it is known."""

    severity: Severity
    place: str
    message: str
    line: int | None = None


class CompletenessReport(DefinitionAnswer):
    """What was found, errors first. `valid`: no errors; `complete`: no warnings either; hints do not count."""

    valid: bool
    complete: bool
    problems: list[Problem]
    count: int
    content_hash: str | None


@definition_op(
    reads=True,
    command=Command(
        "define validate AGENT",
        help="Check a definition: what is wrong in it, and what is missing. Exit status 1 if it is not valid.",
    ),
)
async def agent_validate(ctx: Ctx, agentTarget: AgentTarget) -> CompletenessReport:
    """Check whether an agent definition is valid and complete; each problem says what to do. Nothing is started."""
    directory = await to_thread(ctx.definitions.find, agentTarget)
    try:
        snapshot = await to_thread(ctx.definitions.read, directory)
    except BadInput as error:
        return _report([_unreadable(error)], None)
    await changes.note(ctx, snapshot)
    unsorted = [
        *findings(snapshot.definition),
        *_older_layout(directory),
        *await to_thread(_shared_names, ctx, snapshot.definition),
        *await to_thread(
            lambda: [*_former_settings(directory), *_foreign(directory.foreign()), *_missing_programs(snapshot)]
        ),
        *(_unset_variables(snapshot.definition) if ctx.caller.level is Level.OPERATOR else ()),
        *await ctx.read(lambda tx: list(_unknown_persona(tx, snapshot.definition))),
    ]
    problems = [
        Problem(severity=finding.severity, place=finding.place, message=finding.message)
        for finding in by_severity(unsorted)
    ]
    return _report(problems, snapshot.hash)


def _report(problems: list[Problem], content_hash: str | None) -> CompletenessReport:
    severities = {problem.severity for problem in problems}
    valid = Severity.ERROR not in severities
    complete = valid and Severity.WARNING not in severities
    return CompletenessReport(
        valid=valid, complete=complete, problems=problems, count=len(problems), content_hash=content_hash
    )


def _unreadable(error: BadInput) -> Problem:
    """The problem of a definition that cannot be read: the first one in its files."""
    details: dict[str, Any] = error.details
    place, line = details.get("file", "files"), details.get("line")
    return Problem(severity=Severity.ERROR, place=place, message=error.message, line=line)


def _shared_names(ctx: Ctx, definition: Definition) -> Iterator[CompletenessFinding]:
    for name in sorted(tool_names.shared_with_project(ctx, definition)):
        text = "The project has an MCP server of this name, too, so neither is used here. Give one another name."
        yield CompletenessFinding(Severity.WARNING, f"mcpServers.{name}", text)


def _older_layout(directory: DefinitionDirectory) -> Iterator[CompletenessFinding]:
    if isinstance(directory, OlderDefinition):
        text = "This is an older layout, in which it can only be read. Convert it with agent_migrate."
        yield CompletenessFinding(Severity.WARNING, "files", text)


def _former_settings(directory: DefinitionDirectory) -> Iterator[CompletenessFinding]:
    if directory.states_former_settings():
        text = "A former version wrote this block of defaults, which no model was sent. They count as not set."
        yield CompletenessFinding(
            Severity.HINT, "settings", f"{text} The next change removes them; set those that you want."
        )


def _foreign(names: list[str]) -> Iterator[CompletenessFinding]:
    for name in names:
        text = "This file is not read: it is no part of a definition. Move it, or make it a reference."
        yield CompletenessFinding(Severity.HINT, name, text)


def _unset_variables(definition: Definition) -> Iterator[CompletenessFinding]:
    """The references to variables that the server has not."""
    servers = definition.mcp_servers.items()
    places = [(f"providers.{name}", config) for name, config in definition.providers.items()]
    places += [(f"mcpServers.{name}", dict(server.env)) for name, server in servers if isinstance(server, StdioServer)]
    for place, values in places:
        for key, value in values.items():
            if (reference := parse(value)) and is_unset(reference):
                text = f"The server has no variable {reference.place}. Set it, and start the server again."
                yield CompletenessFinding(Severity.WARNING, f"{place}.{key}", text)


def _missing_programs(snapshot: Snapshot) -> Iterator[CompletenessFinding]:
    """The programs of MCP servers that are not installed, by their names alone: nothing else is looked for."""
    for name, server in snapshot.definition.mcp_servers.items():
        if isinstance(server, StdioServer) and _is_missing(server.command):
            text = f"There is no program {server.command!r} on this machine. Install it, or change the command."
            yield CompletenessFinding(Severity.WARNING, f"mcpServers.{name}", text)


def _is_missing(command: str) -> bool:
    return Path(command).name == command and shutil.which(command) is None


def _unknown_persona(tx: Reader, definition: Definition) -> Iterator[CompletenessFinding]:
    if persona := definition.metadata.persona:
        try:
            require_persona(tx, persona)
        except NotFound as error:
            yield CompletenessFinding(Severity.ERROR, "metadata.persona", error.message)
