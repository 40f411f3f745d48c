"""Worktrees and processes in the panel: real git, real gates, real agents."""

from __future__ import annotations

import getpass
import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.desk_lab import OpenDesk, Project, card, expect_fitting, resize, shot, view
from tests.browser.scenes import changed, git, repository, worktree
from workbench.trust.withheld import trust, withheld

STATS = '"""Robust statistics."""\n\nfrom statistics import median\n\n\ndef middle(values: list[float]) -> float:\n'
STATS += "    return median(values) or 0.5  # the mean is not robust\n"
TALKS = "for n in 1 2 3 4 5; do echo counted $n; done; while [ ! -e go ]; do sleep 0.1; done; echo counted the last one"


@pytest.fixture
def desk(open_bare: OpenDesk, project: Project) -> Locator:
    """The desk of a repository."""
    repository(project.path)
    return open_bare()


def page_of(desk: Locator, name: str) -> Locator:
    return desk.get_by_role("region", name=name, exact=True)


def head(path: Path) -> str:
    return (path / ".git" / "refs" / "heads" / "main").read_text().strip()


def settings(project: Project, text: str) -> None:
    (project.path / ".aiswarm" / "settings.toml").write_text(text)
    trust(project.path, withheld(project.path))


def row_of(desk: Locator, agent_id: str) -> Locator:
    return desk.locator(".wb-table-row").filter(has=desk.page.get_by_role("button", name=agent_id, exact=True))


def open_agent(desk: Locator, agent_id: str) -> Locator:
    view(desk, "Agents")
    desk.get_by_role("button", name=re.compile("^Processes")).click()
    desk.get_by_role("button", name=agent_id, exact=True).click()
    return page_of(desk, agent_id)


def process(project: Project, agent_id: str) -> dict[str, Any]:
    return project.operate("get_agent_process_info", agent_id=agent_id)


def test_without_worktrees_the_tab_explains_them_and_creates_one(desk: Locator, project: Project) -> None:
    view(desk, "Worktrees")
    expect(desk.get_by_text("A worktree is a directory with its own branch")).to_be_visible()
    shot(desk, "worktrees-empty")
    desk.get_by_role("button", name="New worktree…").last.click()
    desk.get_by_label("Name", exact=True).fill("no/such name")
    desk.get_by_label("Name", exact=True).press("Enter")
    expect(desk.get_by_role("form", name="New worktree").locator(".wb-error")).to_be_visible()
    shot(desk, "worktrees-error")
    desk.get_by_label("Name", exact=True).fill("robust")
    desk.get_by_label("Branch (optional)").fill("feature/robust")
    desk.get_by_role("button", name="Create").click()
    expect(card(desk, "robust")).to_contain_text("feature/robust → main")
    expect(desk.locator(".wb-note").get_by_text("Created robust: branch feature/robust")).to_be_visible()
    assert (project.path / ".aiswarm" / "worktrees" / "robust" / "model.py").exists()


def test_without_a_repository_the_tab_says_what_to_do(open_bare: OpenDesk, project: Project) -> None:
    desk = open_bare()
    view(desk, "Worktrees")
    expect(desk.get_by_text("git init")).to_be_visible()
    expect(desk.get_by_role("button", name="New worktree…")).to_have_count(0)


def test_two_clicks_review_and_integrate_a_worktree(desk: Locator, project: Project) -> None:
    worktree(project, "robust", {"src/stats.py": STATS}, {"model.py": changed(3, 33)})
    project.operate("integrate_worktree", worktree_name="robust")
    view(desk, "Worktrees")
    expect(card(desk, "robust")).to_contain_text("Awaits approval")
    expect(card(desk, "robust")).to_contain_text("2 ahead · 2 files +8 −1")
    shot(desk, "worktrees-awaiting")
    card(desk, "robust").get_by_role("button", name="Review and approve").click()
    page = page_of(desk, "robust")
    expect(page.locator(".wb-diff-added .hljs-keyword").get_by_text("def", exact=True)).to_be_visible()
    expect(page.get_by_text("line_3 = 33")).to_be_visible()
    shot(desk, "worktrees-review")
    page.get_by_role("button", name="Approve and integrate").click()
    expect(page.get_by_text("Integrated into main.")).to_be_visible()
    assert (project.path / "src" / "stats.py").read_text() == STATS
    page.get_by_role("button", name="Back to all worktrees").click()
    expect(desk.get_by_text("A worktree is a directory with its own branch")).to_be_visible()


