"""The objects of a project in a kernel that serves it: lists that show themselves, rows with actions, waits, help."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kernel.conftest import Kernel

pytestmark = [pytest.mark.timeout(120), pytest.mark.long]


@pytest.fixture(scope="module", autouse=True)
def _tasks(serving: Kernel) -> None:
    serving.run(TASKS)


TASKS = """
for number, title in enumerate(("Count", "Weigh", "Draw"), 1):
    _ = wb.call("create_task", title=title, persona_id="tester", priority=number * 10)
"""


ASKED = """
import json
from workbench.services.models.transcripts import Exchange, record
made = wb.call("register", name="asker", persona_id="tester")
wb.call("approve", approval_id=made["approval_id"], choices={"agent_id": "asker"})
asker, weigh = wb.as_agent(made["token"]), wb.tasks.create("Ask", "tester").id
asker.call("claim_task", task_id=weigh)
for model, tokens in (("gpt-5", 100_000), ("of-no-price", 7)):
    asker.call("report_usage", model=model, provider="p", task_id=weigh, input_tokens=tokens, output_tokens=0)
call = {"type": "tool_use", "id": "t", "name": "look", "input": {"at": "<b>"}}
said = [{"role": "user", "content": f"Question {number}"} for number in range(110)]
asked = {"messages": [*said, {"role": "assistant", "content": [call]}]}
exchange = Exchange("anthropic", "s", json.dumps(asked).encode(), b"{}", False)
wb.host.wait(record(wb.host.workbench._ctx, weigh, 1, exchange))
"""


def test_a_list_shows_itself_and_is_live(serving: Kernel) -> None:
    heads, first, *_ = serving.run("wb.tasks").splitlines()
    assert heads.split()[:3] == ["id", "title", "status"]
    assert first.split()[:2] == ["1", "Count"]
    assert "<table>" in serving.run("print(wb.tasks._repr_html_())")
    assert serving.run("before = len(wb.tasks); 1 in wb.tasks, 99 in wb.tasks, wb.task(1) in wb.tasks") == (
        "(True, False, True)"
    )
    serving.run('made = wb.call("create_task", title="Late", persona_id="tester")')
    assert serving.run("len(wb.tasks) - before") == "1"
    serving.run('wb.tasks[made["id"]].cancel("a mistake")')
    assert serving.run('wb.task(made["id"]).status, wb.task(made["id"]).error_message') == "('cancelled', 'a mistake')"


def test_a_snapshot_and_the_live_list_are_filtered_sorted_paged_and_frames(serving: Kernel) -> None:
    serving.run('found = wb.tasks(status="pending", persona="tester")')
    assert serving.run("[task.title for task in found]") == "['Count', 'Weigh', 'Draw']"
    assert serving.run('[task.title for task in found.sort("priority", reverse=True)]') == "['Draw', 'Weigh', 'Count']"
    assert serving.run('[task.title for task in found.filter(title="Weigh")]') == "['Weigh']"
    assert serving.run("[task.id for task in found.filter(lambda task: task.priority > 10).page(1, size=1)]") == "[2]"
    assert serving.run("found.frame()[['title', 'priority']].values.tolist()[0]") == "['Count', 10]"
    assert serving.run("found[-1].title, found[:2][1].title") == "('Draw', 'Weigh')"
    assert serving.run("found.page(9)") == "There is no page 9. The last one has the number 1."
    assert serving.run('list(wb.tasks.sort("priority")) == list(wb.tasks().sort("priority"))') == "True"
    assert serving.run('[task.title for task in wb.tasks.filter(title="Weigh")]') == "['Weigh']"
    serving.run("first = wb.tasks.frame().id.iloc[0]")
    assert serving.run("type(first).__name__, wb.tasks[first].id, wb.task(first).id") == "('int64', 1, 1)"
    assert serving.run('wb.call("get_task", task_id=first)["id"]') == "1"
    assert serving.run("len(wb.tasks.page(1, size=2)), wb.tasks.frame().shape[0] == len(wb.tasks)") == "(2, True)"


def test_a_row_reads_what_its_list_has_not_and_has_the_actions_of_the_panel(serving: Kernel) -> None:
    serving.run("count = wb.tasks()[0]")
    assert serving.run("count.description, count.attempts, count.max_retries") == "('', [], 2)"
    serving.run("count.prioritize(77)")
    assert serving.run("count.priority, wb.task(1).priority") == "(77, 77)"
    serving.run("count.assign(None)")
    serving.run("count.cancel(); count.retry('after all'); count.prioritize(10)")
    assert serving.run("count.status") == "'pending'"
    assert "Keep the header." in serving.run('count.comment("Keep the header."); count.messages')
    shown = serving.run("count")
    assert "1 Count" in shown
    assert "It has not been claimed yet." in shown
    assert serving.run('{"title", "cancel", "priority"} <= set(dir(count))') == "True"
    assert serving.run('hasattr(count, "colour"), getattr(count, "colour", 7)') == "(False, 7)"
    assert serving.run("wb.tasks[99] if 99 in wb.tasks else None, hash(count) == hash(wb.task(1))") == "(None, True)"


def test_a_field_missing_from_a_list_is_read_for_many_rows_at_once(serving: Kernel) -> None:
    serving.run("""
