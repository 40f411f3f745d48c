"""What the person is told: one digest, to her own webhook and command, once."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tests import given
from tests.conftest import Clock, admitted
from workbench.app import Workbench
from workbench.shells.serve import Servers
from workbench.state.settings import Settings

pytestmark = pytest.mark.anyio

DONE = b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n"
BROKEN = b"HTTP/1.1 500 Broken\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
DRIP = b"drip"
"""Instead of an answer: a byte of the status line every tenth of a second, without end."""
ELSEWHERE = b"HTTP/1.1 307 Elsewhere\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


class Hook:
    """A real HTTP server of the person: what it was sent, and what it answers."""

    def __init__(self, answer: bytes | None = DONE) -> None:
        self.answer = answer
        self.pause = 0.0
        self.calls: list[tuple[dict[str, str], dict[str, Any]]] = []
        self.address = ""
        self.called = asyncio.Event()
        self.answering: set[asyncio.Task[None]] = set()

    def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.answering.add(asyncio.create_task(self._serve(reader, writer)))

    async def close(self) -> None:
        """End the answers that have no end."""
        for task in self.answering:
            task.cancel()
        await asyncio.gather(*self.answering, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._answer(reader, writer)
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
        body = json.loads(await reader.readexactly(int(headers["content-length"])))
        self.calls.append((headers, body))
        self.called.set()
        await asyncio.sleep(self.pause)
        if self.answer is None:
            await reader.read()  # until the client gives up
        elif self.answer == DRIP:
            with suppress(ConnectionError):
                while True:
                    writer.write(b"x")
                    await writer.drain()
                    await asyncio.sleep(0.1)
        else:
            writer.write(self.answer)
            with suppress(ConnectionError):  # who has seen enough of a long answer
                await writer.drain()

    async def next(self) -> None:
        """Wait for the next call."""
        async with asyncio.timeout(20):
            await self.called.wait()
        self.called.clear()


@asynccontextmanager
async def hooked(answer: bytes | None = DONE) -> AsyncIterator[Hook]:
    """A webhook that is there."""
    hook = Hook(answer)
    server = await asyncio.start_server(hook.serve, "127.0.0.1", 0)
    hook.address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/told"
    async with server:
        yield hook
        await hook.close()


def telling(settings: Settings, **changes: Any) -> Settings:
    """Settings with which the person is told at once."""
    return Settings.model_validate({**settings.model_dump(), "notify_digest_seconds": 0, **changes})


async def perform(workbench: Workbench, *duties: str) -> None:
    """Do what is due."""
    for duty in duties or ("gathering what the person is told", "calling the person's webhook"):
        await workbench.duties[duty].perform(workbench._ctx)


async def told(workbench: Workbench) -> list[dict[str, Any]]:
    """What the person was told."""
    return list((await workbench.call("list_notifications"))["notifications"])


@pytest.mark.long
async def test_a_webhook_is_called_once_for_a_question_and_not_again_after_a_restart(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOOK_TOKEN", "hush-hush")
    async with hooked() as hook:
        chosen = telling(settings, notify_webhook=hook.address, notify_header="Authorization: Bearer env://HOOK_TOKEN")
        for name in ("ada", "bob"):
            async with Workbench.open(chosen) as workbench, Servers(workbench) as servers:
                await servers.start(0)
                await workbench.call("register", name=name)
                await hook.next()
                async with workbench.feed.subscribe("notification.delivered", after=0) as delivered:
                    assert await delivered.within(20) is not None
        async with Workbench.open(chosen) as workbench:
            await perform(workbench)
            assert "hush" not in json.dumps(await told(workbench))
    assert [body["items"][0]["subject"] for _, body in hook.calls] == ["approval:1", "approval:2"]
    assert {headers["authorization"] for headers, _ in hook.calls} == {"Bearer hush-hush"}
    assert len({headers["idempotency-key"] for headers, _ in hook.calls}) == 2


async def test_what_happens_within_the_digest_is_one_message_without_what_is_answered(
    settings: Settings, clock: Clock
) -> None:
    chosen = telling(settings, notify_digest_seconds=30)
    async with Workbench.open(chosen, clock=clock) as workbench:
        asked = [(await workbench.call("register", name=f"agent-{number}"))["approval_id"] for number in range(100)]
        await workbench.call("reject", approval_id=asked[0])
        await perform(workbench)
        assert await told(workbench) == []
        clock.forward(31)
        await perform(workbench)
        await perform(workbench)
        (only,) = await told(workbench)
    assert only["sentence"] == "99 questions wait for you."
    assert (len(only["items"]), only["left_out"], only["webhook"]) == (50, 49, None)


@pytest.mark.long
@pytest.mark.parametrize(
    ("answer", "state", "code"),
    [
        (BROKEN, "waiting", "WEBHOOK_UNREACHABLE"),
        (None, "waiting", "WEBHOOK_UNREACHABLE"),
        (b"", "waiting", "WEBHOOK_UNREACHABLE"),
        (DRIP, "waiting", "WEBHOOK_UNREACHABLE"),
        (ELSEWHERE, "failed", "WEBHOOK_REFUSED"),
        (BROKEN.replace(b"500 Broken", b"404 Gone"), "failed", "WEBHOOK_REFUSED"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 10000000\r\n\r\n" + b"x" * 10_000_000, "delivered", None),
    ],
    ids=["broken", "never", "nothing", "drip", "elsewhere", "gone", "flood"],
)
async def test_a_webhook_that_answers_badly_is_said_once_and_tried_again_if_that_may_help(
    settings: Settings, clock: Clock, answer: bytes | None, state: str, code: str | None
) -> None:
    async with hooked(answer) as hook:
        chosen = telling(settings, notify_webhook=hook.address, notify_seconds=2 if answer in (None, DRIP) else 10)
        async with Workbench.open(chosen, clock=clock) as workbench:
            await workbench.call("register", name="ada")
            await perform(workbench)
            (first,) = await told(workbench)
            assert (first["webhook"], first["error_code"]) == (state, code)
            hook.answer = DONE
            await perform(workbench)  # not before the pause is over
            assert len(hook.calls) == 1
            clock.forward(60)
            await perform(workbench)
            assert (await told(workbench))[0]["webhook"] == ("delivered" if state == "waiting" else state)
            ids = {headers["idempotency-key"] for headers, _ in hook.calls}
    assert (len(hook.calls), len(ids)) == (2 if state == "waiting" else 1, 1)


async def test_a_header_whose_secret_is_missing_sends_nothing_and_is_said(settings: Settings) -> None:
    async with hooked() as hook:
        chosen = telling(settings, notify_webhook=hook.address, notify_header="Authorization: Bearer env://NOT_SET")
        async with Workbench.open(chosen) as workbench:
            await workbench.call("register", name="ada")
            await perform(workbench)
            (only,) = await told(workbench)
    assert (hook.calls, only["webhook"], only["error_code"]) == ([], "failed", "SECRET_UNRESOLVED")


async def test_what_failed_for_good_a_budget_and_a_finished_plan_are_items_of_one_message(
    settings: Settings, clock: Clock
) -> None:
    chosen = telling(settings, notify_digest_seconds=30, budget_attempts=5, notify=["failed", "budget", "done"])
    async with Workbench.open(chosen, clock=clock) as workbench:
        ada = await admitted(workbench, "ada")
        tasks = "".join(f"  - {{name: t{n}, title: Count {n}, persona: implementer}}\n" for n in range(3))
        await workbench.call("create_plan", text=f"plan: p\ntasks:\n{tasks}")
        for task in (1, 2, 3):
            await given.end(workbench, ada, task)
        await given.end(workbench, ada, await given.task(workbench, max_retries=0), "failed")
        clock.forward(31)
        await perform(workbench)
        await perform(workbench)
        (only,) = await told(workbench)
    assert [(item["what"], item["subject"]) for item in only["items"]] == [
        ("failed", "task:4"),
        ("budget", "budget:project"),
        ("done", "plan:p"),
    ]
    assert only["sentence"] == "1 task has failed for good, 1 budget is nearly used, 1 plan is completed."


async def test_a_panel_gets_what_was_not_shown_as_one_message_once_without_what_is_over(settings: Settings) -> None:
    async with Workbench.open(telling(settings)) as workbench:
        for name in ("ada", "bob", "eve"):
            await workbench.call("register", name=name)
            await perform(workbench)
        await workbench.call("reject", approval_id=2)
        both = await asyncio.gather(*(workbench.call("take_notifications") for _ in range(2)))
        assert sorted(taken["sentence"] for taken in both) == ["", "2 questions wait for you."]
    async with Workbench.open(telling(settings, notify_panel=False)) as workbench:
        await workbench.call("register", name="zoe")
        await perform(workbench)
        assert (await workbench.call("take_notifications"))["sentence"] == ""
        assert len(await told(workbench)) == 4


@pytest.mark.long
async def test_the_persons_command_gets_the_message_and_its_failures_have_a_code(settings: Settings) -> None:
    kept = settings.project / "told.json"
    ways = {
        "delivered": (
            "/bin/sh",
            "-c",
            f'test -f /dev/stdin && cat > {kept}; printf "%s" "$WORKBENCH_MESSAGE" > {kept}.txt',
        ),
        "ended with status 3": ("/bin/sh", "-c", "exit 3"),
        "cannot be started": (str(Path("/nowhere/at/all")),),
        "was ended after": (sys.executable, "-c", "import time; time.sleep(600)"),
    }
    for name, (says, command) in enumerate(ways.items()):
        async with Workbench.open(telling(settings, notify_command=list(command), notify_seconds=1)) as workbench:
            await workbench.call("register", name=f"agent-{name}")
            await perform(workbench, "gathering what the person is told", "running the person's command")
            newest = (await told(workbench))[0]
        if says == "delivered":
            assert (newest["command"], newest["error"]) == ("delivered", None)
            assert json.loads(kept.read_text())["sentence"] == Path(f"{kept}.txt").read_text() == newest["sentence"]
        else:
            assert (newest["command"], newest["error_code"]) == ("failed", "NOTIFY_COMMAND_FAILED")
            assert says in newest["error"]


def test_a_clone_cannot_set_the_command_or_the_webhook(
    settings: Settings,
) -> None:
    settings.home.mkdir(exist_ok=True)
    lines = 'notify_command = "touch made"\nnotify_webhook = "https://example.org"\nnotify = ["done"]\n'
    (settings.home / "settings.toml").write_text(lines)
    loaded = Settings(project=settings.project)
    assert (loaded.notify_command, loaded.notify_webhook, loaded.notify) == ((), "", ("done",))


@pytest.mark.parametrize(
    "changes",
    [
        {"notify_webhook": "http://example.org/hook"},
        {"notify_webhook": "file:///etc/passwd"},
        {"notify_header": "Authorization: Bearer abc"},
        {"notify": "waiting,everything"},
    ],
    ids=str,
)
def test_settings_that_would_tell_the_wrong_are_refused(settings: Settings, changes: dict[str, str]) -> None:
    with pytest.raises(Exception, match="BAD_SETTINGS"):
        Settings(project=settings.project, **changes)  # type: ignore[arg-type]
