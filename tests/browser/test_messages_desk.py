"""Messages in the panel: on the page of a task and of an agent, with how far they have come."""

from __future__ import annotations

from playwright.sync_api import Locator, expect

from tests.browser.desk_lab import OpenDesk, Project, expect_fitting, expect_readable, shot, view
from tests.browser.scenes import admitted
from tests.browser.test_admission_desk import open_agent


def test_a_task_is_commented_on_and_an_agent_told_something_and_the_receipts_come_back(
    open_bare: OpenDesk, project: Project
) -> None:
    desk = open_bare()
    token = admitted(project, "ada")
    project.operate("create_task", title="Clean the data", persona_id="implementer")
    view(desk, "Tasks")
    desk.get_by_role("row").filter(has_text="Clean the data").click()
    task = desk.get_by_role("region", name="Clean the data").get_by_role("group", name="Messages")
    expect(task).to_contain_text("Nobody has commented on this task.")
    shot(desk, "messages-empty")
    _say(task, "Comment on this task", "Keep the units.\n\x1b[31mAnd the years.")
    expect(task.get_by_role("listitem")).to_contain_text("queued")
    claimed = project.call("claim_task", token)["task"]
    assert [message["text"].splitlines()[0] for message in claimed["messages"]] == ["Keep the units."]
    expect(task.get_by_role("listitem")).to_contain_text("seen")
    project.call("ask_person", token, question="Which years?", options=["2007", "all"])
    expect(task.get_by_role("listitem").nth(1)).to_contain_text("waits for your answer")
    expect_fitting(desk)
    expect_readable(desk)
    shot(desk, "messages-task")
    view(desk, "Inbox")
    expect(desk.get_by_label("answer", exact=True)).to_be_visible()
    expect(desk.get_by_role("button", name="JSON", exact=True)).to_have_count(0)  # for the one field
    view(desk, "Agents")
    agent = open_agent(desk, "ada").get_by_role("group", name="Messages")
    _say(agent, "Tell ada", "Be quick.")
    told = agent.get_by_role("listitem").filter(has_text="Be quick.")
    expect(told).to_contain_text("queued")
    (message,) = project.call("heartbeat_and_get_tasks", token)["messages"]
    project.call("read_messages", token, acted=[message["id"]])
    expect(told).to_contain_text("acted on")
    expect(agent.get_by_label("End its turn for this")).to_have_count(0)
    expect_fitting(desk)
    expect_readable(desk)
    shot(desk, "messages-agent")


def _say(messages: Locator, field: str, text: str) -> None:
    messages.get_by_label(field).fill(text)
    messages.get_by_label(field).press("Control+Enter")
    expect(messages.get_by_label(field)).to_have_value("")
