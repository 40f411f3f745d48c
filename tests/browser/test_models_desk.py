"""What agents ask of models: who answered, tokens, cost and transcripts, on the pages of a task, an agent and a plan."""

from __future__ import annotations

import json
from typing import Any

from playwright.sync_api import expect

from kernel_ext.hosting.host import KernelHost
from tests.browser.bare_desk import BareDesk
from tests.browser.desk_lab import expect_fitting, expect_readable, resize, shot, view, wearing
from tests.browser.scenes import admitted
from workbench.rules.failures import FailureKind
from workbench.rules.models.usage import ModelUsage
from workbench.services import holds
from workbench.services.models.transcripts import Exchange, record
from workbench.services.spending.ledger import ModelSpending, book
from workbench.store.queries import Query

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


def test_a_task_shows_what_its_agent_and_the_model_said_while_they_say_it(open_bare_desk: Any) -> None:
    desk: BareDesk = open_bare_desk()
    task, uid = working(desk)
    on_server(desk.host, asking(task, 12), spent(task, uid, "claude-sonnet-4-5"), spent(task, uid, "claude-sonnet-4-5"))
    view(desk.element, "Tasks")
    desk.element.get_by_role("row").filter(has_text="Count").last.click()
    pane = desk.element.get_by_role("region", name="Count")
    expect(pane).to_contain_text("anthropic · claude-sonnet-4-5")
    expect(pane).to_contain_text("2 requests · 68,400 tokens in, 60,000 cached")
    pane.get_by_role("button", name="Show the transcript of attempt 1").click()
    said = pane.get_by_role("log", name="Transcript")
    expect(said).to_contain_text("All files are counted.")
    expect(said.get_by_text("11 rows")).to_be_visible()
    for width in (1280, 760, 420):
        resize(desk.element, width)
        expect_fitting(desk.element, f"at {width}")
        expect_readable(desk.page)
        shot(desk.element, f"transcript-{width}")
        with wearing(desk.page, "dark"):
            expect_readable(desk.page)
            shot(desk.element, f"transcript-{width}-dark")
    resize(desk.element, 1280)
    said.get_by_text("Result of Bash").last.click()
    pane.get_by_role("textbox").fill("No such file")
    pane.get_by_role("textbox").press("Enter")
    expect(pane).to_contain_text("2 messages with")
    shot(desk.element, "transcript-search")
    pane.get_by_role("textbox").fill("nowhere at all")
    pane.get_by_role("textbox").press("Enter")
    expect(pane).to_contain_text("No message contains")
    shot(desk.element, "transcript-none")
    on_server(desk.host, spent(task, uid, "claude-next"), spent(None, None, "gpt-5", provider="openai"))
    view(desk.element, "Analytics")
    expect(desk.element).to_contain_text("unknown")
    for width in (1280, 760, 420):
        resize(desk.element, width)
        shot(desk.element, f"spending-{width}")
    resize(desk.element, 1280)
    desk.element.get_by_role("combobox", name="Sum the costs").select_option("plan")
    expect(desk.element).to_contain_text("in no plan")
    shot(desk.element, "spending-plan")
    view(desk.element, "Admin")
    desk.element.get_by_role("heading", name="Providers of models").scroll_into_view_if_needed()
    for width in (1280, 760, 420):
        resize(desk.element, width)
        shot(desk.element, f"providers-{width}")
    resize(desk.element, 1280)

    async def hold(ctx: Any) -> None:
        def change(tx: Any) -> None:
            holds.enlist(tx, uid, "claude", "anthropic:key")
            at = tx.now + 40 * 60_000_000
            holds.note_failure(
                tx,
                ctx.settings,
                holds.AttemptFailure(uid, task, 1, FailureKind.LIMIT, "429: You have hit your limit", at),
            )

        await ctx.write(change)

    on_server(desk.host, hold)
    view(desk.element, "Agents")
    expect(desk.element).to_contain_text("because of a limit")
    desk.element.get_by_role("button", name="ada").last.click()
    desk.element.get_by_role("button", name="Show the transcript").first.click()
    for width in (1280, 760, 420):
        resize(desk.element, width)
        shot(desk.element, f"agent-{width}")
    resize(desk.element, 1280)

    async def ask(ctx: Any) -> None:
        def change(tx: Any) -> None:
            holds.note_failure(
                tx,
                ctx.settings,
                holds.AttemptFailure(
                    uid,
                    task,
                    1,
                    FailureKind.AUTH,
                    "The provider refused the key.\nAPI Error: 401 invalid x-api-key\n" + "at main.js\n" * 12,
                ),
            )

        await ctx.write(change)

    on_server(desk.host, ask)
    view(desk.element, "Inbox")
    expect(desk.element).to_contain_text("accepts neither key")
    for width in (1280, 760, 420):
        resize(desk.element, width)
        shot(desk.element, f"failure-{width}")
