"""B31: a streamed answer of a model through the gateway, beside the same answer from the scripted provider itself.

The requests are as long as those of agents are, and the events come as often as a model's do.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

from tests.bench.child import Child, orders, play, say
from tests.bench.project import identify, opened, prepare, scratch
from tests.bench.rows import SHORT, Row, Samples, at_least, over, take_turns

PATH = "/v1/messages"
BODY = {"model": "claude-bench", "stream": True, "messages": [{"role": "user", "content": "read this " * 5_000}]}
STREAMS = 20
EVENTS = 200
PER_SECOND = 100
FIRST, FIRST_OF_MANY, RATE = "first byte", f"first byte of {STREAMS} at once", f"events a second of {STREAMS} at once"


@dataclass
class Turn:
    """One turn of a contestant: milliseconds to the first byte, the median of its streams, and events a second."""

    first: float
    rate: float


def run(rounds: int, quick: bool) -> Mapping[str, Samples]:
    """Milliseconds, and the events of all streams in the time that the last of them takes."""
    events = 10 if quick else EVENTS
    with scratch() as directory:
        seed = prepare(directory / "ours", agents=1, tasks=1)
        with Child("b31", "provider", str(events)) as provider:
            direct = provider.hear()["url"]
            with Child("b31", "gateway", str(seed.root), seed.tokens[0], direct) as gateway:
                through = gateway.hear()

                def turns(streams: int, times: int) -> dict[str, list[Turn]]:
                    def ours() -> Turn:
                        gateway.ask("the key is used for a minute")
                        return asyncio.run(_turn(through["url"], through["token"], streams))

                    return take_turns(rounds * times, ours=ours, other=lambda: asyncio.run(_turn(direct, "", streams)))

                one, many = turns(1, SHORT), turns(STREAMS, 1)
    return {
        FIRST: Samples(*([turn.first for turn in one[who]] for who in ("ours", "other")), "ms"),
        FIRST_OF_MANY: Samples(*([turn.first for turn in many[who]] for who in ("ours", "other")), "ms"),
        RATE: Samples(*([turn.rate for turn in many[who]] for who in ("ours", "other")), "/s"),
    }


async def _turn(url: str, token: str, streams: int) -> Turn:
    async with httpx2.AsyncClient(
        base_url=url, headers={"x-api-key": token}, timeout=60, trust_env=False, verify=False
    ) as client:
        await asyncio.gather(*(client.post(PATH, json={**BODY, "messages": []}) for _ in range(streams)))  # it connects
        began = time.perf_counter()
        streamed = await asyncio.gather(*(_streamed(client) for _ in range(streams)))
        seconds = time.perf_counter() - began
    return Turn(statistics.median(first for first, _ in streamed), sum(events for _, events in streamed) / seconds)


async def _streamed(client: httpx2.AsyncClient) -> tuple[float, int]:
    """Milliseconds to the first byte of a stream's body, and its events."""
    began, first, text = time.perf_counter(), 0.0, b""
    async with client.stream("POST", PATH, json=BODY) as answer:
        assert answer.status_code == 200, await answer.aread()
        async for chunk in answer.aiter_raw():
            first = first or (time.perf_counter() - began) * 1_000
            text += chunk
    return first, text.count(b"data: ")


# The contestants


async def provide(events: str) -> None:
    """A provider that answers a conversation with events, and an empty one at once."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async for body in _requests(reader):
            is_asked = bool(json.loads(body)["messages"])
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
            began = time.monotonic()
            for number in range(int(events) if is_asked else 1):
                await asyncio.sleep(max(0.0, began + number / PER_SECOND - time.monotonic()))
                writer.write(_chunk({"type": "content_block_delta", "delta": {"type": "text_delta", "text": "word "}}))
            writer.write(_chunk({"type": "message_stop"}) + b"0\r\n\r\n")
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, limit=1 << 20, backlog=256)
    say({"url": f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"})
    async for _ in orders():
        pass


async def _requests(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """The bodies of the requests of a connection."""
    while True:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
        except asyncio.IncompleteReadError:
            return
        yield await reader.readexactly(int(head.partition(b"content-length:")[2].partition(b"\r\n")[0]))


def _chunk(event: dict[str, Any]) -> bytes:
    text = f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()
    return b"%x\r\n%s\r\n" % (len(text), text)


async def pass_on(root: str, token: str, provider: str) -> None:
    """A project whose agent has an attempt that may ask the provider."""
    from workbench.rules.models.upstream import ProviderKey
    from workbench.shells.serve import Servers

    async with opened(Path(root)) as workbench, Servers(workbench) as servers:
        (caller,) = await identify(workbench, [token])
        assert caller.agent is not None
        info = await servers.start()
        key = ProviderKey("anthropic", provider, "x-api-key", "the bench", "sk-bench-0123456789")
        workbench.gateway.reading[caller.agent] = asyncio.Lock()
        workbench.gateway.keys[caller.agent] = {"anthropic": key}
        task = (await workbench.dispatch(caller, "claim_task", {}))["task"]
        attempt = {"task_id": task["id"], "attempt": task["attempt"], "key": "k" * 32, "with_models": True}
        begun = await workbench.dispatch(caller, "begin_attempt", attempt)
        say({"url": f"{info.url}/models/anthropic", "token": begun["model_token"]})
        async for _ in orders():
            workbench.gateway.reading[caller.agent] = asyncio.Lock()
            workbench.gateway.keys[caller.agent] = {"anthropic": key}
            say("it is known")


ROW = Row(
    "B31",
    f"a streamed answer of a model through the gateway, {PER_SECOND} events a second",
    "the same from the scripted provider itself",
    {FIRST: over(5, "ms"), RATE: at_least(0.9)},
    run,
)

if __name__ == "__main__":
    play(provider=provide, gateway=pass_on)