def test_an_integration_requested_on_the_card_is_answered_in_the_inbox(desk: Locator, project: Project) -> None:
    view(desk, "Worktrees")
    worktree(project, "robust", {"stats.py": "mean = 1\nmedian = 2\n", "model.py": changed(3, 33)})
    card(desk, "robust").get_by_role("button", name="Request integration").click()
    expect(card(desk, "robust")).to_contain_text("Awaits approval")
    view(desk, "Inbox")
    mine = card(desk, "robust")
    commit = project.operate("list_approvals")["approvals"][0]["payload"]["source_commit"]
    expect(mine).to_contain_text(" → main · 1 commit · 2 files +3 −1")
    expect(mine).to_contain_text("Checks: no conflicts with main; protected parts are unchanged.")
    mine.get_by_role("button", name=re.compile("^Details")).click()
    expect(mine.get_by_text(commit, exact=True)).to_be_visible()
    expect(mine).to_contain_text("Step 1 of robust")
    expect(mine).to_contain_text("stats.py")
    shot(desk, "integration-details")
    mine.get_by_role("button", name="Approve and integrate").click()
    expect(mine).to_contain_text("Integrated into main.")
    assert (project.path / "stats.py").exists()


def test_failed_gates_are_shown_with_their_output_and_overruled_in_a_second_step(
    open_bare: OpenDesk, project: Project
) -> None:
    repository(project.path)
    settings(project, "integration_gates = ['echo all is well', 'echo row 17 is wrong; exit 3']\n")
    desk = open_bare()
    before = head(project.path)
    worktree(project, "robust", {"src/stats.py": STATS})
    project.operate("integrate_worktree", worktree_name="robust")
    mine = card(desk, "robust")
    expect(mine.get_by_text("failed with 3")).to_be_visible(timeout=30_000)
    expect(mine.get_by_text("passed in")).to_be_visible()
    mine.get_by_text("failed with 3").click()
    expect(mine.locator("pre").get_by_text("row 17 is wrong")).to_be_visible()
    mine.get_by_role("button", name="Approve despite failed gates…").click()
    expect(mine.get_by_text("1 gate did not pass")).to_be_visible()
    shot(desk, "gates")
    assert head(project.path) == before
    mine.get_by_role("button", name="Integrate despite failed gates").click()
    expect(mine).to_contain_text("Integrated into main.")
    assert (project.path / "src" / "stats.py").exists()


def test_a_discard_lists_its_losses_first_and_keeps_them_in_a_bundle(desk: Locator, project: Project) -> None:
    path = worktree(project, "robust", {"src/stats.py": STATS}, left={"notes.txt": "not committed\n"})
    view(desk, "Worktrees")
    expect(card(desk, "robust")).to_contain_text("1 uncommitted", timeout=20_000)
    card(desk, "robust").get_by_role("button", name="Discard… robust").click()
    asked = card(desk, "robust").locator(".wb-confirm")
    expect(asked).to_contain_text("1 uncommitted file: notes.txt. It is first saved to a bundle")
    expect(asked).to_contain_text("The branch wb/robust/main is kept, with its 1 commit that main does not have.")
    asked.get_by_label("Delete the branch too").check()
    expect(asked).to_contain_text("The branch wb/robust/main is deleted, with 1 commit that main does not have.")
    shot(desk, "discard")
    asked.get_by_role("button", name="Discard robust").click()
    expect(card(desk, "robust")).to_be_hidden()
    expect(desk.locator(".wb-note").get_by_text("robust was discarded. Its branch was deleted too.")).to_be_visible()
    (bundle,) = (project.path / ".aiswarm" / "trash").glob("*.bundle")
    expect(desk.locator(".wb-note").get_by_text(bundle.name)).to_be_visible()
    git("bundle", "verify", str(bundle), cwd=project.path)
    assert not path.exists()


