"""What agents ask of models: who answered, tokens, cost, transcripts and waits, on the pages of tasks and agents."""

from __future__ import annotations

import json
import re
from functools import partial
from typing import Any

from playwright.sync_api import expect

from kernel_ext.hosting.host import KernelHost
from tests.browser.bare_desk import BareDesk
from tests.browser.desk_lab import expect_fitting, expect_readable, resize, shot, view, wearing
from tests.browser.scenes import admitted
from tests.browser.test_admission_desk import open_agent
from workbench.model import SECOND
from workbench.rules.failures import FailureKind
from workbench.rules.models.usage import ModelUsage
from workbench.services import holds
from workbench.services.holds import AttemptFailure
from workbench.services.models.transcripts import Exchange, record
from workbench.services.spending.ledger import ModelSpending, book
from workbench.store.queries import Query

ALL_COUNTED = {"role": "assistant", "content": "All files are counted."}
INSTRUCTIONS = "You work on penguins. " * 40


def on_server(host: KernelHost, *work: Any) -> None:
    """Run functions of the context on the server's loop, one after the other."""

    workbench = host.workbench
    assert workbench is not None

    async def run() -> None:
        for each in work:
            await each(workbench._ctx)

    host.wait(run())


def call(number: int) -> list[dict[str, Any]]:
    """A call of a tool and its result, as a program sends them back."""
    use = {"type": "tool_use", "id": f"t{number}", "name": "Bash", "input": {"command": f"wc -l data/{number}.csv"}}
    result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": f"{number} rows"}
    if number % 7 == 3:
        result |= {"is_error": True, "content": f"wc: data/{number}.csv: No such file\n" + "a line\n" * 40}
    return [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]


def asking(task_id: int, calls: int, *, say: str = "Now I count the rows.", extra: Any = ()) -> Any:
    """Record a conversation with so many calls of tools."""
    messages = [{"role": "user", "content": "Count the rows of every file, then write count.md."}]
    messages += [message for number in range(calls) for message in call(number)]
    messages += [{"role": "assistant", "content": say}, *extra]
    tools = [{"name": name} for name in ("Bash", "Edit", "mcp__workbench__report_task_progress")]
    asked = {"model": "claude-sonnet-4-5", "system": INSTRUCTIONS, "tools": tools, "messages": messages}
    answer = {"type": "message", "content": [{"type": "text", "text": "All files are counted."}]}
    exchange = Exchange("anthropic", "one", json.dumps(asked).encode(), json.dumps(answer).encode(), False)
    return lambda ctx: record(ctx, task_id, 1, exchange)


def spent(task_id: int | None, uid: str | None, model: str, **more: Any) -> Any:
    usage = ModelUsage(34_200, 30_000, 500, None, 1_204, 300)
    values = {"source": "gateway", "provider": "anthropic", "model": model, "usage": usage, "agent": uid} | more
    return lambda ctx: book(ctx, ModelSpending(at=ctx.store.now(), task_id=task_id, attempt=1, **values))


def working(desk: BareDesk) -> tuple[int, str]:
    """An agent that does a task of a plan; the task, and the agent's internal id."""
    project = desk.project
    token = admitted(project, "ada")
    project.operate("create_plan", text="plan: penguins\ntasks:\n- {name: count, title: Count, persona: implementer}\n")
    [task] = project.operate("list_tasks")["tasks"]
    project.call("claim_task", token, task_id=task["id"])
    uid: list[str] = []

    async def find(ctx: Any) -> None:
        uid.append((await ctx.read(lambda tx: tx.one(Query("uid", "SELECT id FROM agents"))))["id"])

    on_server(desk.host, find)
    return task["id"], uid[0]


def checked(task: int) -> Any:
    """A check of its attempt that failed."""
    failed = Query(
        "check",
        "INSERT INTO attempt_checks (task_id, attempt, check_stated, commit_hash, state, tries, asked_at, output, "
        "metrics) VALUES (:task, 1, '\"make\"', '0123456789abcdef', 'failed', 1, 1, 'No file', '{\"accuracy\": 0.4}')",
    )
    return lambda ctx: ctx.write(lambda tx: tx.run(failed, task=task))


