"""The status of the kernel while a cell runs and a page sends messages of widgets, over the Jupyter protocol."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kernel.conftest import Kernel, started

pytestmark = [pytest.mark.timeout(120), pytest.mark.long]

OPEN = """
import os
os.environ["WORKBENCH_FRONTEND"] = "1"
panel = get_ipython().run_line_magic("workbench", "panel")
panel.open()
panel.comm.comm_id
"""
RUN = "import threading; clicked = threading.Event(); panel.on_message = lambda _: clicked.set(); clicked.wait(60)"


@pytest.fixture
def kernel(tmp_path: Path) -> Iterator[Kernel]:
    with started(tmp_path) as made:
        made.run("%workbench start --port 0")
        yield made


def requested(kernel: Kernel, channel: Any, kind: str, content: dict[str, Any], **header: Any) -> dict[str, Any]:
    """Send a request; its message."""
    message = kernel.client.session.msg(kind, content)
    message["header"].update(header)
    channel.send(message)
    return dict(message)


def statuses_until(kernel: Kernel, end: str) -> list[tuple[str, str, str]]:
    """The id and type of the request that each status answers, and the status; to the end of a request."""
    found = []
    while not found or (found[-1][0], found[-1][2]) != (end, "idle"):
        message = kernel.client.get_iopub_msg(timeout=60)
        if message["msg_type"] == "status":
            parent = message["parent_header"]
            found.append((parent["msg_id"], parent["msg_type"], message["content"]["execution_state"]))
    return found


def test_a_panel_message_does_not_make_a_running_cell_look_finished(
    kernel: Kernel,
) -> None:
    comm_id = kernel.run(OPEN).strip("'")
    requested(kernel, kernel.client.control_channel, "create_subshell_request", {})
    subshell = kernel.client.get_control_msg(timeout=60)["content"]["subshell_id"]
    cell = kernel.client.execute(RUN)
    while kernel.client.get_iopub_msg(timeout=60)["msg_type"] != "execute_input":
        pass
    content = {"comm_id": comm_id, "data": {"method": "custom", "content": {"kind": "resync"}}}
    click = requested(kernel, kernel.client.shell_channel, "comm_msg", content, subshell_id=subshell)
    found = statuses_until(kernel, cell)
    mine = [(kind, status) for request, kind, status in found if request == click["header"]["msg_id"]]
    assert mine == [("comm_info_request", "busy"), ("comm_info_request", "idle")]
    assert found[-1] == (cell, "execute_request", "idle")

    replaced = '"_publish_status" in vars(get_ipython().kernel)'
    assert kernel.run(replaced) == "True"
    kernel.run("%unload_ext workbench")
    assert kernel.run(replaced) == "False"
