"""The answer of a model that is chosen by name, for callers on an event loop."""

from __future__ import annotations

import subprocess
import sys
from contextlib import aclosing

import pytest

from workbench.providers import answers
from workbench.providers.answers import ModelChoice
from workbench.providers.frames import Completed, Token, ToolStarted
from workbench.providers.question import ModelQuestion
from workbench.providers.tools import NoTools

pytestmark = pytest.mark.anyio

TEST = ModelChoice("test:script", {}, {"script": [{"say": "One two."}, {"say": "Three."}]})


async def test_a_conversation_goes_on_after_an_interruption() -> None:
    async with aclosing(answers.answer(TEST, ModelQuestion("", "Hello"), NoTools())) as frames:
        first = [await anext(frames) for _ in range(2)]
    history = await answers.extended(None, "Hello", [*first, ToolStarted("c1", "add", "{}")])
    again = ModelQuestion("", "And?", history)
    found = [frame async for frame in answers.answer(TEST, again, NoTools())]
    assert Token("Three.") in found
    assert isinstance(found[-1], Completed)


IMPORTS = """
import asyncio, sys, time
from workbench.providers import answers
from workbench.providers.question import ModelQuestion
from workbench.providers.tools import NoTools

assert "pydantic_ai" not in sys.modules

async def main():
    ticks = 0
    async def tick():
        nonlocal ticks
        while True:
            await asyncio.sleep(0.005)
            ticks += 1
    ticking = asyncio.create_task(tick())
    frames = answers.answer(answers.ModelChoice("test:x", {}, {}), ModelQuestion("", "Hello"), NoTools())
    await anext(frames)
    assert "pydantic_ai" in sys.modules
    assert ticks > 3, ticks
    await frames.aclose()

asyncio.run(main())
"""
ABSENT = """
import asyncio, sys
from workbench.providers import answers
from workbench.providers.question import ModelQuestion
from workbench.providers.tools import NoTools
from workbench.errors import Unavailable

sys.modules[sys.argv[1]] = None

async def main():
    choice = answers.ModelChoice(sys.argv[2], {"ANTHROPIC_API_KEY": "k"}, {})
    error = None
    try:
        await anext(answers.answer(choice, ModelQuestion("", "Hello"), NoTools()))
    except Unavailable as caught:
        error = caught
    assert error and error.code == "CHAT_NOT_INSTALLED", error
    assert "`pip install 'workbench-agents[chat]'`" in error.message

asyncio.run(main())
"""


@pytest.mark.long
def test_the_libraries_are_imported_on_first_use_beside_the_loop() -> None:
    subprocess.run([sys.executable, "-c", IMPORTS], check=True, timeout=50)


@pytest.mark.long
@pytest.mark.parametrize(("package", "model"), [("pydantic_ai", "test:x"), ("anthropic", "anthropic:x")])
def test_a_package_that_is_not_installed_has_a_code(package: str, model: str) -> None:
    subprocess.run([sys.executable, "-c", ABSENT, package, model], check=True, timeout=50)
