"""A conversation that is too long for its model, made shorter: what was said before becomes a summary by the model.

The question and what came of it so far stay as they are, until they alone are too long: then the results of tools are
cut.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.settings import ModelSettings

from workbench.providers import pictures
from workbench.providers.failures import is_too_long

ASKS = (
    "Summarise the conversation below for yourself: you go on with it, and have nothing but this summary. Keep what "
    "was asked and decided, facts, names, numbers, paths, code that is still needed, and what is open. Write no more "
    "than a page.\n\n<conversation>\n{}\n</conversation>"
)
SHORTEST = 2_000
"""Characters of a conversation, or of a result, below which it is not cut any more."""
LONGEST_PART = 4_000
"""Characters of one part of a conversation that is summarised."""
RESULT_ROOM = 2_000
"""Characters of a result of a tool, when the question alone is too long."""
_CUT = "\n[{:,} characters are left out: the conversation is too long for the model]\n"


class Compaction:
    """How the messages of one answer are shortened, also for its later steps.

    Args:
        model: writes the summary.
        settings: those of the connection.
        used: called with the answer that is the summary.
    """

    def __init__(self, model: Model, settings: ModelSettings, used: Callable[[ModelResponse], None]) -> None:
        self._model = model
        self._settings = settings
        self._used = used
        self._summary: list[ModelMessage] = []
        """Stands in the place of what was said before the question."""
        self._cuts = False

    def applied(self, messages: Sequence[ModelMessage]) -> list[ModelMessage]:
        """Messages as they are after what was done so far."""
        kept = [*self._summary, *messages[_question(messages) :]] if self._summary else list(messages)
        return [_cut(message) for message in kept] if self._cuts else kept

    async def go_further(self, messages: Sequence[ModelMessage]) -> str | None:
        """Shorten messages that are too long.

        Returns:
            What was done, in a sentence; None: nothing more can be done.

        Raises:
            ModelAPIError: the summary could not be made.
        """
        before = messages[: _question(messages)]
        if before and not self._summary:
            self._summary = _as_said(await self._summarised(before))
            return "The conversation is too long for this model: what was said before is summarised."
        kept = self.applied(messages)
        if not self._cuts and kept != [_cut(message) for message in kept]:
            self._cuts = True
            return "The conversation is too long for this model: long results of tools are cut."
        return None

    async def _summarised(self, messages: Sequence[ModelMessage]) -> str:
        """A summary; of half as much, as long as that is too long as well."""
        text = "\n\n".join(filter(None, map(_told, messages)))
        while True:
            try:
                return await self._ask(ASKS.format(text)) or "Nothing."
            except Exception as error:
                if not is_too_long(error) or len(text) <= SHORTEST:
                    raise
                text = _shortened(text, len(text) // 2)

    async def _ask(self, prompt: str) -> str:
        request = ModelRequest(parts=[UserPromptPart(content=prompt)])
        async with self._model.request_stream([request], self._settings, ModelRequestParameters()) as stream:
            async for _ in stream:
                pass
        response = stream.get()
        self._used(response)
        return "".join(part.content for part in response.parts if isinstance(part, TextPart))


def _as_said(summary: str) -> list[ModelMessage]:
    """A summary as the beginning of a conversation."""
    asked = UserPromptPart(content="Summarise what we have said so far.")
    return [ModelRequest(parts=[asked]), ModelResponse(parts=[TextPart(content=summary)])]


def _question(messages: Sequence[ModelMessage]) -> int:
    """The place of the last message that has a question of the person."""
    return max(
        n
        for n, message in enumerate(messages)
        if isinstance(message, ModelRequest) and any(isinstance(part, UserPromptPart) for part in message.parts)
    )


def _told(message: ModelMessage) -> str:
    """A message as text, each part cut."""
    return "\n".join(filter(None, map(_part_told, message.parts)))


def _part_told(part: Any) -> str:
    match part:
        case UserPromptPart(content=str(text)):
            return f"Person: {_shortened(text, LONGEST_PART)}"
        case TextPart(content=text):
            return f"You: {_shortened(text, LONGEST_PART)}"
        case ToolCallPart():
            return f"You call {part.tool_name}: {_shortened(part.args_as_json_str(), LONGEST_PART)}"
        case ToolReturnPart(content=list(items)):  # with pictures, which its text names
            text = "\n".join(item for item in items if isinstance(item, str))
            return f"Result of {part.tool_name}: {_shortened(text, LONGEST_PART)}"
        case ToolReturnPart():
            return f"Result of {part.tool_name}: {_shortened(part.model_response_str(), LONGEST_PART)}"
    return ""


def _cut(message: ModelMessage) -> ModelMessage:
    """A message whose results of tools are cut, and without its pictures."""
    if not isinstance(message, ModelRequest):
        return message
    [bare] = pictures.without([message])
    assert isinstance(bare, ModelRequest)
    return replace(bare, parts=[_part_cut(part) for part in bare.parts])


def _part_cut(part: Any) -> Any:
    if not isinstance(part, ToolReturnPart) or not isinstance(part.content, str):
        return part
    return replace(part, content=_shortened(part.content, RESULT_ROOM))


def _shortened(text: str, room: int) -> str:
    """A text without its middle, of about so many characters."""
    if len(text) <= room + len(_CUT):
        return text
    half = room // 2
    return f"{text[:half]}{_CUT.format(len(text) - 2 * half)}{text[-half:]}"
