"""Carries out a plan to its end, in the thread that calls it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from workbench.errors import Conflict, Hint, Unavailable
from workbench.execution.execution import KINDS, PASSING, Execution, Standing
from workbench.state.settings import Settings
from workbench.system import file_lock

WAIT_SECONDS = 2.0
"""How long it waits for an event before it asks its caller's `is_over`."""
LOOK_SECONDS = 30.0
"""How long it waits for an event before it looks again although there was none."""
SPACING_SECONDS = 0.2
T = TypeVar("T")

log = logging.getLogger(__name__)


@contextmanager
def only_one(settings: Settings, plan: str) -> Iterator[None]:
    """Keep others from carrying out the same plan meanwhile.

    Raises:
        Conflict: ``PLAN_UNDER_WAY``. Unavailable: ``PROJECT_UNWRITABLE``.
    """
    settings.executions.mkdir(mode=0o700, parents=True, exist_ok=True)
    with file_lock.held(settings.executions / f"{plan}.lock", remove=True) as is_held:
        if not is_held:
            hint = Hint("list_tasks", "{} shows how far it is.", plan=plan)
            raise Conflict("PLAN_UNDER_WAY", f"The plan {plan} is being carried out already.", hint)
        yield


def record_of(settings: Settings, plan: str) -> Path:
    """Where an execution of a plan notes the agents that it starts."""
    return settings.executions / f"{plan}.agents"


def carry_out(
    execution: Execution,
    show: Callable[[Standing], None],
    *,
    is_over: Callable[[], bool] = lambda: False,
    goes_on: Callable[[Standing], bool] = lambda standing: False,
) -> Standing:
    """Carry out a plan until it is done, or nothing goes on; its agents are ended then. Returns the last standing.

    Args:
        show: called with each standing.
        is_over: whether to stop although there is work.
        goes_on: called when there is a verdict: whether to go on all the same, because something was decided.

    Raises:
        WorkbenchError: see `Execution.begin` and `Execution.step`.
    """
    after = execution.call("list_newest_events", limit=1)["events"]
    last = after[-1]["id"] if after else 0
    execution.begin()
    try:
        while True:
            standing = _patiently(execution.step, is_over)
            show(standing)
            if is_over() or (standing.verdict is not None and not goes_on(standing)):
                return standing
            looks_at = time.monotonic() + LOOK_SECONDS
            events: Sequence[Mapping[str, Any]] = ()
            while not (events or is_over() or time.monotonic() >= looks_at):
                time.sleep(SPACING_SECONDS)
                waiting = {"after": last, "kinds": list(KINDS), "wait_seconds": WAIT_SECONDS}
                page = _patiently(partial(execution.call, "list_events", **waiting), is_over)
                last, events = page["next_after"], page["events"]
            execution.note_events(events)
    finally:
        execution.end()


def _patiently(work: Callable[[], T], is_over: Callable[[], bool]) -> T:
    """What `work` returns, once the store is in order: a full disk or a database that is away ends no execution."""
    while True:
        try:
            return work()
        except Unavailable as error:
            if error.code not in PASSING or is_over():
                raise
            log.warning("%s It is tried again.", error.message)
        time.sleep(WAIT_SECONDS)