from unittest.mock import patch

for number in range(130):
    _ = wb.call("create_task", title=f"One of many {number}", description=str(number % 2), persona_id="reviewer")
found = wb.tasks(persona="reviewer")
with patch.object(type(wb), "call", autospec=True, side_effect=type(wb).call) as call:
    odd = found.filter(description="1").sort("created_at")
""")
    assert serving.run("len(odd), odd[0].title, odd[-1].title") == "(65, 'One of many 1', 'One of many 129')"
    asked = "get_task", "get_tasks", "list_tasks", "get_task", "get_tasks"
    assert serving.run("tuple(one.args[1] for one in call.call_args_list)") == repr(asked)


WRONG = {
    "wb.tasks[0:2]": "INVALID_ARGUMENTS: wb.tasks[…] takes an id or a name, not slice(0, 2, None). wb.tasks()",
    "wb.tasks[None]": "INVALID_ARGUMENTS: wb.tasks[…] takes an id or a name, not None. wb.tasks lists them.",
    "wb.tasks()[999]": "NOT_FOUND: The list has no position 999: it has ",
    "wb.tasks.page(0)": "INVALID_ARGUMENTS: Pages have numbers from 1",
    "wb.runs[9999]": "RUN_NOT_FOUND: There is no run 9999. wb.runs lists them.",
    'wb.personas["testr"]': "PERSONA_NOT_FOUND: There is no persona 'testr'.",
    'wb.plans["nothing"]': "PLAN_NOT_FOUND: There is no plan 'nothing'. wb.plans lists them.",
    "wb.events[10**9]": "EVENT_NOT_FOUND: There is no event 1000000000. wb.events lists them.",
    'wb.definitions["nobody"]': "AGENT_NOT_FOUND: No agent has the path, id or name 'nobody'. wb.definitions ",
    'wb.task(1).assign("nobody")': "AGENT_NOT_FOUND: There is no agent 'nobody'. wb.agents lists them.",
    'wb.approvals["nobody"]': "APPROVAL_NOT_FOUND: No request of 'nobody' waits for a decision. wb.approvals ",
    'wb.task(1).title = "Better"': "FIELD_READ_ONLY: Task.title ",
    "wb.task(1).titel": "UNKNOWN_FIELD: Task has no field 'titel'. Did you mean title?",
    "wb.tasks[9999]": "TASK_NOT_FOUND: There is no task 9999",
    'wb.tasks().sort("prioritty")': "UNKNOWN_FIELD: Task has no field 'prioritty'. Did you mean priority?",
    'wb.tasks(colour="red")': "INVALID_ARGUMENTS: ",
    "wb.taks": "UNKNOWN_FIELD: wb has no field 'taks'. Did you mean tasks",
    "wb.zzzzzz": "UNKNOWN_FIELD: wb has no field 'zzzzzz'. There are account, agents, approvals, ",
    "wb.tasks.fliter(id=1)": "UNKNOWN_FIELD: wb.tasks has no field 'fliter'. Did you mean filter",
    "wb.tasks().fliter(id=1)": "UNKNOWN_FIELD: wb.tasks(…) has no field 'fliter'. Did you mean filter",
    "wb.definitions.creat('x')": "UNKNOWN_FIELD: Definitions has no field 'creat'. Did you mean create",
    "wb.help(3)": "INVALID_ARGUMENTS: wb.help takes the name of an operation or a subject, not 3.",
    "wb.run(3)": "INVALID_ARGUMENTS: wb.run takes the name of a run, or the words of a command, not 3.",
    "wb.call(None)": "INVALID_ARGUMENTS: wb.call takes the name of an operation, not None.",
    "wb.report([])": "INVALID_ARGUMENTS: wb.report takes the name of a report, not [].",
    "wb.sql(None)": "INVALID_ARGUMENTS: wb.sql takes a query as a text, not None.",
    "wb.panel(3)": "INVALID_ARGUMENTS: wb.panel takes the name of a tab, not 3.",
    "wb.start(3)": "INVALID_ARGUMENTS: wb.start takes the directory of a project, not 3.",
    "wb.tasks.sort(3)": "UNKNOWN_FIELD: Task has no field 3. There are id, ",
    'wb.tasks.page("a")': "INVALID_ARGUMENTS: .page(…) takes the number of a page, and its size, not 'a'.",
    'wb.record("loss")': "NOT_A_METRIC: record takes values by name, as in record(loss=0.5) and ",
}


def test_a_missing_or_misspelt_name_is_an_error_of_one_line(serving: Kernel) -> None:
    serving.fail_in_a_line(WRONG)
    for cell, end in (
        ("wb.approvals[99]", "wb.approvals lists them."),
        ('wb.personas["testr"]', "Did you mean tester?"),
    ):
        assert serving.error(cell).endswith(end)
    assert serving.run("wb.task(1).title") == "'Count'", "nothing was assigned"
    assert serving.run("hasattr(wb, 'taks'), getattr(wb.tasks, 'shape', 0)") == "(False, 0)"
    assert serving.run('wb.run(["task", 1]).data["task"]["id"]') == "1"
    assert serving.run("wb.start(str(wb.settings.project))").startswith("Workbench serves ")


def test_an_old_event_is_found_by_its_id(serving: Kernel) -> None:
    serving.run("for _ in range(60): wb.task(1).prioritize(11); wb.task(1).prioritize(10)")
    assert serving.run("wb.events[1].kind, 1 in [event.id for event in wb.events]") == "('persona.saved', False)"
    assert serving.run("wb.events").splitlines()[-1].startswith("These are the newest: wb.events(before=")


def test_an_agent_is_admitted_changed_and_deleted(serving: Kernel) -> None:
    serving.run(
        'made = wb.call("register", name="ada", persona_id="tester"); asked = wb.approvals[made["approval_id"]]'
    )
    assert "ada" in serving.run("wb.approvals")
    serving.run('asked.approve(agent_id="ada")')
    assert serving.run("asked.status, asked.kind, len(wb.approvals)") == "('approved', 'registration', 0)"
    assert "approved" in serving.run("wb.approvals(status=None)")
    serving.run('ada = wb.agents["ada"]; ada.update(name="Ada", reason="her name")')
    assert serving.run("ada.name, [agent.agent_id for agent in wb.agents]") == "('Ada', ['ada'])"
    assert "her name" in serving.run("ada.changes")
    assert "{}" not in serving.run("ada"), "what it has none of is left out"
    assert "Use CSV." in serving.run('ada.tell("Use CSV."); ada.messages')
    assert "NOT_SUPERVISED" in serving.fail('ada.tell("Stop.", interrupt=True)')["evalue"]
    serving.run("ada.delete('gone')")
    assert serving.run("len(wb.agents), len(wb.agents(deleted=True))") == "(0, 1)"
    assert "AGENT_NOT_FOUND" in serving.run("ada"), "it is shown as it was, and why it cannot be read"
    serving.run("ada.restore()")
    assert serving.fail("ada.restore()")["evalue"] == "WRONG_STATE: ada is not deleted; nothing was changed."
    assert serving.run('"ada" in wb.agents') == "True"


SHOWN_LONG = """
from kernel_ext.session import WorkbenchSession as Session

