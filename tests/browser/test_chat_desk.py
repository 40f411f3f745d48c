"""The chat in the panel: conversations that stream, call tools, wait for permission, are stopped and retried."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.bare_desk import BareDesk
from tests.browser.desk_lab import resize, shot, view
from tests.services.tools.conftest import READING, Shelf
from workbench.ops import Ctx
from workbench.services.tools import catalogue
from workbench.services.tools.sources import SOURCES
from workbench.services.tools.tool import ToolInvocation, ToolOutcome

SAYS = [{"say": "# Findings\n\nThere are **three** species:\n\n- Adelie\n- Gentoo\n\n| a | b |\n|---|---|\n| 1 | 2 |"}]
OPERATIONS = ["*", "workbench"]
BAR = (
    "iVBORw0KGgoAAAANSUhEUgAAADwAAAAeCAYAAABwmH1PAAAANklEQVR42u3PMREAMAgEQaQgFYlxFExQfLE7cwKuCgAgUc/7qRk2"
    "bNiwYcOGDRs2bDhoGAA4tbc80hJwXp7rAAAAAElFTkSuQmCC"
)
"""A picture of 60 by 30 pixels: a blue bar on nothing."""


def define(desk: BareDesk, script: list[dict[str, Any]], name: str = "helper") -> str:
    """A definition whose model follows a script; its path."""
    directory = Path(desk.host.settings.project) / ".aiswarm" / "agents" / name
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "agent.yaml").write_text(
        f"metadata:\n  id: {name}\n  name: {name.title()}\n"
        f"settings:\n  model: test:script\n  script: {json.dumps(script)}\n"
    )
    return f"./agents/{name}"


def conversation(desk: BareDesk, script: list[dict[str, Any]] | None = None, **choices: Any) -> str:
    about = {"model": "test:echo"} if script is None else {"definition": define(desk, script)}
    conversation_id: str = desk.host.call("create_conversation", **about | choices)["id"]
    return conversation_id


def open_conversation(desk: BareDesk, title: str = "New conversation") -> Locator:
    """The pane of a conversation, after a click on its title."""
    view(desk.element, "Chat")
    desk.element.locator(".wb-conversations").get_by_role("button", name=title, exact=True).click()
    return desk.element.locator(".wb-conversation")


def write(pane: Locator, text: str) -> None:
    pane.get_by_label("Message", exact=True).fill(text)
    pane.get_by_label("Message", exact=True).press("Enter")


def test_a_conversation_is_begun_and_its_answer_is_shown_as_it_was_written(desk: BareDesk) -> None:
    define(desk, SAYS)
    view(desk.element, "Chat")
    desk.element.get_by_role("button", name="New conversation…").first.click()
    form = desk.element.get_by_role("form", name="New conversation")
    form.get_by_role("button", name="Begin").click()
    expect(form).to_contain_text("MODEL_REQUIRED")
    expect(form.get_by_label("Model", exact=True)).to_be_focused()
    form.get_by_label("Definition").select_option("./agents/helper", timeout=40_000)
    form.get_by_role("button", name="Begin").click()
    pane = desk.element.locator(".wb-conversation")
    expect(pane.get_by_label("Message", exact=True)).to_be_focused()
    write(pane, "What did you find?")
    expect(pane.get_by_role("heading", name="Findings")).to_be_visible()
    expect(pane.locator("strong")).to_have_text("three")
    expect(pane.locator(".wb-bullets li")).to_have_text(["Adelie", "Gentoo"])
    expect(pane.locator("td")).to_have_text(["1", "2"])
    expect(pane.get_by_role("heading", name="What did you find?")).to_be_visible()
    expect(pane.get_by_label("Message", exact=True)).to_have_value("")


def test_the_call_of_a_tool_stays_in_the_transcript_and_opens(desk: BareDesk) -> None:
    script = [{"say": "I look.", "calls": [{"tool": "get_personas"}]}, {"say": "There are four."}]
    conversation(desk, script, tools=OPERATIONS)
    pane = open_conversation(desk)
    write(pane, "Who can work here?")
    expect(pane).to_contain_text("There are four.")
    call = pane.get_by_role("button", name=re.compile("^get_personas"))
    expect(call).to_contain_text("done")
    call.press("Enter")
    expect(pane.locator(".wb-tool-body")).to_contain_text('"id": "implementer"')
    write(pane, "And now?")
    expect(pane.get_by_role("button", name=re.compile("^get_personas"))).to_have_count(2)
    expect(call.first).to_have_attribute("aria-expanded", "true")


def test_a_tool_that_needs_permission_is_allowed_where_it_was_called(desk: BareDesk) -> None:
    task = {"title": "Count", "persona_id": "tester"}
    script = [{"calls": [{"tool": "create_task", "input": task}]}, {"say": "It is planned."}]
    conversation(desk, script, tools=OPERATIONS)
    pane = open_conversation(desk)
    write(pane, "Plan it.")
    expect(pane.get_by_role("button", name=re.compile("^create_task"))).to_contain_text("waits for you")
    question = pane.get_by_role("listitem", name="create_task", exact=True)
    expect(question).to_contain_text('"persona_id": "tester"')
    expect(desk.element.locator(".wb-conversations")).to_contain_text("waits for you")
    composer = pane.get_by_role("form", name="Write", exact=True)
    expect(composer).to_contain_text("The answer waits for your decision about a tool.")
    decide = composer.get_by_role("button", name="Go to the question about the tool", exact=True)
    decide.click()
    expect(question).to_be_focused()
    shot(desk.element, "chat-waits")
    resize(desk.element, 1100)
    assert (
        question.locator(".wb-card-body").evaluate("e => e.offsetWidth") > 400
    )  # the buttons are below what they decide
    assert desk.host.call("list_tasks")["tasks"] == []
    question.get_by_role("button", name="Allow once: create_task").click()
    expect(pane).to_contain_text("It is planned.")
    expect(decide).to_have_count(0)
    assert [task["title"] for task in desk.host.call("list_tasks")["tasks"]] == ["Count"]


def test_an_answer_is_stopped_and_asked_for_again(desk: BareDesk) -> None:
    conversation(desk, [{"say": "One two " + "word " * 1_000, "pause": 0.05}])
    pane = open_conversation(desk)
    write(pane, "Count.")
    expect(pane).to_contain_text("One two")
    pane.get_by_role("button", name="Stop the answer").click()
    expect(pane).to_contain_text("You stopped this answer.")
    expect(pane.get_by_label("Message", exact=True)).to_be_focused()
    define(desk, [{"say": "All of it."}])
    pane.get_by_role("button", name="Try again").click()
    expect(pane).to_contain_text("All of it.")
    expect(pane).not_to_contain_text("One two")
    expect(pane.get_by_role("button", name="Stop the answer")).to_be_hidden()


def test_an_empty_answer_is_reported_as_empty(desk: BareDesk) -> None:
    conversation(desk, [{"say": ""}])
    pane = open_conversation(desk)
    write(pane, "What do you say?")
    expect(pane).to_contain_text("This answer is empty.")


def test_a_draft_stays_while_answers_arrive_and_conversations_change(desk: BareDesk) -> None:
    conversation(desk, [{"say": "A " + "slow " * 1_000, "pause": 0.05}], title="First")
    conversation(desk, title="Second")
    pane = open_conversation(desk, "First")
    write(pane, "Begin.")
    expect(pane).to_contain_text("A slow")
    message = pane.get_by_label("Message", exact=True)
    message.fill("Half a sen")
    message.press("Enter")
    expect(message).to_have_value("Half a sen")
    open_conversation(desk, "Second")
    expect(message).to_have_value("")
    write(pane, "Hello")
    expect(pane).to_contain_text("You said: Hello")
    open_conversation(desk, "First")
    expect(message).to_have_value("Half a sen")
    # sooner than the wait for frames of the other conversation, 20 s, ends
    pane.get_by_role("button", name="Stop the answer").click(timeout=15_000)
    expect(pane.get_by_role("button", name="Send", exact=True)).to_be_enabled()
    message.press("Enter")
    expect(pane.locator(".wb-from-user")).to_have_text([re.compile("Begin."), re.compile("Half a sen")])


def test_an_answer_that_fails_says_why_and_can_be_tried_again(desk: BareDesk) -> None:
    conversation(desk, model="openai:gpt-none")
    pane = open_conversation(desk)
    write(pane, "Hello")
    error = pane.locator(".wb-chat-turn .wb-error:visible")
    expect(error).to_be_visible()
    expect(error.locator("code").first).to_have_text(re.compile("^[A-Z_]+$"))
    pane.get_by_role("button", name="Settings…").click()
    form = pane.get_by_role("form", name="Settings")
    form.get_by_label("Model", exact=True).fill("test:echo")
    form.get_by_role("button", name="Save").click()
    pane.get_by_role("button", name="Try again").click()
    expect(pane).to_contain_text("You said: Hello")


def test_markup_in_an_answer_is_shown_as_inert_text(desk: BareDesk) -> None:
    evil = "<img src=x onerror=alert(1)> ![pixel](http://127.0.0.1:9/x.png) [click](javascript:alert(1)) \u202eevil"
    conversation(desk, [{"say": evil}])
    pane = open_conversation(desk)
    requested: list[str] = []
    desk.page.on("request", lambda request: requested.append(request.url))
    write(pane, "Show me.")
    expect(pane).to_contain_text("<img src=x onerror=alert(1)>")
    expect(pane).to_contain_text("\\u202eevil")
    expect(pane.get_by_role("link")).to_have_text(["pixel"])  # once the parser of Markdown has come
    expect(pane.get_by_role("link")).to_have_attribute("href", "http://127.0.0.1:9/x.png")
    expect(pane.locator("a, img")).to_have_count(1)
    assert [url for url in requested if not url.startswith("blob:")] == []


def test_a_conversation_is_followed_keeps_a_failed_draft_and_is_saved_and_deleted(desk: BareDesk) -> None:
    made = conversation(desk)
    pane = open_conversation(desk)
    expect(pane).to_contain_text("Nothing is written yet.")
    desk.host.call("ask", conversation_id=made, content="From a cell")
    expect(pane).to_contain_text("You said: From a cell")
    view(desk.element, "Tasks")
    desk.host.call("ask", conversation_id=made, content="While it is hidden")
    view(desk.element, "Chat")
    expect(pane).to_contain_text("You said: While it is hidden")
    desk.fail("ask")
    write(pane, "Hello")
    expect(pane.locator(".wb-error:visible")).to_contain_text("STORE_BUSY")
    expect(pane.get_by_label("Message", exact=True)).to_have_value("Hello")
    desk.restore()
    pane.get_by_label("Message", exact=True).press("Enter")
    expect(pane).to_contain_text("You said: Hello")
    expect(pane.locator(".wb-error:visible")).to_have_count(0)
    with desk.page.expect_download() as started:
        pane.get_by_role("button", name="Save as Notebook").click()
    assert "You said: Hello" in Path(started.value.path()).read_text()
    pane.get_by_role("button", name="Delete…").click()
    pane.get_by_role("button", name="Delete the conversation").click()
    expect(desk.element.get_by_text("No conversations yet.")).to_be_visible()
    expect(desk.element.get_by_role("button", name="New conversation…").first).to_be_focused()
    assert desk.host.call("list_conversations")["conversations"] == []


def test_a_picture_that_a_tool_returned_is_shown_below_its_call(
    desk: BareDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def plot(ctx: Ctx, call: ToolInvocation) -> ToolOutcome:
        return ToolOutcome(
            [{"type": "text", "text": "A bar:"}, {"type": "image", "data": BAR, "mimeType": "image/png"}]
        )

    shelf = Shelf()
    monkeypatch.setattr(catalogue, "SOURCES", (*SOURCES, shelf))
    shelf.put("hub__plot", plot, hints=READING)
    conversation(desk, [{"calls": [{"tool": "hub__plot"}]}, {"say": "That is all."}], title="Plots")
    pane = open_conversation(desk, "Plots")
    write(pane, "Plot it.")
    expect(pane).to_contain_text("That is all.")
    image = pane.get_by_role("img", name="bytes, image/png")
    expect(image).to_be_visible()
    size = "image => image.decode().then(() => [image.naturalWidth, image.naturalHeight])"
    assert image.evaluate(size) == [60, 30]
    expect(pane.get_by_role("button", name="hub__plot")).to_have_attribute("aria-expanded", "false")
