"""Turns can be queried with SQL, while the conversation goes on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from workbench.analytics.live import Live, refresh
from workbench.analytics.mirrors import TABLES

pytestmark = pytest.mark.anyio

QUERY = "SELECT conversation, definition, number, role, state, content, replaced FROM turns ORDER BY number"


async def test_messages_are_followed_until_their_conversation_is_deleted(begin: Callable[..., Any]) -> None:
    live, chat = Live(), await begin([{"say": "Hello."}])

    async def rows() -> list[Any]:
        return live.answer(await refresh(live, chat.workbench.store), QUERY).fetchall()

    assert await rows() == []
    await chat.ask("Hi")
    answer = ("Hi", "Helper", 2, "assistant", "completed", "Hello.")
    assert await rows() == [("Hi", "Helper", 1, "user", "sent", "Hi", False), (*answer, False)]
    await chat.retry()
    assert (await rows())[1] == (*answer, True)
    await chat.call("delete_conversation")
    assert await rows() == []


async def test_each_event_of_a_conversation_reads_the_turns_it_is_about(begin: Callable[..., Any]) -> None:
    live, chat = Live(), await begin([{"say": "Hello."}])

    async def numbers() -> list[int]:
        """The numbers of the turns that a refresh reads."""
        news = await refresh(live, chat.workbench.store)
        live.replica.apply(news)
        number = list(TABLES["raw_turns"]).index("number")
        return [row[number] for row in news.rows["raw_turns"]]

    await numbers()
    for sent in (1, 3, 5):
        await chat.ask("Hi")
        assert await numbers() == [sent, sent + 1]
    await chat.call("update_conversation", title="Greetings")
    assert await numbers() == []
    await chat.retry()
    assert await numbers() == [6, 7]
    found = live.answer(await refresh(live, chat.workbench.store), QUERY).fetchall()
    assert [row[0] for row in found] == ["Greetings"] * 7
    assert [row[-1] for row in found] == [False] * 5 + [True, False]
