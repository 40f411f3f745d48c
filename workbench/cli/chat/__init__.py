"""Conversations with models: `chat` and `conversations`."""

from workbench.cli.chat import command, conversations

__all__ = ["command", "conversations"]
