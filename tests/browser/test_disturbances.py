"""The desk while requests fail, answers are late, and approved merges take their time."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.browser.bare_desk import BareDesk
from tests.browser.desk_lab import card, view, wait_until
from tests.browser.scenes import admitted, git, worktree
from workbench.services.integration import queue

GATE = "while [ ! -e {go} ]; do sleep 0.05; done; echo checked; exit {code}"
SOURCE = "def middle(values):\n    return sorted(values)[len(values) // 2]\n"
LEFT_THE_SCREEN = """element => new Promise((done) => {
  new IntersectionObserver(([entry]) => entry.isIntersecting || done()).observe(element);
})"""
TIMERS_BY_HAND = """(() => {
  const start = window.setTimeout;
  const held = new Map([10_000, 4_000].map((ms) => [ms, []]));
  window.setTimeout = (run, ms, ...more) => (held.has(ms) ? held.get(ms).push(run) : start(run, ms, ...more));
  window.elapse = (ms) => held.get(ms).splice(0).forEach((run) => run());
})();"""
"""Before a page is loaded: its timers of ten and of four seconds end when the test says so."""
HOLD_FRAMES = """() => {
  const { take, requestAnimationFrame: draw } = window;
  const held = [];
  window.taken = 0;
  window.take = (...message) => ((window.taken += 1), take(...message));
  window.requestAnimationFrame = (callback) => held.push(callback);
  window.releaseFrames = () => {
    window.requestAnimationFrame = draw;
    for (const callback of held) draw(callback);
  };
}"""
Open = Callable[..., BareDesk]


def test_the_details_and_the_log_of_a_task_are_read_again_after_a_failed_request(desk: BareDesk) -> None:
    token = admitted(desk.project, "ada", "tester")
    task_id = desk.host.call("create_task", title="Count", persona_id="tester", description="All of them.")["id"]
    desk.project.call("claim_task", token, task_id=task_id)
    desk.project.call("report_task_progress", token, task_id=task_id, progress_note="first")
    view(desk.element, "Tasks")
    desk.fail("get_task")
    desk.element.get_by_role("row").filter(has_text="Count").click()
    details = desk.element.get_by_role("region", name="Count")
    busy = details.get_by_text("STORE_BUSY").filter(visible=True)
    expect(busy).to_be_visible()
    desk.restore()
    expect(details).to_contain_text("All of them.", timeout=40_000)
    expect(busy).to_be_hidden()
    log = desk.element.get_by_role("log")
    expect(log).to_contain_text("first")
    desk.fail("get_task_logs")
    desk.project.call("report_task_progress", token, task_id=task_id, progress_note="second")
    expect(busy).to_be_visible()
    desk.restore()
    expect(log).to_contain_text("second", timeout=40_000)
    expect(busy).to_be_hidden()


def test_the_figures_of_the_server_go_on_after_failed_requests(desk: BareDesk) -> None:
    desk.fail("get_performance")
    view(desk.element, "Admin")
    expect(desk.element.get_by_text("STORE_BUSY")).to_be_visible()
    desk.restore()
    expect(desk.element.get_by_text("queue length")).to_be_visible(timeout=40_000)
    expect(desk.element.get_by_text("STORE_BUSY")).to_be_hidden()


def test_the_log_of_a_process_goes_on_after_failed_requests(desk: BareDesk) -> None:
    desk.host.call(
        "create_task", title="Talk", persona_id="implementer", run="for n in 1 2 3; do echo line $n; done; sleep 60"
    )
    agent_id = desk.host.call("spawn_agent", persona_id="implementer", new_worktree=False, name="ada")["agent_id"]
    view(desk.element, "Agents")
    desk.element.get_by_role("button", name=re.compile("^Processes")).click()
    desk.fail("get_agent_process_info")
    desk.element.get_by_role("button", name=agent_id, exact=True).click()
    details = desk.element.get_by_role("region", name=agent_id)
    expect(details.get_by_text("STORE_BUSY")).to_be_visible()
    desk.restore()
    expect(details.get_by_role("log")).to_contain_text("line 3", timeout=40_000)
    expect(details.get_by_text("STORE_BUSY")).to_be_hidden()
    desk.host.call("terminate_agent", agent_id=agent_id, reason="The test is over.")


def test_a_diff_is_read_again_after_a_failure_and_is_plain_without_a_highlighter(desk: BareDesk) -> None:
    worktree(desk.project, "robust", {"stats.py": SOURCE})
    view(desk.element, "Worktrees")
    opener = card(desk.element, "robust").get_by_role("button", name="robust", exact=True)
    desk.fail("get_worktree_diff")
    desk.fail("highlight")
    opener.click()
    expect(desk.element.get_by_text("STORE_BUSY")).to_be_visible()
    desk.restore("get_worktree_diff")
    expect(desk.element.get_by_text("return sorted(values)")).to_be_visible(timeout=40_000)
    expect(desk.element.locator(".wb-error:visible")).to_have_count(0)
    assert desk.element.locator("[class^=hljs]").count() == 0
    desk.restore()
    desk.element.get_by_role("button", name="Back to all worktrees").click()
    opener.click()
    expect(desk.element.locator(".hljs-keyword").get_by_text("return", exact=True)).to_be_visible()


def test_a_diff_is_plain_at_once_and_coloured_when_the_highlighter_has_come(desk: BareDesk) -> None:
    worktree(desk.project, "robust", {"stats.py": SOURCE, "notes.txt": "plain\n", "page.html": "<b>bold</b>\n"})
    worktree(desk.project, "other", {"sum.py": "def total(): pass\n"})
    desk.hold("asset")
    view(desk.element, "Worktrees")
    card(desk.element, "robust").get_by_role("button", name="robust", exact=True).click()
    lines = desk.element.locator(".wb-diff-added")
    expect(lines.get_by_text("return sorted(values)")).to_be_visible()
    assert desk.element.locator("[class^=hljs]").count() == 0
    before = lines.all_inner_texts()
    desk.release()
    expect(lines.locator(".hljs-keyword").get_by_text("return", exact=True)).to_be_visible()
    assert lines.all_inner_texts() == before
    desk.element.get_by_role("button", name="Back to all worktrees").click()
    card(desk.element, "other").get_by_role("button", name="other", exact=True).click()
    expect(lines.locator(".hljs-keyword").get_by_text("def", exact=True)).to_be_visible()
    assert [message["kind"] for message in desk.asked].count("asset") == 1


def test_approved_integrations_are_followed_through_their_queue_and_gates_to_the_end(
    open_bare_desk: Open, tmp_path: Path, on_disk: Path
) -> None:
    go = on_disk / "go"
    desk = open_bare_desk(integration_gates=[GATE.format(go=go, code=0)])
    for name in ("bills", "robust"):
        worktree(desk.project, name, {f"{name}.py": SOURCE})
        desk.host.call("integrate_worktree", worktree_name=name)
    view(desk.element, "Inbox")
    first, second = (card(desk.element, name) for name in ("bills", "robust"))
    first.get_by_role("button", name="Approve and integrate").click()
    expect(first).to_contain_text("Approved. Running gates; then it is merged into main.")
    expect(first.get_by_role("button", name=re.compile("^Approve"))).to_be_hidden()
    expect(first.get_by_text("running", exact=True)).to_be_visible()
    second.get_by_role("button", name="Approve and integrate").click()
    expect(second).to_contain_text("Approved. Queued, 2nd for main.")
    view(desk.element, "Worktrees")
    expect(first).to_contain_text("Integrating")
    expect(second).to_contain_text("Queued, 2nd")
    view(desk.element, "Inbox")
    go.touch()
    for mine in (first, second):
        expect(mine).to_contain_text("Integrated into main.", timeout=30_000)
    assert (tmp_path / "project" / "bills.py").exists()


def test_an_integration_whose_gates_fail_is_sent_back_with_its_reason(
    open_bare_desk: Open, tmp_path: Path, on_disk: Path
) -> None:
    go = on_disk / "go"
    desk = open_bare_desk(integration_gates=[GATE.format(go=go, code=3)])
    worktree(desk.project, "robust", {"stats.py": SOURCE})
    desk.host.call("integrate_worktree", worktree_name="robust")
    view(desk.element, "Worktrees")
    card(desk.element, "robust").get_by_role("button", name="Review and approve").click()
    page = desk.element.get_by_role("region", name="robust")
    page.get_by_role("button", name="Approve and integrate").click()
    expect(page).to_contain_text("Approved. Running gates; then it is merged into main.")
    go.touch()
    expect(page).to_contain_text("It was approved and sent back", timeout=30_000)
    expect(page.get_by_role("button", name="Approve despite failed gates…")).to_be_visible()
    assert not (tmp_path / "project" / "stats.py").exists()


def test_the_reason_of_a_refusal_stays_until_the_question_is_asked_again(
    open_bare_desk: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go, ask = threading.Event(), queue.put_question

    async def ask_later(*arguments: Any) -> Any:
        await asyncio.to_thread(go.wait)
        return await ask(*arguments)

    desk = open_bare_desk()
    worktree(desk.project, "robust", {"model.py": SOURCE})
    (tmp_path / "project" / "model.py").write_text("other = 1\n")
    git("commit", "-q", "-a", "-m", "Change the same lines", cwd=tmp_path / "project")
    desk.host.call("integrate_worktree", worktree_name="robust")
    view(desk.element, "Inbox")
    mine = card(desk.element, "robust")
    monkeypatch.setattr(queue, "put_question", ask_later)
    mine.get_by_role("button", name="Approve and integrate").click()
    expect(mine.get_by_role("button", name="Dismiss")).to_be_visible()
    expect(mine).to_contain_text("MERGE_CONFLICT")
    go.set()
    expect(mine.filter(has_text="It was approved and sent back")).to_be_visible()
    expect(mine.get_by_role("button", name="Dismiss")).to_be_hidden()


@pytest.fixture
def page_with_clock(context: BrowserContext) -> Iterator[Page]:
    """A page in which time can be moved; the clock of a context is that of all its pages."""
    assert context.browser is not None
    own = context.browser.new_context()
    page = own.new_page()
    page.clock.install()
    yield page
    own.close()


def test_figures_of_processes_are_polled_only_while_they_are_visible(
    open_bare_desk: Open, page_with_clock: Page
) -> None:
    page = page_with_clock
    desk = open_bare_desk(on=page)
    agent_id = desk.host.call("spawn_agent", persona_id="implementer", new_worktree=True)["agent_id"]
    view(desk.element, "Agents")
    desk.element.get_by_role("button", name=re.compile("^Processes")).click()
    table = desk.element.locator(".wb-processes")
    expect(table.locator(".wb-col-memory").last).to_contain_text("MB")
    view(desk.element, "Inbox")
    table.evaluate(LEFT_THE_SCREEN)
    before = polls(desk)
    page.clock.fast_forward(60_000)
    assert polls(desk) == before
    view(desk.element, "Agents")
    expect(table).to_be_visible()
    wait_until(lambda: page.evaluate("true") and polls(desk) > before, "they are polled again")
    desk.host.call("terminate_agent", agent_id=agent_id, reason="The test is over.")


def test_an_offer_to_undo_stays_under_the_pointer_or_the_focus(open_bare_desk: Open, page: Page) -> None:
    page.add_init_script(TIMERS_BY_HAND)
    desk = open_bare_desk()
    desk.host.call("create_task", title="Count", persona_id="tester")
    view(desk.element, "Tasks")
    desk.element.get_by_role("row").filter(has_text="Count").click()
    toast = desk.element.get_by_role("group", name="Undo")
    prioritise(desk, 900)
    toast.hover()
    page.evaluate("() => window.elapse(10_000)")
    expect(toast).to_be_visible()
    desk.element.get_by_role("tab", name="Tasks").hover()
    expect(toast).to_be_hidden()
    prioritise(desk, 800)
    toast.get_by_role("button", name="Undo").focus()
    page.evaluate("() => window.elapse(10_000)")
    expect(toast).to_be_visible()
    page.evaluate("() => window.elapse(4_000)")
    expect(toast).to_be_hidden()
    expect(desk.element.get_by_role("tab", name="Tasks")).to_be_focused()


def prioritise(desk: BareDesk, priority: int) -> None:
    """Change the priority of the task that is open."""
    desk.element.get_by_role("spinbutton", name=re.compile("^Priority of task 1")).fill(str(priority))
    desk.element.get_by_role("button", name="Set", exact=True).click()


def test_an_approval_that_is_being_replaced_cannot_be_decided(desk: BareDesk, tmp_path: Path) -> None:
    place = worktree(desk.project, "robust", {"stats.py": SOURCE})
    desk.host.call("integrate_worktree", worktree_name="robust")
    view(desk.element, "Worktrees")
    card(desk.element, "robust").get_by_role("button", name="Review and approve").click()
    (place / "more.py").write_text(SOURCE)
    git("add", ".", cwd=place)
    git("commit", "-q", "-m", "More", cwd=place)
    page = desk.element.get_by_role("region", name="robust")
    again = page.get_by_role("button", name="Request again robust")
    expect(again).to_be_visible()
    desk.hold_rows()
    again.click()
    expect(desk.element.get_by_text("robust waits for your approval.").last).to_be_visible()
    approve = page.get_by_role("button", name="Approve and integrate")
    expect(approve).to_have_attribute("aria-disabled", "true")
    approve.click(force=True)
    assert "approve" not in [message.get("op") for message in desk.asked]
    desk.release_news()
    expect(page).to_contain_text("2 commits")
    approve.click()
    expect(page).to_contain_text("Integrated into main.")
    assert (tmp_path / "project" / "more.py").exists()


@pytest.mark.parametrize("first", ["answer", "rows"])
def test_the_details_of_an_agent_stay_open_while_it_gets_another_id(desk: BareDesk, first: str) -> None:
    admitted(desk.project, "tess", "tester")
    view(desk.element, "Agents")
    desk.element.get_by_role("button", name="tess", exact=True).click()
    field = desk.element.get_by_label("Agent id", exact=True)
    field.fill("tess-2")
    (desk.hold_rows if first == "answer" else desk.hold_answers)()
    desk.element.get_by_role("button", name="Save changes").click()
    if first == "rows":
        expect(desk.element.get_by_role("button", name="tess-2", exact=True)).to_be_visible()
    else:
        expect(desk.element.get_by_text("tess-2: saved.")).to_be_attached()
    desk.release_news()
    expect(desk.element.get_by_text("tess-2: saved.")).to_be_attached()
    expect(desk.element.get_by_role("button", name="tess-2", exact=True)).to_have_count(1)
    expect(field).to_have_value("tess-2")
    expect(field).to_be_focused()


def polls(desk: BareDesk) -> int:
    return [message.get("op") for message in desk.asked].count("get_managed_agents")


def test_messages_reach_a_page_that_draws_slowly_in_the_order_in_which_they_were_sent(desk: BareDesk) -> None:
    view(desk.element, "Inbox")
    desk.page.evaluate(HOLD_FRAMES)
    desk.hold_rows()
    for name in ("ada", "bob"):
        register(desk, name)
    desk.release_news()
    desk.page.wait_for_function("() => window.taken > 0", polling=20)
    register(desk, "cyd")
    desk.page.wait_for_function("() => window.taken > 1", polling=20)
    desk.page.evaluate("() => window.releaseFrames()")
    expect(desk.element.get_by_role("listitem", name="cyd", exact=True)).to_be_visible()
    assert [message["kind"] for message in desk.asked].count("resync") == 1


def register(desk: BareDesk, name: str) -> None:
    """Register an agent, and wait for the diff about it."""
    desk.host.call("register", name=name, persona_id="planner")
    wait_until(lambda: any(f'"{name}"' in rows for _, rows in desk.sent), f"the page is sent {name}")