asked, call = [], Session.call

def noted(session, name, **arguments):
    asked.append((name, arguments.get("limit")))
    return call(session, name, **arguments)

text = "tasks:" + "".join(f"\\n  - {{name: t{n}, title: T{n}, persona: tester}}" for n in range(130))
_ = wb.call("create_plan", text=text, name="long")
Session.call = noted
shown = str(wb.tasks)
print(asked, len(shown.splitlines()), shown.splitlines()[-1])
"""
FOUND_LONG = """
asked.clear()
found = wb.tasks(plan="long")
shown = repr(found)
print(bool(found), found[99].title, len(found.page(2)), asked, len(shown.splitlines()), shown.splitlines()[-1])
print(len(found), asked[1:], repr(found).splitlines()[-1], found[-1].title)
Session.call = call
"""


SORTED_LONG = """
for number in range(101):
    _ = wb.call("start_run", name=f"run {number}", key=f"key {number}")
caller = type(wb.runs._notebook)
asked, call = [], caller.call
caller.call = noted
shown = repr(wb.runs.sort("name"))
caller.call = call
print(asked, len(shown.splitlines()))
"""


def test_long_and_sorted_lists_are_read_as_far_as_they_are_shown(serving: Kernel) -> None:
    assert serving.run(SHOWN_LONG).strip() == (
        "[('list_tasks', 100)] 102 … and more: wb.tasks(field=value) has those that match, and wb.tasks() all."
    )
    note = "more: .page(number), .filter(field=value) and .sort(field) choose."
    assert serving.run(FOUND_LONG).strip().splitlines() == [
        f"True T99 20 [('list_tasks', 100)] 102 … and {note}",
        f"130 [('list_tasks', 1000)] … and 30 {note} T129",
    ]
    assert serving.run(SORTED_LONG).strip() == "[('list_runs', 100)] 102"


CANCELLED_WHILE_AWAITED = """
import asyncio, contextlib
from workbench import WorkbenchError
import kernel_ext.objects.progress as progress

