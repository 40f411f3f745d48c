"""The parts of an answer as they are shown: text, and a card for each call of a tool. What they say is shown inert."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from workbench.errors import WorkbenchError
from workbench.present.inert import as_html, inert
from workbench.providers.markup import as_markup
from workbench.rules.chat.transcript import CallState, TextPart, ToolPart
from workbench.rules.tools.content import Picture, pictures, words

SHOWN_VALUE = 60
SHOWN_LINE = 200
"""Characters of an argument, and of a line. A card in a notebook has the rest."""
MOST_BYTES = 8 << 20
"""Of the pictures of one output; others are only named."""
_CARD = "border: 1px solid #8886; border-radius: 4px; margin: 4px 0; padding: 2px 8px"
_WRAPPED = "margin: 2px 0; max-height: 24em; overflow: auto; white-space: pre-wrap"
_IMAGE = "display: block; max-width: 100%; max-height: 30em; margin: 4px 0; background: white"
_ENDINGS = {CallState.COMPLETED: "←", CallState.FAILED: "✗", CallState.CANCELLED: "✗"}
_STATES = {
    CallState.RUNNING: "running",
    CallState.WAITING: "waits for you",
    CallState.COMPLETED: "✓ completed",
    CallState.FAILED: "✗ failed",
    CallState.CANCELLED: "✗ cancelled",
}


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
            returned = pictures(self._call("get_tool_call", call_id=record_id)["result"])
        except WorkbenchError:  # what is known of the answer is shown without them
            return []
        fitting = []
        for picture in returned:
            if len(picture.data) <= self._left:
                self._left -= len(picture.data)
                fitting.append(picture)
        return fitting


def as_text(part: TextPart | ToolPart) -> str:
    """A part for a terminal, without empty lines around it."""
    if isinstance(part, ToolPart):
        return "\n".join(filter(None, (call_line(part), end_line(part))))
    text = part.text if part.type == "text" else f"({part.text.strip()})"
    return inert(text.strip("\n"))


def as_page(part: TextPart | ToolPart, pictures: Sequence[Picture] = ()) -> str:
    """A part as HTML. A card is one line, which opens to show the whole arguments and the result.

    Args:
        pictures: those that the call returned, as far as they are shown below its card.
    """
    if isinstance(part, ToolPart):
        return _card(part) + "".join(map(as_image, pictures))
    if part.type == "thinking":
        return f"<details><summary><em>thinking</em></summary>{as_markup(part.text)}</details>"
    if part.type == "notice":
        return f"<p><em>{as_html(part.text)}</em></p>"
    return as_markup(part.text)


def call_line(part: ToolPart) -> str:
    """``→ add(a=1, b=2)``"""
    source = " · MCP" if part.source == "mcp" else ""
    return inert(f"→ {part.tool_name}({_arguments(part.tool_input)}){source}")


def end_line(part: ToolPart) -> str:
    """``← add: 3``; empty while it runs."""
    if part.state is CallState.WAITING:
        return inert(f"? {part.tool_name} waits for you: `workbench approvals`")
    if part.state is CallState.RUNNING:
        return ""
    result = "cancelled" if part.state is CallState.CANCELLED else part.tool_result or ""
    line = _line(result, SHOWN_LINE)
    names = [f"[{words(picture.bytes, picture.media_type)}]" for picture in part.pictures]
    shown = " ".join([line, *(name for name in names if name not in line)])
    return inert(f"{_ENDINGS[part.state]} {part.tool_name}: {shown}")


def as_image(picture: Picture) -> str:
    """A picture as HTML; an image runs no script."""
    return f'<img src="{picture.address}" alt="{as_html(picture.words)}" style="{_IMAGE}">'


def _card(part: ToolPart) -> str:
    source = ("MCP · " + part.server if part.server else "MCP") if part.source == "mcp" else ""
    took = f"{part.duration_ms / 1_000:.2f} s" if part.duration_ms is not None else ""
    how_far = _progress(part) if part.state is CallState.RUNNING else ""
    facts = " · ".join(as_html(fact) for fact in (source, _STATES[part.state], how_far, took) if fact)
    values = [indented(part.tool_input), indented(part.tool_result or "")]
    body = "".join(f'<pre style="{_WRAPPED}">{as_html(value)}</pre>' for value in values if value)
    name = f"<code>{as_html(part.tool_name)}</code>"
    return f'<details style="{_CARD}"><summary>{name} <small>{facts}</small></summary>{body}</details>'


def _progress(part: ToolPart) -> str:
    """``40 %, reading``; empty if the tool has not said how far it is."""
    if part.progress is None:
        return ""
    share = f"{part.progress / part.total:.0%}".replace("%", " %") if part.total else f"{part.progress:g}"
    return ", ".join(filter(None, (share, _line(part.message or "", SHOWN_VALUE))))


def _arguments(text: str) -> str:
    """``a=1, b="two"``"""
    arguments = _decode(text)
    if not isinstance(arguments, Mapping):
        return _line(text, SHOWN_LINE)
    pairs = (f"{name}={_line(json.dumps(value, ensure_ascii=False), SHOWN_VALUE)}" for name, value in arguments.items())
    return _line(", ".join(pairs), SHOWN_LINE)


def indented(text: str) -> str:
    """A text in JSON with one value on each line; another text as it is."""
    value = _decode(text)
    return text if value is None else json.dumps(value, indent=2, ensure_ascii=False)


def changed_lines(changes: Sequence[Mapping[str, Any]]) -> str:
    """How a tool differs from what was allowed: for each place, what was there before and what is there now."""
    lines = ["The tool is not what you allowed: what it says about itself has changed."]
    for change in changes:
        lines.append(f"  {change['path']}")
        for sign, value in (("-", change["before"]), ("+", change["after"])):
            if value is not None:
                text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
                lines += [f"  {sign} {line}" for line in text.splitlines()]
    return inert("\n".join(lines))


def _decode(text: str) -> Any:
    """The value of a text in JSON; None if it is something else, such as the beginning of a longer one."""
    try:
        return json.loads(text)
    except ValueError:
        return None


def _line(text: str, limit: int) -> str:
    """The beginning of a text, on one line."""
    line = " ".join(text.split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"
