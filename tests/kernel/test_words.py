"""Messages of a notebook about mistakes, empty lists and interrupts: one line, in the words of a notebook."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chance import some_of
from tests.interrupting import IN_DUCKDB
from tests.kernel.conftest import Kernel, started

pytestmark = [pytest.mark.timeout(120), pytest.mark.long]

INTERRUPT = """
import os, signal, threading
threading.Timer(1, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
"""
INTERRUPT_IMPORT = """
import os, signal, sys
class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == "{package}":
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupt())
"""
"""Interrupt the kernel as soon as a package begins to be imported."""
INTERRUPTED = "SQL_INTERRUPTED: The query was interrupted. Narrow it, and run it again."


MISSING = {
    "%%chat reviewer": "The cell has no question. Write it below the first line. Run `%%chat?` for help.",
    "%%plan": "The cell has no plan. Write it below the first line. Run `%%plan?` for help.",
    "%%wsql": "The cell has no query. Write it below the first line. Run `%%wsql?` for help.",
    "%%persona x": "The cell has no persona. Write it below the first line. Run `%%persona?` for help.",
    "%workbench approve": "Give the ids of approvals, or --all. `%workbench approvals` lists them. "
    "Run `%workbench approve --help` for help.",
}


def test_a_cell_with_a_missing_argument_is_an_error_of_one_line(serving: Kernel) -> None:
    for cell, problem in MISSING.items():
        assert serving.error(cell) == f"BadInput: BAD_COMMAND: {problem}"


def test_a_notebook_is_told_of_magics_and_a_shell_of_commands(serving: Kernel) -> None:
    assert serving.run("%workbench define") == (
        "There are no definitions. `%workbench define create NAME` creates one."
    )
    assert serving.run("wb.definitions") == serving.run("%workbench define")
    assert serving.run("wb.report()") == serving.run("%workbench report")
    for magic in ("%wsql", "%%wsql"):
        assert "wsql_line" not in serving.inspect(magic), magic
    assert serving.run("%workbench teams").endswith("`%workbench teams add NAME --session SESSION` creates one.")
    assert serving.run("%workbench runs sweeps").endswith("`%workbench sweep NOTEBOOK -p NAME=VALUES` runs one.")
    assert serving.run("%workbench views").endswith("`%workbench views NAME` lists the columns of one.")
    error = serving.fail('wb.call("creat_task")')["evalue"]
    assert error.endswith("Did you mean create_task, create_tasks or create_subtask? wb.help() lists them by subject.")


def test_an_interrupt_during_the_imports_of_a_query_is_one_line(tmp_path: Path) -> None:
    for package in some_of(["duckdb", "numpy.linalg", "pandas.core.frame"]):
        (home := tmp_path / package).mkdir()
        with started(home) as kernel:
            kernel.run('%workbench start --project "." --port 0')
            kernel.run(INTERRUPT_IMPORT.format(package=package))
            assert kernel.fail('wb.sql("SELECT 1")')["traceback"] == [INTERRUPTED]
            assert kernel.run('wb.sql("SELECT 41 + 1 AS x").x[0].item()') == "42"


def test_errors_of_a_called_sweep_name_arguments_instead_of_options(serving: Kernel) -> None:
    message = serving.fail("wb.sweep()")["evalue"]
    assert "resume=True and retry_failed=True" in message
    assert "--" not in message
    assert "--resume and --retry-failed" in serving.fail("%workbench sweep")["evalue"]


def test_an_interrupt_of_the_database_itself_is_one_line(tmp_path: Path) -> None:
    with started(tmp_path) as kernel:
        for cell in ('wb.sql("SELECT 1")', 'wb.report("tasks")', "%wsql SELECT 1"):
            kernel.run('%workbench start --project "." --port 0')
            kernel.run(IN_DUCKDB)
            assert kernel.fail(cell)["traceback"] == [INTERRUPTED], cell
            kernel.run(cell)
            kernel.run("%workbench stop")  # the next one makes the views anew


def test_a_wait_for_a_task_says_when_it_waits_in_vain(serving: Kernel) -> None:
    serving.run("""
import threading

dead = wb.call("create_task", title="Dead", persona_id="reviewer")["id"]
after = wb.call("create_task", title="After it", persona_id="reviewer", dependencies=[dead])["id"]
wb.task(dead).cancel("not this year")
threading.Timer(2, lambda: wb.task(after).cancel()).start()
""")
    said, error = serving.attempt("_ = await wb.task(after)")
    assert str(error).startswith(f"Conflict: TASK_CANCELLED: Task {serving.run('after')} was cancelled.")
    assert f"Task {serving.run('after')}: blocked, waits for {serving.run('dead')} (cancelled; retry it), 0 %" in said


def test_decisions_that_were_awaited_show_themselves(serving: Kernel) -> None:
    serving.run('asked = wb.call("register", name="eve", persona_id="tester")["approval_id"]')
    heads, row = serving.run("await wb.decided(asked, auto=True)").splitlines()
    assert (heads.split()[:3], row.split()[1:3]) == (["id", "kind", "about"], ["registration", "eve,"])
    assert serving.fail("await wb.decided(99)")["evalue"].endswith("wb.approvals lists them.")
    serving.run('wb.agents["eve"].delete()')


def test_an_interrupted_query_wait_or_call_is_one_line_and_breaks_nothing(serving: Kernel) -> None:
    serving.run('made = wb.call("create_task", title="Wait", persona_id="tester")["id"]')
    for cell, beginning in {
        'wb.sql("SELECT count(*) FROM range(10000000000) a, range(1000000000) b")': INTERRUPTED,
        "await wb.task(made)": "WAIT_INTERRUPTED: The cell was interrupted. Task ",
        'wb.call("wait_for_task", task_id=made, wait_seconds=30)': "CALL_INTERRUPTED: wait_for_task was interrupted. "
        "What it has done stays done.",
    }.items():
        serving.fail_in_a_line({f"{INTERRUPT}\n{cell}": beginning})
    assert serving.run("wb.task(made).status") == "'pending'"
    assert serving.run('wb.sql("SELECT 41 + 1 AS x").x[0].item()') == "42"


def test_sql_that_would_change_the_project_is_told_what_it_may_make(serving: Kernel) -> None:
    advice = "SQL_FAILED: A query cannot change the project. CREATE TEMP TABLE and CREATE TEMP VIEW make what is yours."
    for query in ("DELETE FROM tasks", "UPDATE raw_tasks SET title = 'x'", "DROP VIEW tasks", "CREATE TABLE x (y INT)"):
        assert serving.fail(f"%wsql {query}")["evalue"] == advice, query