def limited(uid: str, task: int) -> Any:
    """A limit of the account that the agent works with."""

    async def hold(ctx: Any) -> None:
        def change(tx: Any) -> None:
            holds.enlist(tx, uid, "claude", "anthropic:key")
            until = tx.now + 40 * 60 * SECOND
            failure = AttemptFailure(uid, task, 1, FailureKind.LIMIT, "429: You have hit your limit", until)
            holds.note_failure(tx, ctx.settings, failure)

        await ctx.write(change)

    return hold


def refused(uid: str, task: int) -> Any:
    """A key that the provider does not accept."""

    async def ask(ctx: Any) -> None:
        message = "The provider refused the key.\nAPI Error: 401\n" + "at main.js\n" * 12
        failure = AttemptFailure(uid, task, 1, FailureKind.AUTH, message)
        await ctx.write(lambda tx: holds.note_failure(tx, ctx.settings, failure))

    return ask


def test_a_task_shows_what_its_agent_and_the_model_said_while_they_say_it(open_bare_desk: Any) -> None:
    desk: BareDesk = open_bare_desk()
    task, uid = working(desk)
    on_server(desk.host, asking(task, 400), *[spent(task, uid, "claude-sonnet-4-5")] * 2)
    view(desk.element, "Tasks")
    expect(desk.element.get_by_text("Plan penguins: $0.26")).to_be_visible()
    desk.element.get_by_role("row").filter(has_text="Count").last.click()
    pane = desk.element.get_by_role("region", name="Count")
    expect(pane).to_contain_text("anthropic · claude-sonnet-4-5")
    expect(pane).to_contain_text("2 requests · 68,400 tokens in, 60,000 cached")
    pane.get_by_role("button", name="Show the transcript of attempt 1").click()
    said = pane.get_by_role("log", name="Transcript")
    expect(said.get_by_text("All files are counted.")).to_be_in_viewport()
    expect(said.get_by_role("listitem")).to_have_count(50)
    more = {"role": "user", "content": "<b>And the islands?</b>"}
    on_server(desk.host, asking(task, 400, extra=[ALL_COUNTED, more]))
    expect(said.get_by_text("<b>And the islands?</b>")).to_be_in_viewport()
    said.get_by_role("button", name="Show earlier").click()
    expect(said.get_by_role("listitem")).to_have_count(100)
    for width in (1280, 420):
        resize(desk.element, width)
        expect_fitting(desk.element, f"at {width}")
        expect_readable(desk.page)
        shot(desk.element, f"transcript-{width}")
    pane.get_by_role("textbox", name="Search").fill("data/304.csv: No such")
    pane.get_by_role("textbox", name="Search").press("Enter")
    expect(pane).to_contain_text("1 message with “data/304.csv: No such”")
    said.get_by_text("Result").click()
    expect(said.get_by_text("a line").first).to_be_visible()
    with wearing(desk.page, "dark"):
        expect_readable(desk.page)
        shot(desk.element, "transcript-found")
    on_server(desk.host, checked(task))
    view(desk.element, "Agents")
    agent = open_agent(desk.element, "ada")
    agent.get_by_role("button", name=f"Show the transcript of task {task}, attempt 1").click()
    expect(agent.get_by_text("Check: failed on 0123456789 · accuracy 0.4")).to_be_visible()
    expect(agent.get_by_role("log", name="Transcript")).to_be_visible()
    with wearing(desk.page, "dark"):
        expect_readable(desk.page)
        shot(desk.element, "agent-dark")


