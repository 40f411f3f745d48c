"""A page's handling of the messages of a panel, in Python."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any

from kernel_ext.panels.rows import apply, by_id

WAIT_SECONDS = 20


class FrontEnd:
    """Keeps the tables, notices a missed message, remembers answers. It can fail to take messages."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []
        self.tables: dict[str, Any] = {}
        self.version: int | None = None
        self.failures: list[Exception] = []
        """Raised for the next messages with rows or answers, one each."""
        self._changed = threading.Condition()

    def take(self, content: dict[str, Any], buffers: list[bytes]) -> None:
        """Take a message; what the kernel calls to send one."""
        with self._changed:
            if self.failures and content["kind"] in ("snapshot", "diff", "answer"):
                raise self.failures.pop(0)
            self.messages.append(content)
            if content["kind"] == "snapshot":
                rows = json.loads(buffers[0])
                self.tables, self.version = {name: by_id(table) for name, table in rows.items()}, content["ver"]
            if content["kind"] == "diff":
                assert content["base"] == self.version, "a message was lost"
                self.tables, self.version = apply(self.tables, json.loads(buffers[0])), content["ver"]
            self._changed.notify_all()

    def until(self, done: Callable[[], bool]) -> None:
        """Wait for a condition on what was taken."""
        with self._changed:
            assert self._changed.wait_for(done, WAIT_SECONDS), self.messages[-5:]

    def kinds(self) -> list[str]:
        """The kinds of all messages."""
        return [message["kind"] for message in self.messages]

    def answers(self) -> list[dict[str, Any]]:
        """The answers among the messages."""
        return [message for message in self.messages if message["kind"] == "answer"]

    def names(self) -> set[str]:
        """The names of the agents that wait in the inbox."""
        return {row["payload"]["name"] for row in self.tables.get("approvals", {}).values()}
