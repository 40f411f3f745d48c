"""A toolbox as pydantic-ai takes it."""

from __future__ import annotations

from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import AbstractToolset
from pydantic_ai.toolsets.abstract import ToolsetTool
from pydantic_core import SchemaValidator, core_schema

from workbench.errors import WorkbenchError
from workbench.providers.pictures import PicturesRoom, as_content
from workbench.providers.tools import Toolbox, ToolOffer
from workbench.rules.wire import json_safety

RESULT_LIMIT = 200_000
"""Characters of a result that a model reads, and that stay in the history."""
MISTAKES = 3
"""How often in a row a model may call a tool that does not exist, or with what is not JSON."""

_ANY_OBJECT = SchemaValidator(core_schema.dict_schema(core_schema.str_schema(), core_schema.any_schema()))


class ToolboxToolset(AbstractToolset[Any]):
    """The tools of a toolbox, asked for again before each step. Their failures are results that the model reads."""

    def __init__(self, toolbox: Toolbox) -> None:
        self._toolbox = toolbox
        self._room = PicturesRoom()

    @property
    def id(self) -> str:
        """See `AbstractToolset`."""
        return "workbench"

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        """See `AbstractToolset`."""
        return {offer.name: self._tool(offer) for offer in await self._toolbox.offers()}

    def _tool(self, offer: ToolOffer) -> ToolsetTool[Any]:
        return ToolsetTool(
            toolset=self,
            max_retries=MISTAKES,
            args_validator=_ANY_OBJECT,
            tool_def=ToolDefinition(
                name=offer.name, description=offer.description, parameters_json_schema=dict(offer.parameters)
            ),
        )

    async def call_tool(self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: Any) -> Any:
        """See `AbstractToolset`. The library names a picture in words to a model that takes none."""
        try:
            json_safety.check(tool_args)
        except ValueError as error:
            raise ToolFailed(f"INVALID_ARGUMENTS: {error}") from None
        try:
            answer = await self._toolbox.call(name, tool_args, ctx.tool_call_id or "")
        except WorkbenchError as error:
            raise ToolFailed(f"{error.code}: {error.message}") from None
        sent = [as_content(one) for one in answer.pictures if self._room.take(len(one.data))]
        text = _cut(answer.text)
        if not sent:
            return text
        left_out = len(answer.pictures) - len(sent)
        return [f"{text}\n[{left_out} of the pictures are not sent: this answer has many]" if left_out else text, *sent]


def _cut(text: str) -> str:
    missing = len(text) - RESULT_LIMIT
    return text if missing <= 0 else f"{text[:RESULT_LIMIT]}\n[{missing:,} more characters]"
