"""The `workbench` command as a person types it, without a server."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Ran, git, typed
from workbench.cli.backups import NOT_ARCHIVED
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


ARCHIVED_SECRET = "sk-ant-api03-" + "Zx9" * 20
ARCHIVED = {
    "logs/worker.log": "It counted 344.\n",
    "agent_sessions/1/session.jsonl": "{}\n",
    "artifacts/1/1/model.bin": "weights",
    "runs/first/out.ipynb": "{}",
    "agents/counter.md": "---\nname: counter\n---\nCount.\n",
    "trash/old.bundle": "a bundle",
}

PLANTED = {
    **dict.fromkeys(["secrets.key", "environments/a.json", "koi/key.pem", "machine.token"], ARCHIVED_SECRET),
    "mcp.json": json.dumps({"mcpServers": {"x": {"command": "x", "env": {"API_KEY": ARCHIVED_SECRET}}}}),
    "profiles/keyed.yaml": "summary: x\nenvironment:\n  API_KEY: Tn4kQ8wZr2Lx\n",
    "agents/keyed.md": f"---\nname: keyed\n---\nUse {ARCHIVED_SECRET}.\n",
}
"""Files with secrets, which are in no archive."""

UNNAMEABLE = ("a\\b", "caf\udce9")
"""Files of discarded work whose names no archive can have."""


@pytest.fixture
def archive(run: Type, penguins: Path, migrated: Settings, tmp_path: Path) -> Path:
    """An archive of a project with two tasks, a kept attempt, a tag, a linked worktree, files and secrets."""
    root, home = migrated.project, migrated.home
    (root / "count.txt").write_text("344\n")
    git("checkout", "-q", "-b", "agent/island", cwd=root)
    (root / "way").symlink_to(tmp_path)
    git("add", "count.txt", "way", cwd=root)
    git("commit", "-q", "-m", "Count", cwd=root)
    git("update-ref", "refs/workbench/attempts/1/1", "HEAD", cwd=root)
    git("tag", "-a", "first", "-m", "First", "main", cwd=root)
    git("checkout", "-q", "main", cwd=root)
    git("worktree", "add", "-q", "--detach", str(tmp_path / "beside"), cwd=root)
    for name, text in ARCHIVED.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text)
    for name, text in PLANTED.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text)
    for name in UNNAMEABLE:
        (home / "trash" / name).write_text("left by an agent")
    told = run("backup", str(tmp_path / "project.archive"))
    assert (told.status, told.err) == (0, "")
    left_out = "agents/keyed.md, profiles/keyed.yaml, mcp.json, trash/a\\b, trash/caf\\udce9"
    assert f"Left out, {NOT_ARCHIVED}: {left_out}." in told.out
    return tmp_path / "project.archive"
