"""The pictures of an answer's tools, for a page: read from the records of the calls, as far as a page has room."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from workbench.errors import WorkbenchError
from workbench.rules.chat.transcript import TextPart, ToolPart
from workbench.rules.tools.content import Picture, pictures

MOST_BYTES = 8 << 20
"""Of the pictures of one output; others are only named."""


class Pictures:
    """The pictures of the calls of one answer or conversation, each read once.

    Args:
        call: runs an operation as the operator.
    """

    def __init__(self, call: Callable[..., Mapping[str, Any]]) -> None:
        self._call = call
        self._left = MOST_BYTES
        self._found: dict[str, list[Picture]] = {}

    def of(self, part: TextPart | ToolPart) -> list[Picture]:
        """Those that a call returned."""
        if not isinstance(part, ToolPart) or not part.pictures or part.record_id is None:
            return []
        if part.record_id not in self._found:
            self._found[part.record_id] = self._read(part.record_id)
        return self._found[part.record_id]

    def _read(self, record_id: str) -> list[Picture]:
        try:
            found = pictures(self._call("get_tool_call", call_id=record_id)["result"])
        except WorkbenchError:  # what is known of the answer is shown without them
            return []
        shown = []
        for picture in found:
            if len(picture.data) <= self._left:
                self._left -= len(picture.data)
                shown.append(picture)
        return shown
