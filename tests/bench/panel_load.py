"""The panel in JupyterLab while tasks come, are sorted, filtered and scrolled, and while a cell computes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.bench.project import scratch
from tests.bench.rows import Samples, by_name

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

    from tests.browser.desk_lab import Lab, Project

BATCHES = 5
FRAMES = 300
PERSONAS = ("implementer", "reviewer", "tester", "planner")
COMPUTES = "while True:\n    sum(number * number for number in range(1_000))"
LONGEST = tuple(f"longest task while they {what}" for what in ("come", "are sorted", "are filtered", "are scrolled"))
PRESSED = ("Admit while they come", "Admit while a cell computes")
SCRIPT = Path(__file__).with_suffix(".js")


def measured(rounds: int, tasks: int) -> Mapping[str, Samples]:
    """Each round is a new project, kernel and page."""
    with scratch() as home, _opened(home) as (lab, page):
        return by_name([_round(lab, page, number, tasks) for number in range(rounds)], "ms")


@contextmanager
def _opened(home: Path) -> Iterator[tuple[Lab, Page]]:
    from playwright.sync_api import sync_playwright

    from tests.browser.desk_lab import launch, started_lab

    with started_lab(home) as lab, sync_playwright() as playwright:
        browser = launch(playwright)
        yield lab, browser.new_page(viewport={"width": 1200, "height": 1200})
        browser.close()


def _round(lab: Lab, page: Page, number: int, tasks: int) -> dict[str, float]:
    from tests.browser.desk_lab import Project, show_desk

    (path := lab.root / f"project-{number}").mkdir()
    (path / ".aiswarm").mkdir()
    project = Project(path)
    desk = show_desk(page, lab, project, COMPUTES)
    page.evaluate(SCRIPT.read_text("utf-8"))
    panel = MeasuredPanel(page, desk, project)
    try:
        return panel.measure(tasks)
    finally:
        lab.end_kernels()
        project.threads.shutdown(wait=False, cancel_futures=True)


class MeasuredPanel:
    """A panel in a notebook whose last cell computes without end."""

    def __init__(self, page: Page, desk: Locator, project: Project) -> None:
        self.page = page
        self.desk = desk
        self.project = project

    def measure(self, tasks: int) -> dict[str, float]:
        """Everything, in milliseconds."""
        came = {}

        def come() -> None:
            came["pressed"] = self.filling(tasks)

        longest = [self.longest(act) for act in (come, self.sort, self.filter, self.scroll)]
        return {
            **dict(zip(LONGEST, longest, strict=True)),
            **dict(zip(PRESSED, (came["pressed"], self.computing()), strict=True)),
        }

    def longest(self, act: Callable[[], None]) -> float:
        """The longest task of the page meanwhile."""
        self.page.evaluate("measure.begin()")
        act()
        return float(self.page.evaluate("measure.longest()"))

    def filling(self, tasks: int) -> float:
        """Let half of the tasks come while agents are admitted, half while they are shown; the slowest admission."""
        from tests.browser.desk_lab import view

        self.register("early")
        half = tasks // 2
        with ThreadPoolExecutor(1) as thread:
            filled = thread.submit(self.fill, range(half))
            pressed = [self.admit("early")]
            while not filled.done():
                self.register(name := f"agent-{len(pressed)}")
                pressed.append(self.admit(name))
            filled.result()
        view(self.desk, "Tasks")
        self.fill(range(half, tasks))
        self.desk.get_by_text(f"0 of {tasks:,} completed").last.wait_for()
        return max(pressed)

    def fill(self, numbers: range) -> None:
        """Create tasks in batches."""
        size = len(numbers) // BATCHES
        for first in numbers[::size]:
            self.project.operate("create_tasks", tasks=[_task(number) for number in range(first, first + size)])

    def register(self, name: str) -> None:
        """A new agent, which waits."""
        self.project.call("register", name=name, persona_id="tester")

    def admit(self, name: str) -> float:
        """How long the panel takes to say that an agent is admitted, from the press of the button."""
        card = self.desk.get_by_role("listitem", name=name, exact=True)
        button = card.get_by_role("button", name="Admit")
        button.wait_for()
        arguments = [card.element_handle(), f"Admitted as {name}."]
        return float(button.evaluate("(button, arguments) => measure.press(button, arguments)", arguments))

    def sort(self) -> None:
        """By each column, both ways and back."""
        for heading in self.desk.get_by_role("treegrid").get_by_role("columnheader").get_by_role("button").all():
            if heading.is_visible():
                for _ in range(3):
                    heading.click()

    def filter(self) -> None:
        """By text, letter by letter, by state and by persona."""
        search = self.desk.get_by_role("searchbox", name="Filter tasks")
        search.press_sequentially("task 12")
        search.fill("")
        self.desk.get_by_role("button", name=re.compile("^Blocked")).click()
        self.desk.get_by_role("button", name=re.compile("^All")).click()
        for persona in (PERSONAS[0], "All personas"):
            self.desk.get_by_label("All personas", exact=True).select_option(persona)

    def scroll(self) -> None:
        """Through all tasks."""
        self.desk.get_by_role("treegrid").evaluate("(grid, frames) => measure.scroll(grid, frames)", FRAMES)

    def computing(self) -> float:
        """How long the answer takes while a cell computes, from its begin on."""
        from playwright.sync_api import expect

        from tests.browser.desk_lab import run, view

        view(self.desk, "Inbox")
        run(self.page, 2)
        prompt = self.page.locator(".jp-Notebook .jp-CodeCell").nth(2).locator(".jp-InputPrompt")
        expect(prompt).to_have_text("[*]:")
        pressed = []
        for name in ("ada", "bert", "cyd"):
            self.register(name)
            pressed.append(self.admit(name))
        return max(pressed)


def _task(number: int) -> dict[str, object]:
    """Of every ten tasks, one waits for the one before it."""
    return {
        "title": f"Task {number} of the penguins",
        "persona_id": PERSONAS[number % len(PERSONAS)],
        "priority": 100 + number % 900,
        "dependencies": [-1] if number % 10 == 1 else [],
    }
