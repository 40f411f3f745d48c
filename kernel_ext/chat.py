"""`wb.chat` and `%%chat`: conversations with models as objects of a notebook."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

import click
from IPython.core.getipython import get_ipython

from kernel_ext.objects.mistakes import Fixed, Suggests
from workbench.cli.chat.answer import Answer
from workbench.cli.chat.attachments import attached, file_part
from workbench.cli.chat.command import begun, conversation_options
from workbench.cli.chat.conversations import ShownConversation, read_conversation
from workbench.cli.completion import offers
from workbench.errors import NotFound
from workbench.present.tables import Table

if TYPE_CHECKING:
    from kernel_ext.live_answer import LiveNotebook


class Opener(Protocol):
    """A notebook's session, for the command."""

    chats: Chats


class ShownAnswer(Answer):
    """An answer in a notebook. A cell shows it once: as it comes, or when it is the cell's last value."""

    _shown_in: int | None = None

    def show(self) -> ShownAnswer:
        """Show it in this cell until it has ended. An interrupt of the cell stops it.

        Raises:
            WorkbenchError: it failed. Interrupted: ``ANSWER_STOPPED``.
        """
        from kernel_ext import live_answer

        self._shown_in = _cell()
        live_answer.show(cast("LiveNotebook", self._caller), self)
        return self

    def _ipython_display_(self) -> None:
        from kernel_ext import live_answer

        if self._shown_in != _cell():
            live_answer.publish(self)


class Chat(Fixed):
    """A conversation with the agent of a definition, or with a model. A cell shows its turns."""

    id: str

    def __init__(self, notebook: LiveNotebook, conversation_id: str) -> None:
        self._notebook = notebook
        self.id = conversation_id

    @property
    def info(self) -> Mapping[str, Any]:
        """Its definition or model, its limits, and what it has used.

        Raises:
            NotFound: ``CONVERSATION_NOT_FOUND``.
        """
        return self._notebook.call("get_conversation", conversation_id=self.id)

    @property
    def turns(self) -> Sequence[Mapping[str, Any]]:
        """Its newest turns, oldest first."""
        return list(self._notebook.call("list_turns", conversation_id=self.id)["turns"])

    def ask(self, question: str, files: Sequence[str | Path] = ()) -> ShownAnswer:
        """Ask something, and show the answer as it comes. An interrupt of the cell stops it.

        Args:
            files: text files that the question takes along.

        Raises:
            WorkbenchError: the answer failed, or what the operation ask raises.
        """
        return self.send(question, files).show()

    def send(self, question: str, files: Sequence[str | Path] = ()) -> ShownAnswer:
        """Ask something without waiting for the answer; its `show` or `wait` does.

        Raises:
            WorkbenchError: what the operation ask raises.
        """
        return ShownAnswer.asked(self._notebook, self.id, attached(question, map(file_part, files)))

    def retry(self) -> ShownAnswer:
        """Ask the last question again, and show the answer as it comes; it replaces the one before.

        Raises:
            WorkbenchError: the answer failed, or what the operation retry_answer raises.
        """
        return ShownAnswer.retried(self._notebook, self.id).show()

    def stop(self) -> None:
        """Stop the answer that is being made, if one is."""
        self._notebook.call("stop_answer", conversation_id=self.id)

    def update(self, **changes: Any) -> Chat:
        """Change its title, model, tools, include or limits.

        Raises:
            WorkbenchError: what the operation update_conversation raises.
        """
        self._notebook.call("update_conversation", conversation_id=self.id, **changes)
        return self

    def export(self, format: str = "markdown") -> str:
        """It as Markdown, or as a notebook in JSON (``notebook``)."""
        return str(self._notebook.call("export_conversation", conversation_id=self.id, format=format)["content"])

    def delete(self) -> None:
        """Delete it with its turns. The calls of its tools stay recorded."""
        self._notebook.call("delete_conversation", conversation_id=self.id)

    def __repr__(self) -> str:
        return repr(self._read())

    def _repr_html_(self) -> str:
        return self._read().markup

    def _read(self) -> ShownConversation:
        return read_conversation(self._notebook, self.id)


class Chats(Suggests):
    """The conversations that `%%chat` continues in this notebook: one for each definition or model.

    A cell shows with whom they are.
    """

    def __init__(self, notebook: LiveNotebook) -> None:
        self._notebook = notebook
        self._by_partner: dict[str, Chat] = {}
        self._last: Chat | None = None

    def open(
        self, definition: str | None, *, new: bool = False, conversation: str | None = None, **options: Any
    ) -> Chat:
        """The conversation to continue, or a new one.

        Args:
            definition: whom it is with; None: the model in the options, or the conversation that was continued last.
            conversation: the id of the one to continue.
            options: see `begun`.

        Raises:
            BadInput: ``BAD_USAGE``. Other errors: what the operations raise.
        """
        partner = definition or options.get("model")
        chat = self._by_partner.get(partner) if partner else self._last
        if chat is not None and not new and conversation is None:
            changes = options if definition else {**options, "model": None}
            with suppress(NotFound):  # it was deleted, or is of another project
                begun(self._notebook, None, chat.id, **changes)
                return self._remember(partner, chat)
        info = begun(self._notebook, definition, conversation, **options)
        return self._remember(partner, Chat(self._notebook, info["id"]))

    def __repr__(self) -> str:
        return repr(self._table())

    def _repr_html_(self) -> str:
        return self._table().html()

    def _table(self) -> Table:
        rows = [[partner, chat.id] for partner, chat in self._by_partner.items()]
        return Table(["with", "conversation"], rows, "None has begun here. `%%chat DEFINITION` begins one.")

    def _remember(self, partner: str | None, chat: Chat) -> Chat:
        self._last = chat
        if partner is not None:
            self._by_partner[partner] = chat
        return chat


@click.command("chat")
@click.argument("definition", required=False, shell_complete=offers.definitions)
@click.argument("question", required=False)
@conversation_options
@click.option("--new", is_flag=True, help="Begin a new conversation.")
@click.pass_obj
def chat_command(session: Opener, /, question: str | None, **options: Any) -> Answer:
    """Ask the agent of a definition, or a model, and show the answer as it comes. In a cell: `%%chat`.

    The conversation of this notebook with it goes on, unless --new or --continue is given.
    """
    if question is None and (options["model"] or options["conversation"]):  # the only argument is the question
        question, options["definition"] = options["definition"], None
    if question is None:
        raise click.UsageError("What is the question? Write it after the definition, or below `%%chat DEFINITION`.")
    files = options.pop("files")
    return session.chats.open(**options).ask(question, files)


def _cell() -> int | None:
    """The number of the running cell."""
    return getattr(get_ipython(), "execution_count", None)
