"""Admitting agents and looking after them in the panel, with real agents at the other end."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect
from websockets.sync.client import ClientConnection, connect

from tests.browser.desk_lab import (
    OpenDesk,
    Project,
    card,
    command,
    expect_fitting,
    resize,
    shot,
    type_letters,
    view,
    wait_until,
)
from tests.browser.scenes import admitted, laboratory


@pytest.fixture
def desk(open_bare: OpenDesk) -> Locator:
    return open_bare()


def line(desk: Locator, agent_id: str) -> Locator:
    return desk.locator(".wb-table-row").filter(has=desk.page.get_by_role("button", name=agent_id, exact=True))


def open_agent(desk: Locator, agent_id: str) -> Locator:
    desk.get_by_role("button", name=agent_id, exact=True).click()
    return desk.locator(".wb-table-details:visible")


def agent(project: Project, agent_id: str) -> dict[str, Any]:
    return project.operate("get_agent", agent_id=agent_id)


@contextmanager
def waiting(project: Project, name: str, **data: Any) -> Iterator[ClientConnection]:
    """An agent that has registered over its WebSocket and waits there for what a person decides."""
    info = project.server().load().info
    assert info is not None
    with connect(f"{info.ws_url}/{name}", proxy=None, user_agent_header="probe/1.2") as socket:
        socket.recv(timeout=10)
        socket.send(json.dumps([name, "register", {"name": name, **data}]))
        yield socket


def next_message(socket: ClientConnection, kind: str) -> dict[str, Any]:
    """The next message of a kind."""
    for _ in range(20):
        message: dict[str, Any] = json.loads(socket.recv(timeout=20))
        if kind in (message.get("type"), message.get("event")):
            return message
    raise AssertionError(f"{kind} did not come")


def test_the_card_of_a_waiting_agent_shows_it_and_one_click_admits_it(desk: Locator, project: Project) -> None:
    laboratory(project)
    known = {"languages": ["python", "r"], "commands_only": True}
    with waiting(project, "probe", persona_id="implementer", capabilities=known) as socket:
        token = next_message(socket, "registration_success")["token"]
        mine = card(desk, "probe")
        expect(mine).to_contain_text("as probe · implementer · worker · read and write · in no session")
        expect(mine).to_contain_text("probe/1.2 · from 127.0.0.1 · connection probe · languages: python, r")
        expect(mine).to_contain_text("takes only tasks that have a command")
        mine.get_by_role("button", name="Admit").click()
        message = next_message(socket, "agent_assigned")
        view(desk, "Agents")
        expect(desk).to_contain_text("5 agents · 0 online")
        socket.send(json.dumps(["probe", "authenticate", {"token": token}]))
        expect(desk).to_contain_text("5 agents · 1 online")
    assert "probe" in json.dumps(message)
    assert agent(project, "probe")["session"] is None


def test_two_clicks_admit_with_every_choice(desk: Locator, project: Project) -> None:
    made = laboratory(project)
    with waiting(project, "Bob") as socket:
        mine = card(desk, "Bob")
        mine.get_by_role("button", name="Details…").click()
        mine.get_by_label("Agent id").fill("bob-the-builder")
        mine.get_by_label("Persona").select_option("reviewer")
        mine.get_by_label("Session").select_option(made["Field season"])
        mine.get_by_label("Team").select_option(made["Night shift"])
        mine.get_by_label("Permission").select_option("read")
        mine.get_by_label("Sees").select_option("team_level")
        mine.get_by_label("Expires").select_option("3600")
        shot(desk, "admission-details")
        mine.get_by_role("button", name="Admit").click()
        next_message(socket, "agent_assigned")
    bob = agent(project, "bob-the-builder")
    assert (bob["persona_id"], bob["tool"], bob["access_level"]) == ("reviewer", "read", "team_level")
    assert (bob["session"], bob["team"]) == ("Field season", "Night shift")
    assert bob["expires_at"] is not None


def test_many_agents_are_admitted_and_rejected_at_once(desk: Locator, project: Project) -> None:
    made = laboratory(project)
    for number in range(4):
        project.call("register", name=f"worker-{number}", persona_id="tester")
    expect(card(desk, "worker-3")).to_be_visible()
    desk.get_by_role("checkbox", name="Select worker-0").check()
    desk.get_by_role("checkbox", name="Select all", exact=True).check()
    expect(desk.get_by_text("4 of 4 agents selected")).to_be_visible()
    desk.get_by_role("checkbox", name="Select worker-3").uncheck()
    desk.get_by_role("button", name="Details for all…").click()
    desk.get_by_role("group", name="Decide many at once").get_by_label("Session").select_option(made["Forecast"])
    shot(desk, "bulk")
    desk.get_by_role("button", name="Admit 3").click()
    expect(card(desk, "worker-2")).to_contain_text("Admitted as worker-2.")
    assert [agent(project, f"worker-{n}")["session"] for n in range(3)] == ["Forecast"] * 3

    project.call("register", name="worker-4")
    expect(card(desk, "worker-4")).to_be_visible()
    desk.get_by_role("checkbox", name="Select all", exact=True).check()
    desk.get_by_role("button", name="Reject…", exact=True).click()
    desk.get_by_label("Reason for rejecting the selected agents").fill("Enough of you.")
    desk.get_by_role("button", name="Reject 2").click()
    expect(card(desk, "worker-4")).to_contain_text("Rejected.")
    agents = project.operate("list_agents", status="rejected")["agents"]
    assert {agent["name"] for agent in agents} == {"worker-3", "worker-4"}


def test_an_agent_is_changed_renamed_and_revoked_in_its_row(desk: Locator, project: Project) -> None:
    made = laboratory(project)
    view(desk, "Agents")
    mine = open_agent(desk, "tess")
    expect(mine).to_contain_text("assigned")
    mine.get_by_label("Agent id").fill("tess-2")
    mine.get_by_label("Permission").select_option("read")
    mine.get_by_label("Team").select_option(made["Counting"])
    mine.get_by_role("button", name="Save changes").click()
    expect(line(desk, "tess-2")).to_contain_text("Field season · Counting")
    assert agent(project, "tess-2")["tool"] == "read"
    expect(mine.get_by_label("Agent id")).to_have_value("tess-2")
    mine.get_by_role("button", name="Revoke… tess-2").click()
    mine.get_by_label("Reason").fill("Done with it.")
    shot(desk, "revoke")
    mine.get_by_role("button", name="Revoke tess-2").click()
    wait_until(lambda: agent(project, "tess-2")["registration_status"] == "revoked", "it is revoked")
    view(desk, "Inbox")
    view(desk, "Agents")
    desk.get_by_role("button", name=re.compile("^Revoked")).click()
    expect(line(desk, "tess-2")).to_contain_text("Revoked")


def test_agents_are_filtered_and_assigned_together_and_their_history_shows_it(desk: Locator, project: Project) -> None:
    made = laboratory(project)
    view(desk, "Agents")
    expect(desk.locator(".wb-table-row")).to_have_count(4)
    desk.get_by_role("searchbox", name="Filter agents").fill("review")
    expect(desk.locator(".wb-table-row")).to_have_count(1)
    desk.get_by_role("searchbox", name="Filter agents").fill("")
    desk.get_by_label("Filter agents by session").select_option(made["Analysis"])
    expect(desk.locator(".wb-table-row")).to_have_count(2)
    desk.get_by_role("searchbox", name="Filter agents").fill("nobody")
    desk.get_by_role("button", name="Show all").click()
    expect(desk.locator(".wb-table-row")).to_have_count(4)
    desk.get_by_role("checkbox", name="Select ada").check()
    desk.get_by_role("checkbox", name="Select nox").check()
    assign = desk.get_by_role("button", name="Assign")
    expect(assign).to_have_attribute("aria-disabled", "true")
    desk.get_by_label("Session for the selected agents").select_option(made["Forecast"])
    assign.click()
    expect(line(desk, "ada")).to_contain_text("Forecast")
    expect(line(desk, "nox")).to_contain_text("Forecast")
    assert agent(project, "ada")["persona_id"] == "implementer"
    project.operate("create_project", name="Survey")
    project.operate("create_session", project_id="Survey", name="Night")
    project.operate(
        "update_agent", agent_id="ada", changes={"session_id": "Night", "tool": "read"}, reason="Only to look on."
    )
    open_agent(desk, "ada")
    newest = desk.locator(".wb-history li").filter(has_text="updated").first
    expect(newest).to_contain_text("→ Night")
    expect(newest).to_contain_text("tool: write → read")
    expect(newest).to_contain_text("Only to look on.")
    expect(newest).to_contain_text("operator")
    shot(desk, "agent-history")


def test_a_new_token_is_shown_once_and_is_in_no_output(open_desk: OpenDesk, project: Project, page: Page) -> None:
    desk = open_desk()
    old = admitted(project, "ada")
    view(desk, "Agents")
    mine = open_agent(desk, "ada")
    mine.get_by_role("button", name="New token… ada").click()
    mine.get_by_role("button", name="Issue new token").click()
    shown = mine.get_by_label("New token of ada")
    expect(shown).to_have_value(re.compile("^wba_"))
    token = shown.input_value()
    shot(desk, "token")
    assert project.call("whoami", token)["agent_id"] == "ada"
    assert project.ask("whoami", old).exception(20) is not None
    mine.get_by_role("button", name="Done").click()
    expect(shown).to_be_hidden()
    command(page, "docmanager:save")
    assert token not in (project.path / "desk.ipynb").read_text()


def test_projects_sessions_and_teams_are_created_renamed_moved_deleted_and_restored(
    desk: Locator, project: Project
) -> None:
    view(desk, "Projects")
    expect(desk.get_by_text("No projects yet.")).to_be_visible()
    for opener, name in (("New project…", "Lab"), ("New session… Lab", "Day 1"), ("New team… Day 1", "Night")):
        desk.get_by_role("button", name=opener).click()
        desk.get_by_role("textbox", name=re.compile("^Name of the")).fill(name)
        desk.get_by_role("textbox", name=re.compile("^Name of the")).press("Enter")
        expect(desk.get_by_role("button", name=f"Rename… {name}")).to_be_visible()
    desk.get_by_role("button", name="Rename… Day 1").click()
    desk.get_by_label("New name of Day 1").fill("Day 2")
    desk.get_by_role("button", name="Rename", exact=True).click()
    expect(desk.get_by_role("button", name="Rename… Day 2")).to_be_visible()
    desk.get_by_role("button", name="Move… Night").click()
    desk.get_by_label("Session for Night").select_option("")
    desk.get_by_role("button", name="Move", exact=True).click()
    expect(desk.get_by_text("Teams in no session")).to_be_visible()
    desk.get_by_role("button", name="Delete… Lab").click()
    desk.get_by_role("button", name="Delete Lab").click()
    expect(desk.get_by_role("button", name="Rename… Day 2")).to_be_hidden()
    desk.get_by_role("button", name="Show", exact=True).click()
    desk.get_by_role("button", name="Restore Lab").click()
    expect(desk.get_by_role("button", name="Rename… Day 2")).to_be_visible()
    assert [session["name"] for session in project.operate("list_sessions")["sessions"]] == ["Day 2"]
    desk.get_by_role("button", name="New project…").click()
    desk.get_by_label("Name of the project").fill("Lab")
    desk.get_by_label("Name of the project").press("Enter")
    expect(desk.get_by_text("NAME_TAKEN")).to_be_visible()
    expect(desk.get_by_label("Name of the project")).to_be_focused()
    desk.get_by_label("Name of the project").press("Escape")
    expect(desk.get_by_text("NAME_TAKEN")).to_be_hidden()
    expect(desk.get_by_role("button", name="New project…")).to_be_focused()


def test_rules_downloads_tools_and_the_allowlist_work_from_the_desk(
    desk: Locator, project: Project, page: Page
) -> None:
    view(desk, "Admin")
    desk.get_by_role("button", name="New rule…").click()
    desk.get_by_label("Name of the rule").fill("night")
    desk.get_by_label("Names of agents").fill("night-*")
    desk.get_by_label("Permission").select_option("read")
    shot(desk, "rule")
    desk.get_by_role("button", name="Add rule").click()
    expect(desk.get_by_text("admits night-* that run as you on this machine, read only")).to_be_visible()
    registered = project.call("register", name="night-1")
    assert registered["status"] == "assigned"
    events = project.operate("list_events", subject="night-1")["events"]
    assert "rule:night" in {event["actor"] for event in events}
    desk.get_by_role("button", name="Remove the rule night").click()
    expect(desk.get_by_text("admits night-*")).to_be_hidden()
    assert project.call("register", name="night-2")["status"] == "pending"
    admitted(project, "ada")
    expect(desk.get_by_text("queue length")).to_be_visible()
    with page.expect_download() as kept:
        desk.get_by_role("button", name="Download as CSV").click()
    assert "ada" in Path(kept.value.path()).read_text()
    desk.get_by_label("Register enabled").uncheck()
    wait_until(
        lambda: (
            [t["id"] for t in project.operate("list_agent_tools")["agent_tools"] if not t["enabled"]] == ["register"]
        ),
        "it is switched off",
    )
    desk.get_by_label("Agent id to allow").fill("ada")
    desk.get_by_role("button", name="Allow").click()
    expect(desk.get_by_text("Only the listed agents may act.")).to_be_visible()
    desk.get_by_role("button", name="Remove ada from the allowlist").click()
    expect(desk.get_by_text("Empty: every admitted agent may act.")).to_be_visible()


def test_the_views_are_reached_with_the_keyboard(desk: Locator, project: Project, page: Page) -> None:
    laboratory(project)
    desk.get_by_role("tab", name=re.compile("^Inbox")).focus()
    for name in ("Tasks", "Worktrees", "Agents"):
        page.keyboard.press("ArrowRight")
        expect(desk.get_by_role("tab", name=re.compile(f"^{name}"))).to_be_focused()
    expect(line(desk, "ada")).to_be_visible()
    desk.get_by_role("searchbox", name="Filter agents").focus()
    page.keyboard.press("ArrowDown")
    expect(desk.get_by_role("button", name="ada", exact=True)).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(desk.get_by_role("button", name="grace", exact=True)).to_be_focused()
    page.keyboard.press("Enter")
    expect(desk.locator(".wb-table-details:visible").get_by_label("Agent id")).to_be_visible()
    type_letters(page)
    page.keyboard.press("Tab")
    page.keyboard.press("Escape")
    expect(desk.locator(".wb-table-details:visible")).to_have_count(0)
    expect(desk.get_by_role("button", name="grace", exact=True)).to_be_focused()
    type_letters(page)


def test_a_narrow_view_keeps_within_its_width(desk: Locator, project: Project) -> None:
    laboratory(project)
    resize(desk, 480)
    for tab in ("Projects", "Admin", "Agents"):
        view(desk, tab)
        if tab == "Agents":
            open_agent(desk, "ada")
        shot(desk, f"narrow-{tab.lower()}")
        expect_fitting(desk, tab)
