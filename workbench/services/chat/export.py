"""Exports of conversations: as Markdown, and as a notebook."""

from __future__ import annotations

import json
from asyncio import to_thread
from typing import Annotated, Any, Literal

from pydantic import Field

from workbench.inert import inert
from workbench.model import Level, Wire, iso
from workbench.ops import Ctx, op
from workbench.rules.chat.transcript import TextPart, ToolPart
from workbench.services.chat import messages
from workbench.services.chat.conversation import Conversation, ConversationId, require_conversation
from workbench.services.chat.messages import Message
from workbench.store.base import Reader

Format = Annotated[
    Literal["markdown", "notebook"],
    Field(description="notebook: a Jupyter notebook, in which each of your messages is a cell."),
]


class ExportedConversation(Wire):
    """A file: its name, its media type, and its content."""

    filename: str
    media_type: str
    content: str


@op(allow=Level.OPERATOR, reads=True, tool=False)
async def export_conversation(
    ctx: Ctx, conversation_id: ConversationId, format: Format = "markdown"
) -> ExportedConversation:
    """Export a conversation with its tool calls, as they are shown: without secrets. Replaced answers are left out."""

    def question(tx: Reader) -> tuple[Conversation, list[Message]]:
        return require_conversation(tx, conversation_id), messages.all_messages(tx, conversation_id)

    conversation, found = await ctx.read(question)
    name = f"conversation-{conversation.id}"
    if format == "markdown":
        return ExportedConversation(
            filename=f"{name}.md", media_type="text/markdown", content=_markdown(conversation, found)
        )
    content = await to_thread(_notebook, conversation, found)
    return ExportedConversation(filename=f"{name}.ipynb", media_type="application/x-ipynb+json", content=content)


def _markdown(conversation: Conversation, found: list[Message]) -> str:
    sections = [_heading(conversation)]
    for message in found:
        author = "You" if message.role == "user" else _author(conversation, message)
        sections += [f"## {author}", inert(message.content) if message.role == "user" else _answer(message)]
    return "\n\n".join(section for section in sections if section) + "\n"


def _heading(conversation: Conversation) -> str:
    title = inert(conversation.title) or "Conversation"
    return f"# {title}\n\nBegun {iso(conversation.created_at)}."


def _author(conversation: Conversation, message: Message) -> str:
    names = (conversation.definition, message.model)
    return ", ".join(inert(name) for name in names if name) or "Answer"


def _answer(message: Message) -> str:
    """An answer in Markdown, with its tool calls between the text, and how it ended unless that was by itself."""
    sections = [_text(part) if isinstance(part, TextPart) else _call(part) for part in message.parts]
    if message.remark:
        sections.append(f"*{message.remark}*")
    if message.state != "completed":
        reason = f": {message.error_code}: {inert(message.error or '')}" if message.error_code else ""
        sections.append(f"*This answer is {message.state}{reason}*")
    return "\n\n".join(section for section in sections if section)


def _text(part: TextPart) -> str:
    return inert(part.text).strip() if part.type == "text" else ""


def _call(part: ToolPart) -> str:
    result = "" if part.tool_result is None else f"\n\n{_fenced(inert(part.tool_result))}"
    return f"**{part.tool_name}** ({part.source}, {part.state}):\n\n{_fenced(inert(part.tool_input), 'json')}{result}"


def _fenced(text: str, language: str = "") -> str:
    """A code block; its fence is longer than any in the text."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}{language}\n{text}\n{fence}"


def _notebook(conversation: Conversation, found: list[Message]) -> str:
    """A notebook: a cell of Markdown for the title, and a cell of `%%chat` for each message with its answer."""
    import nbformat
    from nbformat import v4

    made: Any = v4.new_notebook(cells=[v4.new_markdown_cell(_heading(conversation))])
    for message in found:
        if message.role == "user":
            made.cells.append(v4.new_code_cell(f"%%chat\n{inert(message.content)}"))
        else:
            output = v4.new_output("display_data", data={"text/markdown": _answer(message)})
            made.cells[-1].outputs.append(output)
    for number, cell in enumerate(made.cells):
        cell.id = f"message-{number}"
    nbformat.validate(made)
    return json.dumps(made, indent=1, ensure_ascii=False) + "\n"
