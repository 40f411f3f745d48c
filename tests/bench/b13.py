"""B13: the panel with 10,000 tasks: from the store through the publisher to what a real browser has drawn."""

from __future__ import annotations

import contextlib
import shutil
import statistics
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from queue import Queue
from typing import TYPE_CHECKING, Any

from kernel_ext.hosting.host import KernelHost
from kernel_ext.panels import STATIC
from kernel_ext.panels.publisher import Publisher
from tests.bench import panel_load
from tests.bench.project import prepare, scratch
from tests.bench.rows import Row, Samples, take_turns, within
from workbench.state.settings import Settings

if TYPE_CHECKING:
    from playwright.sync_api import Page

TASKS = 10_000
CHANGED = 100
FRAMES = 300
QUIET_SECONDS = 1.0
"""So long nothing happens before a change: what came before must not count."""
HARNESS = Path(__file__).parents[1] / "browser" / "panel.js"


class Shown:
    """A panel in a page, and what its publisher has sent to it."""

    def __init__(self, host: KernelHost, page: Page) -> None:
        self.host = host
        self.page = page
        self.sent: Queue[tuple[dict[str, Any], str]] = Queue()
        style = (STATIC / "desk.css").read_text("utf-8")
        page.evaluate(HARNESS.read_text("utf-8"), [(STATIC / "desk.js").read_text("utf-8"), style])
        self.publisher = Publisher(host, self.take, pace=0)

    def take(self, message: dict[str, Any], buffers: list[bytes]) -> None:
        """Take a message of the publisher; on its thread."""
        self.sent.put((message, b"".join(buffers).decode()))

    def draw(self, kind: str) -> None:
        """Hand the page what is sent, up to the first message of a kind, and wait until it is drawn."""
        message: dict[str, Any] = {}
        while message.get("kind") != kind:
            message, text = self.sent.get(timeout=30)
            rows = self.page.evaluate("([message, text]) => window.take(message, text)", [message, text])
            assert rows, "no task is shown"

    def change(self) -> float:
        """Milliseconds from the commit of some new tasks until they are drawn."""
        time.sleep(QUIET_SECONDS)
        made = [{"title": f"New {number}", "persona_id": "implementer"} for number in range(CHANGED)]
        self.host.call("create_tasks", tasks=made)
        began = time.perf_counter()
        self.draw("diff")
        return (time.perf_counter() - began) * 1e3

    def scroll(self, frames: int) -> float:
        """The 99th percentile of the frames of a fast scroll, in milliseconds."""
        return statistics.quantiles(self.page.evaluate("frames => window.scroll(frames)", frames), n=100)[-1]


@contextlib.contextmanager
def serving(root: Path) -> Iterator[KernelHost]:
    """The servers of a project, as a kernel runs them."""
    host = KernelHost(Settings(project=root, port=0))
    host.start(0)
    try:
        yield host
    finally:
        host.stop()


@contextlib.contextmanager
def browser() -> Iterator[Page]:
    """A page of Debian's Chromium."""
    from playwright.sync_api import sync_playwright

    path = shutil.which("chromium")
    if path is None:
        raise RuntimeError("B13 needs Chromium")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        yield chromium.new_page(viewport={"width": 1200, "height": 900})
        chromium.close()


def first_rows(host: KernelHost, page: Page) -> float:
    """Milliseconds from asking for everything until the first tasks are drawn."""
    shown = Shown(host, page)
    began = time.perf_counter()
    shown.publisher.resync()
    shown.draw("snapshot")
    took = (time.perf_counter() - began) * 1e3
    shown.publisher.stop()
    return took


def run(rounds: int, quick: bool) -> Mapping[str, Samples]:
    """What carries messages to the page counts too: here it is the browser's debugging protocol.

    The publisher's pause between two messages does not: how long it lasts is a choice, not a cost.
    """
    with scratch() as directory:
        seed = prepare(directory / "seed", agents=0, tasks=TASKS // 10 if quick else TASKS, mixed=True)
        with serving(seed.root) as host, browser() as page:
            first = take_turns(rounds, first=lambda: first_rows(host, page))["first"]
            shown = Shown(host, page)
            shown.publisher.resync()
            shown.draw("snapshot")
            frames = FRAMES // 10 if quick else FRAMES
            turns = take_turns(rounds, change=shown.change, scroll=lambda: shown.scroll(frames))
            shown.publisher.stop()
    in_lab = panel_load.measured(rounds, TASKS // 10 if quick else TASKS)
    return {
        "first rows": Samples(first, unit="ms"),
        f"{CHANGED} rows change": Samples(turns["change"], unit="ms"),
        "scroll, p99 of frames": Samples(turns["scroll"], unit="ms"),
        **{f"in JupyterLab: {name}": samples for name, samples in in_lab.items()},
    }


ROW = Row(
    "B13",
    f"panel with {TASKS:,} tasks",
    "–",
    {
        "first rows": within(700, "ms"),
        f"{CHANGED} rows change": within(50, "ms"),
        "scroll, p99 of frames": within(60, "ms"),
        **{f"in JupyterLab: {name}": within(200, "ms") for name in panel_load.LONGEST},
        **{f"in JupyterLab: {name}": within(1_000, "ms") for name in panel_load.PRESSED},
    },
    run,
    needs=("playwright", "jupyterlab"),
)
