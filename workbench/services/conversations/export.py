"""Exports of conversations: as Markdown, and as a notebook. Made a page, what others wrote in them runs nothing."""

from __future__ import annotations

import json
import re
from asyncio import to_thread
from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import Field

from workbench.model import Level, Wire, iso
from workbench.ops import Ctx, RestRoute, op
from workbench.present.inert import as_html, fenced, inert
from workbench.providers.markup import as_markup
from workbench.rules.chat.transcript import TextPart, ToolPart
from workbench.rules.tools.content import Picture, pictures
from workbench.services.conversations import turns
from workbench.services.conversations.conversation import ConversationId, ConversationInfo, require_conversation
from workbench.services.conversations.turns import TurnInfo
from workbench.services.tools import call_records
from workbench.store.base import Reader

MOST_BYTES = 8 << 20
"""Of the pictures in one file; others are only named."""
Shown = dict[str, list[Picture]]
"""The pictures that are shown, by the id of the record of the call that returned them."""
Format = Annotated[
    Literal["markdown", "notebook"],
    Field(description="notebook: a Jupyter notebook, in which each of your questions is a cell."),
]


class ExportedConversation(Wire):
    """A file: its name, its media type, and its content."""

    filename: str
    media_type: str
    content: str


@op(
    allow=Level.OPERATOR,
    reads=True,
    tool=False,
    command="conversations export",
    rest=RestRoute("GET", "/conversations/{conversation_id}/export"),
)
async def export_conversation(
    ctx: Ctx, conversation_id: ConversationId, format: Format = "markdown"
) -> ExportedConversation:
    """Export a conversation with its tool calls, as they are shown: without secrets. Replaced answers are left out."""

    def question(tx: Reader) -> tuple[ConversationInfo, list[TurnInfo], Shown]:
        dialogue = turns.all_turns(tx, conversation_id)
        return require_conversation(tx, conversation_id), dialogue, _pictures(tx, dialogue)

    conversation, dialogue, shown_pictures = await ctx.read(question)
    name = f"conversation-{conversation.id}"
    if format == "markdown":
        return ExportedConversation(
            filename=f"{name}.md", media_type="text/markdown", content=_markdown(conversation, dialogue, shown_pictures)
        )
    content = await to_thread(_notebook, conversation, dialogue, shown_pictures)
    return ExportedConversation(filename=f"{name}.ipynb", media_type="application/x-ipynb+json", content=content)


def _pictures(tx: Reader, dialogue: list[TurnInfo]) -> Shown:
    """The pictures that tools returned, the first ones as far as a file has room for them."""
    shown: Shown = {}
    room = MOST_BYTES
    for part in (part for turn in dialogue for part in turn.parts):
        if isinstance(part, ToolPart) and part.pictures and part.record_id is not None:
            kept_pictures = shown[part.record_id] = []
            for picture in pictures(call_records.result_of(tx, part.record_id)):
                if len(picture.data) <= room:
                    room -= len(picture.data)
                    kept_pictures.append(picture)
    return shown


def _markdown(conversation: ConversationInfo, dialogue: list[TurnInfo], shown: Shown) -> str:
    sections = [_heading(conversation)]
    for turn in dialogue:
        author = "You" if turn.role == "user" else _author(conversation, turn)
        sections += [f"## {author}", _inert(turn.content) if turn.role == "user" else _answer(turn, shown)]
    return "\n\n".join(section for section in sections if section) + "\n"


def _heading(conversation: ConversationInfo) -> str:
    title = escaped(inert(conversation.title)) or "Conversation"
    return f"# {title}\n\nBegun {iso(conversation.created_at)}."


def _author(conversation: ConversationInfo, turn: TurnInfo) -> str:
    names = (conversation.definition, turn.model)
    return ", ".join(escaped(inert(name)) for name in names if name) or "Answer"


def _answer(turn: TurnInfo, shown: Shown) -> str:
    """An answer in Markdown, with its tool calls between the text, and how it ended unless that was by itself."""
    sections = [_text(part) if isinstance(part, TextPart) else _call(part, shown) for part in turn.parts]
    sections += [f"*{_inert(ending)}*" for ending in _ending(turn)]
    return "\n\n".join(section for section in sections if section)