shown, show = [], progress._show

def noted(handle, state, *dead):
    shown.append(state["status"])
    return show(handle, state, *dead)

async def wait(task):
    with contextlib.suppress(WorkbenchError):
        await task
    return task

async def cancel(number):
    while not shown:
        await asyncio.sleep(0.01)
    await asyncio.to_thread(wb.call, "cancel_task", task_id=number, reason="enough")

progress._show = noted
late = wb.call("create_task", title="Wait", persona_id="tester")["id"]
ended, _ = await asyncio.gather(wait(wb.task(late)), cancel(late))
progress._show = show
print(ended.status, shown)
"""


def test_a_wait_for_a_task_shows_how_far_it_is(serving: Kernel) -> None:
    lines = serving.run(CANCELLED_WHILE_AWAITED)
    assert "pending, 0 %" in lines
    assert "cancelled: enough" in lines
    assert lines.endswith("cancelled ['pending', 'cancelled']\n")


def test_plans_personas_worktrees_and_events_are_lists(serving: Kernel) -> None:
    serving.run(
        "%%plan --name paper\n"
        "tasks:\n"
        "  - {name: read, title: Read, persona: tester}\n"
        "  - {name: write, title: Write, persona: tester, after: [read]}\n"
    )
    assert serving.run('wb.plans["paper"].tasks, [t.title for t in wb.plans["paper"].all_tasks]') == (
        "(2, ['Read', 'Write'])"
    )
    assert serving.run('wb.plans["paper"]').splitlines()[1] == "0 of 2 tasks are completed, 2 are open."
    assert "'tester'" in serving.run("[persona.id for persona in wb.personas]")
    assert serving.run('wb.personas["tester"].role') == "'worker'"
    assert serving.run('wb.personas["tester"].definition.strip() in str(wb.personas["tester"])') == "True"
    created = 'wb.events(kinds=["task.created"])'
    assert serving.run(f"{{event.kind for event in {created}}}") == "{'task.created'}"


def test_help_and_completion_know_the_operations(serving: Kernel) -> None:
    shown = serving.run('wb.help("create_task")')
    assert "persona_id" in shown
    assert "required" in shown
    assert "planners" in shown
    assert "tasks" in (overview := serving.run("wb.help()"))
    assert len(overview) < 3_000, "an overview is read at once"
    assert "create_task" in serving.run('wb.help("tasks")')
    assert serving.fail('wb.help("creat_task")')["evalue"].startswith("UNKNOWN_OPERATION: ")
    offered = {name.removeprefix("wb.") for name in serving.complete("wb.")}
    assert {"tasks", "task", "sql", "report", "panel"} <= offered
    assert not {"host", "recorder", "tree", "require_operator"} & offered, "these are internal"
    assert "1" in serving.run("wb.tasks._ipython_key_completions_()")


def test_a_list_has_a_panel_of_its_own(serving: Kernel) -> None:
    shown = serving.run("wb.tasks.panel()")
    assert shown.startswith("Tasks: ")
    assert "Waiting for you" not in shown
    assert "Waiting for you" in serving.run("%workbench panel --dock")
    assert serving.run("%workbench panel worktrees --alone").splitlines()[0] == "Worktrees"
    assert serving.fail("wb.events.panel()")["evalue"].startswith("UNKNOWN_TAB: The panel has no tab 'events'.")
    assert serving.fail("%workbench panel event")["evalue"].startswith("UNKNOWN_TAB: ")


COMPLETED = {
    'wb.tasks(status="pending").sort("prio': "priority",
    'wb.tasks.filter(title="Count", prio': "priority=",
    'wb.tasks(status="pending", pers': "persona=",
    'wb.tasks(status="comp': "completed",
    'wb.tasks["weig': "weigh-it",
    'wb.agents["nobo': "",  # there is none, and nothing else fits
    'wb.runs(sweep="a", state="f': "failed",
    'wb.runs["first': "first try",
    'wb.panel("workt': "worktrees",
    'wb.report("criti': "critical_path",
    'wb.call("create_task", title="a", persona_id="teste': "tester",
    'wb.call("list_approvals", status="pend': "pending",
    "%workbench spawn tes": "tester",
    "%workbench export-plan the": "thesis",
    "%%persona tes": "tester",
    "%%wsql --as po": "polars",
    "%wsql --chart b": "bar",
    "%%wsql\nSELECT wait_sec": "wait_seconds",
    "%%wsql\nSELECT * FROM tasks AS t WHERE t.wait_sec": "wait_seconds",
    "%%wsql\nSELECT tasks.titl": "title",
}
"""Beginnings that only one word completes."""
OFFERED = {
    "await wb.task(": {"1"},
    "wb.tasks[1": {"1"},
    'wb.call("set_priority", task_id=1': {"1"},
    "wb.tasks(": {"status=", "persona="},
    'wb.tasks(status="pending", plan="the': {"thesis"},
    'wb.personas["': {"implementer", "planner", "reviewer", "tester"},
    'wb.tools["create_t': {"create_task"},
    'wb.call("create_t': {"create_task"},
    'wb.call("create_task", title="a", per': {"persona_id="},
    "%%wsql\nSELECT * FROM ta": {"tasks"},
    "%%wsql\nSELECT * FROM tasks WHERE wai": {"wait_seconds"},
    "%wsql SELECT * FROM ta": {"tasks"},
    "found = %workbench sql SELECT * FROM tasks WHERE wai": {"wait_seconds"},
    "1\n%wsql --ch": {"--chart"},
    "%%plan --name a --up": {"--update"},
    "%workbench panel ": {"inbox", "tasks"},
    "%workbench call create_task ": {"title=", "persona_id="},
    "%workbench sweep ": {"there.ipynb"},
    "%%wsql\nSELECT ": {"title", "tasks"},
    "%%wsql\nSELECT title FROM ": {"tasks", "runs"},
    'wb.tools["create_task"](': {"title=", "persona_id="},
    "%%plan\ntasks:\n  - {name: a, ": {"persona:", "after:"},
    "%%plan\ntasks:\n  - {name: a, persona: ": {"tester"},
    "wb.task(1).": {"title", "cancel"},
    "wb.approvals[1].": {"approve", "reject", "status"},
    'wb.agents["ada"].': {"terminate", "presence"},
    'wb.worktrees["fix"].': {"integrate", "ahead"},
    'wb.plans["tidy"].': {"graph", "completed"},
    'wb.personas["tester"].': {"save", "role"},
    "wb.events[1].": {"actor", "subject"},
}


def test_tab_completes_names_fields_values_columns_and_options(serving: Kernel) -> None:
    for plan, task in (("thesis", "read"), ("keys", "weigh-it")):
        serving.run(f"%%plan --name {plan}\ntasks:\n  - {{name: {task}, title: T, persona: tester}}\n")
    serving.run('with wb.run("first try"): pass')
    serving.run("import pathlib; pathlib.Path('there.ipynb').touch()")
    for beginning, word in COMPLETED.items():
        assert serving.complete(beginning) == ([word] if word else []), beginning
    for beginning, words in OFFERED.items():
        assert words <= set(serving.complete(beginning)), beginning
    assert not {"KIND", "fields"} & set(serving.complete("wb.task(1).")), "these are internal"


ARTIFACTS = """
import pathlib

