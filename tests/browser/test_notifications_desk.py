"""What the person is told while a panel is open, in a real JupyterLab and by the browser."""

from __future__ import annotations

import re

from playwright.sync_api import BrowserContext, Locator, Page, expect

from tests.browser.desk_lab import Lab, OpenDesk, Project, command, open_notebook, restart_kernel, run, shot, view
from tests.given import wait_until

DESKTOP = """(() => {
  const Real = Notification;
  window.shown = [];
  window.Notification = class extends Real {
    constructor(title, options) {
      super(title, options);
      window.shown.push(options.body);
    }
  };
  document.hasFocus = () => false;
})();"""
"""Before a page is loaded: what is shown on the desktop is listed, and another window is in front."""
HOSTILE = "<img src=x onerror=\"alert('run')\"> ![a](http://127.0.0.1:9/b) \u202e[c](javascript:alert(1))"


def toasts(page: Page) -> Locator:
    """The notifications of JupyterLab that are on screen."""
    return page.locator(".Toastify__toast")


def digest_after(project: Project, seconds: float) -> None:
    """Tell the person of what happens so long after its beginning."""
    (project.path / ".aiswarm" / "settings.toml").write_text(f"notify_digest_seconds = {seconds}\n")


def test_jupyterlab_tells_once_of_all_that_waits_and_not_again_after_a_reload_or_a_restart(
    lab: Lab, open_desk: OpenDesk, project: Project, page: Page, second_page: Page
) -> None:
    digest_after(project, 2)
    open_desk("desk")
    run(page, 2)
    expect(page.locator(".wb-desk[data-link='live']")).to_have_count(2)
    command(page, "docmanager:save")
    open_notebook(second_page, lab, project.path / "desk.ipynb")
    expect(second_page.locator(".wb-desk[data-link='live']")).to_have_count(2)
    for name in ("ada", "bob", "eve"):
        project.ask("register", name=name, persona_id="planner")

    def number() -> int:
        return toasts(page).count() + toasts(second_page).count()

    wait_until(lambda: number() > 0, "JupyterLab shows a notification", 30)
    page_with_it = page if toasts(page).count() else second_page
    expect(toasts(page_with_it)).to_contain_text("Workbench: 3 questions wait for you.")
    shot(toasts(page_with_it), "notification")
    assert project.operate("take_notifications")["sentence"] == ""

    command(page, "docmanager:save")
    page.reload()
    expect(page.locator(".wb-desk[data-link='live']")).to_have_count(2)
    restart_kernel(page)
    expect(page.locator(".wb-desk").first).to_contain_text("run the panel's cell again", timeout=60_000)
    second_page.close()
    run(page, 0)
    run(page, 1)
    expect(page.locator(".wb-desk[data-link='live']")).to_have_count(1, timeout=60_000)
    project.call("register", name="zoe", persona_id="planner")
    expect(toasts(page)).to_have_text(re.compile("Question 4 waits for you: registration of zoe"), timeout=60_000)


def test_a_notification_has_what_an_agent_wrote_as_text_and_leads_to_the_panel(
    open_desk: OpenDesk, project: Project, page: Page
) -> None:
    digest_after(project, 0)
    desk = open_desk(*["1"] * 40)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    project.call("register", name="ada", persona_id="planner")
    expect(toasts(page)).to_have_count(1)
    task = project.operate("create_task", title=HOSTILE, persona_id="planner", max_retries=0)
    project.operate("approve", approval_id=1, choices={"agent_id": "ada"})
    token = project.operate("issue_token", agent_id="ada")["token"]
    project.call("claim_task", token, task_id=task["id"])
    project.call("fail_task", token, task_id=task["id"], error_message="It cannot be done.")
    failed = toasts(page).filter(has_text="has failed for good")
    expect(failed).to_contain_text('<img src=x onerror="alert(')
    expect(failed.locator("img, a")).to_have_count(0)
    assert not [url for url in asked if ":9/" in url]
    run(page, 41)
    command(page, "notebook:run-cell-and-select-next")  # the end of the notebook is in view then
    expect(desk).not_to_be_in_viewport()
    failed.get_by_role("button", name="Show the panel").click()
    expect(desk).to_be_in_viewport()


def test_the_desktop_shows_it_after_the_persons_choice_which_is_kept(
    open_desk: OpenDesk, project: Project, page: Page, context: BrowserContext
) -> None:
    digest_after(project, 0)
    page.add_init_script(DESKTOP)
    desk = open_desk()
    choice = desk.get_by_label("Notify me on my desktop")
    choice.click()
    expect(choice).not_to_be_checked()
    expect(desk.get_by_role("status").filter(has_text="does not allow notifications")).to_be_visible()
    shot(desk, "desktop-blocked")
    context.grant_permissions(["notifications"])
    try:
        choice.check()
        command(page, "docmanager:save")
        page.reload()
        expect(page.locator(".wb-desk[data-link='live']")).to_have_count(1)
        view(desk, "Inbox")
        expect(choice).to_be_checked()
        project.call("register", name="ada", persona_id="planner")
        page.wait_for_function("() => window.shown.length")
        assert page.evaluate("window.shown") == ["Question 1 waits for you: registration of ada."]
        shot(desk, "desktop-chosen")
    finally:
        context.clear_permissions()