def test_a_discard_that_is_refused_says_what_would_be_lost_and_is_insisted_on(desk: Locator, project: Project) -> None:
    path = worktree(project, "robust", {"src/stats.py": STATS})
    view(desk, "Worktrees")
    expect(card(desk, "robust")).to_contain_text("1 ahead", timeout=20_000)
    git("switch", "-q", "-c", "aside", cwd=path)
    git("commit", "-q", "--allow-empty", "-m", "Only on a branch that nobody else sees", cwd=path)
    git("switch", "-q", "wb/robust/main", cwd=path)
    card(desk, "robust").get_by_role("button", name="Discard… robust").click()
    card(desk, "robust").get_by_role("button", name="Discard robust", exact=True).click()
    expect(card(desk, "robust").get_by_text("COMMITS_ONLY_HERE")).to_be_visible(timeout=20_000)
    expect(card(desk, "robust")).to_contain_text("aside in robust would be on no branch of yours")
    assert path.exists()
    shot(desk, "insist")
    card(desk, "robust").get_by_role("button", name="Discard robust anyway").click()
    expect(card(desk, "robust")).to_be_hidden(timeout=20_000)
    (bundle,) = (project.path / ".aiswarm" / "trash").glob("*.bundle")
    assert "heads/aside" in git("bundle", "list-heads", str(bundle), cwd=project.path)
    assert not path.exists()


def test_conflicts_are_a_table_with_the_files_of_each_pair(desk: Locator, project: Project, page: Page) -> None:
    view(desk, "Worktrees")
    worktree(project, "calm", {"calm.py": STATS})
    expect(card(desk, "calm")).to_contain_text("1 ahead", timeout=20_000)
    desk.get_by_role("button", name=re.compile("^Conflicts")).click()
    expect(desk.get_by_text("No conflicts are predicted")).to_be_visible()
    worktree(project, "bills", {"model.py": changed(3, 33), "src/stats.py": STATS})
    worktree(project, "robust", {"model.py": changed(3, 44), "src/stats.py": STATS.replace("0.5", "0.7")})
    expect(desk.get_by_text("1 pair would conflict")).to_be_visible(timeout=20_000)
    cell = desk.get_by_role("row", name=re.compile("^bills")).get_by_role("button", name="bills and robust: 2 files")
    cell.focus()
    expect(desk.locator(".wb-matrix-hint")).to_have_text("bills and robust: model.py, src/stats.py")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowLeft")
    other = desk.get_by_role("row", name=re.compile("^robust")).get_by_role("button")
    cell.press("Enter")
    expect(desk.locator(".wb-pair").get_by_text("src/stats.py")).to_be_visible()
    expect(other).to_have_attribute("aria-expanded", "true")
    shot(desk, "matrix")
    desk.get_by_role("button", name="Show robust").click()
    expect(page_of(desk, "robust")).to_contain_text("Conflicts with bills in model.py, src/stats.py")


