"""Every failure of a command is one line: a code, what is wrong, and what to do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Type
from tests.conftest import Ran


def test_an_error_is_a_code_and_a_next_step(run: Type) -> None:
    ran = run("approve", "99")
    assert ran == Ran(1, "", "APPROVAL_NOT_FOUND: There is no approval 99. `workbench approvals` lists them.\n")
    ran = run("--json", "approve", "99")
    assert (ran.status, ran.out) == (1, "")
    assert json.loads(ran.err) == {
        "code": "APPROVAL_NOT_FOUND",
        "message": "There is no approval 99. `workbench approvals` lists them.",
        "details": {},
        "status": 404,
    }


def test_every_failure_has_a_code(run: Type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bytes.yaml").write_bytes(b"plan: \xff")
    (tmp_path / "bad.yaml").write_text("plan: x\ntasks: 5\n")
    failures = {
        ("spawn", "implementer"): "NO_SERVER",
        ("mcp",): "NO_SERVER",
        ("worker", "--persona", "implementer"): "NO_SERVER",
        ("restart", "nobody"): "NO_SERVER",
        ("logs", "nobody"): "AGENT_NOT_FOUND",
        ("terminate", "nobody"): "AGENT_NOT_FOUND",
        ("revoke", "nobody"): "AGENT_NOT_FOUND",
        ("worktrees", "status", "nowhere"): "WORKTREE_NOT_FOUND",
        ("worktrees", "diff", "nowhere"): "WORKTREE_NOT_FOUND",
        ("worktrees", "update", "nowhere"): "WORKTREE_NOT_FOUND",
        ("worktrees", "run", "nowhere", "true"): "WORKTREE_NOT_FOUND",
        ("worktrees", "create", "../x"): "BAD_WORKTREE_NAME",
        ("integrate", "nowhere"): "WORKTREE_NOT_FOUND",
        ("discard", "nowhere"): "WORKTREE_NOT_FOUND",
        ("reject", "99"): "APPROVAL_NOT_FOUND",
        ("agent", "nobody"): "AGENT_NOT_FOUND",
        ("grant", "nobody", "--tool", "read"): "AGENT_NOT_FOUND",
        ("token", "nobody"): "AGENT_NOT_FOUND",
        ("history", "nobody"): "AGENT_NOT_FOUND",
        ("projects", "delete", "nowhere"): "PROJECT_NOT_FOUND",
        ("sessions", "rename", "nowhere", "x"): "SESSION_NOT_FOUND",
        ("teams", "delete", "nowhere"): "TEAM_NOT_FOUND",
        ("contexts", "show", "nowhere"): "CONTEXT_NOT_FOUND",
        ("tasks", "--cursor", "lost"): "BAD_CURSOR",
        ("task", "99"): "TASK_NOT_FOUND",
        ("cancel", "99"): "TASK_NOT_FOUND",
        ("retry", "99"): "TASK_NOT_FOUND",
        ("priority", "99", "1"): "TASK_NOT_FOUND",
        ("assign", "99", "none"): "TASK_NOT_FOUND",
        ("depend", "99", "1"): "TASK_NOT_FOUND",
        ("personas", "show", "nobody"): "PERSONA_NOT_FOUND",
        ("personas", "versions", "nobody"): "PERSONA_NOT_FOUND",
        ("personas", "save", str(tmp_path / "bytes.yaml")): "PERSONA_INVALID",
        ("tasks", "--limit", "100000"): "INVALID_ARGUMENTS",
        ("events", "--after", "-1"): "INVALID_ARGUMENTS",
        ("call", "no_such_operation"): "UNKNOWN_OPERATION",
        ("call", "ping", "x"): "INVALID_ARGUMENTS",
        ("call", "ping", "{x"): "INVALID_ARGUMENTS",
        ("call", "ping", '{"x": NaN}'): "INVALID_ARGUMENTS",
        ("sql", "SELEC"): "SQL_FAILED",
        ("plan", str(tmp_path / "bytes.yaml")): "PLAN_INVALID",
        ("plan", str(tmp_path / "bad.yaml")): "PLAN_INVALID",
        ("--project", "/proc", "init"): "PROJECT_UNWRITABLE",
    }
    for arguments, code in failures.items():
        ran = run(*arguments)
        assert (ran.status, ran.out, ran.err.partition(":")[0]) == (1, "", code), arguments
    monkeypatch.setenv("WORKBENCH_PORT", "eight")
    assert run("status").err.startswith("BAD_SETTINGS: WORKBENCH_PORT: ")


def test_a_project_that_is_not_there_is_refused_and_not_made(
    run: Type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nowhere = tmp_path / "no" / "where"
    refused = f"NOT_A_DIRECTORY: {nowhere} is not a directory."
    assert run("--project", str(nowhere), "status").err.startswith(refused)
    monkeypatch.setenv("WORKBENCH_PROJECT", str(nowhere))
    assert run("status").err.startswith(refused)
    assert run("serve", "--port", "0").err.startswith(refused)
    assert run("status", "--help").status == 0
    assert not nowhere.parent.exists()


def test_an_agents_token_needs_the_server(run: Type, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORKBENCH_TOKEN", "wba_" + "x" * 43)
    assert run("tasks").err.startswith("NO_SERVER: ")