_ = pathlib.Path(wb.settings.project, "rows.csv").write_text("mass,count\\n3700,2\\n")
pia = wb.call("register", name="pia", persona_id="reviewer")
_ = wb.call("approve", approval_id=pia["approval_id"])
drawn = wb.call("create_task", title="Sort", persona_id="reviewer")["id"]
agent = wb.as_agent(pia["token"])
_ = agent.call("claim_task", task_id=drawn)
_ = agent.call("complete_task", task_id=drawn, artifacts=["rows.csv", "gone.txt", "commit:1"])
"""


def test_artifacts_of_a_task_show_themselves_in_a_cell(serving: Kernel) -> None:
    serving.run(ARTIFACTS)
    assert serving.run("[(one.name, one.kind) for one in wb.task(drawn).artifacts]") == (
        "[('rows.csv', 'file'), ('gone.txt', 'file'), ('commit:1', 'commit')]"
    )
    assert "rows.csv" in serving.run("wb.task(drawn).artifacts")
    assert serving.run('wb.task(drawn).artifacts["rows.csv"]').splitlines()[0].split() == ["mass", "count"]
    assert serving.run("wb.task(drawn).artifacts[0].open().frame().values.tolist()") == "[['3700', '2']]"
    assert "<table>" in serving.run('print(wb.task(drawn).artifacts["rows.csv"]._repr_mimebundle_()["text/html"])')
    assert "ARTIFACT_UNREADABLE: " in serving.run("wb.task(drawn).artifacts[1]")
    assert serving.run("wb.task(drawn).artifacts[2]") == "commit:1"
    assert serving.fail('wb.task(drawn).artifacts["x"]')["evalue"].startswith("ARTIFACT_NOT_FOUND: ")
    shown = serving.run("%workbench task {drawn} --artifact rows.csv")
    assert "3700" in shown


def test_an_object_inside_a_list_is_shown_on_one_line(serving: Kernel) -> None:
    number = serving.run('alone = wb.call("create_task", title="Alone", persona_id="tester")["id"]; alone')
    assert serving.run("[wb.task(alone)]") == f"[<Task {number}: Alone, pending>]"
    assert f"<Task {number}: Alone, pending>>" in serving.run("wb.tasks[alone].retry")
    assert serving.run("print(wb.task(alone))").startswith(f"{number} Alone\n")
    assert serving.run("[wb.personas['tester']]") == "[<Persona tester: Tester>]"


def test_tasks_and_approvals_are_also_found_by_name(serving: Kernel) -> None:
    for plan in ("first", "second"):
        tasks = "".join(f"  - {{name: {name}, title: T, persona: tester}}\n" for name in (plan, "same"))
        serving.run(f"%%plan\nplan: {plan}-of-two\ntasks:\n{tasks}")
    assert serving.run('wb.tasks["first"].plan') == "'first-of-two'"
    wrong = {
        'wb.tasks["same"]': "AMBIGUOUS_NAME: 2 tasks are called 'same': ",
        'wb.tasks["missing"]': "TASK_NOT_FOUND: No task of a plan is called 'missing'. wb.tasks lists the tasks.",
    }
    serving.fail_in_a_line(wrong)
    serving.run('made = wb.call("register", name="zoe")')
    assert serving.run('wb.approvals["zoe"].id == made["approval_id"]') == "True"
    assert serving.fail('wb.approvals["missing"]')["evalue"].endswith(" wb.approvals lists those that wait.")
    serving.run('wb.approvals["zoe"].reject()')
    assert serving.fail("wb.runs.compare(9998, 9999)")["evalue"].endswith("no run 9998. wb.runs lists them.")


def test_a_task_has_its_cost_which_may_be_unknown_and_its_transcript(serving: Kernel) -> None:
    serving.run(ASKED)
    assert serving.run("wb.task(weigh).cost.usd, wb.task(weigh).cost.unpriced") == "(0.125, 1)"
    assert "$0.12 + unknown" in serving.run("wb.agents['asker'].cost")
    assert serving.run('wb.spending("model").frame().set_index("name").cost_usd.isna().to_dict()') == (
        "{'gpt-5': False, 'of-no-price': True}"
    )
    assert serving.run("wb.spending('plan', plan='none')") == "No request to a model was made."
    serving.run("said = wb.task(weigh).transcript()")
    shown = serving.run("said").splitlines()
    assert shown[0] == "11 earlier messages are left out: .frame() has all."
    assert shown[-1] == '[assistant] look({"at": "<b>"})'
    assert serving.run("len(said), said.frame().tool.iloc[-1]") == "(111, 'look')"
    html = serving.run("print(said._repr_html_())")
    assert "<details><summary><b>look</b>" in html
    assert "&lt;b&gt;" in html
    assert serving.run("len(wb.task(weigh).transcript(containing='question 7'))") == "11"


MERGED = """
import subprocess
from pathlib import Path