def test_conflicts_that_come_later_are_shown_and_resolved_by_steps(desk: Locator, project: Project) -> None:
    place = worktree(project, "robust", {"model.py": changed(3, 33)})
    project.operate("integrate_worktree", worktree_name="robust")
    mine = card(desk, "robust")
    expect(mine).to_contain_text("no conflicts with main")
    worktree(project, "bills", {"model.py": changed(3, 333)})
    expect(mine).to_contain_text("Approving this will make bills conflict with main in model.py.")
    task = project.operate("create_task", title="Tests", persona_id="implementer", target_worktree="robust")
    expect(mine).to_contain_text(f"robust has 1 open task ({task['id']}).")
    shot(desk, "integration-cautions")
    mine.get_by_role("button", name="Approve and integrate…").click()
    expect(mine.get_by_role("button", name="Integrate despite open tasks")).to_be_visible()
    mine.get_by_role("button", name="Cancel").click()
    (project.path / "model.py").write_text(changed(3, 0))
    git("commit", "-q", "-a", "-m", "Mine", cwd=project.path)
    expect(mine).to_contain_text("Conflicts with main in model.py. Integrating would be refused;")
    view(desk, "Worktrees")
    card(desk, "robust").get_by_role("button", name="robust", exact=True).click()
    page = page_of(desk, "robust")
    expect(page.get_by_text("Conflicts with main in model.py. Integrating")).to_be_visible()
    page.get_by_role("button", name="Resolve conflicts… robust").click()
    steps = page.get_by_role("group", name="Resolve conflicts")
    expect(steps).to_contain_text("main is being merged into robust. These files are in conflict:")
    shot(desk, "worktrees-resolving")
    steps.get_by_role("button", name="Commit the merge").click()
    expect(page.locator(".wb-error").first).to_contain_text("CONFLICTS_LEFT")
    (place / "model.py").write_text(changed(3, 34))
    steps.get_by_role("button", name="Check again").click()
    expect(steps).to_contain_text("No file is in conflict any more.")
    steps.get_by_role("button", name="Commit the merge").click()
    expect(desk.locator(".wb-note")).to_contain_text("main is merged into robust. Request its integration again.")
    page.get_by_role("button", name="Request again").click()
    expect(page).to_contain_text("no conflicts with main")
    page.get_by_role("button", name="Approve and integrate").click()
    page.get_by_role("button", name="Integrate despite open tasks").click()
    expect(page.get_by_text("Integrated into main.")).to_be_visible()
    assert (project.path / "model.py").read_text() == changed(3, 34)


def test_closed_worktrees_and_decided_approvals_stay_in_view(desk: Locator, project: Project) -> None:
    for name in ("robust", "bills"):
        worktree(project, name, {f"{name}.py": "x = 1\n"})
    request = project.operate("integrate_worktree", worktree_name="robust")
    project.operate("approve", approval_id=request["approval_id"])
    project.operate("get_approval", approval_id=request["approval_id"], wait_seconds=20)
    project.operate("discard_worktree", worktree_name="bills", reason="Superseded")
    desk.get_by_text("Decided", exact=True).click()
    expect(desk.locator(".wb-decided").get_by_role("listitem")).to_contain_text(f"Approved by {getpass.getuser()}")
    shot(desk, "inbox-decided")
    view(desk, "Worktrees")
    desk.get_by_role("button", name="Closed 2").click()
    rows = desk.get_by_role("table", name="Closed worktrees").get_by_role("row")
    expect(rows.nth(1)).to_contain_text("billsdiscardedwb/bills/main")
    expect(rows.nth(1)).to_contain_text("Superseded")
    expect(rows.nth(2)).to_contain_text(f"merged into main as {head(project.path)[:7]}")
    shot(desk, "worktrees-closed")


def test_changes_are_read_with_the_keyboard(desk: Locator, project: Project, page: Page) -> None:
    files = {f"part_{n}.py": STATS for n in range(4)} | {"picture.png": "\0binary"}
    worktree(project, "robust", files, left={"notes.md": "# Later\n"})
    view(desk, "Worktrees")
    expect(card(desk, "robust")).to_contain_text("1 ahead", timeout=20_000)
    card(desk, "robust").get_by_role("button", name="robust", exact=True).press("Enter")
    mine = page_of(desk, "robust")
    body = mine.get_by_role("group", name=re.compile("^Changes"))
    expect(mine.get_by_text("A binary file")).to_be_visible()
    body.focus()
    page.keyboard.press("j")
    expect(mine.get_by_role("button", name=re.compile("^part_0.py"), expanded=True)).to_be_focused()
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    second = mine.get_by_role("button", name=re.compile(r"^part_1.py, added"))
    expect(second).to_be_focused()
    page.keyboard.press("Enter")
    expect(second).to_have_attribute("aria-expanded", "false")
    mine.get_by_role("button", name=re.compile("^Uncommitted")).click()
    expect(mine.get_by_text("# Later")).to_be_visible()
    page.keyboard.press("Escape")
    expect(card(desk, "robust").get_by_role("button", name="robust", exact=True)).to_be_focused()


