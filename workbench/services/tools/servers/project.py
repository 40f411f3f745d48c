"""The servers of the project as a definition that has nothing but servers: so its trust and its secrets are theirs."""

from __future__ import annotations

from asyncio import to_thread
from dataclasses import dataclass

from workbench.definition_files import Snapshot
from workbench.ops import Ctx
from workbench.rules.definitions.model import Definition, DefinitionMetadata
from workbench.rules.tools.servers import ServerList

OWNER = ""
"""The owner of the project's servers in `workbench.upstream.connections.Key`."""
_ID = ":project"
"""No definition has such an id."""
_NAME = "The project's MCP servers"


@dataclass(frozen=True, slots=True)
class ProjectServers:
    """The servers of the project, as the file lists them and as a definition."""

    listed: ServerList
    snapshot: Snapshot


async def read(ctx: Ctx) -> ProjectServers:
    """The servers of the project as the file has them now."""
    listed = await to_thread(ctx.upstreams.file.read)
    return ProjectServers(listed, snapshot_of(ctx, listed))


def snapshot_of(ctx: Ctx, listed: ServerList) -> Snapshot:
    """The servers that are not switched off, as a definition."""
    # An identity that no file can give itself.
    metadata = DefinitionMetadata(id="project", name="project").model_copy(update={"id": _ID, "name": _NAME})
    servers = {name: server for name, server in listed.servers.items() if name not in listed.disabled}
    definition = Definition(metadata=metadata, mcp_servers=servers)
    return Snapshot(ctx.upstreams.file.path, definition, "", (), True)
