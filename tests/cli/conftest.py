"""The `workbench` command as a person types it, without a server."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Ran, typed
from workbench.state.settings import Settings

Type = Callable[..., Ran]


@pytest.fixture
def run(migrated: Settings, monkeypatch: pytest.MonkeyPatch) -> Type:
    """`run("tasks", "--limit", "5")`: the command in the project, where no server runs."""
    monkeypatch.setenv("WORKBENCH_PROJECT", str(migrated.project))
    return typed


def data(ran: Ran) -> Any:
    """The JSON that a successful command printed."""
    assert (ran.status, ran.err) == (0, "")
    return json.loads(ran.out)


def cut_data(ran: Ran) -> Any:
    """The JSON of a list that was cut, as standard error says."""
    assert (ran.status, ran.err[:1]) == (0, "…")
    return json.loads(ran.out)


def code(ran: Ran) -> str:
    """The code of the error that a command ended with."""
    assert (ran.status, ran.out) == (1, "")
    return ran.err.partition(":")[0]


PLAN = """\
plan: penguins
tasks:
  - {name: count, title: Count them, persona: implementer, worktree: island}
  - {name: judge, title: Judge the count, persona: reviewer, after: [count]}
"""


@pytest.fixture
def penguins(run: Type, tmp_path: Path) -> Path:
    """The file of a plan that the project has: tasks 1 and 2."""
    (file := tmp_path / "plan.yaml").write_text(PLAN)
    assert run("plan", str(file)).status == 0
    return file