def test_newer_commits_do_not_replace_the_shown_diff(desk: Locator, project: Project) -> None:
    path = worktree(project, "robust", {"src/stats.py": STATS})
    project.operate("integrate_worktree", worktree_name="robust")
    view(desk, "Worktrees")
    card(desk, "robust").get_by_role("button", name="Review and approve").click()
    mine = page_of(desk, "robust")
    expect(mine.get_by_text("the mean is not robust")).to_be_visible()
    (path / "later.py").write_text("later = 1\n")
    git("add", ".", cwd=path)
    git("commit", "-q", "-m", "Later", cwd=path)
    expect(mine.get_by_text("There are newer changes than these.")).to_be_visible(timeout=20_000)
    mine.get_by_role("button", name="Show them").click()
    expect(mine.get_by_text("later = 1")).to_be_visible()
    expect(mine.get_by_text("approving would be refused. Request the integration again")).to_be_visible()
    shot(desk, "worktrees-moved")


def test_the_log_of_a_process_is_followed_live_and_it_is_terminated(desk: Locator, project: Project) -> None:
    view(desk, "Agents")
    desk.get_by_role("button", name=re.compile("^Processes")).click()
    expect(desk.get_by_text("Workbench has not started any agent yet.")).to_be_visible()
    shot(desk, "processes-empty")
    spawned = project.operate("spawn_agent", persona_id="implementer", new_worktree=True, name="ada")
    agent_id, place = spawned["agent_id"], spawned["worktree"]
    project.operate("create_task", title="Count", persona_id="implementer", target_worktree=place, run=TALKS)
    expect(row_of(desk, agent_id)).to_contain_text("Running")
    expect(row_of(desk, agent_id)).to_contain_text("MB", timeout=20_000)
    mine = open_agent(desk, agent_id)
    expect(mine.get_by_role("log")).to_contain_text("counted 5", timeout=30_000)
    expect(mine.get_by_role("log")).not_to_contain_text("the last one")
    expect(mine).to_contain_text("Count #1")
    shot(desk, "process")
    (project.path / ".aiswarm" / "worktrees" / place / "go").touch()
    expect(mine.get_by_role("log")).to_contain_text("counted the last one")
    mine.get_by_role("button", name="Terminate…").click()
    mine.get_by_label("Reason").fill("It has counted enough.")
    uptime = mine.get_by_text("Running · ")
    expect(uptime).not_to_have_text(uptime.inner_text())
    expect(mine.get_by_label("Reason")).to_have_value("It has counted enough.")  # the pane was drawn again
    shot(desk, "terminate")
    mine.get_by_role("button", name=f"Terminate {agent_id}").click()
    expect(mine).to_contain_text("It has counted enough.")
    expect(row_of(desk, agent_id)).to_contain_text("Ended")
    assert process(project, agent_id)["state"] == "ended"

    mine.get_by_role("button", name="Restart…").click()
    mine.get_by_role("button", name=f"Restart {agent_id}").click()
    expect(row_of(desk, agent_id)).to_contain_text("Running", timeout=20_000)
    project.operate("terminate_agent", agent_id=agent_id, reason="The test is over.")
    expect(row_of(desk, agent_id)).to_contain_text("Ended")


def test_a_narrow_panel_shows_it_all_without_scrolling_sideways(desk: Locator, project: Project, page: Page) -> None:
    worktree(project, "bills", {"model.py": changed(3, 33)})
    worktree(project, "islands")
    worktree(project, "robust", {"src/stats.py": STATS}, {"model.py": changed(3, 44)})
    project.operate("integrate_worktree", worktree_name="robust")
    resize(desk, 380)
    view(desk, "Worktrees")
    expect(card(desk, "robust")).to_be_visible()
    shot(desk, "worktrees-narrow")
    expect_fitting(desk)
    card(desk, "robust").get_by_role("button", name="Review and approve").click()
    expect(page_of(desk, "robust").locator(".wb-diff-added").first).to_be_visible()
    shot(desk, "worktree-narrow")
    expect_fitting(desk)
