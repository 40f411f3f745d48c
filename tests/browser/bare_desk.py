"""The desk in an empty page of a real browser, with a real host behind it and a connection that tests can disturb."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from playwright.sync_api import Locator, Page

from kernel_ext.hosting.host import KernelHost
from kernel_ext.panels import STATIC
from kernel_ext.panels.publisher import Publisher
from kernel_ext.panels.request_handler import RequestHandler
from tests.browser.desk_lab import Project

HARNESS = (Path(__file__).parent / "panel.js").read_text()
DELIVER = """() => {
  const deliver = async () => {
    for (const [message, text] of await window.news()) window.take(message, text); // in order, as a comm does
    setTimeout(deliver, 20);
  };
  deliver();
}"""
LASTING_UNDO = """(() => {
  const start = window.setTimeout;
  window.setTimeout = (run, ms, ...more) => start(run, ms === 10_000 ? 3_600_000 : ms, ...more);
})();"""
"""Before a page is loaded: its offers to undo stay for an hour instead of ten seconds."""
Message = dict[str, Any]


class BareDesk:
    """A page without JupyterLab: the browser's debugging protocol carries the messages instead of a comm."""

    def __init__(self, host: KernelHost, page: Page) -> None:
        self.host = host
        self.page = page
        self.project = Project(Path(host.settings.project))
        self.asked: list[Message] = []
        """All requests of the page."""
        self.sent: list[tuple[Message, str]] = []
        """All messages to the page, each with its buffer."""
        self._failing: set[str] = set()
        self._held: Callable[[Message], bool] = lambda message: False
        self._waiting: list[Message] = []
        self._news_held: set[str] = set()
        self._news: SimpleQueue[tuple[Message, str]] = SimpleQueue()
        self._publisher = Publisher(host, self._send)
        self._requests = RequestHandler(host, self._send, accepted_after=0.2)
        page.expose_function("kernel", self._receive)
        page.expose_function("news", self._deliver)
        page.goto("data:text/html,<!doctype html>")  # without the type, :hover is of links only
        bundle, style = ((STATIC / name).read_text() for name in ("desk.js", "desk.css"))
        page.evaluate(HARNESS, [bundle, style])
        page.evaluate(DELIVER)
        self.element.and_(page.locator("[data-link='live']")).wait_for()

    @property
    def element(self) -> Locator:
        """The desk."""
        return self.page.locator(".wb-desk")

    def fail(self, what: str) -> None:
        """Answer requests for an operation, or for a bundle, with an error instead of running them, until `restore`."""
        self._failing.add(what)

    def restore(self, *which: str) -> None:
        """Run requests again: these, or all."""
        self._failing -= set(which) or self._failing

    def hold(self, kind: str) -> None:
        """Keep requests of a kind back, until `release`."""
        self._held = lambda message: message["kind"] == kind

    def release(self) -> None:
        """Hand on what was kept back."""
        self._held, waiting, self._waiting = (lambda message: False), self._waiting, []
        for message in waiting:
            self._requests.take(message)

    def hold_rows(self) -> None:
        """Keep snapshots and diffs back, until `release_news`; answers still come."""
        self._news_held = {"snapshot", "diff"}

    def hold_answers(self) -> None:
        """Keep answers back, until `release_news`; rows still come."""
        self._news_held = {"answer"}

    def release_news(self) -> None:
        """Hand on what was kept back on its way to the page."""
        self._news_held = set()

    def close(self) -> None:
        """Stop following the project."""
        self._publisher.stop()

    def _send(self, content: Message, buffers: list[bytes]) -> None:
        self.sent.append((content, b"".join(buffers).decode()))
        self._news.put(self.sent[-1])

    def _deliver(self) -> list[tuple[Message, str]]:
        news = [self._news.get() for _ in range(self._news.qsize())]
        held = [one for one in news if one[0]["kind"] in self._news_held]
        for one in held:
            self._news.put(one)
        return [one for one in news if one not in held]

    def _receive(self, message: Message) -> None:
        self.asked.append(message)
        if self._failing & {message.get("op"), message.get("name")}:
            error = {"code": "STORE_BUSY", "message": "The store is busy. Try again."}
            self._send({"kind": "answer", "request": message["request"], "ok": False, "error": error}, [])
            return
        if message["kind"] == "resync":
            self._publisher.resync()
        elif self._held(message):
            self._waiting.append(message)
        else:
            self._requests.take(message)
