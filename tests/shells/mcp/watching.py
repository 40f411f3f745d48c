"""Clients that watch what changes, in both eras of the protocol."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from mcp.client import Client
from mcp.server.subscriptions import PromptsListChanged, ResourcesListChanged, ResourceUpdated, ToolsListChanged
from mcp.types import (
    EmptyResult,
    PromptListChangedNotification,
    ResourceListChangedNotification,
    ResourceUpdatedNotification,
    SubscribeRequest,
    SubscribeRequestParams,
    ToolListChangedNotification,
    UnsubscribeRequest,
    UnsubscribeRequestParams,
)

from tests.conftest import Served
from tests.shells.mcp.sessions import session

LISTS = {
    **dict.fromkeys((ToolsListChanged, ToolListChangedNotification), "tools"),
    **dict.fromkeys((PromptsListChanged, PromptListChangedNotification), "prompts"),
    **dict.fromkeys((ResourcesListChanged, ResourceListChangedNotification), "resources"),
}

Next = Callable[[], Awaitable[str]]


@asynccontextmanager
async def notified(served: Served, token: str | None, era: str, *uris: str) -> AsyncIterator[Next]:
    """A client that watches resources and the lists; `await following()` is the next thing that has changed."""
    if era == "legacy":
        queue: asyncio.Queue[str] = asyncio.Queue()

        async def note(message: Any) -> None:
            if (name := name_of(message)) is not None:
                queue.put_nowait(name)

        async with session(served, token, era, message_handler=note) as client:
            for uri in uris:
                await subscribe(client, uri)
            yield queue.get
        return
    wanted = {"tools_list_changed": True, "prompts_list_changed": True, "resources_list_changed": True}
    async with session(served, token) as client, client.listen(**wanted, resource_subscriptions=[*uris]) as stream:
        changes = aiter(stream)

        async def following() -> str:
            return str(name_of(await anext(changes)))

        yield following


def name_of(message: Any) -> str | None:
    """The changed list or resource of a notification."""
    if isinstance(message, ResourceUpdatedNotification):
        return message.params.uri
    return message.uri if isinstance(message, ResourceUpdated) else LISTS.get(type(message))


async def subscribe(client: Client, uri: str) -> None:
    request = SubscribeRequest(params=SubscribeRequestParams(uri=uri))
    await client.session.send_request(request, EmptyResult)


async def unsubscribe(client: Client, uri: str) -> None:
    request = UnsubscribeRequest(params=UnsubscribeRequestParams(uri=uri))
    await client.session.send_request(request, EmptyResult)