def git(*words):
    subprocess.run(["git", "-C", str(project), *words], check=True, capture_output=True)

git("init", "-b", "main")
git("config", "user.name", "Ada")
git("config", "user.email", "ada@example.org")
(project / "model.py").write_text("x = 1\\n")
git("add", "model.py")
git("commit", "-m", "A model")
"""
WORKED = """
made = wb.call("create_worktree", name="fix")
(Path(made["path"]) / "model.py").write_text("x = 2\\n")
_ = wb.run(["worktrees", "run", "fix", "--", "git", "commit", "-qam", "Two"])
"""


def test_approving_a_merge_says_what_came_of_it(kernel: Kernel, tmp_path: Path) -> None:
    kernel.run(f"from pathlib import Path\nproject = Path({str(tmp_path)!r})\n{MERGED}")
    kernel.run(f'%workbench start --project "{tmp_path}" --port 0')
    kernel.run(WORKED)
    kernel.run('asked = wb.worktrees["fix"].integrate()')
    assert kernel.fail('wb.worktrees["fxi"]')["evalue"].endswith("Did you mean fix?")
    shown = kernel.run("asked")
    assert shown.splitlines()[0] == f"Approval {kernel.run('asked.id')}: integration"
    assert "wb/fix/main into main: 1 commit\n" in shown
    assert "`wb.approvals[1].approve()` approves it" in shown
    assert "{" not in shown + kernel.run("print(asked._repr_html_())")
    comment = 'comments={"model.py:1": "Why two?"}, persona="tester"'
    assert kernel.run(f'asked.request_changes("Explain", {comment})').endswith("Approval 1 stays open.")
    kernel.run('_ = wb.worktrees["fix"].request_changes("Once more")')
    assert kernel.run('asked.status, len(wb.call("get_requested_changes")["requests"])') == "('pending', 2)"
    error = kernel.fail('asked.request_changes(comments={"model.py": "Where?"})')
    assert error["evalue"].startswith("INVALID_ARGUMENTS: comments: 'model.py' is not PATH:LINE ")
    kernel.run('wb.tasks(worktree="fix")[0].cancel()')
    kernel.run('_ = (project / "model.py").write_text("x = 3\\n")')
    error = kernel.fail("asked.approve()")["evalue"]
    assert error.startswith("TARGET_DIRTY: The checkout of main has uncommitted changes in model.py.")
    assert kernel.run("asked.status") == "'failed'"
    assert "\nrefused " in kernel.run("asked")
    kernel.run('git("checkout", "model.py")')
    assert kernel.run('wb.worktrees["fix"].integrate().approve()').startswith("fix is integrated.\nTasks: ")
    kernel.run("%workbench stop")
    assert (tmp_path / "model.py").read_text() == "x = 2\n"
