"""Reviewing changes: comments on lines are sent as one request, the question stays open, later commits outdate them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.bare_desk import BareDesk
from tests.browser.desk_lab import shot, view
from tests.browser.scenes import git

STATS = "def mean(values):\n    return sum(values) / len(values)\n\n\ndef median(values):\n    return values[0]\n"


@pytest.fixture
def desk(desk: BareDesk) -> BareDesk:
    """A project with a worktree that asks to be merged."""
    place = Path(desk.host.call("create_worktree", name="robust")["path"])
    commit(place, STATS)
    desk.host.call("integrate_worktree", worktree_name="robust")
    return desk


def commit(place: Path, text: str) -> None:
    """Commit the statistics with this text."""
    (place / "stats.py").write_text(text)
    git("add", ".", cwd=place)
    git("commit", "-q", "-m", "Statistics", cwd=place)


def open_review(desk: BareDesk) -> Locator:
    """The page of the worktree, by way of its card in the inbox."""
    view(desk.element, "Inbox")
    desk.element.get_by_role("button", name="Review the changes of robust").click()
    page = desk.element.get_by_role("region", name="robust")
    expect(number(page, 6)).to_be_visible()
    return page


def number(page: Locator, line: int) -> Locator:
    """The number of a line of the new side."""
    return page.locator(f".wb-diff-line td:nth-child(2)[data-number='{line}']")


def comment(page: Locator, line: int, text: str) -> None:
    """Add a comment on a line."""
    number(page, line).click()
    page.get_by_role("textbox", name=f"Comment on line {line} of stats.py").fill(text)
    page.get_by_role("button", name="Add comment").click()


def test_comments_on_lines_are_sent_together_and_the_question_stays_open(desk: BareDesk) -> None:
    page = open_review(desk)
    number(page, 5).click()
    page.get_by_role("textbox", name="Comment on line 5 of stats.py").fill("x")
    number(page, 6).click(modifiers=["Shift"])
    page.get_by_role("textbox", name="Comment on lines 5 to 6 of stats.py").fill("Sort the values first.")
    shot(desk.element, "review-comment")
    page.get_by_role("button", name="Add comment").click()
    expect(page.get_by_text("Not sent yet · lines 5 to 6")).to_be_visible()
    expect(page.get_by_text("1 comment, not sent yet")).to_be_visible()
    page.get_by_role("textbox", name="Note about all changes").fill("Nearly there.")
    shot(desk.element, "review-draft")
    desk.hold_answers()
    page.get_by_role("button", name="Request changes", exact=True).click()
    expect(page.get_by_text("Changes were requested, with 1 comment; the agents were told.")).to_be_visible()
    expect(page.get_by_text("Not sent yet · lines 5 to 6")).to_have_count(0)  # though the feed came before the answer
    desk.release_news()
    expect(page.get_by_role("button", name=re.compile("^Approve and integrate"))).to_be_visible()
    requested = page.get_by_role("list", name="Requested changes")
    expect(requested.get_by_role("button", name="stats.py:5-6")).to_be_visible()
    expect(page.locator(".wb-diff-files").get_by_text("Sort the values first.")).to_be_visible()
    shot(desk.element, "review-requested")
    (request,) = desk.host.call("get_requested_changes", worktree_name="robust")["requests"]
    (task,) = desk.host.call("list_tasks")["tasks"]
    assert (request["note"], request["task_id"], task["worktree"]) == ("Nearly there.", task["id"], "robust")


def test_a_later_commit_outdates_comments_and_shows_what_changed_since(desk: BareDesk) -> None:
    place = desk.host.call("get_worktree_status")["worktrees"][0]["path"]
    comments = [
        {"path": "stats.py", "line": 6, "text": "Sort first."},
        {"path": "stats.py", "line": 1, "text": "Which mean?"},
    ]
    desk.host.call("request_changes", worktree_name="robust", comments=comments)
    commit(Path(place), '"""Statistics."""\n\n' + STATS.replace("values[0]", "sorted(values)[0]"))
    page = open_review(desk)
    requested = page.get_by_role("list", name="Requested changes")
    expect(requested.get_by_role("listitem").filter(has_text="Sort first.").last).to_contain_text("outdated")
    expect(requested.get_by_role("button", name="stats.py:3")).to_be_visible()
    requested.get_by_role("button", name="Show what changed since (1 commit)").click()
    expect(page.get_by_text("since changes were requested")).to_be_visible()
    expect(page.locator(".wb-diff-removed")).to_have_count(1)
    expect(page.get_by_text("1 commit came since. 1 comment is outdated.")).to_be_visible()
    shot(desk.element, "review-outdated")


def test_lines_are_commented_on_with_the_keyboard(desk: BareDesk, page: Page) -> None:
    mine = open_review(desk)
    mine.get_by_role("button", name=re.compile("^stats.py, added")).focus()
    for key in ("ArrowDown", "ArrowDown", "Shift+ArrowDown", "c"):
        page.keyboard.press(key)
    expect(mine.get_by_role("textbox", name="Comment on lines 2 to 3 of stats.py")).to_be_focused()
    page.keyboard.type("jknp")
    page.keyboard.press("Control+Enter")
    expect(mine.get_by_text("Not sent yet · lines 2 to 3")).to_be_visible()
    mine.get_by_role("button", name="Edit the comment on lines 2 to 3 of stats.py").press("Enter")
    page.keyboard.press("Escape")
    mine.get_by_role("button", name="Remove the comment on lines 2 to 3 of stats.py").press("Enter")
    expect(mine.get_by_text("Not sent yet · lines")).to_have_count(0)


def test_comments_that_were_not_sent_outlive_the_page_of_the_worktree(desk: BareDesk) -> None:
    page = open_review(desk)
    comment(page, 1, "Which mean?")
    page.get_by_role("button", name="Back to all worktrees").click()
    again = open_review(desk)
    expect(again.get_by_text("Which mean?")).to_be_visible()
    desk.fail("request_changes")
    again.get_by_role("button", name="Request changes", exact=True).click()
    expect(again.get_by_text("The store is busy.")).to_be_visible()
    expect(again.get_by_text("Not sent yet · line 1")).to_be_visible()
    desk.restore()
    again.get_by_role("button", name="Request changes", exact=True).click()
    expect(again.get_by_text("Not sent yet · line 1")).to_have_count(0)


def test_a_comment_being_written_stays_when_requests_and_commits_arrive(desk: BareDesk) -> None:
    page = open_review(desk)
    comment(page, 1, "Which mean?")
    page.get_by_role("button", name="Edit the comment on line 1").click()
    page.get_by_role("textbox", name="Comment on line 1 of stats.py").fill("Which mean is this?")
    number(page, 5).click()
    page.get_by_role("textbox", name="Comment on line 5 of stats.py").fill("Sort first.")
    other = {"path": "stats.py", "line": 6, "text": "Not the first one."}
    desk.host.call("request_changes", worktree_name="robust", comments=[other])
    expect(page.locator(".wb-comment").filter(has_text="Not the first one.")).to_be_visible()
    expect(page.get_by_role("textbox", name="Comment on line 5 of stats.py")).to_have_value("Sort first.")
    page.get_by_role("button", name="Add comment").click()
    expect(page.get_by_role("textbox", name="Comment on line 1 of stats.py")).to_have_value("Which mean is this?")
    page.get_by_role("button", name="Change", exact=True).click()
    expect(page.locator(".wb-comment").filter(has_text="Which mean is this?")).to_have_count(1)
    expect(page.locator(".wb-comment").filter(has_text="Sort first.")).to_have_count(1)


@pytest.mark.usefixtures("lasting_undo")
def test_a_merge_whose_rejection_is_undone_waits_in_the_inbox_again(desk: BareDesk) -> None:
    view(desk.element, "Inbox")
    card = desk.element.get_by_role("listitem", name="robust", exact=True)
    card.get_by_role("button", name="Reject… robust").click()
    card.get_by_role("button", name="Reject", exact=True).click()
    toast = desk.element.get_by_role("group", name="Undo")
    expect(desk.element.get_by_role("status").first).to_contain_text("You can undo it for ten seconds.")
    toast.get_by_role("button", name="Undo").click()
    expect(card.get_by_role("button", name="Approve and integrate")).to_be_visible()
    expect(desk.element.get_by_text("Nothing is waiting for you.")).to_be_hidden()