def _ending(turn: TurnInfo) -> Iterator[str]:
    if turn.remark:
        yield turn.remark
    if turn.state != "completed":
        reason = f": {turn.error_code}: {turn.error or ''}" if turn.error_code else ""
        yield f"This answer is {turn.state}{reason}"


def _text(part: TextPart) -> str:
    if part.type == "notice":
        return f"*{_inert(part.text)}*"
    return _inert(part.text).strip() if part.type == "text" else ""


def _inert(text: str) -> str:
    return harmless(inert(text))


def _call(part: ToolPart, shown: Shown) -> str:
    result = "" if part.tool_result is None else f"\n\n{fenced(inert(part.tool_result))}"
    name, arguments = escaped(part.tool_name), fenced(inert(part.tool_input), "json")
    images = "".join(f"\n\n![{picture.words}]({picture.address})" for picture in shown.get(part.record_id or "", ()))
    return f"**{name}** ({part.source}, {part.state}):\n\n{arguments}{result}{images}"


def _page(turn: TurnInfo, shown: Shown) -> str:
    """An answer as HTML, as a live cell shows it; its Markdown would be made HTML by whoever opens the notebook."""
    sections = [_text_page(part) if isinstance(part, TextPart) else _card(part, shown) for part in turn.parts]
    return "\n".join([*sections, *(f"<p><em>{as_html(ending)}</em></p>" for ending in _ending(turn))])


def _text_page(part: TextPart) -> str:
    if part.type == "notice":
        return f"<p><em>{as_html(part.text)}</em></p>"
    return as_markup(part.text if part.type == "text" else "")


def _card(part: ToolPart, shown: Shown) -> str:
    values = "".join(f"<pre>{as_html(value)}</pre>" for value in (part.tool_input, part.tool_result) if value)
    images = "".join(
        f'<p><img src="{picture.address}" alt="{as_html(picture.words)}"></p>'
        for picture in shown.get(part.record_id or "", ())
    )
    return f"<p><strong>{as_html(part.tool_name)}</strong> ({part.source}, {part.state}):</p>{values}{images}"


def _notebook(conversation: ConversationInfo, dialogue: list[TurnInfo], shown: Shown) -> str:
    """A notebook: a cell of Markdown for the title, and a cell of `%%chat` for each question with its answer."""
    import nbformat
    from nbformat import v4

    notebook: Any = v4.new_notebook(cells=[v4.new_markdown_cell(_heading(conversation))])
    for turn in dialogue:
        if turn.role == "user":
            notebook.cells.append(v4.new_code_cell(f"%%chat\n{inert(turn.content)}"))
        else:
            data = {"text/html": _page(turn, shown), "text/plain": _answer(turn, {})}
            output = v4.new_output("display_data", data=data)
            notebook.cells[-1].outputs.append(output)
    for number, cell in enumerate(notebook.cells):
        cell.id = f"turn-{number}"
    nbformat.validate(notebook)
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


_FENCE = re.compile(r"(`{3,})[^`]*")
_PERHAPS_FENCE = re.compile(r"`{3}|~{3}")
_PUNCTUATION = re.compile(r"([!-/:-@\[-`{-~])")


def harmless(text: str) -> str:
    """Markdown with its HTML as text, and links in place of images. Code in blocks that surely are ones stays."""
    return "\n".join(_harmless(text.split("\n")))


def _harmless(lines: list[str]) -> Iterator[str]:
    fence, is_sure = "", True
    for line in lines:
        if fence:
            fence = "" if re.fullmatch(rf" {{0,3}}{fence}`*[ \t]*", line) else fence
            yield line
        elif is_sure and (opening := _FENCE.fullmatch(line)):
            fence = opening[1]
            yield line
        else:  # a fence that is not at the margin may be part of a list, and end with it
            is_sure = is_sure and not _PERHAPS_FENCE.search(line)
            yield line.replace("<", "&lt;").replace("![", "[")


def escaped(text: str) -> str:
    """A line of text as Markdown that shows exactly that."""
    return _PUNCTUATION.sub(r"\\\1", " ".join(text.split()))
