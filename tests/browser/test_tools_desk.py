"""Tools in the panel: found, read, tried, granted and permitted there; and their calls as they happen."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import sys
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.bare_desk import BareDesk
from tests.browser.desk_lab import shot, view
from tests.browser.scenes import admitted
from tests.services.tools.conftest import READING, Shelf
from tests.upstream.servers import SERVER
from workbench.ops import Ctx
from workbench.services.tools import catalogue, questions
from workbench.services.tools.sources import SOURCES
from workbench.services.tools.tool import ToolInvocation, ToolOutcome
from workbench.upstream.call import ServerQuestion

Open = Callable[..., BareDesk]
TEXT = {"type": "object", "properties": {"path": {"type": "string"}, "key": {"type": "string", "format": "password"}}}


@pytest.fixture
def shelf(monkeypatch: pytest.MonkeyPatch) -> Shelf:
    """Tools of an MCP server, which a test puts there."""
    made = Shelf()
    monkeypatch.setattr(catalogue, "SOURCES", (*SOURCES, made))
    return made


class Agent:
    """An agent that was granted all tools."""

    def __init__(self, desk: BareDesk) -> None:
        self._desk, self._token = desk, admitted(desk.project, "ada", tools=["*"])

    def calls(self, tool: str, /, **arguments: Any) -> Future[dict[str, Any]]:
        """A call, under way."""
        return self._desk.project.ask("call_tool", self._token, name=tool, arguments=arguments)


async def forever(ctx: Ctx, call: ToolInvocation) -> ToolOutcome:
    """Run until it is cancelled."""
    await asyncio.Event().wait()
    raise AssertionError


@pytest.fixture
def desk(desk: BareDesk) -> BareDesk:
    view(desk.element, "Tools")
    return desk


def open_tool(desk: BareDesk, tool: str) -> Locator:
    """The details below a tool in the catalogue, after a click on its name."""
    desk.element.get_by_role("searchbox", name="Filter tools").fill(tool)
    desk.element.get_by_role("button", name=tool, exact=True).click()
    return desk.element.locator(".wb-tools .wb-table-details:visible")


def test_a_tool_is_found_and_tried_with_arguments_that_are_checked_here_and_by_the_server(desk: BareDesk) -> None:
    details = open_tool(desk, "create_task")
    form = details.get_by_role("form", name="Try create_task")
    form.get_by_label("persona_id").fill("tester")
    form.get_by_label("priority").fill("high")
    form.get_by_role("button", name="Run").click()
    expect(form.get_by_label("priority")).to_have_attribute("aria-invalid", "true")
    expect(form).to_contain_text("Type a whole number.")
    form.get_by_label("priority").fill("700")
    form.get_by_label("title").fill("Count\nthe penguins")
    form.get_by_label("dependencies").fill('["first"]')
    form.get_by_role("button", name="Run").click()
    expect(form.get_by_label("dependencies")).to_have_attribute("aria-invalid", "true")
    expect(form.get_by_label("dependencies")).to_be_focused()
    form.get_by_label("dependencies").fill("")
    form.get_by_role("button", name="JSON").click()
    expect(form.get_by_label("Arguments as JSON")).to_have_value(re.compile('"priority": 700'))
    form.get_by_role("button", name="Fields").click()
    form.get_by_label("priority").press("Control+Enter")
    expect(form).to_contain_text("Done after")
    (task,) = desk.host.call("list_tasks")["tasks"]
    assert (task["title"], task["priority"]) == ("Count\nthe penguins", 700)


def test_the_catalogue_is_sorted_and_filtered_and_a_tool_that_is_open_stays(desk: BareDesk) -> None:
    table = desk.element.locator(".wb-tools")
    effects = table.locator("td.wb-col-hints")
    heading = table.get_by_role("columnheader", name="Effects")
    heading.get_by_role("button").click()
    expect(effects.first).to_have_text("changes")
    expect(desk.element.get_by_role("status")).to_contain_text("50 tools shown.")
    view(desk.element, "Runs")
    expect(desk.element.get_by_role("status")).to_have_text("")
    view(desk.element, "Tools")
    expect(heading).to_have_attribute("aria-sort", "ascending")
    heading.get_by_role("button").press("Enter")
    expect(effects.first).to_have_text("reads")
    table.get_by_role("button", name="Tool", exact=True).click()
    expect(table.locator(".wb-opener").first).to_have_text("add_admission_rule")
    open_tool(desk, "get_personas")
    desk.element.get_by_role("searchbox", name="Filter tools").fill("worktree conflicts")
    expect(desk.element.get_by_role("button", name="list_conflicts", exact=True)).to_be_visible()
    expect(desk.element.get_by_role("button", name="get_personas", exact=True)).to_be_visible()
    expect(desk.element.get_by_role("button", name="create_task", exact=True)).to_be_hidden()
    desk.element.get_by_role("searchbox", name="Filter tools").fill("nothing like it")
    desk.element.get_by_role("button", name="get_personas", exact=True).press("Enter")
    desk.element.get_by_role("button", name="Show all").press("Enter")
    expect(desk.element.get_by_role("searchbox", name="Filter tools")).to_be_focused()


def test_an_agent_is_granted_tools_and_loses_them(open_bare_desk: Open) -> None:
    desk = open_bare_desk()
    desk.host.call("register", name="ada", persona_id="implementer")
    view(desk.element, "Inbox")
    card = desk.element.get_by_role("listitem", name="ada", exact=True)
    card.get_by_role("button", name="Details…").click()
    card.get_by_label("Tools it may call").fill("network, notebook,")
    card.get_by_role("button", name="Admit").click()
    expect(card).to_contain_text("tools network, notebook.")
    assert desk.host.call("get_agent", agent_id="ada")["tools"] == ["network", "notebook"]
    view(desk.element, "Agents")
    desk.element.get_by_role("button", name="ada", exact=True).click()
    field = desk.element.locator(".wb-agents").get_by_label("Tools it may call")
    expect(field).to_have_value("network, notebook")
    field.fill("")
    desk.element.get_by_role("button", name="Save changes").click()
    expect(desk.element.get_by_role("status")).to_contain_text("ada: saved.")
    assert desk.host.call("get_agent", agent_id="ada")["tools"] == []


def test_a_call_waits_for_permission_and_is_allowed_once_then_such_calls_then_always(
    open_bare_desk: Open, shelf: Shelf
) -> None:
    shelf.put("hub__delete", description="Delete a file.", parameters=TEXT)
    desk = open_bare_desk()
    ada = Agent(desk)
    view(desk.element, "Inbox")
    card = desk.element.get_by_role("listitem", name="hub__delete", exact=True)
    first = ada.calls("hub__delete", path="a.txt", key="secret-key")
    expect(card).to_contain_text("called by ada")
    expect(card).to_contain_text("A tool of the MCP server hub of this project · it says: “Delete a file.”")
    expect(card).to_contain_text('"path": "a.txt"')
    card.get_by_role("button", name="Allow once: hub__delete").click()
    expect(card).to_contain_text("Allowed.")
    assert first.result(30)["result"] == {"path": "a.txt", "key": "secret-key"}
    such = ada.calls("hub__delete", path="docs/a.txt")
    card.get_by_role("button", name="Details… hub__delete").click()
    pattern = card.get_by_label("path", exact=True)
    pattern.fill("notes/*")
    pattern.press("Enter")  # which alone allows nothing
    shot(desk.element, "such-calls")
    card.get_by_role("button", name="Allow such calls: hub__delete").click()
    expect(pattern).to_have_attribute("aria-invalid", "true")
    expect(card.last).to_contain_text("No pattern matches path of this call.")
    pattern.fill("docs/*")
    card.get_by_role("button", name="Allow such calls: hub__delete").click()
    assert such.result(30)["result"] == {"path": "docs/a.txt"}
    assert ada.calls("hub__delete", path="docs/b.txt").result(30)["result"] == {"path": "docs/b.txt"}
    second = ada.calls("hub__delete", path="b.txt")
    card.get_by_role("button", name="Always allow: hub__delete").click()
    assert second.result(30)["result"] == {"path": "b.txt"}
    assert ada.calls("hub__delete", path="c.txt").result(30)["result"] == {"path": "c.txt"}
    assert "secret-key" not in desk.page.content()
    assert not any("secret-key" in text for _, text in desk.sent)


COLOUR = {
    "type": "object",
    "properties": {
        "colour": {"type": "string", "enum": ["red", "blue"]},
        "coats": {"type": "integer"},
        "password": {"type": "string"},
    },
    "required": ["colour", "coats"],
}


def test_a_question_of_a_server_is_a_form_that_is_answered_or_declined(open_bare_desk: Open, shelf: Shelf) -> None:
    async def paint(ctx: Ctx, call: ToolInvocation) -> ToolOutcome:
        asked = ServerQuestion("Which colour for the door?", COLOUR)
        reply = await questions.ask(ctx, call, "hub__paint", "hub", asked)
        return ToolOutcome([], {"action": reply.action, "content": reply.content})

    shelf.put("hub__paint", paint, hints=READING)
    desk = open_bare_desk()
    ada = Agent(desk)
    view(desk.element, "Inbox")
    first = ada.calls("hub__paint")
    card = desk.element.get_by_role("listitem", name="hub__paint", exact=True)
    expect(card).to_contain_text("asked by the MCP server hub, for a call of ada")
    expect(card).to_contain_text("The server asks: “Which colour for the door?”")
    expect(card).to_contain_text("password looks like a secret. The server gets what you type.")
    expect(card.get_by_label("password (optional)")).to_have_attribute("type", "password")
    shot(desk.element, "question")
    card.get_by_role("button", name="Answer: hub__paint").click()
    expect(card.get_by_label("coats", exact=True)).to_have_attribute("aria-invalid", "true")
    card.get_by_label("coats", exact=True).fill("2")
    card.get_by_role("button", name="Answer: hub__paint").click()
    expect(card).to_contain_text("Answered.")
    assert first.result(30)["result"] == {"action": "accept", "content": {"colour": "red", "coats": 2}}
    second = ada.calls("hub__paint")
    desk.element.get_by_role("button", name="Not now: hub__paint").click()
    assert second.result(30)["result"]["action"] == "cancel"


def test_a_tool_that_has_changed_shows_the_difference_and_is_banned(open_bare_desk: Open, shelf: Shelf) -> None:
    shelf.put("hub__delete", description="Delete a file.", parameters=TEXT)
    desk = open_bare_desk()
    ada = Agent(desk)
    desk.host.call("set_tool_permission", name="hub__delete", permission="always")
    shelf.change("hub__delete", description="Delete everything.")
    call = ada.calls("hub__delete", path="a.txt")
    view(desk.element, "Inbox")
    card = desk.element.get_by_role("listitem", name="hub__delete", exact=True)
    expect(card).to_contain_text("The tool is not what you allowed")
    expect(card.locator(".wb-diff-removed")).to_have_text("removed: Delete a file.")
    expect(card.locator(".wb-diff-added")).to_have_text("added: Delete everything.")
    expect(card.locator(".wb-primary")).to_have_count(0)
    card.get_by_role("button", name="Reject… hub__delete").click()
    card.get_by_label("Never allow this tool").check()
    card.get_by_role("button", name="Reject", exact=True).click()
    expect(card).to_contain_text("Rejected.")
    assert call.exception(30).code == "TOOL_DENIED"  # type: ignore[union-attr]
    view(desk.element, "Tools")
    details = open_tool(desk, "hub__delete")
    permission = details.get_by_role("group", name="Permission to call hub__delete")
    expect(permission.get_by_role("button", name="Never")).to_have_attribute("aria-pressed", "true")
    permission.get_by_role("button", name="Ask me").click()
    expect(permission.get_by_role("button", name="Ask me")).to_have_attribute("aria-pressed", "true")
    expect(details).not_to_contain_text("You have decided nothing")
    assert desk.host.call("list_tool_permissions")["permissions"][0]["permission"] == "ask"


def test_calls_appear_as_they_happen_are_filtered_and_one_that_runs_is_cancelled(
    open_bare_desk: Open, shelf: Shelf
) -> None:
    shelf.put("hub__wait", forever, description="Wait.")
    desk = open_bare_desk()
    ada = Agent(desk)
    desk.host.call("set_tool_permission", name="hub__wait", permission="always")
    view(desk.element, "Tools")
    desk.element.get_by_role("button", name="Calls", exact=True).click()
    rows = desk.element.locator(".wb-calls .wb-table-row")
    expect(desk.element.get_by_text("No calls yet.")).to_be_visible()
    desk.host.call("call_tool", name="get_personas", arguments={})
    expect(rows).to_have_text([re.compile("get_personas.*Workbench.*Completed")])
    waiting = ada.calls("hub__wait")
    expect(rows).to_have_text([re.compile("hub__wait.*hub.*ada.*Running"), re.compile("get_personas")])
    desk.element.get_by_role("button", name="hub__wait", exact=True).click()
    desk.element.get_by_role("button", name="Cancel the call").click()
    expect(rows.first).to_contain_text("Cancelled")
    assert waiting.exception(30) is not None
    desk.element.get_by_label("Filter calls by source").select_option("local")
    expect(rows).to_have_count(2)  # the one that is open stays
    desk.element.get_by_role("button", name="hub__wait", exact=True).press("Enter")
    expect(rows).to_have_text([re.compile("get_personas")])
    desk.element.get_by_role("button", name="get_personas", exact=True).click()
    expect(desk.element.locator(".wb-calls .wb-table-details:visible")).to_contain_text('"personas"')
    desk.element.get_by_label("Filter calls by source").select_option("")
    tool, agent = (desk.element.get_by_label(f"Filter calls by {name}") for name in ("tool", "agent"))
    desk.element.get_by_role("button", name="get_personas", exact=True).click()
    expect(rows).to_have_count(2)
    agent.select_option("ada")
    expect(rows).to_have_text([re.compile("hub__wait")])
    tool.fill("get_personas")
    tool.press("Enter")
    expect(desk.element.get_by_text("No call matches the filters.")).to_be_visible()
    agent.select_option("")
    expect(rows).to_have_text([re.compile("get_personas")])
    shot(desk.element, "calls_filtered")


def test_the_progress_of_a_call_is_shown_while_it_runs(open_bare_desk: Open, shelf: Shelf) -> None:
    steps: asyncio.Queue[tuple[float, str]] = asyncio.Queue()

    async def works(ctx: Ctx, call: ToolInvocation) -> ToolOutcome:
        assert call.surroundings.progress is not None
        while True:
            done, message = await steps.get()
            await call.surroundings.progress(done, 4, message)
            if done == 4:
                return ToolOutcome([{"type": "text", "text": "Read."}])

    desk = open_bare_desk()
    shelf.put("hub__read", works, hints=READING)
    view(desk.element, "Tools")
    desk.element.get_by_role("button", name="Calls").click()
    running = Agent(desk).calls("hub__read")
    row = desk.element.locator(".wb-calls tbody tr").filter(has_text="hub__read")
    expect(row).to_contain_text("Running")
    for done in (1, 3):
        desk.host.wait(steps.put((done, f"file {done}")))
        expect(row).to_contain_text(f"hub__read{25 * done} %, file {done}")
    shot(desk.element, "call_progress")
    desk.host.wait(steps.put((4, "file 4")))
    assert running.result(30)["result"] == "Read."
    expect(row).to_contain_text("Completed")
    row.get_by_role("button", name="hub__read").click()
    expect(desk.element.locator(".wb-calls .wb-table-details:visible")).to_contain_text("100 %, file 4")


def test_the_newest_calls_are_shown_and_earlier_ones_on_request(open_bare_desk: Open) -> None:
    desk = open_bare_desk()
    for _ in range(60):
        desk.host.call("call_tool", name="get_personas", arguments={})
    view(desk.element, "Tools")
    desk.element.get_by_role("button", name="Calls", exact=True).click()
    rows = desk.element.locator(".wb-calls .wb-table-row")
    expect(rows).to_have_count(50)
    desk.element.get_by_role("button", name="Show earlier calls").click()
    expect(rows).to_have_count(60)
    desk.host.call("call_tool", name="get_personas", arguments={})
    expect(rows).to_have_count(61)


def test_a_server_is_added_used_switched_off_and_removed(desk: BareDesk) -> None:
    desk.element.get_by_role("button", name="Servers", exact=True).click()
    desk.element.get_by_role("button", name="Add a server…").first.click()
    form = desk.element.get_by_role("form", name="New server")
    form.get_by_label("Configuration").fill("{")
    form.get_by_role("button", name="Add", exact=True).click()
    expect(form).to_contain_text("This is not JSON")
    program = Path(desk.host.settings.project) / "server.py"  # where a confined program can read it
    shutil.copy(SERVER, program)
    config = {"command": sys.executable, "args": [str(program)], "env": {"API_TOKEN": "hunter2"}}
    form.get_by_label("Configuration").fill(json.dumps({"mcpServers": {"hub": config}}))
    form.get_by_role("button", name="Add", exact=True).click()
    row = desk.element.get_by_role("list", name="MCP servers").get_by_role("listitem")
    expect(row.locator(".wb-server")).to_contain_text("Ready", timeout=60_000)
    expect(row).to_contain_text(
        "API_TOKEN is written out in .aiswarm/mcp.json. Use a reference such as env://API_TOKEN"
    )
    row.get_by_role("button", name="hub", exact=True).click()
    expect(row.locator(".wb-server-details")).to_contain_text("exit_now")
    desk.hold_answers()
    row.get_by_role("button", name="Restart hub").click()
    for label in ("Restart", "Switch off", "Edit…", "Remove…"):
        expect(row.get_by_role("button", name=f"{label} hub")).to_be_disabled()
    desk.release_news()
    expect(desk.element.get_by_role("status")).to_contain_text("hub: Ready.", timeout=60_000)
    desk.element.get_by_role("button", name="Catalogue", exact=True).click()
    expect(desk.element.get_by_role("button", name="hub__exit_now", exact=True)).to_be_visible()
    desk.element.get_by_role("button", name="Servers", exact=True).click()
    row.get_by_role("button", name="Switch off hub").click()
    expect(row.locator(".wb-server")).to_contain_text("Switched off")
    expect(row.get_by_role("button", name="Switch on hub")).to_be_enabled()
    row.get_by_role("button", name="Edit… hub").press("Enter")
    row.get_by_label("Configuration").press("Escape")
    expect(row.get_by_role("button", name="Edit… hub")).to_be_focused()
    row.get_by_role("button", name="Remove… hub").press("Enter")
    row.get_by_role("button", name="Remove hub", exact=True).press("Enter")
    expect(desk.element.get_by_text("No MCP servers yet.")).to_be_visible()
    expect(desk.element.get_by_role("button", name="Add a server…").first).to_be_focused()
    assert desk.host.call("list_tool_servers")["servers"] == []
