"""A real host, in the process that serves and attached to one; and the panel's own code in Node.js."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from kernel_ext.hosting.host import KernelHost
from tests.panels.front_end import FrontEnd
from workbench.state.settings import Settings


@pytest.fixture
def serving(migrated: Settings) -> Iterator[KernelHost]:
    host = KernelHost(migrated)
    host.start(0)
    yield host
    host.stop()


@pytest.fixture(params=["serving", "attached"])
def any_host(serving: KernelHost, request: pytest.FixtureRequest) -> Iterator[KernelHost]:
    if request.param == "serving":
        yield serving
        return
    second = KernelHost(serving.settings)
    second.start()
    assert second.attached
    yield second
    second.stop()


@pytest.fixture
def page() -> FrontEnd:
    return FrontEnd()


Ask = Callable[..., Any]


@contextmanager
def answering(script: str) -> Iterator[Ask]:
    """A script of this folder that answers each line of JSON with one."""
    if (node_js := shutil.which("node")) is None:
        pytest.skip("Node.js is not installed; the panel's own code is tested in it")
    argv, env = [node_js, Path(__file__).with_name(script)], os.environ | {"TZ": "UTC"}
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        questions, answers = process.stdin, process.stdout

        def ask(question: Any) -> Any:
            questions.write(json.dumps(question) + "\n")
            questions.flush()
            return json.loads(answers.readline())

        yield ask
        questions.close()


@pytest.fixture(scope="session")
def in_node() -> Iterator[Callable[[str], Ask]]:
    """`in_node("channel.mjs")(question)`: what a script answers; each is started once."""
    with ExitStack() as ends:
        yield cache(lambda script: ends.enter_context(answering(script)))


@pytest.fixture(scope="session")
def call(in_node: Callable[[str], Ask]) -> Ask:
    """`call("lib/format.js", "ordinal", 2)`: what a function of the panel returns, as JSON."""

    def called(module: str, name: str, *arguments: Any) -> Any:
        [answer] = in_node("call.mjs")([module, name, [arguments]])
        return answer

    return called
