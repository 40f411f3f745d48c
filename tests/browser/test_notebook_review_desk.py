"""Reviewing a notebook: its cells with their outputs, and a comment on a cell, which an agent gets."""

from __future__ import annotations

import asyncio
import base64
import json
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, expect

from tests.browser.bare_desk import BareDesk
from tests.browser.desk_lab import expect_readable, shot, view, wearing
from tests.browser.scenes import git
from workbench.client.mcp import McpClient

HOSTILE = "<script>document.title = 'run'</script><img src=x onerror=\"document.title = 'run'\">"
VECTORS = "<svg xmlns='http://www.w3.org/2000/svg' onload=\"document.title = 'run'\"/>"


def picture(height: int) -> str:
    """A PNG in base64: bars of a colour, higher from one to the next."""
    rows = (
        b"\0" + b"".join((b"\x33\x66\xaa" if height - y < (x // 40 + 1) * 14 else b"\xff\xff\xff") for x in range(320))
        for y in range(height)
    )

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", 320, height, 8, 2, 0, 0, 0)
    parts = [chunk(b"IHDR", head), chunk(b"IDAT", zlib.compress(b"".join(rows))), chunk(b"IEND", b"")]
    return base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"".join(parts)).decode()


def cell(name: str, source: str, *outputs: dict[str, Any]) -> dict[str, Any]:
    lines = source.splitlines(keepends=True)
    about = {"cell_type": "code", "id": name, "metadata": {}, "source": lines}
    return about | {"execution_count": 1, "outputs": list(outputs)}


def shows(**data: str) -> dict[str, Any]:
    """An output with data of these types, whose slashes are written as underscores, as is a plus."""
    types = {name.replace("_", "/", 1).replace("_", "+"): value for name, value in data.items()}
    return {"output_type": "display_data", "metadata": {}, "data": types}


def write(place: Path, cells: list[dict[str, Any]]) -> None:
    """Commit a notebook with these cells."""
    text = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    (place / "penguins.ipynb").write_text(json.dumps(text, indent=1) + "\n")
    git("add", ".", cwd=place)
    git("commit", "-q", "-m", "The notebook", cwd=place)


def agent_at_work(desk: BareDesk) -> str:
    """The token of an agent that has a task in the worktree."""
    host = desk.host
    registered = desk.project.call("register", name="ada", persona_id="implementer")
    host.call("approve", approval_id=registered["approval_id"], choices={"agent_id": "ada", "worktree": "bills"})
    token: str = host.call("issue_token", agent_id="ada")["token"]
    task = host.call("create_task", title="Draw the bills", persona_id="implementer", target_worktree="bills")
    desk.project.call("claim_task", token, task_id=task["id"])
    return token


async def read_messages(url: str, token: str) -> list[dict[str, Any]]:
    """What an agent reads over MCP."""
    async with McpClient(url, token) as client:
        messages: list[dict[str, Any]] = (await client.call("read_messages", wait_seconds=10))["messages"]
        return messages


def test_a_cell_is_shown_with_its_pictures_and_a_comment_on_it_reaches_an_agent(
    open_bare_desk: Callable[..., BareDesk], page: Page
) -> None:
    page.add_init_script("window.manager = { context: { path: 'work/penguins.ipynb' } }")
    desk = open_bare_desk()
    root = Path(desk.host.settings.project)
    load = cell("load", "import pandas as pd\n\npenguins = pd.read_csv('penguins.csv')\n")
    write(root, [load, cell("draw", "penguins.plot.bar()\n", shows(image_png=picture(80)))])
    place = Path(desk.host.call("create_worktree", name="bills")["path"])
    after = [
        cell("load", "import pandas as pd\n\npenguins = pd.read_csv('penguins.csv').dropna()\n"),
        cell("draw", "penguins.bill.plot.bar(color='navy')\n", shows(image_png=picture(120))),
        cell("rich", "display(page)\n", shows(text_html=HOSTILE, text_plain="342 rows"), shows(image_svg_xml=VECTORS)),
        cell("fake", "display(fake)\n", shows(image_png=base64.b64encode(HOSTILE.encode()).decode())),
    ]
    write(place, after)
    token = agent_at_work(desk)

    view(desk.element, "Worktrees")
    desk.element.get_by_role("listitem", name="bills").get_by_role("button", name="bills", exact=True).click()
    mine = desk.element.get_by_role("region", name="bills")
    pictures = mine.locator(".wb-outputs img")
    expect(pictures).to_have_count(2)
    widths = "all => Promise.all(all.map((image) => image.decode().then(() => image.naturalWidth)))"
    assert pictures.evaluate_all(widths) == [320, 320]
    expect(mine.locator(".wb-output-text")).to_contain_text("342 rows")
    expect(mine.locator(".wb-output-text")).to_contain_text("Not shown: text/html.")
    expect(mine.get_by_text("A picture is not shown: it is no PNG or JPEG.")).to_be_visible()
    assert page.title() == ""
    shot(desk.element, "notebook-review")

    mine.get_by_role("button", name="Comment on cell 2", exact=True).click()
    mine.get_by_role("textbox", name="Comment on cell 2 of penguins.ipynb").fill("Sort the bars, please.")
    mine.get_by_role("button", name="Add comment").click()
    expect(mine.get_by_text("Not sent yet · cell 2")).to_be_visible()
    shot(desk.element, "notebook-review-comment")
    mine.get_by_role("button", name="Request changes", exact=True).click()
    expect(mine.locator(".wb-diff-files").get_by_text("cell 2 (id draw), code")).to_be_visible()
    expect_readable(page)
    with wearing(page, "dark"):
        expect_readable(page)
        shot(desk.element, "notebook-review-dark")

    desk.host.call("integrate_worktree", worktree_name="bills")
    view(desk.element, "Inbox")
    expect(desk.element.get_by_text("It changes penguins.ipynb, which is open here.").first).to_be_visible()
    shot(desk.element, "notebook-open-here")

    info = desk.host.info
    assert info is not None
    reading = desk.project.threads.submit(lambda: asyncio.run(read_messages(info.mcp_url, token)))
    (message,) = reading.result(30)
    assert message["kind"] == "comment"
    assert "penguins.ipynb:" in message["text"]
    assert "cell 2 (id draw), code: Sort the bars, please." in message["text"]
