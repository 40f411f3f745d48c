"""Trying an MCP server of a definition: it is started or called once, and its tools are listed."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from asyncio import to_thread
from pathlib import Path
from typing import Annotated

from pydantic import Field, ValidationError

from workbench.confinement.surroundings import NETWORK, TOOL_SERVER
from workbench.definition_files.mcp_probe import ProbeFinding, ProbeTarget
from workbench.errors import Unavailable
from workbench.ops import Command, Ctx
from workbench.present.inert import inert
from workbench.process import ProcessRef
from workbench.rules.definitions.mcp_servers import HttpServer, StdioServer
from workbench.services.definitions import changes, secrets, trust
from workbench.services.definitions.operation import AgentTarget, DefinitionAnswer, definition_op
from workbench.services.definitions.secrets import Resolved
from workbench.services.definitions.sections import mcp_servers
from workbench.services.definitions.sections.mcp_servers import ServerName
from workbench.services.processes import sandbox, server_programs
from workbench.system import atomic_file

POLL_SECONDS = 0.05
_INTERPRETER = ("HOME", "TMPDIR", "LC_ALL", "PYTHONPATH", "PYTHONUSERBASE", "VIRTUAL_ENV", "LD_LIBRARY_PATH")
"""Variables that Workbench's own program may need to start."""
GRACE_SECONDS = 10.0
"""How much longer than the server's time limit the whole may take: the client has to start and to end."""

log = logging.getLogger(__name__)


class ProbedTool(DefinitionAnswer):
    """A tool that the server offers."""

    name: str
    description: str


class Probe(DefinitionAnswer):
    """What an MCP server answered. `error` says why it could not be tried; then there are no tools. `problems`: which
    tools cannot be used, and why.

    `confined`: whether its program could access only its own scratch directory, programs, and the project without
    `.aiswarm`; null for a server at a URL. `missing` has each part that this system does not enforce.
    """

    ok: bool
    server: str
    version: str
    tools: list[ProbedTool]
    count: int
    problems: list[str]
    error: str | None
    confined: bool | None
    missing: list[str]


@definition_op(
    command=Command(
        "define servers probe AGENT NAME",
        options=(),
        help="Start or call a server once, and list its tools. Exit status 1 if it does not answer.",
    )
)
async def agent_probe_mcp_server(
    ctx: Ctx,
    agentTarget: AgentTarget,
    serverName: ServerName,
    timeoutSeconds: Annotated[float, Field(gt=0, le=120, description="How long it may take to answer.")] = 20,
) -> Probe:
    """Start or call an MCP server of an agent definition once and list its tools. It must be trusted first.

    A program runs confined as far as the system supports it.
    """
    snapshot = await changes.read(ctx, agentTarget)
    mcp_servers.require(snapshot.definition, serverName)
    await trust.require(ctx, snapshot, f"mcpServers.{serverName}")
    resolved = await secrets.resolved(ctx, snapshot.definition, providers=(), servers=(serverName,))
    async with ctx.definitions.probing:
        return await _probe(ctx, resolved.mcp_servers[serverName], resolved, timeoutSeconds)


async def _probe(ctx: Ctx, server: StdioServer | HttpServer, resolved: Resolved, seconds: float) -> Probe:
    if isinstance(server, HttpServer):
        is_sse = server.type == "sse"
        target = ProbeTarget(url=server.url, headers=server.headers, is_sse=is_sse, seconds=seconds)
        async with server_programs.scratch(ctx) as scratch:
            return _answer(await _run(ctx, scratch, target), resolved, None)
    confinement = sandbox.confinement_of(ctx.settings)
    async with server_programs.scratch(ctx) as scratch:
        program = (await to_thread(server_programs.boxed, ctx.settings, server, scratch / "home")).program
        target = ProbeTarget(
            command=list(program.argv()),
            environment=dict(program.environment),
            directory=str(program.directory),
            seconds=seconds,
        )
        return _answer(await _run(ctx, scratch, target), resolved, confinement)


async def _run(ctx: Ctx, scratch: Path, target: ProbeTarget) -> ProbeFinding:
    """Run the probe until it has ended, with all that it started."""
    finding, argv = scratch / "finding.json", [sys.executable, "-P", "-m", "workbench.definition_files.mcp_probe"]
    names = TOOL_SERVER if target.command else TOOL_SERVER | NETWORK
    environment = {name: value for name, value in os.environ.items() if name.upper() in names or name in _INTERPRETER}
    ref = await to_thread(
        ctx.local.processes.start,
        [*argv, str(finding)],
        cwd=scratch,
        env=environment,
        log=scratch / "log",
        stdin_text=target.model_dump_json(),
    )
    try:
        async with asyncio.timeout(target.seconds + GRACE_SECONDS):
            while ctx.local.processes.alive(ref):
                await asyncio.sleep(POLL_SECONDS)
    except TimeoutError:
        return ProbeFinding(failure=f"it did not answer within {target.seconds:g} s")
    finally:
        await ctx.local.repositories.shielded(_end(ctx, ref))
    try:
        return ProbeFinding.model_validate_json(await to_thread(atomic_file.read, finding))
    except (OSError, ValidationError, UnicodeDecodeError):
        return ProbeFinding(failure="its answer could not be read")


async def _end(ctx: Ctx, ref: ProcessRef) -> None:
    """End a probe with all processes that it started. A failure is logged and does not change the result."""
    try:
        await to_thread(ctx.local.processes.terminate, ref, 0.0)
    except Unavailable as error:
        log.warning("cannot end the probe of an MCP server: %s: %s", error.code, error.message)
    ctx.local.processes.forget(ref)


def _answer(finding: ProbeFinding, resolved: Resolved, confinement: sandbox.Confinement | None) -> Probe:
    def clean(text: str) -> str:
        return inert(resolved.redacted(text))

    error = None
    if finding.failure is not None:
        wrote = f" Its program wrote: {clean(finding.log.strip())}" if finding.log.strip() else ""
        error = f"The server could not be tried: {clean(finding.failure)}.{wrote}"
    tools = [ProbedTool(name=clean(tool.name), description=clean(tool.description)) for tool in finding.tools]
    return Probe(
        ok=error is None,
        server=clean(finding.server),
        version=clean(finding.version),
        tools=tools,
        count=len(tools),
        problems=[clean(problem) for problem in finding.problems],
        error=error,
        confined=confinement.enforced if confinement else None,
        missing=confinement.missing if confinement else [],
    )
