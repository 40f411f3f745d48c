"""Every failure of a command is one line: a code, what is wrong, and what to do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Type
from tests.conftest import Ran

COMMAND = [sys.executable, "-m", "workbench.cli"]


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
        ("sessions", "delete", "nowhere"): "SESSION_NOT_FOUND",
        ("sessions", "--in", "nowhere"): "PROJECT_NOT_FOUND",
        ("agents", "delete", "nobody"): "AGENT_NOT_FOUND",
        ("agents", "restore", "nobody"): "AGENT_NOT_FOUND",
        ("agent-tools", "enable", "sudo"): "TOOL_NOT_FOUND",
        ("export", "events", "-o", "/proc/events.csv"): "OUTPUT_UNWRITABLE",
        ("export", "events", "-o", "/dev/full"): "OUTPUT_UNWRITABLE",
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


@pytest.mark.long
def test_an_unwritable_output_is_a_coded_error_and_a_closed_pipe_is_none(run: Type) -> None:
    run("projects", "add", "Lab")
    reader, writer = os.pipe()
    os.close(reader)
    with Path("/dev/full").open("w") as out, os.fdopen(writer, "w") as pipe:
        full, left = (
            subprocess.run([*COMMAND, "projects"], stdout=to, stderr=subprocess.PIPE, text=True) for to in (out, pipe)
        )
    assert (full.returncode, len(full.stderr.splitlines())) == (1, 1)
    assert full.stderr.startswith("OUTPUT_UNWRITABLE: The standard output cannot be written: No space left on device. ")
    assert (left.returncode, left.stderr) == (1, "")


def test_a_closed_standard_output_is_no_error(run: Type) -> None:
    closed = ["/bin/sh", "-c", 'exec "$@" >&-', "sh", *COMMAND, "projects", "add", "Lab"]
    ended = subprocess.run(closed, stderr=subprocess.PIPE, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "Lab" in run("projects").out


def test_an_unexpected_exception_is_a_coded_error_too(run: Type, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workbench.app.Workbench.call", lambda *_, **__: 1 / 0)
    ran = run("projects")
    assert (ran.status, ran.out) == (1, "")
    assert "test_errors.py" in ran.err
    assert ran.err.splitlines()[-1].startswith("INTERNAL_ERROR: ")
    assert json.loads(run("--json", "projects").err.splitlines()[-1])["code"] == "INTERNAL_ERROR"


def test_an_error_of_the_operating_system_is_a_coded_error(run: Type, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", "/var/lock")

    monkeypatch.setattr("workbench.app.Workbench.call", refused)
    assert run("projects").err == (
        "SYSTEM_ERROR: The system refused something the command needs: [Errno 13] Permission denied: '/var/lock'.\n"
    )


def test_a_missing_project_is_refused_and_not_created(
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
