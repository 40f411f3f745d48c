"""The requests with one key take turns while it is limited: none, then one as a probe, then all."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest

from workbench.model import SECOND
from workbench.providers import gateway
from workbench.providers.gateway import Came, KeyTurns, LimitedError, Patience

pytestmark = pytest.mark.anyio


@dataclass
class Key:
    """A key, whose limit is stored here, and what was sent with it."""

    until: int | None = None
    clock: int = 0
    sent: list[asyncio.Future[tuple[str, Came]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.turns = KeyTurns(self.limit, lambda: self.clock)

    async def limit(self) -> int | None:
        return self.until

    async def send(self) -> tuple[str, Came]:
        self.sent.append(asyncio.get_running_loop().create_future())
        return await self.sent[-1]

    async def ask(self, seconds: float = 100.0, silent: float = 100.0) -> list[str | None]:
        patience = Patience(seconds, silent, lambda: True)
        return [answer async for answer in self.turns.answers(self.send, patience)]

    async def requests(self, number: int) -> list[asyncio.Task[list[str | None]]]:
        tasks = [asyncio.create_task(self.ask()) for _ in range(number)]
        await settled()
        return tasks

    async def answer(self, number: int, came: Came = Came.ANSWER) -> None:
        self.sent[number].set_result((f"answer {number}", came))
        await settled()

    async def wait_until(self, clock: int) -> None:
        self.clock = clock
        self.turns.look_again()
        await settled()


async def settled() -> None:
    """Everything that can go on without time has done so."""
    for _ in range(50):
        await asyncio.sleep(0)


async def test_after_a_limit_one_request_tries_and_then_all_others_are_sent_together() -> None:
    key = Key()
    begun = await key.requests(2)
    key.until = 20 * SECOND
    await key.answer(0, Came.LIMIT)
    waiting = await key.requests(5)
    assert len(key.sent) == 2
    await key.answer(1)  # it was begun before the limit
    assert begun[1].done()
    await key.wait_until(20 * SECOND - 1)
    assert len(key.sent) == 2
    await key.wait_until(20 * SECOND)
    assert len(key.sent) == 3
    await key.answer(2)
    assert len(key.sent) == 3 + 5
    for number in range(3, 8):
        await key.answer(number)
    assert all(task.done() for task in (*begun, *waiting))


async def test_a_probe_that_is_refused_lets_no_other_request_through() -> None:
    key = Key(until=5, clock=5)
    await key.requests(3)
    assert len(key.sent) == 1
    key.until = 9
    await key.answer(0, Came.LIMIT)
    assert len(key.sent) == 1
    await key.wait_until(9)
    assert len(key.sent) == 2
    await key.answer(1, Came.REFUSAL)  # it does not say how long: the next one tries
    assert len(key.sent) == 3


async def test_no_request_is_sent_while_a_limit_is_being_noted() -> None:
    key = Key()
    with key.turns.closed():
        (asking,) = await key.requests(1)
        assert key.sent == []
    await settled()
    await key.answer(0)
    assert await asking == ["answer 0"]


async def test_a_client_that_leaves_hands_its_turn_to_the_next() -> None:
    key = Key(until=5, clock=5)
    first, _ = await key.requests(2)
    first.cancel()
    await settled()
    assert len(key.sent) == 2


async def test_a_probe_that_takes_long_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gateway, "PROBE_SECONDS", 0.01)
    key = Key(until=5, clock=5)
    await key.requests(3)
    while len(key.sent) < 3:
        await asyncio.sleep(0.01)


async def test_a_limit_that_passes_too_late_sends_nothing_and_the_one_that_tells_it_gets_it() -> None:
    key = Key(until=200 * SECOND)
    with pytest.raises(LimitedError):
        await key.ask()
    assert key.sent == []
    key.until = None
    (asking,) = await key.requests(1)
    key.until = 200 * SECOND
    await key.answer(0, Came.LIMIT)
    assert await asking == ["answer 0"]


async def test_a_limit_that_could_not_be_stored_is_told_and_not_asked_again() -> None:
    key = Key()
    (asking,) = await key.requests(1)
    await key.answer(0, Came.LIMIT)
    assert (await asking, len(key.sent)) == (["answer 0"], 1)


async def test_one_that_waits_gets_signs_of_life_until_its_answer_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gateway, "PING_SECONDS", 0.01)
    key = Key(until=50 * SECOND)
    answers = key.turns.answers(key.send, Patience(100.0, 0.0, lambda: True))
    assert [await anext(answers) for _ in range(3)] == [None] * 3
    key.clock = 50 * SECOND
    last = asyncio.ensure_future(anext(answers))
    await settled()
    key.turns.look_again()
    while not key.sent:
        await asyncio.sleep(0.01)
    await key.answer(0)
    assert await last == "answer 0"
