"""The pictures of the documents: made here from real work, and kept in `docs/pictures` by `make pictures`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Locator, Page, expect

from tests.analytics.recorded import record
from tests.browser.bare_desk import BareDesk
from tests.browser.conftest import EXPECT_SECONDS, sound_page
from tests.browser.desk_lab import KEEPS_PICTURES, ROOT, Lab, Project, open_notebook, resize, run, view, write_notebook
from tests.browser.scenes import busy, changed, proposal, repository, worktree
from workbench.cli.client import ProjectClient

PICTURES = ROOT / "docs" / "pictures"
LARGEST = 300_000
"""Bytes of a picture."""
CELLS = (
    "%load_ext workbench\n%workbench start --port 0",
    "%workbench panel --dock",
    "%%wsql\nSELECT title, status, coalesce(agent, '') AS agent\nFROM tasks ORDER BY status, title",
)
SHARP = {"viewport": {"width": 1280, "height": 750}, "device_scale_factor": 1.5, "color_scheme": "light"}
"""The page of the picture that everybody sees first: sharp on every screen."""
STATS = '''"""Robust statistics of body masses."""

from statistics import median


def middle(masses: list[float]) -> float:
    """The median of the masses that are known, in grams."""
    return median(mass for mass in masses if mass > 0)
'''


def picture(of: Locator | Page, name: str, tmp_path: Path) -> None:
    """Make a picture; keep it for the documents if that was asked for."""
    path = (PICTURES if KEEPS_PICTURES else tmp_path) / f"{name}.png"
    of.screenshot(path=path, animations="disabled", caret="hide")
    assert 5_000 < path.stat().st_size < LARGEST


@pytest.fixture
def sharp_page(context: BrowserContext) -> Iterator[Page]:
    assert context.browser is not None
    made = context.browser.new_context(**SHARP)
    made.set_default_timeout(1_000 * EXPECT_SECONDS)
    with sound_page(made) as page:
        yield page
    made.close()


def test_the_panel_beside_a_notebook_is_pictured(lab: Lab, project: Project, sharp_page: Page, tmp_path: Path) -> None:
    (place := project.path / "penguins").mkdir()
    repository(place)
    open_notebook(sharp_page, lab, write_notebook(place / "measure.ipynb", *CELLS), "lab/tree")
    sharp_page.evaluate("() => window.jupyterapp.shell.collapseLeft()")
    for number in (0, 1):
        run(sharp_page, number)
    docked = sharp_page.get_by_role("region", name="Workbench desk", exact=True)
    expect(docked).to_have_count(1)
    proposal(served := Project(place), "robust")
    busy(served)
    served.operate(
        "reject", approval_id=max(approval["id"] for approval in served.operate("list_approvals")["approvals"])
    )
    sharp_page.locator(".jp-Notebook").click()
    run(sharp_page, 2)
    expect(sharp_page.locator(".jp-OutputArea-output table").last).to_contain_text("ada")
    for name in ("robust", "Hugo", "night-planner"):
        expect(docked).to_contain_text(name)
    sharp_page.mouse.move(0, 0)
    sharp_page.add_style_tag(content=".jp-cell-toolbar { display: none }")
    picture(sharp_page, "jupyterlab", tmp_path)


def test_the_tasks_are_pictured(desk: BareDesk, tmp_path: Path) -> None:
    busy(Project(desk.host.settings.project))
    view(desk.element, "Tasks")
    expect(desk.element.locator(".wb-title", has_text="Write the report")).to_be_visible()
    expect(desk.element).to_contain_text("60 %")
    resize(desk.element, 1100)
    desk.page.evaluate("() => document.activeElement.blur()")
    picture(desk.element, "tasks", tmp_path)


def test_the_changes_of_a_worktree_are_pictured(open_bare_desk: Callable[..., BareDesk], tmp_path: Path) -> None:
    desk = open_bare_desk(integration_gates=["python3 -m py_compile stats.py"])
    project = Project(desk.host.settings.project)
    worktree(project, "robust", {"stats.py": STATS}, {"model.py": changed(3, 33)})
    project.operate("integrate_worktree", worktree_name="robust")
    view(desk.element, "Worktrees")
    card = desk.element.get_by_role("listitem", name="robust", exact=True)
    card.get_by_role("button", name=re.compile("^Review")).click()
    review = desk.element.get_by_role("region", name="robust", exact=True)
    expect(review.get_by_text("line_3 = 33")).to_be_visible()
    expect(review).to_contain_text("passed")
    resize(desk.element, 1000)
    picture(desk.element, "changes", tmp_path)


def test_a_report_is_pictured(page: Page, tmp_path: Path) -> None:
    saved = tmp_path / "report.html"

    def report() -> None:
        (project := tmp_path / "project").mkdir()
        repository(project)
        record(project)
        with ProjectClient(project) as client:
            client.report("gantt").save(saved)

    with ThreadPoolExecutor(1) as thread:  # an event loop runs in this one
        thread.submit(report).result()
    page.set_viewport_size({"width": 760, "height": 590})
    page.goto(saved.as_uri())
    expect(page.locator("svg, img").first).to_be_visible()
    picture(page, "report", tmp_path)
