"""Prompts: what a person can start in an agent with one command. Their texts are in `data/prompts/`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mcp.types import (
    ContentBlock,
    EmbeddedResource,
    GetPromptRequestParams,
    GetPromptResult,
    ListPromptsResult,
    PaginatedRequestParams,
    Prompt,
    PromptArgument,
    PromptMessage,
    TextContent,
)

from workbench.errors import BadInput
from workbench.model import Level
from workbench.shells.mcp.addresses import SCHEME, segment
from workbench.shells.mcp.backend import Backend, Context, refusing, require_first_page
from workbench.shells.mcp.resources import Resources
from workbench.state.settings import shipped


@dataclass(frozen=True)
class OfferedPrompt:
    """A prompt.

    Args:
        allow: the lowest level that it is offered to.
        argument: the name and the description of its only argument; both empty if it has none.
        attached: the path of the resource that comes with it, with the argument in braces.
    """

    name: str
    title: str
    description: str
    allow: Level
    argument: tuple[str, str] = ("", "")
    attached: str = ""

    @property
    def prompt(self) -> Prompt:
        """As clients list it."""
        name, description = self.argument
        arguments = [PromptArgument(name=name, description=description, required=True)] if name else []
        return Prompt(name=self.name, title=self.title, description=self.description, arguments=arguments)

    def value(self, given: Mapping[str, str]) -> str:
        """The value of its argument; empty if it has none.

        Raises:
            BadInput: ``INVALID_ARGUMENTS``.
        """
        name = self.argument[0]
        if set(given) != ({name} if name else set()) or (name and not given[name].strip()):
            takes = f"takes one argument, {name}" if name else "takes no arguments"
            raise BadInput("INVALID_ARGUMENTS", f"The prompt {self.name} {takes}.", problems=[])
        return given[name] if name else ""

    def text(self, value: str) -> str:
        """What it asks the agent to do."""
        template = shipped("data", "prompts", f"{self.name}.md").read_text("utf-8")
        return template.replace("{" + self.argument[0] + "}", value)


OFFERS = (
    OfferedPrompt(
        "day",
        "Work through the tasks",
        "Take tasks and do them, one after the other, until nothing is left.",
        Level.WORKER,
    ),
    OfferedPrompt(
        "plan",
        "Plan a goal",
        "Split a goal into tasks with dependencies, and create them as a plan.",
        Level.PLANNER,
        argument=("goal", "What is to be reached, and what counts as reached."),
    ),
    OfferedPrompt(
        "review",
        "Review a worktree",
        "Review the changes of a worktree before they are merged.",
        Level.READ,
        argument=("worktree", "The name of the worktree."),
        attached="worktrees/{worktree}/diff",
    ),
)


class Prompts:
    """The prompts of a server; the public methods are handlers of requests."""

    def __init__(self, backend: Backend, resources: Resources) -> None:
        self._backend = backend
        self._resources = resources

    async def on_list(self, ctx: Context, params: PaginatedRequestParams | None) -> ListPromptsResult:
        """The prompts that the caller is offered."""
        async with refusing(ctx):
            require_first_page(params)
            return ListPromptsResult(prompts=[offer.prompt for offer in await self._offered(ctx)])

    async def on_get(self, ctx: Context, params: GetPromptRequestParams) -> GetPromptResult:
        """The messages of a prompt: its text, and the resource that comes with it."""
        async with refusing(ctx):
            offer = await self._required(ctx, params.name)
            value = offer.value(params.arguments or {})
            content: list[ContentBlock] = [TextContent(type="text", text=offer.text(value))]
            if offer.attached:
                uri = SCHEME + offer.attached.replace("{" + offer.argument[0] + "}", segment(value))
                attached = await self._resources.read(ctx, uri)
                content.append(EmbeddedResource(type="resource", resource=attached))
        messages = [PromptMessage(role="user", content=block) for block in content]
        return GetPromptResult(description=offer.description, messages=messages)

    async def _required(self, ctx: Context, name: str) -> OfferedPrompt:
        required = next((offer for offer in await self._offered(ctx) if offer.name == name), None)
        if required is None:
            raise BadInput("UNKNOWN_PROMPT", f"There is no prompt {name!r}. prompts/list lists those you are offered.")
        return required

    async def _offered(self, ctx: Context) -> list[OfferedPrompt]:
        level = (await self._backend.caller(ctx)).level
        return [offer for offer in OFFERS if offer.allow <= level]
