"""B22: personalities between two projects on a KOI network, beside two nodes of koi-net 2.1.2: with the settings that
they have when nothing is set, and with those that make them fastest.

A project publishes and another one, in another process, has them in its registry and announces them in its feed, which
panels follow. Times are of the clock that all processes share.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from rid_lib.types import KoiNetNode

from tests.bench.child import Child, orders, say
from tests.bench.project import scratch
from tests.bench.rows import Row, Samples, at_least, within
from tests.oracle import PERSONALITY, Stock, StockNode, koi_net_python
from workbench.app import Workbench
from workbench.koi.payloads import EventType, KoiEvent
from workbench.rules.personalities.rid import AgentPersonality
from workbench.services.personalities.pipeline import run as pipeline
from workbench.shells.serve import Servers
from workbench.state.settings import Settings

PROFILES, RATE, SECONDS, TOGETHER = 2_000, 500, 20, 10
NEW = "NEW, the slowest of 20 in the other's registry and feed"
UPDATE = "UPDATE, the slowest of 20"
FORGET = "FORGET, the slowest of 20"
BURST = "300 at once, beside settings as they come"
BURST_TUNED = "300 at once, beside settings for speed"
SUSTAINED = f"profiles that are not as published last, after {RATE} changes a second for {SECONDS} s"
ARRIVED = f"until the last of {RATE * SECONDS:,} changes, {RATE} a second, has arrived"
RESTART = f"a start with {PROFILES:,} known"
TRAITS = 5
TUNED = {
    "event_worker": {"max_buf_len": 300, "max_wait_time": 0.05, "queue_timeout": 0.02},
    "kobj_worker": {"queue_timeout": 0.02},
}
"""All that koi-net's configuration has about its speed, with the values that were fastest in trials: as many events in
a request as are published at once, and short waits. Nothing in it makes requests or checks themselves faster."""
AS_IT_COMES, FAST = "two nodes of koi-net 2.1.2, as they come", "two nodes of koi-net 2.1.2, set for speed"


def run(rounds: int, quick: bool) -> Mapping[str, Samples]:
    """Milliseconds, events a second, profiles, and seconds."""
    single, burst, profiles, seconds = (3, 20, 100, 2) if quick else (20, 300, PROFILES, SECONDS)
    with scratch() as directory:
        here, there = directory / "here", directory / "there"
        with Child("b22", str(there), "there") as receiver:
            url = receiver.hear()["url"]
            with Child("b22", str(here), "here", url) as sender:
                sender.hear()
                receiver.ask({"do": "meet"})
                slowest = [_latency(sender, receiver, single) for _ in range(rounds)]
                ours = [_burst(sender, receiver, burst, f"burst-{number}") for number in range(rounds)]
                wrong, arrived, note = _sustained(sender, receiver, profiles, seconds)
        starts = [_restart(there, profiles) for _ in range(rounds)]
        plain, unavailable = _stock(directory / "plain", burst, rounds, {})
        fast, _ = _stock(directory / "fast", burst, rounds, TUNED)
    return {
        **{kind: Samples([each[kind] for each in slowest], unit="ms") for kind in (NEW, UPDATE, FORGET)},
        BURST: Samples(ours, plain, "events/s", unavailable or AS_IT_COMES),
        BURST_TUNED: Samples(ours, fast, "events/s", unavailable or FAST),
        SUSTAINED: Samples([wrong], unit="profiles", note=note),
        ARRIVED: Samples([arrived], unit="s"),
        RESTART: Samples(starts, unit="s"),
    }


def _latency(sender: Child, receiver: Child, count: int) -> dict[str, float]:
    """Milliseconds from the call that publishes to the event in the other's feed, the slowest of some of each kind."""
    found: dict[str, list[float]] = {NEW: [], UPDATE: [], FORGET: []}
    for number in range(count):
        name = f"single-{number}-{time.monotonic_ns()}"
        for times, (kind, value) in enumerate(((NEW, number), (UPDATE, number + 1), (FORGET, None)), 1):
            began = sender.ask({"do": "publish", "names": [name], "value": value})["began"]
            awaited = {"do": "await", "name": name, "value": value, "times": times}
            found[kind].append(receiver.ask(awaited)["at"] - began)
    return {kind: max(each) * 1e3 for kind, each in found.items()}


def _burst(sender: Child, receiver: Child, count: int, prefix: str) -> float:
    """Events a second."""
    names = [f"{prefix}-{number}" for number in range(count)]
    began = sender.ask({"do": "publish", "names": names, "value": 0})["began"]
    at = receiver.ask({"do": "await all", "prefix": f"{prefix}-", "count": count})["at"]
    return count / (at - began)


