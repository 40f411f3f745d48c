"""Resources over MCP: lists them, and reads them through the backend for the caller of each request."""

from __future__ import annotations

from itertools import islice

from mcp.types import (
    ListResourcesResult,
    ListResourceTemplatesResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    TextResourceContents,
)

from workbench.errors import WorkbenchError
from workbench.ops import Catalogue
from workbench.present.inert import inert
from workbench.shells.mcp.addresses import LISTS, SINGLE, ResourceKind, locate
from workbench.shells.mcp.backend import Backend, Context, refusing, require_first_page

NEWEST = 25
"""How many of each kind a list of resources names; all others can be read by their addresses."""


class Resources:
    """The resources of a server; the public methods are handlers of requests, except for `read`."""

    def __init__(self, catalogue: Catalogue, backend: Backend) -> None:
        self._catalogue = catalogue
        self._backend = backend

    async def on_list(self, ctx: Context, params: PaginatedRequestParams | None) -> ListResourcesResult:
        """The lists that the caller may read, and the newest things in each of them."""
        async with refusing(ctx):
            require_first_page(params)
            kinds = await self._offered(ctx, LISTS)
            resources = [_resource(kind.address, kind.title, kind.description) for kind in kinds]
            for kind in kinds:
                resources += await self._newest(ctx, kind)
            return ListResourcesResult(resources=resources)

    async def on_list_templates(
        self, ctx: Context, params: PaginatedRequestParams | None
    ) -> ListResourceTemplatesResult:
        """The templates of the addresses that the caller may read."""
        async with refusing(ctx):
            require_first_page(params)
            kinds = await self._offered(ctx, SINGLE)
            return ListResourceTemplatesResult(resource_templates=[_template(kind) for kind in kinds])

    async def on_read(self, ctx: Context, params: ReadResourceRequestParams) -> ReadResourceResult:
        """A resource as text."""
        async with refusing(ctx, uri=params.uri):
            return ReadResourceResult(contents=[await self.read(ctx, params.uri)])

    async def read(self, ctx: Context, uri: str) -> TextResourceContents:
        """A resource as text.

        Raises:
            NotFound: ``RESOURCE_NOT_FOUND``. WorkbenchError: what the operation raises.
        """
        address = locate(uri)
        result = await self._backend.call(ctx, address.kind.operation, address.arguments)
        return TextResourceContents(uri=uri, mime_type=address.kind.mime_type, text=address.kind.text(result))

    async def _offered(self, ctx: Context, kinds: tuple[ResourceKind, ...]) -> list[ResourceKind]:
        caller = await self._backend.caller(ctx)
        return [kind for kind in kinds if self._catalogue[kind.operation].permits(caller)]

    async def _newest(self, ctx: Context, kind: ResourceKind) -> list[Resource]:
        """The newest things in a list; none if the caller's tool may not read them, or the project has no such things.

        A project without a repository has no worktrees.
        """
        try:
            result = await self._backend.call(ctx, kind.operation, dict(kind.fixed))
        except WorkbenchError:
            return []
        return [_resource(uri, title) for uri, title in islice(kind.items(result), NEWEST)]


def _resource(uri: str, title: str, description: str | None = None) -> Resource:
    address = locate(uri)
    return Resource(
        uri=address.uri,
        name=_name(address.uri),
        title=inert(title),
        description=description,
        mime_type=address.kind.mime_type,
    )


def _template(kind: ResourceKind) -> ResourceTemplate:
    return ResourceTemplate(
        uri_template=kind.address,
        name=_name(kind.address),
        title=kind.title,
        description=kind.description,
        mime_type=kind.mime_type,
    )


def _name(uri: str) -> str:
    """An address without its scheme."""
    return uri.partition("://")[2]