def test_what_is_not_known_is_not_free_and_waits_say_until_when(open_bare_desk: Any) -> None:
    desk: BareDesk = open_bare_desk()
    task, uid = working(desk)
    on_server(desk.host, spent(task, uid, "claude-next"), spent(task, uid, "claude-sonnet-4-5"), limited(uid, task))
    view(desk.element, "Analytics")
    priceless = desk.element.get_by_role("row").filter(has_text="claude-next")
    expect(priceless.get_by_role("cell").last).to_have_text("unknown")
    expect(desk.element.get_by_text("for $0.13 + unknown. No price is known for 1 of 2 requests.")).to_be_visible()
    desk.element.get_by_role("combobox", name="Sum the costs").select_option("agent")
    expect(desk.element.get_by_role("row").filter(has_text="ada").get_by_role("cell").last).to_have_text(
        "$0.13 + unknown"
    )
    resize(desk.element, 420)
    expect_fitting(desk.element)
    expect_readable(desk.page)
    shot(desk.element, "spending")
    view(desk.element, "Admin")
    expect(desk.element.get_by_role("listitem").filter(has_text="openai")).to_contain_text("No key")
    expect_fitting(desk.element)
    expect_readable(desk.page)
    shot(desk.element, "providers")
    expect(desk.element.get_by_text(re.compile(r"1 agent waits until \S+ because of a limit"))).to_be_visible()
    desk.element.get_by_role("button", name="Go on now").click()
    expect(desk.element.get_by_text("because of a limit")).to_have_count(0)
    on_server(desk.host, refused(uid, task))
    view(desk.element, "Inbox")
    expect(desk.element).to_contain_text("The provider accepts neither key nor login.")
    expect(desk.element.get_by_text("8 more lines")).to_be_visible()
    expect_readable(desk.page)
    shot(desk.element, "failure")


def test_what_may_be_spent_stands_beside_the_plan_its_task_and_the_costs(open_bare_desk: Any) -> None:
    desk: BareDesk = open_bare_desk()
    task, uid = working(desk)
    set_budget = partial(desk.project.operate, "set_budget")
    set_budget(scope="plan:penguins", usd=0.15, tokens=2_000_000, attempts=1, seconds=28_800)
    set_budget(scope=f"task:{task}", tokens=100_000)
    set_budget(scope="project", usd=20)
    set_budget(scope="persona:implementer", tokens=80_000)
    on_server(desk.host, *[spent(task, uid, "claude-sonnet-4-5")] * 1, spent(task, uid, "claude-next"))
    view(desk.element, "Tasks")
    of_plan = desk.element.get_by_role("listitem").filter(has_text="Budget of plan penguins")
    expect(of_plan).to_contain_text("$0.13 of $0.15 · 87 %, nearly used up")
    expect(of_plan).to_contain_text("1 of 1 attempt · 100 %, used up")
    expect(of_plan).to_contain_text("1 request of unknown cost not counted in dollars")
    expect(of_plan.get_by_role("meter")).to_have_count(4)
    for width in (1280, 420):
        resize(desk.element, width)
        expect_fitting(desk.element, f"at {width}")
        expect_readable(desk.page)
        shot(desk.element, f"budget-of-plan-{width}")
    desk.element.get_by_role("row").filter(has_text="Count").last.click()
    pane = desk.element.get_by_role("region", name="Count")
    expect(pane).to_contain_text(f"Budget of task {task}")
    expect(pane).to_contain_text("131,808 of 100,000 tokens · 131 %, used up")
    shot(desk.element, "budget-of-task")
    view(desk.element, "Analytics")
    expect(desk.element.get_by_role("list", name="Budgets").get_by_role("listitem")).to_have_count(4)
    expect(desk.element).to_contain_text("Budget of the project$0.13 of $20.00 · 0 %")
    for width in (1280, 420):
        resize(desk.element, width)
        expect_fitting(desk.element, f"at {width}")
        shot(desk.element, f"budgets-{width}")
    with wearing(desk.page, "dark"):
        expect_readable(desk.page)
        shot(desk.element, "budgets-dark")
    desk.project.operate("create_task", title="Plot", persona_id="implementer")
    set_budget(scope="project", usd=0)
    view(desk.element, "Inbox")
    asked = desk.element.get_by_role("listitem", name="The budget of the project is used up", exact=True)
    amount = asked.get_by_role("spinbutton", name="US dollars in all", exact=True)
    for width in (1280, 420):
        resize(desk.element, width)
        expect_fitting(desk.element, f"at {width}")
        shot(desk.element, f"budget-of-nothing-{width}")
    asked.get_by_role("button", name="Raise the budget: The budget of the project is used up", exact=True).click()
    expect(amount).to_be_focused()
    amount.fill("25")
    amount.press("Enter")
    expect(asked).to_contain_text("The budget of the project is raised.")
    [raised] = [one for one in desk.project.operate("list_budgets")["budgets"] if one["scope"] == "project"]
    assert raised["usd"] == 25