def _sustained(sender: Child, receiver: Child, profiles: int, seconds: int) -> tuple[float, float, str]:
    """How many profiles are not as they were published last, seconds from the first change until the last has arrived,
    and what else there is to say.

    Of several changes of a profile that wait for a node together, only the last is sent.
    """
    rate = min(RATE, profiles)
    sent = sender.ask({"do": "sustain", "profiles": profiles, "rate": rate, "seconds": seconds})
    found = receiver.ask({"do": "await all", "prefix": "load-", "count": sent["sent"]})
    state = receiver.ask({"do": "values", "prefix": "load-"})
    wrong = sum(state.get(name) != value for name, value in sent["last"].items())
    took = sent["sent"] / (sent["ended"] - sent["began"])
    late = (found["at"] - sent["ended"]) * 1e3
    replaced = sent["sent"] - found["count"]
    note = (
        f"{took:.0f} a second, in transactions of {TOGETHER}; the last arrived {late:.0f} ms after it was published; "
        f"{replaced} replaced by newer ones while they waited"
    )
    return float(wrong), found["at"] - sent["began"], note


def _restart(project: Path, profiles: int) -> float:
    """Seconds until a project that is opened and served again lists what it knew."""
    with Child("b22", str(project), "there") as started:
        ready = started.hear()
        assert ready["personalities"] >= profiles
        return float(ready["seconds"])


def _stock(root: Path, count: int, rounds: int, settings: Mapping[str, Any]) -> tuple[Sequence[float], str]:
    """Events a second of koi-net's own nodes, and otherwise why there are none."""
    try:
        koi_net_python()
    except pytest.skip.Exception as reason:
        return (), f"koi-net 2.1.2: {reason}"
    root.mkdir()
    return asyncio.run(_stock_bursts(root, count, rounds, settings)), ""


async def _stock_bursts(root: Path, count: int, rounds: int, settings: Mapping[str, Any]) -> list[float]:
    async with AsyncExitStack() as stack:
        stock = Stock(root, stack)
        coordinator = await stock("coordinator", **settings)
        contact = {"rid": coordinator.rid, "url": coordinator.url}
        agent = await stock("agent", first_contact=contact, **settings)
        await coordinator.knows(agent.rid)
        await agent.until(lambda: _is_subscribed(agent))
        return [await _stock_burst(agent, coordinator, f"burst-{number}", count) for number in range(rounds)]


async def _is_subscribed(agent: StockNode) -> bool:
    edges = [await agent.ask("cached", rid=rid) for rid in await agent.ask("rids", "orn:koi-net.edge")]
    return any(edge and PERSONALITY in edge["contents"]["rid_types"] for edge in edges)


async def _stock_burst(agent: StockNode, coordinator: StockNode, prefix: str, count: int) -> float:
    names = [f"{prefix}-{number}" for number in range(count)]
    contents = {f"{PERSONALITY}:{name}/1": _contents(name, agent.rid, 0) for name in names}
    began = await agent.ask("publish_all", contents=contents)

    def arrived() -> list[float]:
        return [one["at"] for one in coordinator.finals if one["final"].startswith(f"{PERSONALITY}:{prefix}-")]

    await coordinator.until(lambda: len(arrived()) == count, 120)
    return count / (max(arrived()) - float(began))


def _contents(name: str, node: str, value: int) -> dict[str, Any]:
    """A profile with some traits."""
    traits = [
        {"name": f"trait_{number}", "description": "what it is", "type": "int", "value": value, "is_callable": False}
        for number in range(TRAITS)
    ]
    return {"rid": f"{PERSONALITY}:{name}/1", "node_rid": node, "base_url": None, "mcp_url": None, "traits": traits}


