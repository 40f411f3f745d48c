"""The extension in a real kernel, driven over the Jupyter protocol as a front end does."""

from __future__ import annotations

import getpass
import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kernel.conftest import Kernel, started

pytestmark = [pytest.mark.timeout(120), pytest.mark.long]


def port_of(kernel: Kernel) -> int:
    return int(kernel.run("wb.server.url").strip("'").rpartition(":")[2])


def is_open(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_loading_the_extension_twice_changes_nothing(kernel: Kernel) -> None:
    kernel.run("%load_ext workbench")
    kernel.run("import workbench; workbench.load_ipython_extension(get_ipython())")
    names = "[type(magics).__name__ for magics in get_ipython().magics_manager.registry.values()]"
    assert kernel.run(f"{names}.count('WorkbenchMagics')") == "1"


def test_start_prints_the_address_and_stop_leaves_nothing_behind(kernel: Kernel, repository: Path) -> None:
    kernel.run("import gc, sys, threading")
    state = "print(sorted(t.name for t in threading.enumerate()), sys.getswitchinterval(), gc.get_threshold())"
    before = kernel.run(state)
    said = kernel.serve(repository)
    port = port_of(kernel)
    assert f"http://127.0.0.1:{port}" in said
    assert is_open(port)
    assert kernel.run("print(sys.getswitchinterval(), gc.get_threshold()[0])") == "0.0005 20000\n"
    kernel.run("%workbench stop")
    assert not is_open(port)
    assert kernel.run(state) == before
    assert "pid" not in json.loads((repository / ".aiswarm" / "server.json").read_text())


@pytest.mark.parametrize(
    ("cell", "times"),
    [
        ("%workbench stop", 1),
        ("%workbench stop\nx = 1", 1),
        ("for _ in range(2):\n    %workbench stop", 2),
        ("def leave():\n    %workbench stop\nleave()", 1),
        ("import asyncio\nawait asyncio.sleep(0)\n%workbench stop\n%workbench stop", 2),
        ("said = %workbench stop\nx = 1", 0),
    ],
)
def test_the_message_of_a_magic_is_shown_wherever_it_stands_in_a_cell(kernel: Kernel, cell: str, times: int) -> None:
    assert kernel.run(f"%load_ext workbench\n{cell}").count("Workbench was not running.") == times


def test_a_failed_start_of_the_servers_is_one_clear_message(kernel: Kernel, repository: Path, tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        error = kernel.error(f'%workbench start --project "{repository}" --port {port}')
    assert error.startswith(f"Unavailable: PORT_TAKEN: Port {port} is taken")
    (tmp_path / ".aiswarm").write_text("in the way")
    for project, refusal in (
        (tmp_path, "Unavailable: PROJECT_UNWRITABLE"),
        (tmp_path / "new", "BadInput: NOT_A_DIRECT"),
    ):
        assert kernel.error(f'%workbench start --project "{project}" --port 0').startswith(refusal)
    assert not (tmp_path / "new").exists()
    kernel.run("import os; os.environ['WORKBENCH_PORT'] = 'http'")
    error = kernel.error(f'%workbench start --project "{repository}"')
    kernel.run("del os.environ['WORKBENCH_PORT']")
    assert error == (
        "BadInput: BAD_SETTINGS: WORKBENCH_PORT: Input should be a valid integer, unable to parse string as an "
        "integer. Correct or unset the environment variable."
    )
    assert kernel.run("%workbench stop").strip() == "Workbench was not running."
    error = kernel.error("%workbench tasks")
    assert error == "Unavailable: NOT_STARTED: Workbench is not running in this kernel. Run `%workbench start`."


MISTAKES = {
    "%workbench approve 'x": "BAD_COMMAND: No closing quotation: approve 'x. Run `%workbench --help` for help.",
    "%%plan --name 'x\nx": "BAD_COMMAND: No closing quotation: --name 'x. Run `%%plan?` for help.",
    "%%plan --zzz x\nx": "BAD_COMMAND: unrecognized arguments: --zzz x. Run `%%plan?` for help.",
    "%%plan --udpate\nx": (
        "BAD_COMMAND: unrecognized arguments: --udpate. Did you mean --update or --out? Run `%%plan?` for help."
    ),
    "%workbench panel taks": (
        "UNKNOWN_TAB: The panel has no tab 'taks'. Did you mean tasks? It has inbox, tasks, worktrees, agents, "
        "definitions, tools, chat, runs, analytics, personalities, projects, admin."
    ),
    "%%plan --file x\nx": "FILE_UNREADABLE: x cannot be read: No such file or directory. Choose another file.",
    "%workbench nothing": "BAD_COMMAND: No such command 'nothing'. Run `%workbench --help` for help.",
    "%workbench worktres": (
        "BAD_COMMAND: No such command 'worktres'. Did you mean 'worktrees'? Run `%workbench --help` for help."
    ),
    "%workbench tasks --worktre x": (
        "BAD_COMMAND: No such option '--worktre'. (Did you mean one of: '--sort', '--worktree'?) "
        "Run `%workbench tasks --help` for help."
    ),
    "%workbench rules ad": (
        "BAD_COMMAND: No such command 'ad'. Did you mean 'add'? Run `%workbench rules --help` for help."
    ),
    "%workbench token ada": "BAD_COMMAND: No such command 'token'. Run `%workbench --help` for help.",
}
MISTAKES_WHILE_SERVING = {
    "%workbench taks": "BAD_COMMAND: No such command 'taks'.",
    "%workbench task 99": "TASK_NOT_FOUND: There is no task 99",
    'wb.call("get_task", task_id=99)': "TASK_NOT_FOUND: There is no task 99",
    "wb.task(99)": "TASK_NOT_FOUND: There is no task 99",
    'wb.task("x")': "TASK_NOT_FOUND: No task of a plan is called 'x'.",
    'wb.call("clam_task")': "UNKNOWN_OPERATION: There is no operation 'clam_task'. Did you mean claim_task",
    'wb.call("get_task", taskid=1)': "INVALID_ARGUMENTS: get_task: task_id: required; taskid: unknown name "
    "(did you mean task_id?).",
}


def test_a_mistake_in_the_line_is_one_clear_message_before_the_start_too(kernel: Kernel) -> None:
    for cell, error in MISTAKES.items():
        assert kernel.error(cell) == f"BadInput: {error}"


def test_an_error_is_one_line_with_its_code(running: Kernel) -> None:
    for cell, beginning in MISTAKES_WHILE_SERVING.items():
        error = running.error(cell).partition(": ")[2]
        assert (error.startswith(beginning), "\n" in error) == (True, False), error


def test_completion_and_status_work_before_the_start_and_after_a_stop(tmp_path: Path) -> None:
    with started(tmp_path) as kernel:
        assert {"start", "stop", "panel", "report", "approve"} <= set(kernel.complete("%workbench "))
        lines = kernel.run("%workbench").splitlines()
        assert lines[0].split() == ["project", str(tmp_path)]
        assert lines[1].split() == ["server", "not", "running"]
        assert lines[-1] == "Workbench is not running in this kernel. Run `%workbench start`."
        for name in ("tasks", "definitions", "tools", "personalities"):
            assert kernel.run(f"wb.{name}").startswith("NOT_STARTED: "), name
        assert kernel.run("wb") == "Workbench is not running. `%workbench start` starts it."
        assert kernel.fail("wb.tasks()")["evalue"].startswith("NOT_STARTED: ")
        assert not (tmp_path / ".aiswarm").exists()
        kernel.run('%workbench start --port 0\nwb.call("create_task", title="Count", persona_id="tester")')
        kernel.run("%workbench stop")
        assert ["tasks", "pending", "1"] in [line.split() for line in kernel.run("%workbench status").splitlines()]


def test_a_plan_is_refused_whole_previewed_created_once_and_updated(running: Kernel, tmp_path: Path) -> None:
    for line, reason in (("persona: wizard", "unknown persona 'wizard'"), ("persona: [", "not YAML")):
        error = running.error(f"%%plan\nplan: p\ntasks:\n  - name: a\n    title: A\n    {line}\n")
        assert error.startswith("BadInput: PLAN_INVALID")
        assert reason in error
        assert "line " in error
    plan = "plan: p\ntasks:\n  - {name: a, title: Do it, persona: tester, worktree: w}\n"
    lines = running.run(f"%%plan --dry-run\n{plan}").splitlines()
    assert lines == ["Plan p: would be created; nothing was changed.", "+ a: Do it"]
    assert "There are no tasks" in running.run("%workbench tasks")
    running.run(f"%%plan -o made\n{plan}")
    assert running.run('made["tasks"], made["worktrees"]') == "({'a': 1}, ['w'])"
    assert "Do it" in running.run("%workbench tasks")
    (file := tmp_path / "plan.yaml").write_text(plan)
    for text in ("", "\nignored"):
        running.run(f'%%plan --again --file "{file}"{text}')
    assert running.run('[plan["plan"] for plan in wb.call("list_plans")["plans"]]') == "['p', 'p-2', 'p-3']"


def test_the_persona_magic_saves_its_cell_as_a_persona(running: Kernel) -> None:
    said = running.run("%%persona birder -o made\n---\nname: Birder\n---\nCount what you see.\n")
    assert said.strip() == "Saved persona birder; its agents are workers."
    assert running.run('made["name"]') == "'Birder'"
    assert "birder" in running.run("%workbench personas")
    assert running.error("%%persona 'no id'\nx").startswith("BadInput: ")


def test_results_and_tasks_show_themselves_in_words_and_in_html_and_results_are_dicts(running: Kernel) -> None:
    running.run("%%plan\nplan: p\ntasks:\n  - {name: a, title: Do <it>, persona: tester}\n")
    assert "Do <it>" in running.run("wb.task(1)")
    assert "○</span> pending" in running.run("print(wb.task(1)._repr_html_())")
    assert "Do &lt;it&gt;" in running.run("print(wb.tasks._repr_html_())")
    assert running.run("wb.graph()").splitlines() == ["id  title    status   after", "1   Do <it>  pending"]
    assert "1 Do &lt;it&gt;</text>" in running.run('print(wb.graph("p")._repr_html_())')
    assert running.fail('wb.graph("--help")')["evalue"].startswith("PLAN_NOT_FOUND: There is no plan '--help'.")
    assert running.run('wb.call("list_tasks")').splitlines()[0] == "tasks: 1"
    assert "Do &lt;it&gt;" in running.run('print(wb.call("list_tasks")._repr_html_())')
    said = running.run('asked = wb.call("register", name="ada", persona_id="tester")\nasked')
    assert running.run("type(asked).__mro__[1].__name__, asked['token'][:4]") == "('dict', 'wba_')"
    assert running.run("asked['token']").strip("'") not in said


def test_sql_sees_the_live_store_and_the_dataframes_of_the_notebook_and_binds_one(running: Kernel) -> None:
    running.run("%%plan\nplan: p\ntasks:\n  - {name: a, title: A, persona: tester}\n")
    running.run("%%wsql found\nSELECT name, status FROM tasks")
    assert running.run('found.to_dict("records")') == "[{'name': 'a', 'status': 'pending'}]"
    running.run('wb.call("cancel_task", task_id=1)')
    running.run('import pandas\nweights = pandas.DataFrame({"name": ["a"], "kilograms": [3]})')
    query = "SELECT status, kilograms FROM tasks JOIN weights USING (name)"
    running.run(f"%%wsql found\n{query}")
    assert running.run("found.values.tolist()") == "[['cancelled', 3]]"
    assert running.run(f'wb.sql("{query}")["kilograms"].tolist()') == "[3]"


def test_sql_reaches_files_only_with_files(running: Kernel, tmp_path: Path) -> None:
    (tmp_path / "given.csv").write_text("a,b\n1,2\n")
    query = f"SELECT a + b AS c FROM '{tmp_path / 'given.csv'}'"
    for cell in (f"%%wsql\n{query}", f'wb.sql("{query}")'):
        assert "FILES_NOT_ALLOWED" in running.error(cell)
    running.run(f"%%wsql --files found\n{query}")
    assert running.run('found["c"].tolist()') == "[3]"
    assert running.run(f'wb.sql("{query}", files=True)["c"].tolist()') == "[3]"


def test_a_cell_queries_another_project_and_draws(running: Kernel, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "workbench.cli", "init", "--project", str(tmp_path)]
    subprocess.run(command, check=True, capture_output=True)
    query = "SELECT 'here' AS place, count(*) AS tasks FROM tasks UNION ALL SELECT 'there', count(*) FROM other.tasks"
    said = running.run(f'%%wsql found --project "other={tmp_path}" --chart bar place tasks\n{query}')
    assert said.split()[:2] == ["place", "tasks"]
    assert running.run('found.query("place == \'there\'")["tasks"].tolist()') == "[0]"
    assert running.run('type(found.chart()).__name__, len(wb.sql("FROM other.tasks"))') == "('Report', 0)"


def test_a_query_stands_on_one_line_as_in_the_terminal(running: Kernel) -> None:
    running.run("%%plan\nplan: p\ntasks:\n  - {name: a, title: A, persona: tester}\n")
    running.run('wanted = "tester"; braces = 3')
    running.run("found = %wsql SELECT name, {'braces': 1} AS made FROM tasks WHERE persona = $wanted")
    assert running.run("found.values.tolist()") == "[['a', {'braces': 1}]]"
    running.run("%wsql other -p wanted=nobody SELECT name FROM tasks WHERE persona = $wanted")
    assert running.run("len(other)") == "0"
    for line in ("FROM found SELECT name", '"SELECT name FROM found"', "bound SELECT name FROM found"):
        assert running.run(f"%workbench sql {line}").split() == ["name", "0", "a"]
    assert running.run("bound['name'].tolist()") == "['a']"
    assert "a" in running.run("%wsql --chart bar name SELECT name FROM found")
    assert running.run('wb.run(["sql", "-p", "n=2", "SELECT $n AS n"])["n"].tolist()') == "[2]"
    assert "[OPTIONS] QUERY" in running.run("%workbench sql --help")


def test_a_line_that_is_no_query_is_one_clear_message(running: Kernel) -> None:
    wrong = {
        "%%wsql --project other\nSELECT 1": "INVALID_ARGUMENTS: --project: 'other'",
        "%%wsql --chart pie\nSELECT 1": "UNKNOWN_CHART: ",
        "%%wsql\nSELECT nothing FROM nowhere": "SQL_FAILED: ",
        "%wsql": "BAD_COMMAND: There is no query. Write one after the options",
        "%wsql SELECT nothing FROM nowhere": "SQL_FAILED: ",
        "%wsql --colour red SELECT 1": "BAD_COMMAND: ",
        "%workbench sql --as polars --chart bar SELECT 1": "BAD_COMMAND: --chart draws",
        "%wsql -p n SELECT $n": "BAD_COMMAND: --param: 'n' is not NAME=VALUE. Run `%%wsql?`",
    }
    running.fail_in_a_line(wrong)


def test_other_magics_still_expand_variables(running: Kernel) -> None:
    running.run('for title in ("Count", "Weigh"):\n    %workbench call create_task title={title} persona_id=tester')
    running.run("def shown(number):\n    %workbench task {number}\nshown(2)")
    assert running.run("[task.title for task in wb.tasks]") == "['Count', 'Weigh']"


def test_a_project_can_be_queried_after_its_servers_stopped(running: Kernel) -> None:
    running.run('wb.call("create_task", title="Count", persona_id="tester")')
    assert running.run('wb.sql("SELECT title FROM tasks")["title"].tolist()') == "['Count']"
    running.run('wb.call("create_task", title="Weigh", persona_id="tester")')
    port = port_of(running)
    running.run("%workbench stop")
    running.run("%%wsql stored\nSELECT title FROM tasks ORDER BY id")
    assert running.run('stored["title"].tolist()') == "['Count', 'Weigh']"
    assert running.run('int(wb.report("totals").frame["tasks"].sum())') == "2"
    assert not is_open(port)
    assert "NOT_STARTED" in running.error('wb.call("create_task", title="Too late", persona_id="tester")')


def test_a_cell_that_waits_for_a_decision_says_so_and_shows_it(running: Kernel) -> None:
    running.run('asked = wb.call("register", name="ada", persona_id="tester")["approval_id"]')
    decide = 'threading.Timer(0.5, lambda: wb.call("reject", approval_id=asked, reason="Not today")).start()'
    said = running.run(f"import threading\n{decide}\ndone = await wb.decided(asked)")
    assert said.startswith("This cell waits for your decision\n")
    assert "`workbench approve " in said
    assert said.endswith(f"Rejected by {getpass.getuser()}: the registration of ada: Not today")
    assert running.run("await wb.decided(asked, auto=False) == done") == "True"  # decided already: nothing to show


def test_a_cell_that_waits_is_interrupted_at_once(running: Kernel) -> None:
    running.run('asked = wb.call("register", name="eve", persona_id="tester")["approval_id"]')
    running.run("import asyncio, os, signal, threading")
    threads = "threading.Timer(1, lambda: os.kill(os.getpid(), signal.SIGINT)).start()"
    said, error = running.attempt(f"{threads}\nawait wb.decided(asked)")
    assert error == (
        "WaitInterrupted: WAIT_INTERRUPTED: The cell was interrupted. "
        "What is not decided stays open: wb.approvals has it."
    )
    assert "The cell was stopped before everything was decided." in said
    assert running.run('wb.call("get_approval", approval_id=asked)["status"]') == "'pending'"


def test_the_tab_key_completes_subcommands_and_options(kernel: Kernel) -> None:
    offered = set(kernel.complete("%workbench "))
    assert {"start", "approve", "worktrees"} <= offered
    assert not {"and", "if", "is"} & offered, "Python's words do not fit there"
    assert "--worktree" in kernel.complete("%workbench spawn --")
    assert {"list", "add", "remove"} <= set(kernel.complete("%workbench rules "))
    assert "--anywhere" in kernel.complete("%workbench rules add --")
    assert {"csv", "json"} <= set(kernel.complete("%workbench export tasks --format "))


def test_an_agent_in_a_cell_is_told_that_it_was_rejected_and_why(running: Kernel) -> None:
    running.run('made = wb.call("register", name="eve")')
    assert running.run('%workbench reject 1 --reason "Not today"').strip() == "Rejected 1."
    running.run("import workbench")
    error = running.error('with workbench.SyncAgent(wb.server.url, token=made["token"]): pass')
    assert error.startswith("Refused: REJECTED: Your registration was rejected: Not today.")


def test_an_agent_is_admitted_with_choices_in_lines_with_quotes_and_comments(running: Kernel) -> None:
    running.run('wb.call("register", name="ada", persona_id="tester")')
    running.run("%workbench projects add Lab   # where the team works")
    running.run('%workbench sessions add Lab "Day # 1"')
    running.run("%workbench sessions add Lab Day#2  #")
    sessions = 'sorted(session["name"] for session in wb.call("list_sessions")["sessions"])'
    assert running.run(sessions) == "['Day # 1', 'Day#2']"
    granted = "ada is admitted: worker, persona tester, read only, sees its own data, in Lab / Day # 1"
    assert granted in running.run('%workbench approve 1 --session "Day # 1" --tool read')
    assert "Day # 1" in running.run("%workbench agents")


def test_a_panel_without_a_front_end_is_a_table_of_the_last_state(running: Kernel) -> None:
    running.run('wb.call("register", name="<b>ada</b>", persona_id="tester")')
    assert "ada" in running.run("%workbench panel")
    running.run('wb.call("create_task", title="Count", persona_id="tester")')
    said = running.run("%workbench stop")
    assert said.startswith("Workbench, as it was on ")
    assert "Count" in said


def test_help_is_a_question_mark_an_option_and_a_word(kernel: Kernel) -> None:
    assert "Run a team of agents from this notebook" in kernel.inspect("%workbench")
    assert "--file" in kernel.inspect("%%plan")
    assert "DuckDB" in kernel.inspect("%%wsql")
    said = kernel.run("%workbench approve --help")
    assert "Approve requests" in said
    assert said.endswith("Show this message and exit.\n")
    assert "--project" not in said
    assert kernel.run("%workbench help approve") == said
    assert kernel.run("%workbench help") == kernel.run("%workbench --help")
    assert kernel.run("%workbench status --help").startswith("Usage: %workbench status")


def test_the_servers_answer_while_a_cell_computes(running: Kernel) -> None:
    """Asked from inside the busy cell: a worker thread of the client sees answers before the loop ends."""
    code = """
import threading, urllib.request
answered = threading.Event()
def knock():
    urllib.request.urlopen(wb.server.url + "/health").read()
    answered.set()
threading.Thread(target=knock).start()
turns = 0
while not answered.is_set():
    turns += 1
answered.is_set()
"""
    assert running.run(code) == "True"


def test_unloading_the_extension_stops_the_servers(kernel: Kernel, repository: Path) -> None:
    kernel.serve(repository)
    port = port_of(kernel)
    kernel.run("%unload_ext workbench")
    assert not is_open(port)
    said, _ = kernel.attempt("%workbench status")
    assert "not found" in said
    kernel.run("%load_ext workbench")
