"""A question to a scripted provider, for the tests of the engine."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, TypeVar

import pytest

from tests.providers.dialects import ADDRESSES, Dialect
from tests.providers.provider import Provider, Reply, Request, provider
from tests.providers.wire import Step
from workbench.errors import WorkbenchError
from workbench.providers.engine import answer
from workbench.providers.frames import Completed, Frame, Requested, Retrying, Token, Used
from workbench.providers.models import model
from workbench.providers.question import AnswerLimits, ModelQuestion
from workbench.providers.tools import NoTools, Toolbox

AnyFrame = TypeVar("AnyFrame", bound=Frame)


@dataclass(frozen=True)
class Answer:
    """An answer: its frames, its usage, the requests to the provider, and the error with which it ended.

    Args:
        recorded: what is recorded of each request, also those that failed.
    """

    frames: list[Frame]
    used: list[Used]
    recorded: list[Requested]
    requests: list[Request]
    error: WorkbenchError | None

    def of(self, kind: type[AnyFrame]) -> list[AnyFrame]:
        return [frame for frame in self.frames if isinstance(frame, kind)]

    @property
    def text(self) -> str:
        """The text, as it came."""
        return "".join(token.text for token in self.of(Token))

    @property
    def completed(self) -> Completed:
        assert self.error is None
        last = self.frames[-1]
        assert isinstance(last, Completed)
        return last

    @property
    def retries(self) -> list[tuple[str, int]]:
        """The code and the number of each repetition."""
        return [(frame.code, frame.attempt) for frame in self.of(Retrying)]

    @property
    def code(self) -> str:
        assert self.error is not None
        return self.error.code


class Asking:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch

    async def __call__(
        self, provider: Provider, dialect: Dialect, toolbox: Toolbox | None = None, **more: Any
    ) -> AsyncGenerator[Frame, None]:
        """The frames of an answer, without its requests and what it used."""
        async with aclosing(self.all(provider, dialect, toolbox, **more)) as frames:
            async for frame in frames:
                if not isinstance(frame, Used | Requested):
                    yield frame

    def all(
        self, provider: Provider, dialect: Dialect, toolbox: Toolbox | None = None, **more: Any
    ) -> AsyncGenerator[Frame, None]:
        """The frames of an answer; `more` are limits, or parts of the question."""
        for name in ADDRESSES:
            self._monkeypatch.setenv(name, provider.address)
        limits = AnswerLimits(**{key: more.pop(key) for key in list(more) if key in AnswerLimits.__dataclass_fields__})
        question = ModelQuestion(**({"instructions": "Be brief.", "prompt": "Hello"} | more))
        chosen = model(dialect.model, dialect.config(provider.address), dialect.settings or {})
        return answer(chosen, question, toolbox or NoTools(), limits, first_wait=0.001)

    async def whole(self, dialect: Dialect, *script: Step | Reply, **more: Any) -> Answer:
        """A whole answer of a provider with a script."""
        frames: list[Frame] = []
        used: list[Used] = []
        recorded: dict[int, Requested] = {}
        replies = [dialect.reply(one) if isinstance(one, Step) else one for one in script]
        async with provider(*replies) as server:
            try:
                async for frame in self.all(server, dialect, **more):
                    if isinstance(frame, Used):
                        used.append(frame)
                    elif isinstance(frame, Requested):
                        recorded[frame.number] = frame
                    else:
                        frames.append(frame)
            except WorkbenchError as error:
                return Answer(frames, used, list(recorded.values()), server.requests, error)
        return Answer(frames, used, list(recorded.values()), server.requests, None)


@pytest.fixture
def ask(monkeypatch: pytest.MonkeyPatch) -> Asking:
    return Asking(monkeypatch)
