"""What has changed for the clients of the MCP endpoint. One subscription to the feed serves all of them.

A change says only that something is to be read again. So a client that has not been sent a change yet needs it only
once, and what is kept for a client is bounded by what it watches.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

from mcp.server.subscriptions import (
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ServerEvent,
    ToolsListChanged,
)

from workbench.app import Workbench
from workbench.errors import Conflict, Unauthenticated, WorkbenchError
from workbench.model import Capability, FeedEvent, Level
from workbench.ops import Caller
from workbench.services.sharing.events import may_see
from workbench.shells.mcp.addresses import PROFILES, SCHEME, ResourceAddress, segment

MAX_WATCHED = 100
SECONDS_BETWEEN_DELIVERIES = 0.5
"""The least time between two deliveries to a client; what changes meanwhile is delivered together."""
SECONDS_BETWEEN_CHECKS = 15.0
"""How often access is checked without an event: a grant can expire, and the allowlist can be edited by hand."""
SECONDS_BETWEEN_ATTEMPTS = 1.0
ACCESS = frozenset({"agent", "agent_tool", "allowlist"})
"""Nouns of events after which an agent may be offered other tools, or see other things."""
PATHS = {
    "approval": ("approvals", "approvals/{}"),
    "context": ("contexts", "contexts/{}"),
    "plan": ("plans", "plans/{}"),
    "task": ("tasks", "tasks/{}"),
    "worktree": ("worktrees", "worktrees/{}/diff"),
}
"""The resources that an event about a noun changes."""
PERSONALITY = "personality"
"""The noun of events about profiles of the KOI network."""
TOOLS_CHANGED = frozenset({"tools.changed", "tool.permitted", "peer.blocked", "peer.unblocked"})
"""The events, besides those about personalities, after which agents that may call tools of the catalogue may be offered
others."""
KINDS = (*(f"{noun}.*" for noun in sorted({*ACCESS, *PATHS, PERSONALITY})), *sorted(TOOLS_CHANGED))
LISTED = frozenset(
    {
        *("approval.requested", "approval.approved", "approval.rejected", "approval.failed"),
        *("context.written", "context.deleted", "context.restored"),
        *("plan.created", "task.created", "task.imported"),
        *("personality.published", "personality.forgotten"),
        *("worktree.created", "worktree.discarded", "worktree.integrated"),
    }
)
"""The events that change the list of resources."""
log = logging.getLogger(__name__)


def addresses(event: FeedEvent) -> list[str]:
    """The addresses of the resources that an event changes; a task's plan is not among them."""
    noun, _, name = event.subject.partition(":")
    if noun == PERSONALITY:
        return _of_profile(*name.split("/", 1))
    return [SCHEME + path.format(segment(name)) for path in PATHS.get(noun, ())]


def _of_profile(name: str, version: str) -> list[str]:
    """What a change of a version of a profile changes: it may be the latest one."""
    latest = f"{PROFILES}{segment(name)}"
    return [f"{SCHEME}personalities", latest, f"{latest}/{segment(version)}"]


