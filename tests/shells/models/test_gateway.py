"""The gateway answers as the provider does, with a key that no box has."""

from __future__ import annotations

import asyncio
import json
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

import httpx2
import pytest

from tests import given
from tests.conftest import Admit, Served
from tests.services.processes.running import spawn
from tests.shells.models.conftest import KEY, Box, key_at
from tests.shells.models.upstream import Asked, head, says, streams, upstream
from workbench.definition_files import model_keys
from workbench.rules.models.upstream import PROVIDERS
from workbench.rules.secrets.forms import MASK
from workbench.services.agents.rows import require_agent
from workbench.state.settings import Settings
from workbench.trust.withheld import trust, withheld

pytestmark = pytest.mark.anyio

MESSAGES = "/anthropic/v1/messages"
ASK = {"model": "claude-test", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}


async def test_a_request_of_a_box_reaches_the_provider_with_the_persons_key_instead_of_the_boxs_token(box: Box) -> None:
    async with upstream(says({"type": "message"}, request_id="req-1", openai_organization="org-secret")) as model:
        client = await box(key_at(model))
        cookies = {"cookie": "a=b", "x-forwarded-for": "1.2.3.4", "anthropic-beta": "oauth-2025-04-20,tools-1"}
        answer = await client.post(f"{MESSAGES}?beta=true&key=x", json=ASK, headers=cookies)
    (asked,) = model.asked
    assert (answer.status_code, answer.json()) == (200, {"type": "message"})
    assert (asked.path, asked.said, asked.headers["x-api-key"]) == ("/v1/messages?beta=true", ASK, KEY)
    assert asked.headers.keys().isdisjoint({"cookie", "x-forwarded-for", "authorization"})
    assert asked.headers["anthropic-beta"] == "tools-1"
    assert answer.headers["request-id"] == "req-1"
    assert "openai-organization" not in answer.headers
    assert KEY not in str(answer.headers) + answer.text


@pytest.mark.parametrize(
    ("provider", "path", "header", "sent_to"),
    [
        ("openai", "v1/responses", "authorization", "/v1/responses"),
        ("openai", "v1/chat/completions", "authorization", "/v1/chat/completions"),
        ("gemini", "v1beta/models/g-1:generateContent", "x-goog-api-key", "/v1beta/models/g-1:generateContent"),
    ],
)
async def test_each_provider_gets_the_key_in_its_own_header(
    box: Box, provider: str, path: str, header: str, sent_to: str
) -> None:
    async with upstream(says({})) as model:
        client = await box(key_at(model, provider))
        token = client.headers.pop("x-api-key")
        answer = await client.post(
            f"/{provider}/{path}", json={}, headers={header: f"Bearer {token}"[7 * ("x-" in header) :]}
        )
    assert answer.status_code == 200
    assert (model.asked[0].path, model.asked[0].headers[header].removeprefix("Bearer ")) == (sent_to, KEY)


