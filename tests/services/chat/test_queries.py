"""Messages can be queried with SQL, while the conversation goes on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from workbench.analytics.live import Live, refresh

pytestmark = pytest.mark.anyio

QUERY = "SELECT conversation, definition, number, role, state, content, replaced FROM messages ORDER BY number"


async def test_messages_are_followed_until_their_conversation_is_deleted(begin: Callable[..., Any]) -> None:
    live, chat = Live(), await begin([{"say": "Hello."}])

    async def rows() -> list[Any]:
        return live.answer(await refresh(live, chat.workbench.store), QUERY).fetchall()

    assert await rows() == []
    await chat.ask("Hi")
    answer = ("Hi", "Helper", 2, "assistant", "completed", "Hello.")
    assert await rows() == [("Hi", "Helper", 1, "user", "sent", "Hi", False), (*answer, False)]
    await chat.call("retry_answer")
    await chat.ended()
    assert (await rows())[1] == (*answer, True)
    await chat.call("delete_conversation")
    assert await rows() == []