class Station:
    """A project on the network, in this process.

    Attributes:
        arrived: when which personality was announced in the feed.
    """

    def __init__(self, workbench: Workbench) -> None:
        self.workbench = workbench
        self.ctx = workbench._ctx
        self.arrived: list[tuple[str, float]] = []
        self._more = asyncio.Event()

    @property
    def rid(self) -> KoiNetNode:
        """Its RID."""
        assert self.ctx.node.presence is not None
        return self.ctx.node.presence.identity.rid

    async def follow(self) -> None:
        """Note what the feed announces, as a panel would."""
        async with self.workbench.feed.subscribe("personality.*") as events:
            async for event in events:
                self.arrived.append((event.data["name"], time.monotonic()))
                self._more.set()

    async def publish(self, names: Sequence[str], value: int | None) -> None:
        """Publish some of its own personalities together, or forget them: None."""
        events = [self._event(AgentPersonality(name, "1"), value) for name in names]
        handled = await pipeline.handle(self.ctx, events, None)
        assert len(handled.changes) == len(names), handled.refused

    def _event(self, rid: AgentPersonality, value: int | None) -> KoiEvent:
        if value is None:
            return KoiEvent(rid=rid, event_type=EventType.FORGET)
        return KoiEvent(rid=rid, event_type=EventType.NEW, contents=_contents(rid.name, str(self.rid), value))

    async def do(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Carry out a request of the parent process."""
        match asked["do"]:
            case "meet":
                await self._until(lambda: any(self._peers()))
                return {}
            case "publish":
                began = time.monotonic()
                await asyncio.gather(*(self.publish([name], asked["value"]) for name in asked["names"]))
                return {"began": began}
            case "sustain":
                return await self._sustain(asked["profiles"], asked["rate"], asked["seconds"])
            case "await":
                name = asked["name"]
                await self._until(lambda: self._has_come(name, asked["value"], asked["times"]))
                return {"at": time.monotonic()}
            case "await all":
                return await self._all(asked["prefix"], asked["count"])
            case "values":
                latest = self.ctx.node.directory.latest()
                names = [known.profile.rid.name for known in latest]
                return {name: self._value(name) for name in names if name.startswith(asked["prefix"])}
        raise AssertionError(asked)

    def _has_come(self, name: str, value: int | None, times: int) -> bool:
        """Whether so many changes are announced, and the last also in memory, where it follows the commit."""
        return self._value(name) == value and sum(one == name for one, _ in self.arrived[-5:]) == times

    def _value(self, name: str) -> Any:
        known = self.ctx.node.directory.find(name)
        return known and known.profile.traits[0].value

    def _peers(self) -> list[str]:
        found = self.ctx.node.presence
        return [] if found is None else list(found.compared)

    async def _all(self, prefix: str, count: int) -> dict[str, Any]:
        """Wait until so many have arrived, or none arrives any more."""
        seen, when = 0, time.monotonic()
        while True:
            times = [at for name, at in self.arrived if name.startswith(prefix)]
            if len(times) >= count or (len(times) == seen and time.monotonic() - when > 15):
                return {"count": len(times), "at": max(times, default=time.monotonic())}
            if len(times) != seen:
                seen, when = len(times), time.monotonic()
            await asyncio.sleep(0.1)

    async def _sustain(self, profiles: int, rate: int, seconds: int) -> dict[str, Any]:
        """Publish at a rate: some at once, and then again after a pause."""
        began, sent, last = time.monotonic(), 0, {}
        for number in range(rate * seconds // TOGETHER):
            await asyncio.sleep(max(0.0, began + number * TOGETHER / rate - time.monotonic()))
            value, offset = divmod(number * TOGETHER, profiles)
            names = [f"load-{offset + more}" for more in range(TOGETHER)]
            await self.publish(names, value)
            last.update(dict.fromkeys(names, value))
            sent += len(names)
        return {"began": began, "ended": time.monotonic(), "sent": sent, "last": last}

    async def _until(self, holds: Any) -> None:
        while not holds():
            self._more.clear()
            try:
                await asyncio.wait_for(self._more.wait(), 0.002)
            except TimeoutError:
                continue


@asynccontextmanager
async def _station(project: Path, name: str, first_contact: str) -> AsyncIterator[tuple[Station, str]]:
    project.mkdir(exist_ok=True)
    settings = Settings(
        project=project,
        port=0,
        koi=True,
        koi_name=name,
        koi_first_contact=first_contact,
        max_koi_requests_per_minute=1_000_000,
        max_koi_personalities=100_000,
        max_koi_personalities_per_node=100_000,
    )
    async with Workbench.open(settings) as workbench, Servers(workbench) as servers:
        info = await servers.start(0)
        station = Station(workbench)
        following = asyncio.create_task(station.follow())
        await station.ctx.node.publishing.acquire()  # to the end: the project would forget what it has no agents for
        yield station, f"{info.url}/koi-net"
        following.cancel()


async def _serve(project: Path, name: str, first_contact: str) -> None:
    began = time.perf_counter()
    async with _station(project, name, first_contact) as (station, url):
        listed = await station.workbench.call("list_personalities", limit=1)
        seconds = time.perf_counter() - began
        say({"url": url, "seconds": seconds, "personalities": listed["total"]})
        async for asked in orders():
            say(await station.do(asked))


ROW = Row(
    "B22",
    "personalities between two projects on a KOI network",
    "two nodes of koi-net 2.1.2",
    {
        **{kind: within(250, "ms") for kind in (NEW, UPDATE, FORGET)},
        BURST: at_least(3),
        BURST_TUNED: at_least(1),
        SUSTAINED: within(0, "profiles"),
        ARRIVED: within(SECONDS + 0.25, "s"),
        RESTART: within(2, "s"),
    },
    run,
)

if __name__ == "__main__":
    asyncio.run(_serve(Path(sys.argv[1]), sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else ""))
