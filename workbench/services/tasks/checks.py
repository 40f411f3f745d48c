"""What tells that a task is done: its check, the commits of its attempt, or its agent's word; and the checks asked for.

The commands of checks are run by `workbench.services.attempts.checks`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from workbench.errors import BadInput
from workbench.rules.tasks.check import Check, CheckState, DoneWhen, check_of
from workbench.services.tasks.attempts import AttemptEnding
from workbench.store.base import Reader, Row, Tx
from workbench.store.queries import beside

SQL = beside(__file__)

ERROR_CLASS = "check"
"""The class of the error of an attempt whose check has failed."""
NOT_RUN, NEVER_RUN = "The check could not be run: ", "The check cannot be run: "
"""What the output of a check that was not run begins with; `NEVER_RUN`: no other attempt makes it run."""
TOLD = 3_000
"""Characters of the end of a check's output that the next attempt is told."""
ENDED = frozenset({CheckState.PASSED, CheckState.FLAKY, CheckState.FAILED})


@dataclass(frozen=True, slots=True)
class Terms:
    """What makes a task done. `is_demanded`: it was said of this task itself."""

    done_when: DoneWhen
    check: Check | None
    is_demanded: bool

    @property
    def is_checked(self) -> bool:
        """Whether a check decides."""
        return self.done_when is DoneWhen.CHECKED and self.check is not None

    @property
    def failure(self) -> AttemptEnding | None:
        """How an attempt ends that was to be checked by its persona's check, which is no more; None: it may be."""
        if self.done_when is not DoneWhen.CHECKED or self.check is not None:
            return None
        reason = "The task is done when it is checked, and its persona has no check any more. Give the task one."
        return AttemptEnding(outcome="failed", reason=reason, error_class=ERROR_CLASS, retryable=False)


def terms_of(tx: Reader, row: Row) -> Terms:
    """The terms of a task, from its row: its own, else those of its persona."""
    stated = row["check_stated"] or _of_persona(tx, row["persona_id"])
    check = check_of(json.loads(stated)) if stated else None
    if row["done_when"]:
        return Terms(DoneWhen(row["done_when"]), check, is_demanded=True)
    unsaid = DoneWhen.CHECKED if check else DoneWhen.SAID if row["has_run"] or not row["worktree"] else DoneWhen.CHANGED
    return Terms(unsaid, check, is_demanded=False)


def _of_persona(tx: Reader, persona: str) -> str | None:
    found = tx.one(SQL.of_persona, persona=persona)
    return found["check_stated"] if found else None


def require_terms(tx: Reader, persona: str, done_when: DoneWhen | None, check: Any) -> None:
    """Refuse a task that is to be checked, without a check.

    Raises:
        BadInput: ``NO_CHECK``.
    """
    if done_when is DoneWhen.CHECKED and not check and not _of_persona(tx, persona):
        raise BadInput("NO_CHECK", "A task that is done when it is checked needs a check: give the command.")


def ask(tx: Tx, row: Row, terms: Terms, commit: str | None, ending: AttemptEnding | None) -> None:
    """Ask for the check of a held task's attempt, unless it was asked for.

    Args:
        commit: that it runs on; None: what the worktree has when it runs, or the target's.
        ending: how the attempt ends if it passes; None: its supervisor ends it.
    """
    assert terms.check is not None
    stated = json.dumps(terms.check.model_dump(mode="json", exclude_defaults=True))
    told = None if ending is None else ending.model_dump_json()
    values = {"task_id": row["id"], "attempt": row["attempt"], "check": stated, "commit": commit}
    if tx.run(SQL.ask, values, ending=told, now=tx.now):
        tx.emit("check.asked", f"task:{row['id']}", session=row["session_id"], attempt=row["attempt"])


def find(tx: Reader, task_id: int, attempt: int) -> Row | None:
    """The check of an attempt, if it was asked for."""
    return tx.one(SQL.find, task_id=task_id, attempt=attempt)


def failure(found: Row) -> AttemptEnding:
    """The end of an attempt whose check has failed. The next attempt is told the end of the check's output.

    It is the last attempt if the check cannot be run at all: another one would not change that.
    """
    if not found["tries"]:
        is_lasting = found["output"].startswith(NEVER_RUN)
        return AttemptEnding(
            outcome="failed", reason=found["output"], error_class=ERROR_CLASS, retryable=not is_lasting
        )
    match found["exit_code"]:
        case None:
            how = "has not passed"
        case 0:
            how = "has passed, but not with its result"
        case code:
            how = f"failed with status {code}" if code > 0 else f"was ended by the signal {-code}"
    tries = f", after {found['tries']} runs" if found["tries"] > 1 else ""
    reason = f"The check {how}{tries}.\n{found['output'][-TOLD:]}".rstrip()
    return AttemptEnding(outcome="failed", reason=reason, error_class=ERROR_CLASS)
