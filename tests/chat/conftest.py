"""What the tests of the engine share: a question to a scripted provider."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.chat.dialects import ADDRESSES, Dialect
from tests.chat.provider import Provider
from workbench.chat.engine import answer
from workbench.chat.frames import Frame
from workbench.chat.models import model
from workbench.chat.question import Limits, Question
from workbench.chat.tools import NoTools, Toolbox


class Asking:
    """Asks scripted providers."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch

    def __call__(
        self, provider: Provider, dialect: Dialect, toolbox: Toolbox | None = None, **more: Any
    ) -> AsyncIterator[Frame]:
        """The frames of an answer; `more` are limits, or parts of the question."""
        for name in ADDRESSES:
            self._monkeypatch.setenv(name, provider.address)
        limits = Limits(**{key: more.pop(key) for key in list(more) if key in Limits.__dataclass_fields__})
        question = Question(**({"instructions": "Be brief.", "prompt": "Hello"} | more))
        chosen = model(dialect.model, dialect.config(provider.address), dialect.settings or {})
        return answer(chosen, question, toolbox or NoTools(), limits, first_wait=0.001)


@pytest.fixture
def ask(monkeypatch: pytest.MonkeyPatch) -> Asking:
    """Asks a scripted provider in its own wire format."""
    return Asking(monkeypatch)
