"""Messages of two owners and a relay in any order: new, updated, forgotten, replayed, foreign and late."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from tests.conftest import Clock, NewDatabase, with_store
from tests.services.personalities.known import online
from tests.services.personalities.nodes import FORGET, NEW, Here, Other, event
from workbench.app import Workbench
from workbench.errors import Refused
from workbench.koi.envelope import signed
from workbench.koi.identity import load_or_create
from workbench.koi.payloads import EventsPayload, KoiEvent
from workbench.koi.requests import BROADCAST
from workbench.rules.personalities.rid import AgentPersonality
from workbench.services.personalities import bundles
from workbench.services.personalities.exchange import receiving
from workbench.services.personalities.pipeline import directory
from workbench.state.settings import Settings

OWNERS = st.sampled_from(["ada", "bob"])
SENDERS = st.sampled_from(["ada", "bob", "relay"])
NAMES = st.sampled_from(["one", "two", "own"])
VERSIONS = st.sampled_from(["1", "2"])
MOODS = st.integers(0, 2)
AGES = st.sampled_from([0, 0, 0, 1, 5])
"""Seconds since a message was dated, when it arrives."""


@dataclass(frozen=True)
class Sent:
    """The content of a message. `mood` None: a FORGET; then `at` may be None as well."""

    owner: str
    name: str
    version: str
    at: int | None
    mood: int | None

    @property
    def key(self) -> str:
        return f"{self.name}/{self.version}"


@dataclass
class Registry:
    """A minimal model of the registry of a node."""

    owners: dict[str, str] = field(default_factory=lambda: {"own": "here"})
    known: dict[str, tuple[int, int]] = field(default_factory=dict)
    gone: dict[str, int] = field(default_factory=dict)
    used: set[int] = field(default_factory=set)
    refused: int = 0

    def take(self, sender: str, sent: Sent, number: int) -> None:
        """A message by `sender`, whose envelope has a number."""
        if sent.mood is None and sent.at is None and number in self.used:
            self.refused += 1
            return
        self.used.add(number)
        self.refused += not (self._forget(sender, sent) if sent.mood is None else self._put(sender, sent))

    def _put(self, sender: str, sent: Sent) -> bool:
        assert sent.at is not None
        assert sent.mood is not None
        owner = self.owners.get(sent.name, sent.owner)
        if sender not in (sent.owner, "relay") or owner != sent.owner:  # anybody may pass on what is known
            return owner == sent.owner and self.known.get(sent.key, (0, None))[1] == sent.mood
        at, mood = self.known.get(sent.key, (self.gone.get(sent.key, -1), None))
        if mood == sent.mood:
            self.known[sent.key] = max(at, sent.at), sent.mood
            return True
        if sent.at <= at:
            return False
        self.owners[sent.name] = sent.owner
        self.known[sent.key] = sent.at, sent.mood
        return True

    def _forget(self, sender: str, sent: Sent) -> bool:
        owner = self.owners.get(sent.name)
        if owner is None:
            return True
        if owner == "here":
            return False
        if sender not in (owner, "relay"):
            return sent.key not in self.known  # of what is not known, nothing is to be refused
        at = -1 if sent.at is None else sent.at
        if sent.key in self.known:
            if sent.at is not None and sent.at < self.known[sent.key][0]:
                return False
            at = max(at, self.known.pop(sent.key)[0])
        self.gone[sent.key] = max(at, self.gone.get(sent.key, -1))
        return True


class Messages(RuleBasedStateMachine):
    """A real node with a real store gets signed messages; it knows what the model knows."""

    def __init__(self, new_database: NewDatabase, empty_store: Path) -> None:
        super().__init__()
        self.clock = Clock()
        self.runner = asyncio.Runner()
        self.closing = AsyncExitStack()
        self.model = Registry()
        self.envelopes: list[tuple[str, Sent, bytes]] = []
        self.runner.run(self._open(new_database(), empty_store))

    async def _open(self, database: dict[str, Any], empty_store: Path) -> None:
        folder = Path(self.closing.enter_context(TemporaryDirectory()))
        settings = with_store(Settings(project=folder, **database), empty_store)
        workbench = await self.closing.enter_async_context(Workbench.open(settings, clock=self.clock))
        await self.closing.enter_async_context(online(workbench, name="here"))
        names = ("ada", "bob", "relay")
        self.others = {name: Other(load_or_create(folder / f"{name}.pem", name), self.clock) for name in names}
        self.here = Here(workbench, workbench._ctx, self.clock)

    def teardown(self) -> None:
        self.runner.run(self.closing.aclose())
        self.runner.close()

    @initialize()
    def introduce(self) -> None:
        self.runner.run(self.here.meet(*self.others.values()))
        self.runner.run(self.here.make_relay(self.others["relay"]))
        self.runner.run(self.here.publish("own"))
        self.model.known["own/1"] = (self.clock.now, -1)

    @rule(sender=SENDERS, owner=OWNERS, name=NAMES, version=VERSIONS, mood=MOODS, age=AGES)
    def publish(self, sender: str, owner: str, name: str, version: str, mood: int, age: int) -> None:
        self.clock.forward(1)
        self._send(sender, Sent(owner, name, version, self.clock.now - age * 1_000_000, mood))

    @rule(sender=SENDERS, name=NAMES, version=VERSIONS, age=st.none() | AGES)
    def forget(self, sender: str, name: str, version: str, age: int | None) -> None:
        self.clock.forward(1)
        self._send(sender, Sent("", name, version, None if age is None else self.clock.now - age * 1_000_000, None))

    @rule(back=st.integers(0, 5))
    def replay(self, back: int) -> None:
        if back < len(self.envelopes):
            self._deliver(len(self.envelopes) - 1 - back)

    @rule()
    def restart(self) -> None:
        self.here.ctx.node.directory.replace([])
        self.runner.run(directory.fill(self.here.ctx))

    @rule()
    def handshake(self) -> None:
        self.runner.run(self.here.meet(self.others["ada"]))

    def _send(self, sender: str, sent: Sent) -> None:
        payload = EventsPayload(events=[self._event(sent)])
        self.envelopes.append((sender, sent, signed(self.others[sender].identity, payload, self.here.rid)))
        self._deliver(len(self.envelopes) - 1)

    def _event(self, sent: Sent) -> KoiEvent:
        rid = AgentPersonality(sent.name, sent.version)
        if sent.mood is None:
            manifest = None if sent.at is None else bundles.manifest_of(rid, sent.at, "0" * 64)
            return KoiEvent(rid=rid, event_type=FORGET, manifest=manifest)
        owner = self.others[sent.owner]
        return event(NEW, owner.bundle(rid, owner.profile(sent.name, sent.version, mood=sent.mood), sent.at))

    def _deliver(self, number: int) -> None:
        sender, sent, raw = self.envelopes[number]
        with suppress(Refused):
            self.runner.run(receiving.answer(self.here.ctx, BROADCAST, raw))
        self.model.take(sender, sent, number)

    @invariant()
    def knows_what_the_model_knows(self) -> None:
        assert self.runner.run(self.here.registry()) == set(self.model.known)
        versions = [version for name in self.model.owners for version in self.here.ctx.node.directory.versions(name)]
        traits = {known.profile.rid.reference: known.profile.get_trait("mood") for known in versions}
        moods = {key: trait.value if trait else -1 for key, trait in traits.items()}
        stored = self.runner.run(self.here.rows("SELECT rid, manifest_at FROM koi_bundles WHERE rid LIKE '%person%'"))
        times = {row["rid"].rpartition(":")[2]: row["manifest_at"] for row in stored}
        assert {key: (times[key], moods[key]) for key in times | moods} == self.model.known

    @invariant()
    def counts_what_it_refuses(self) -> None:
        assert sum(self.runner.run(self.here.refusals()).values()) == self.model.refused


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_node_knows_what_the_model_knows_after_any_messages(new_database: NewDatabase, empty_store: Path) -> None:
    few = hypothesis.settings(max_examples=15, stateful_step_count=25)
    run_state_machine_as_test(partial(Messages, new_database, empty_store), settings=few)
