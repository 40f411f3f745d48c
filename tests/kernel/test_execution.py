"""`await wb.carry_out("tidy")` carries out a plan in a cell, which an interrupt ends, and goes on with what is left."""

from __future__ import annotations

import pytest

from tests.kernel.conftest import Kernel

pytestmark = [pytest.mark.timeout(180), pytest.mark.long]

PLAN = """
text = '''
plan: tidy
tasks:
  - {name: one, title: One, persona: implementer, run: "true"}
  - {name: two, title: Two, persona: implementer, run: "sleep SECONDS", after: [one]}
'''
wb.plans.create(text.replace("SECONDS", "100"))
"""
INTERRUPT = """
import signal, threading
def begun():
    while not any(task.status == "in_progress" for task in wb.tasks(plan="tidy") if task.name == "two"):
        threading.Event().wait(0.1)
    signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
threading.Thread(target=begun, daemon=True).start()
await wb.carry_out("tidy")
"""


def test_a_plan_is_carried_out_in_a_cell_interrupted_and_goes_on(serving: Kernel) -> None:
    serving.run(PLAN)
    _, error = serving.attempt(INTERRUPT)
    assert error is not None
    assert 'WAIT_INTERRUPTED: The cell was interrupted. Its agents have ended; `await wb.carry_out("tidy")`' in error
    assert serving.run("print([process.agent_id for process in wb.processes if process.running])") == "[]\n"
    serving.run('wb.plans.create(text.replace("SECONDS", "0"), update=True)')
    account = serving.run('await wb.carry_out(wb.plans["tidy"], staff="implementer=1")')
    assert "Plan tidy: 2 of 2 tasks done" in account
    assert "All tasks are completed." in account
    one = serving.run('print(len([task for task in wb.tasks(plan="tidy") if task.name == "one"][0].attempts))')
    assert one == "1\n", "what was done is not done again"
    assert "BAD_STAFF" in serving.error('await wb.carry_out("tidy", staff="=")')
    assert "integrate is ask or auto-if-checked" in serving.error('await wb.carry_out("tidy", integrate="soon")')
    assert "PLAN_NOT_FOUND" in serving.error('await wb.carry_out("none")')


def test_a_budget_of_a_plan_that_is_carried_out_in_a_cell_holds_it_up(serving: Kernel) -> None:
    serving.run(PLAN.replace("100", "0").replace("tidy", "tight"))
    account = serving.run('await wb.carry_out("tight", budget="1 attempt")')
    assert "Plan tight: 1 of 2 tasks done" in account
    assert "Only your decisions are waited for." in account
    morning = serving.run('print(wb.account(wb.plans["tight"]))')
    assert "`%workbench approve" in morning, "each task has its next command, as it is typed here"
    assert "budget used up" in morning
    assert "PLAN_NOT_FOUND" in serving.error('wb.account("none")')
    assert "BAD_BUDGET" in serving.error('await wb.carry_out("tight", budget="much")')
    serving.run('(asked,) = [one for one in wb.approvals if one.kind == "budget"]\nasked.approve()')
    assert "2 of 2 tasks done" in serving.run('await wb.carry_out("tight")')