async def test_events_stream_through_as_they_come(box: Box) -> None:
    go_on = asyncio.Event()

    async def script(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(head("text/event-stream") + b"data: 1\n\n")
        await writer.drain()
        await go_on.wait()
        writer.write(b"data: 2\n\n")

    async with upstream(script) as model:
        client = await box(key_at(model))
        async with client.stream("POST", MESSAGES, json=ASK) as answer:
            chunks = answer.aiter_raw()
            assert await anext(chunks) == b"data: 1\n\n"
            go_on.set()
            assert b"".join([chunk async for chunk in chunks]) == b"data: 2\n\n"


async def test_the_token_of_an_attempt_ends_with_it_and_is_worth_nothing_elsewhere(served: Served, box: Box) -> None:
    async with upstream(says({})) as model:
        client = await box(key_at(model))
        token = client.headers["x-api-key"]
        other = await client.post("/openai/v1/responses", json={})
        unknown = await client.post(MESSAGES, json=ASK, headers={"x-api-key": "wbm_unknown"})
        url = f"{served.info.url}/api/ops/whoami"
        elsewhere = await client.post(url, json={}, headers={"authorization": f"Bearer {token}"})
        agent, task_id, attempt = client.task  # type: ignore[attr-defined]
        ending = {"attempt": attempt, "key": "k" * 32, "outcome": "released"}
        await given.done_by(served.workbench, agent, "finish_attempt", task_id, **ending)
        late = await client.post(MESSAGES, json=ASK)
    assert [(one.status_code, one.json()["error"]["type"]) for one in (unknown, late)] == [
        (401, "authentication_error")
    ] * 2
    assert (other.status_code, other.json()["error"]["code"]) == (403, "PROVIDER_NOT_GRANTED")
    assert elsewhere.json()["error"]["code"] == "INVALID_TOKEN"
    assert model.asked == []


async def test_only_requests_to_models_are_passed_on(served: Served, box: Box) -> None:
    async with upstream(says({})) as model:
        client = await box(key_at(model))
        paths = ("v1/files", "v1/organizations/api_keys", "v1/messages/../files", "v1/messages%2f..%2ffiles", "")
        found = [(await client.post(f"/anthropic/{path}", json={})).status_code for path in paths]
        unknown = await client.post("/nobody/v1/messages", json={})
        packed = await client.post(MESSAGES, content=b"x", headers={"content-encoding": "zstd"})
        reader, writer = await asyncio.open_connection("127.0.0.1", int(served.info.url.rpartition(":")[2]))
        writer.write(f"CONNECT 127.0.0.1:{model.port} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
        tunnel = await reader.readline()
        writer.close()
    assert found == [404] * len(paths)
    assert (unknown.status_code, packed.status_code) == (403, 400)
    assert b" 200 " not in tunnel
    assert model.asked == []


async def test_what_a_provider_says_about_a_key_reaches_no_box(served: Served, box: Box) -> None:
    async def in_pieces(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(head("text/event-stream"))
        for piece in ('data: {"error": "not ', KEY[:9], KEY[9:], ', but sk-ant"}\n\ndata: sk-'):
            writer.write(piece.encode())
            await writer.drain()

    async with upstream(says({"error": f"Incorrect API key provided: {KEY}"}, "401 Unauthorized")) as model:
        client = await box(key_at(model))
        refused = await client.post(MESSAGES, json=ASK)
        assert served.workbench.gateway.trial(key_at(model))[0] == "refused"
        model.script = says({"error": {"message": f"bad {KEY}"}}, "400 Bad Request", retry_after="3")
        bad = await client.post(MESSAGES, json=ASK)
        escaped = "".join(f"\\u{ord(sign):04x}" for sign in KEY)
        model.script = says(f'{{"error": "{escaped}"}}'.encode(), "404 Not Found", x_request_id=KEY)
        hidden = await client.post(MESSAGES, json=ASK)
        model.script = in_pieces
        said = await client.post(MESSAGES, json=ASK)
    assert refused.json()["error"] == {
        "type": "authentication_error",
        "message": "KEY_REFUSED: Anthropic refuses the person's key, of the test (status 401). "
        "`workbench keys check` tries it; `workbench keys add` keeps another.",
    }
    assert refused.headers["x-should-retry"] == "false"
    assert (bad.status_code, bad.headers["retry-after"]) == (400, "3")
    assert KEY not in refused.text + bad.text + str(hidden.json()) + str(hidden.headers)
    assert "bad" in bad.text
    assert said.text == f'data: {{"error": "not {MASK}, but sk-ant"}}\n\ndata: sk-'


async def test_the_next_request_uses_a_key_that_was_changed_and_none_that_was_removed(
    served: Served, admit: Admit, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORKBENCH_CONFIG", str(tmp_path / "config"))
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    (settings.home / "profiles").mkdir(parents=True)
    (settings.home / "profiles" / "asks.yaml").write_text("summary: Asks.\npasses: [ANTHROPIC_API_KEY]\n")
    trust(settings.project, withheld(settings.project))
    (file := tmp_path / "key").write_text("first-key")
    async with upstream(says({})) as model:
        model_keys.keep_reference(PROVIDERS["anthropic"], f"file://{file}", model.url)
        agent = await spawn(served, profile="asks")
        row = await served.workbench.store.read_inline(lambda tx: require_agent(tx, agent["agent_id"]))
        caller = replace((await admit("eve")).caller, agent=row["id"])
        used = [(await served.workbench.provider_key(caller, "anthropic")).value]
        file.write_text("second")
        used.append((await served.workbench.provider_key(caller, "anthropic")).value)
        model_keys.keep(PROVIDERS["anthropic"], "third-key", model.url)
        used.append((await served.workbench.provider_key(caller, "anthropic")).value)
        model_keys.forget(PROVIDERS["anthropic"])
        gone = await given.refusal(served.workbench.provider_key(caller, "anthropic"))
        await served.workbench.end_workers()
    assert (used, gone.code) == (["first-key", "second", "third-key"], "KEY_GONE")


async def test_a_redirect_is_never_followed_with_the_key(box: Box) -> None:
    async with upstream(says({})) as elsewhere, upstream(says({}, "307 Moved", location=elsewhere.url)) as model:
        client = await box(key_at(model))
        answer = await client.post(MESSAGES, json=ASK)
    assert (answer.status_code, elsewhere.asked) == (403, [])
    assert "PROVIDER_REDIRECTS" in answer.json()["error"]["message"]


@pytest.mark.parametrize("status", ["200 OK", "502 Bad Gateway"])
async def test_a_page_of_html_is_an_error_that_says_so(box: Box, status: str) -> None:
    async def script(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(head("text/html", status) + b"<html>captive portal</html>")

    async with upstream(script) as model:
        answer = await (await box(key_at(model))).post(MESSAGES, json=ASK)
    assert answer.status_code == 503
    assert "PROVIDER_FAILED: Anthropic answered with text/html" in answer.json()["error"]["message"]


async def test_an_event_without_an_end_is_cut_and_a_cut_stream_ends_with_an_error(served: Served, box: Box) -> None:
    most = served.workbench.settings.max_model_event_bytes

    async def endless(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(head("text/event-stream") + b"data: 1\n\ndata: ")
        while True:
            writer.write(b"x" * 1_000_000)
            await writer.drain()

    async def cut(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 999\r\n\r\ndata: 1\n\n")

    async with upstream(endless) as model:
        client = await box(key_at(model))
        long = await client.post(MESSAGES, json=ASK)
        await asyncio.wait_for(model.left.wait(), 20)
        model.script = cut
        short = await client.post(MESSAGES, json=ASK)
    assert len(long.content) < most + 2_000_000
    last = long.text.rstrip().rpartition("\n\n")[2]
    assert (last.startswith("event: error\ndata: "), "ANSWER_TOO_LARGE" in last) == (True, True)
    assert (short.text.startswith("data: 1\n\n"), "PROVIDER_FAILED" in short.text) == (True, True)


async def test_a_box_that_leaves_is_noticed_and_the_provider_is_left_too(box: Box) -> None:
    begun = asyncio.Event()

    async def silent(asked: Asked, writer: asyncio.StreamWriter) -> None:
        begun.set()
        await asyncio.sleep(60)

    async with upstream(silent) as model:
        client = await box(key_at(model))
        asking = asyncio.create_task(client.post(MESSAGES, json=ASK))
        await begun.wait()
        asking.cancel()
        await asyncio.wait_for(model.left.wait(), 10)


@pytest.mark.long
@pytest.mark.parametrize("begun", [b"", head("text/event-stream") + b"data: 1\n\n"], ids=["waiting", "answered"])
async def test_an_attempt_has_so_many_requests_under_way_and_no_more(served: Served, box: Box, begun: bytes) -> None:
    most, go_on = served.workbench.settings.max_model_requests_at_once, asyncio.Event()

    async def script(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(begun)
        await writer.drain()
        await go_on.wait()
        writer.write(b"data: 2\n\n" if begun else head() + b"{}")

    async with upstream(script) as model:
        client = await box(key_at(model))
        asking = [asyncio.create_task(client.post(MESSAGES, json=ASK)) for _ in range(most + 20)]
        while sum(task.done() for task in asking) < 20:
            await asyncio.sleep(0.02)
        go_on.set()
        statuses = sorted([(await task).status_code for task in asking])
    assert statuses == [200] * most + [429] * 20
    assert len(model.asked) == most


async def test_a_server_that_stops_ends_an_answer_with_an_error(served: Served, box: Box) -> None:
    async with upstream(streams()) as model:

        async def script(asked: Asked, writer: asyncio.StreamWriter) -> None:
            writer.write(head("text/event-stream") + b"data: 1\n\n")
            await writer.drain()
            await asyncio.sleep(60)

        model.script = script
        client = await box(key_at(model))
        async with client.stream("POST", MESSAGES, json=ASK) as answer:
            chunks = answer.aiter_raw()
            await anext(chunks)
            stopping = asyncio.create_task(served.servers.stop())
            rest = b"".join([chunk async for chunk in chunks])
            await stopping
    assert json.loads(rest.decode().split("data: ")[1])["error"]["type"] == "overloaded_error"
    booked = await given.rows(served.workbench, "SELECT error_code, is_cut FROM spending")
    assert booked == [("NO_SERVER", 1)]


@pytest.mark.long
async def test_a_thousand_requests_and_slow_bodies_of_one_box_leave_room_for_another(served: Served, box: Box) -> None:
    most = served.workbench.settings.max_model_requests_at_once
    async with upstream(says({})) as model, AsyncExitStack() as slow:
        client, other = await box(key_at(model)), await box(key_at(model))
        head_of = f"POST /models{MESSAGES} HTTP/1.1\r\nhost: 127.0.0.1\r\nx-api-key: {client.headers['x-api-key']}\r\n"

        async def begin_one() -> None:
            _, writer = await asyncio.open_connection("127.0.0.1", int(served.info.url.rpartition(":")[2]))
            slow.callback(writer.close)
            writer.write(f"{head_of}content-length: 1000\r\n\r\n{{".encode())
            await writer.drain()

        async def refused_one() -> httpx2.Response | None:
            answer = await client.post(MESSAGES, json=ASK)
            if answer.status_code == 429:
                return answer
            await begin_one()  # for one that was refused in place of this
            return None

        for _ in range(most):
            await begin_one()
        refused = await given.until(refused_one)
        assert refused.json()["error"]["message"].startswith("RATE_LIMITED")
        answers = await asyncio.gather(*(client.post(MESSAGES, json=ASK) for _ in range(1_000)))
        assert {answer.status_code for answer in answers} <= {200, 429}  # connections that wait too long are closed
        assert (await other.post(MESSAGES, json=ASK)).status_code == 200
    assert len(model.asked) <= 1 + most
