"""Conversations over HTTP: created, continued, read page by page, exported."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from tests.shells.conftest import error_of

pytestmark = pytest.mark.anyio


async def data(request: Any) -> Any:
    """The result of a request to an endpoint under `/api`."""
    response = await request
    assert response.status_code == 200, response.text
    assert response.json()["success"] is True
    return response.json()["data"]


async def test_a_conversation_is_held_over_http(operator: httpx2.AsyncClient) -> None:
    made = await data(operator.post("/api/conversations", json={"model": "test:echo", "title": "Penguins"}))
    here = f"/api/conversations/{made['id']}"
    sent = await data(operator.post(f"{here}/turns", json={"content": "Good morning"}))
    assert sent["answer"]["state"] == "running"
    kinds: list[str] = []
    after = 0
    while "complete" not in kinds:
        page = await data(operator.get(f"{here}/frames?after={after}&wait_seconds=10"))
        kinds += [frame["type"] for frame in page["frames"]]
        after = page["next_after"]
    assert kinds[0] == "message"
    [asked, answer] = (await data(operator.get(f"{here}/turns")))["turns"]
    assert (asked["content"], answer["content"]) == ("Good morning", "You said: Good morning")
    assert (await data(operator.patch(here, json={"title": "Birds"})))["title"] == "Birds"
    exported = await data(operator.get(f"{here}/export?format=markdown"))
    assert "Good morning" in exported["content"]
    await data(operator.delete(here))
    assert error_of(await operator.get(here)) == (404, "CONVERSATION_NOT_FOUND")


async def test_messages_and_conversations_are_read_page_by_page(operator: httpx2.AsyncClient) -> None:
    for number in range(3):
        made = await data(operator.post("/api/conversations", json={"model": "test:echo", "title": f"{number}"}))
    first = await operator.get("/conversations?limit=2")
    second = await operator.get("/conversations", params={"limit": 2, "cursor": first.headers["X-Next-Cursor"]})
    assert [row["title"] for row in first.json() + second.json()] == ["2", "1", "0"]
    here = f"/api/conversations/{made['id']}"
    for _ in range(2):
        await data(operator.post(f"{here}/turns", json={"content": "Hello"}))
        while (await data(operator.get(here)))["answer_id"] is not None:
            last = (await data(operator.get(here)))["last_frame"]
            await data(operator.get(f"{here}/frames?after={last}&wait_seconds=1"))
    newest = await data(operator.get(f"{here}/turns?limit=3"))
    oldest = await data(operator.get(f"{here}/turns?limit=3&before={newest['next_before']}"))
    roles = [turn["role"] for turn in oldest["turns"] + newest["turns"]]
    assert roles == ["user", "assistant", "user", "assistant"]
    assert oldest["next_before"] is None


async def test_an_answer_is_stopped_and_asked_for_again_over_http(operator: httpx2.AsyncClient) -> None:
    made = await data(operator.post("/api/conversations", json={"model": "test:echo"}))
    here = f"/api/conversations/{made['id']}"
    assert await data(operator.post(f"{here}/stop")) == {"turn": None}
    assert error_of(await operator.post(f"{here}/retry")) == (409, "NOTHING_TO_RETRY")
    sent = await data(operator.post(f"{here}/turns", json={"content": "Hello"}))
    stopped = await data(operator.post(f"{here}/stop"))
    assert stopped["turn"]["id"] == sent["answer"]["id"]
    again = await data(operator.post(f"{here}/retry", json={"turn_id": sent["answer"]["id"]}))
    assert again["id"] != sent["answer"]["id"]
    assert error_of(await operator.post(f"{here}/turns", json={"content": " "})) == (400, "INVALID_ARGUMENTS")
