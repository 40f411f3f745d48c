"""A cell is a tool of the network: a function of one project's notebook is called from another project, in kernels that
serve them."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import ExitStack
from typing import Any

import pytest

from tests import given
from tests.kernel.conftest import Kernel, started
from tests.kernel.test_tools import Operator, failure

pytestmark = [pytest.mark.timeout(120), pytest.mark.long]


@pytest.fixture(scope="module")
def projects(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Kernel, Operator, Operator]]:
    """The kernel and the operator of the project `lab`, and the operator of `home`, whose first contact it is."""
    with ExitStack() as stack:
        kernels, operators = [], []
        for name in ("lab", "home"):
            project = tmp_path_factory.mktemp(name)
            kernel = stack.enter_context(started(tmp_path_factory.mktemp("kernel")))
            kernel.serve(project)
            kernels.append(kernel)
            operators.append(Operator(project))
        lab, home = operators
        there = lab.call("join_network", name="lab")
        home.call("join_network", first_contact=there["base_url"], name="home")
        kernels[0].run("import threading")
        define(kernels[0], "def mean(values: list[float]) -> float:\n    return sum(values) / len(values)")
        given.wait_until(lambda: "lab__mean" in traits(home))
        lab.call("set_peer_permission", peer="home", permission="always")
        yield kernels[0], lab, home


def define(kernel: Kernel, code: str) -> None:
    kernel.run(f"@wb.tool(trait=True)\n{code}")


def traits(operator: Operator) -> dict[str, Any]:
    """The traits that a project can call, by name."""
    return {tool["name"]: tool for tool in operator.call("list_tools", kind="trait")["tools"]}


def last_call(operator: Operator) -> dict[str, Any]:
    return dict(operator.call("list_tool_calls", limit=1)["calls"][0])


def test_a_function_of_a_notebook_is_called_from_another_project_and_replaced_everywhere(
    projects: tuple[Kernel, Operator, Operator],
) -> None:
    kernel, lab, home = projects
    assert home.tool("lab__mean", values=[1, 2, 6]) == {"result": 3.0}
    sent, received = last_call(home), last_call(lab)
    assert (received["origin_call"], received["version"]) == (sent["call_id"], sent["version"])
    assert sent["version"]
    define(kernel, "def answer() -> int:\n    return 1")
    given.wait_until(lambda: "lab__answer" in traits(home))
    before = home.call("get_tool", name="lab__answer")["version"]
    assert home.tool("lab__answer") == {"result": 1}
    define(kernel, "def answer() -> int:\n    return 2")
    given.wait_until(lambda: home.call("get_tool", name="lab__answer")["version"] != before)
    assert home.tool("lab__answer") == {"result": 2}
    kernel.run("del wb.tools['answer']")
    given.wait_until(lambda: "lab__answer" not in traits(home))
    assert "lab__mean" in traits(home)


def test_an_interrupt_of_the_kernel_ends_the_call_in_the_other_project(
    projects: tuple[Kernel, Operator, Operator],
) -> None:
    kernel, lab, home = projects
    kernel.run("begun = threading.Event()")
    define(kernel, "def endless():\n    begun.set()\n    while True: pass")
    given.wait_until(lambda: "lab__endless" in traits(home))
    hanging: Future[dict[str, Any]] = home.begin_tool("lab__endless")
    kernel.run("begun.wait()")
    kernel.manager.interrupt_kernel()
    assert failure(hanging).code == "TOOL_INTERRUPTED"
    assert last_call(lab)["error_code"] == last_call(home)["error_code"] == "TOOL_INTERRUPTED"
    assert home.tool("lab__mean", values=[2]) == {"result": 2.0}


def test_a_function_that_is_no_trait_any_more_is_forgotten(projects: tuple[Kernel, Operator, Operator]) -> None:
    kernel, _, home = projects
    kernel.run("@wb.tool(trait='guest')\ndef hello() -> str:\n    return 'hello'")
    given.wait_until(lambda: "guest__hello" in traits(home))
    assert home.tool("guest__hello") == {"result": "hello"}
    kernel.run("@wb.tool\ndef hello() -> str:\n    return 'hello'")
    given.wait_until(lambda: "guest__hello" not in traits(home))
    assert "guest" not in [personality["name"] for personality in home.call("list_personalities")["personalities"]]
