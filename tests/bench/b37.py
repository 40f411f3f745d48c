"""B37: how soon a message is with an agent that waits for one, over HTTP."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping

from tests.bench.project import opened, scratch
from tests.bench.rows import Row, Samples, within
from workbench.app import Workbench
from workbench.client.http import HttpClient
from workbench.shells.serve import Servers

MESSAGES = 20
CROWD = 200


def run(rounds: int, quick: bool) -> Mapping[str, Samples]:
    """Each round, the slowest of some messages."""
    messages, crowd = (3, 5) if quick else (MESSAGES, CROWD)
    slowest = {of: [asyncio.run(_slowest(messages, of)) for _ in range(rounds)] for of in (1, crowd)}
    names = {1: "it alone", crowd: f"beside {CROWD:,} that wait, too"}
    return {names[of]: Samples(seconds, unit="ms") for of, seconds in slowest.items()}


async def _admit(workbench: Workbench, name: str) -> str:
    """The token of an agent, which is registered and approved."""
    registration = await workbench.call("register", name=name, persona_id="implementer")
    await workbench.call("approve", approval_id=registration["approval_id"], choices={"agent_id": name})
    return str(registration["token"])


async def _slowest(messages: int, agents: int) -> float:
    """Milliseconds from before the call that tells it to after that by which the agent gets it."""
    with scratch() as root:
        async with opened(root) as workbench, Servers(workbench) as servers:
            info = await servers.start(0)
            tokens = [await _admit(workbench, f"agent-{number}") for number in range(agents)]
            others = [asyncio.create_task(_wait(info.url, token)) for token in tokens[1:]]
            async with HttpClient(info.url, workbench.operator_token) as person:
                took = [await _told(person, info.url, tokens[0], workbench, agents) for _ in range(messages)]
            for other in others:
                other.cancel()
            await asyncio.gather(*others, return_exceptions=True)
    return 1_000 * max(took)


async def _wait(url: str, token: str) -> float:
    """Wait as an agent for a task or a message; when it has come."""
    async with HttpClient(url, token) as agent:
        while not (await agent.call("heartbeat_and_get_tasks", wait_seconds=20))["messages"]:
            pass
    return time.perf_counter()


async def _told(person: HttpClient, url: str, token: str, workbench: Workbench, agents: int) -> float:
    waiting = asyncio.create_task(_wait(url, token))
    while workbench.feed.readers < agents:
        await asyncio.sleep(0.05)
    began = time.perf_counter()
    await person.call("tell", agent_id="agent-0", text="Use CSV.")
    return await waiting - began


ROW = Row(
    "B37",
    f"a message to an agent that waits, over HTTP, the slowest of {MESSAGES}",
    "–",
    {"it alone": within(250, "ms"), f"beside {CROWD:,} that wait, too": within(250, "ms")},
    run,
)