class WatchingClient:
    """One client: what it watches, and which changes it has not been sent yet."""

    def __init__(self, caller: Caller) -> None:
        self.caller = caller
        self._watched: dict[str, str] = {}
        self._unsent: dict[ServerEvent, None] = {}
        self._changed = asyncio.Event()

    @property
    def watches_plans(self) -> bool:
        """Whether it watches a plan, or the list of plans."""
        return any(uri.startswith(f"{SCHEME}plans") for uri in self._watched)

    def watch(self, address: ResourceAddress, spelling: str) -> None:
        """Watch a resource; its changes carry the address as the client has spelled it.

        Raises:
            Conflict: ``TOO_MANY_SUBSCRIPTIONS``.
        """
        if len(self._watched) >= MAX_WATCHED and address.uri not in self._watched:
            raise Conflict(
                "TOO_MANY_SUBSCRIPTIONS",
                f"A client may watch at most {MAX_WATCHED} resources. Watch a list, such as {SCHEME}tasks, or end one.",
            )
        self._watched[address.uri] = spelling

    def unwatch(self, address: ResourceAddress) -> None:
        """Watch a resource no longer."""
        self._watched.pop(address.uri, None)

    def watched_among(self, uris: list[str]) -> list[ServerEvent]:
        """The changes of those of these resources that it watches."""
        return [ResourceUpdated(self._watched[uri]) for uri in uris if uri in self._watched]

    def add(self, *changes: ServerEvent) -> None:
        """Note changes to be sent."""
        self._unsent.update(dict.fromkeys(changes))
        self._changed.set()

    def add_watched(self) -> None:
        """Note that all that it watches may have changed, and the list of resources."""
        self.add(ResourcesListChanged(), *(ResourceUpdated(spelling) for spelling in self._watched.values()))

    def add_everything(self) -> None:
        """Note that everything may have changed."""
        self.add(ToolsListChanged(), PromptsListChanged())
        self.add_watched()

    async def deliver(self, send: Callable[[ServerEvent], Awaitable[None]]) -> None:
        """Send the changes as they come, until cancelled. A client that does not read delays only itself."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            unsent, self._unsent = self._unsent, {}
            for change in unsent:
                await send(change)
            await asyncio.sleep(SECONDS_BETWEEN_DELIVERIES)


class FeedChanges:
    """Follows the feed while there are clients, and notes for each what has changed."""

    def __init__(self, workbench: Workbench) -> None:
        self._workbench = workbench
        self._clients: set[WatchingClient] = set()
        self._following: asyncio.Task[None] | None = None
        self._is_followed = asyncio.Event()

    @asynccontextmanager
    async def noted_for(self, client: WatchingClient) -> AsyncIterator[None]:
        """Note for a client, within the block, everything that changes from its beginning on."""
        self._clients.add(client)
        if self._following is None:
            self._following = asyncio.create_task(self._follow())
        try:
            await self._is_followed.wait()
            await self._check_access(client)  # it may have changed since the caller was identified
            yield
        finally:
            self._clients.discard(client)
            if not self._clients and self._following is not None:
                self._following.cancel()
                self._following = None
                self._is_followed = asyncio.Event()

    async def _follow(self) -> None:
        """The task's outermost handler: after a failure, everything may have changed."""
        while True:
            try:
                await self._note_changes()
            except WorkbenchError as error:
                # Duties meet an error of the store, too, and it is logged with theirs.
                level = logging.INFO if error.is_of_store else logging.WARNING
                log.log(level, "MCP clients are asked to read everything again: %s", error)
            except Exception:
                log.exception("the changes for MCP clients could not be followed; trying again")
            self._is_followed.set()
            for client in self._clients:
                client.add_everything()
            await asyncio.sleep(SECONDS_BETWEEN_ATTEMPTS)

    async def _note_changes(self) -> None:
        async with self._workbench.feed.subscribe(*KINDS) as events:
            self._is_followed.set()
            while True:
                event = await events.within(SECONDS_BETWEEN_CHECKS)
                for client in list(self._clients):
                    if event is None or _may_change_access(event, client.caller):
                        await self._check_access(client)
                if event is not None:
                    await self._note(event)

    async def _note(self, event: FeedEvent) -> None:
        is_profile = event.kind.startswith(f"{PERSONALITY}.")
        if event.kind in TOOLS_CHANGED or (is_profile and event.data.get("tools_changed", True)):
            for client in self._clients:
                if Capability.TOOLS in client.caller.capabilities:
                    client.add(ToolsListChanged())
            if not is_profile:
                return
        uris = addresses(event)
        if event.kind.startswith("task.") and any(client.watches_plans for client in self._clients):
            uris += await self._plan_of(event)
        for client in list(self._clients):
            changes = client.watched_among(uris)
            if event.kind in LISTED:
                changes.append(ResourcesListChanged())
            if changes and await self._is_visible(client, event):
                client.add(*changes)

    async def _plan_of(self, event: FeedEvent) -> list[str]:
        """The addresses of the plan that an event's task belongs to."""
        with suppress(WorkbenchError):
            task = await self._workbench.call("get_task", task_id=int(event.subject.partition(":")[2]))
            if task["plan"] is not None:
                return [f"{SCHEME}plans", f"{SCHEME}plans/{segment(task['plan'])}"]
        return []

    async def _is_visible(self, client: WatchingClient, event: FeedEvent) -> bool:
        caller = await self._present(client)
        return caller is not None and caller.level >= Level.READ and may_see(caller, event)

    async def _check_access(self, client: WatchingClient) -> None:
        """Note what has changed for a client by another grant, or another place in the project."""
        before, now = client.caller, await self._present(client)
        if now is None:
            return
        client.caller = now
        if (now.level, now.capabilities) != (before.level, before.capabilities):
            client.add_everything()
        elif now.tools != before.tools:
            client.add(ToolsListChanged())
        elif (now.session, now.team, now.access) != (before.session, before.team, before.access):
            client.add_watched()

    async def _present(self, client: WatchingClient) -> Caller | None:
        """A client's caller with its present permissions; None if it has none any more, or they cannot be read."""
        try:
            return await self._workbench.renewed(client.caller)
        except Unauthenticated:
            self._clients.discard(client)
        except WorkbenchError as error:
            log.warning("the permissions of %s could not be read: %s", client.caller.name, error)
        return None


def _may_change_access(event: FeedEvent, caller: Caller) -> bool:
    noun = event.subject.partition(":")[0]
    return event.subject == f"agent:{caller.agent}" if noun == "agent" else noun in ACCESS
