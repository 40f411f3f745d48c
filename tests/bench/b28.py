"""B28: a personality of one project in the open panel of another, in another process: published, changed, forgotten.

From the call of the operation, over signed HTTP between the nodes, the store and the feed, to what a real browser has
drawn.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.bench.b13 import browser, serving
from tests.bench.child import Child, orders, say
from tests.bench.project import scratch
from tests.bench.rows import Row, Samples, by_name, within
from workbench.app import Workbench
from workbench.shells.serve import Servers
from workbench.state.settings import Settings

if TYPE_CHECKING:
    from playwright.sync_api import Page

NEW, UPDATE, FORGET = "NEW is drawn", "UPDATE is drawn", "FORGET is drawn"
DRAWN = """([name, text]) => {
  const card = [...document.querySelectorAll(".wb-personalities [role=listitem], .wb-personalities li")]
    .find((one) => one.textContent.includes(name));
  return text === null ? !card : Boolean(card?.textContent.includes(text));
}"""
FOUND_SECONDS = 30


def run(rounds: int, quick: bool) -> Mapping[str, Samples]:
    """Milliseconds, the slowest of some in each round."""
    from tests.browser.bare_desk import BareDesk

    count = 2 if quick else 10
    with scratch() as directory, browser() as page:
        (there := directory / "there").mkdir()
        with serving(there) as host:
            host.call("join_network", name="there")
            assert host.info is not None
            with Child("b28", str(directory / "here"), f"{host.info.url}/koi-net") as sender:
                sender.hear()
                desk = BareDesk(host, page)
                desk.element.get_by_role("tab", name="Personalities").click()
                _round(sender, page, 1, -1)  # the first of all loads what the others find loaded
                found = [_round(sender, page, count, number) for number in range(rounds)]
                desk.close()
    return by_name(found, "ms")


def _round(sender: Child, page: Page, count: int, number: int) -> dict[str, float]:
    times: dict[str, list[float]] = {NEW: [], UPDATE: [], FORGET: []}
    for at in range(count):
        name = f"agent-{number}-{at}"
        steps: list[tuple[str, str | None, dict[str, Any]]] = [
            (NEW, "calm", {"operation": "publish_personality", "traits": {"mood": "calm"}}),
            (UPDATE, "curious", {"operation": "update_traits", "traits": {"mood": "curious"}}),
            (FORGET, None, {"operation": "withdraw_personality"}),
        ]
        for step, text, asked in steps:
            began = sender.ask({**asked, "name": name})["began"]
            page.wait_for_function(DRAWN, arg=[name, text], timeout=1_000 * FOUND_SECONDS)
            times[step].append((time.monotonic() - began) * 1e3)
    return {step: max(each) for step, each in times.items()}


async def _here(project: Path, first_contact: str) -> None:
    """The project that publishes: it runs the operations that it is told."""
    project.mkdir()
    settings = Settings(project=project, port=0, koi=True, koi_name="here", koi_first_contact=first_contact)
    async with Workbench.open(settings) as workbench, Servers(workbench) as servers:
        await servers.start(0)
        while not [
            peer for peer in (await workbench.call("list_peers"))["peers"] if peer["gets_from_us"] == "APPROVED"
        ]:
            await asyncio.sleep(0.05)
        say({})
        async for arguments in orders():
            began = time.monotonic()
            await workbench.call(arguments.pop("operation"), **arguments)
            say({"began": began})


ROW = Row(
    "B28",
    "a personality of one project in the open panel of another, the slowest of 10",
    "–",
    {step: within(250, "ms") for step in (NEW, UPDATE, FORGET)},
    run,
    needs=("playwright",),
)

if __name__ == "__main__":
    asyncio.run(_here(Path(sys.argv[1]), sys.argv[2]))
