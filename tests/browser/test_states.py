"""Every state of the panel at three widths in both themes: pictures to look at, contrast, width, and the keyboard."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.desk_lab import Project, command, resize, run, shot
from tests.browser.scenes import busy, changed, repository, worktree
from workbench.withheld import trust, withheld

OpenDesk = Callable[..., Locator]
HERE = Path(__file__).parent
CONTRAST = (HERE / "contrast.js").read_text()
REACH = (HERE / "reach.js").read_text()
WIDTHS = (700, 1100, 1600)
TABS = ("Inbox", "Tasks", "Worktrees", "Agents", "Projects", "Admin")
NUMBER = """desk => {
  const all = desk.querySelectorAll("button, a[href], input, select, textarea, summary, [tabindex='0']");
  const reached = [...all].filter((one) => one.tabIndex >= 0 && one.checkVisibility({ visibilityProperty: true }));
  reached.forEach((one, index) => { one.dataset.number = index; });
  return reached.map((one) => one.ariaLabel ?? one.textContent);
}"""
FOCUSED = "desk => desk.contains(document.activeElement) ? document.activeElement.dataset.number ?? '' : null"


def view(desk: Locator, name: str) -> None:
    desk.get_by_role("tab", name=re.compile(f"^{name}")).click()


def press(place: Locator, name: str) -> None:
    """Press a button whose name begins like this."""
    place.get_by_role("button", name=re.compile(f"^{re.escape(name)}")).first.click()


def card(desk: Locator, name: str) -> Locator:
    return desk.get_by_role("listitem", name=name, exact=True)


def fill(project: Project) -> None:
    """Something in every view, and every state of a worktree."""
    (project.path / ".aiswarm" / "settings.toml").write_text(
        "integration_gates = ['echo all is well', 'test ! -e broken.py']\n"
    )
    trust(project.path, withheld(project.path))


def work(project: Project) -> None:
    busy(project)
    worktree(project, "bills", {"model.py": changed(3, 33)}, left={"notes.md": "# Later\n"})
    worktree(project, "islands")
    worktree(project, "robust", {"src/stats.py": "mean = 1\nmedian = 2\n"}, {"model.py": changed(3, 44)})
    worktree(project, "broken", {"broken.py": "x = \n"})
    worktree(project, "old", {"old.py": "x = 1\n"})
    project.operate("discard_worktree", worktree_name="old", reason="Superseded", force=True)
    for name in ("robust", "broken"):
        project.operate("integrate_worktree", worktree_name=name)
    project.operate("spawn_agent", persona_id="tester", name="walt")
    lab = project.operate("create_project", name="Penguins")["id"]
    session = project.operate("create_session", project_id=lab, name="Field season")["id"]
    project.operate("create_team", name="Counting", session_id=session)
    project.operate("add_admission_rule", name="night shift", pattern="night-*", grants={"tool": "read"})


def empty_states(desk: Locator) -> Iterator[str]:
    """Bring the desk of an empty project into each of its states, one after the other."""
    for name in TABS[:-1]:
        view(desk, name)
        yield f"{name.lower()}-empty"
    view(desk, "Agents")
    press(desk, "Processes")
    yield "processes-empty"


def inbox_states(desk: Locator) -> Iterator[str]:
    view(desk, "Inbox")
    expect(card(desk, "broken").get_by_text("failed with 1")).to_be_visible(timeout=60_000)
    expect(card(desk, "robust").get_by_text("passed in").last).to_be_visible(timeout=60_000)
    yield "inbox"
    press(card(desk, "Hugo"), "Details")
    press(card(desk, "robust"), "Details")
    yield "inbox-details"
    press(card(desk, "Hugo"), "Details")
    press(card(desk, "robust"), "Details")
    press(card(desk, "visitor"), "Reject")
    press(card(desk, "broken"), "Approve despite")
    yield "inbox-asking"
    press(card(desk, "visitor"), "Cancel")
    press(card(desk, "broken"), "Cancel")
    desk.get_by_label("Select all", exact=True).check()
    press(desk, "Details for all")
    desk.get_by_text("Decided", exact=True).click()
    yield "inbox-many"
    desk.get_by_label("Select all", exact=True).uncheck()


def task_states(desk: Locator) -> Iterator[str]:
    view(desk, "Tasks")
    yield "tasks"
    desk.get_by_role("columnheader", name="State").get_by_role("button").click()
    desk.get_by_role("row").filter(has_text="Fetch weather data").click()
    expect(desk.get_by_role("region", name="Fetch weather data")).to_contain_text("The station is gone.")
    yield "task"
    press(desk, "Close the task")
    desk.get_by_role("searchbox", name="Filter tasks").fill("nothing like it")
    yield "tasks-none"
    press(desk, "Show all")
    press(desk, "By priority")
    yield "tasks-by-priority"
    press(desk, "Graph")
    press(desk, "Zoom to fit")
    yield "graph"


def worktree_states(desk: Locator) -> Iterator[str]:
    view(desk, "Worktrees")
    expect(card(desk, "bills")).to_contain_text("Conflicts with", timeout=60_000)
    yield "worktrees"
    press(desk, "New worktree")
    press(card(desk, "bills"), "Discard")
    yield "worktrees-asking"
    press(card(desk, "bills"), "Cancel")
    press(desk, "Cancel")
    press(card(desk, "robust"), "robust")
    expect(desk.locator(".wb-diff-added").first).to_be_visible()
    yield "worktree"
    press(desk, "Back to all")
    press(desk, "Conflicts")
    desk.locator(".wb-matrix-cell").first.click()
    yield "conflicts"
    press(desk, "Closed")
    yield "worktrees-closed"


def other_states(desk: Locator) -> Iterator[str]:
    view(desk, "Agents")
    press(desk, "Agents")
    yield "agents"
    desk.get_by_role("button", name="ada", exact=True).click()
    expect(desk.locator(".wb-history li").first).to_be_visible()
    desk.get_by_label("Select grace").check()
    yield "agent"
    press(desk, "Processes")
    expect(desk.locator(".wb-processes .wb-col-memory").last).to_contain_text("B", timeout=60_000)
    yield "processes"
    desk.locator(".wb-processes .wb-opener").first.click()
    expect(desk.get_by_role("region", name=re.compile("walt"))).to_be_visible()
    yield "process"
    view(desk, "Projects")
    yield "projects"
    view(desk, "Admin")
    expect(desk.get_by_text("queue length")).to_be_visible()
    yield "admin"
    press(desk, "New rule")
    desk.locator(".wb-instructions summary").first.click()
    yield "admin-asking"


def check(desk: Locator, theme: str, states: Iterator[str]) -> None:
    """Look at each state at each width."""
    for name in states:
        for width in WIDTHS:
            resize(desk, width)
            shot(desk, f"states/{name}-{width}-{theme}")
            seen = f"{name} at {width}"
            assert desk.page.evaluate(CONTRAST) == [], seen
            assert desk.page.evaluate(REACH) == [], seen
            assert desk.evaluate("e => e.scrollWidth <= e.clientWidth + 1"), seen


@pytest.mark.timeout(600)
@pytest.mark.parametrize("theme", ["Light", "Dark"])
def test_every_state_is_readable_and_reachable_at_every_width(
    open_desk: OpenDesk, project: Project, page: Page, theme: str
) -> None:
    repository(project.path)
    fill(project)
    desk = open_desk("host.stop()")
    command(page, "apputils:change-theme", theme=f"JupyterLab {theme}")
    try:
        check(desk, theme.lower(), empty_states(desk))
        work(project)
        for states in (inbox_states, task_states, worktree_states, other_states):
            check(desk, theme.lower(), states(desk))
        project.operate("terminate_agent", agent_id="walt")
        view(desk, "Inbox")
        run(page, 2)
        expect(desk.get_by_text("NOT_STARTED")).to_be_visible()
        check(desk, theme.lower(), iter(["stopped"]))
    finally:
        command(page, "apputils:change-theme", theme="JupyterLab Light")


@pytest.mark.parametrize("tab", TABS)
def test_tab_leads_through_all_controls(open_desk: OpenDesk, project: Project, page: Page, tab: str) -> None:
    repository(project.path)
    desk = open_desk()
    busy(project)
    worktree(project, "bills", {"model.py": changed(3, 33)})
    view(desk, tab)
    if tab == "Worktrees":
        expect(card(desk, "bills")).to_contain_text("1 ahead", timeout=60_000)
    if tab == "Admin":
        expect(desk.get_by_text("queue length")).to_be_visible()
    desk.get_by_role("tab", name=re.compile(f"^{tab}")).focus()
    names = desk.evaluate(NUMBER)
    reached = set()
    while (number := desk.evaluate(FOCUSED)) is not None:
        reached.add(number)
        page.keyboard.press("Tab")
    missed = [name for number, name in enumerate(names) if str(number) not in reached]
    assert missed == []
