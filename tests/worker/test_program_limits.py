"""Claude Code, Codex and Gemini CLI keep the limits of an imported subagent, whatever their scripted model asks for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests import given
from tests.conftest import git
from tests.services.processes.running import serving
from tests.worker.fake_model import FakeModel, Step, answering
from tests.worker.test_real_programs import KEY, KEYS, PROVIDERS, SERVER, _installed_programs, for_test
from workbench.state.settings import Settings

__all__ = ["_installed_programs"]
pytestmark = [pytest.mark.anyio, pytest.mark.node, pytest.mark.timeout(180)]

SUBAGENT = """\
---
name: code-reviewer
description: Reviews code. Use proactively: after every change.
{limits}
---

You review, and change nothing.
"""
NOTE = ("mcp", ("report_task_progress", {"progress_note": "looked"}))
WRITE = {
    "claude": ("tool", ("Write", {"file_path": "{worktree}/written.txt", "content": "x"})),
    "codex": ("tool", ("apply_patch", {"input": "*** Begin Patch\n*** Add File: written.txt\n+x\n*** End Patch"})),
    "gemini": ("tool", ("write_file", {"file_path": "{worktree}/written.txt", "content": "x"})),
}
OWN = {
    "claude": {"Bash", "Edit", "Write", "NotebookEdit"},
    "codex": {"apply_patch"},
    "gemini": {"run_shell_command", "replace", "write_file"},
}
"""The own tools of a program that write."""


async def review(settings: Settings, name: str, limits: str, *steps: Step) -> tuple[FakeModel, dict[str, Any], Path]:
    """What a model was told by a program that was started for a subagent with limits, its task, and its worktree."""
    chosen = settings.model_copy(update={"confinement_read": str(SERVER.parents[2])})
    with answering(("text", "All is done.")) as model:
        address = for_test(chosen, name, model)
        provider = {KEYS[name]: "env://KEY_OF_A_DEFINITION"} | (address if name == "codex" else {})
        async with serving(chosen) as served:
            call = served.workbench.call
            text = SUBAGENT.format(limits=limits)
            await call("agent_import", content=text, fileName="agents/code-reviewer.md")
            await call(
                "agent_set_setting", agentTarget="code-reviewer", key="model", value=f"{PROVIDERS[name]}:gemini-test"
            )
            await call(
                "agent_install_provider", agentTarget="code-reviewer", providerType=PROVIDERS[name], config=provider
            )
            place = Path((await call("create_worktree", name="lab"))["path"])
            note, number = NOTE[1]
            task = {"title": "t", "persona_id": "implementer", "target_worktree": "lab", "max_retries": 0}
            task_id = (await call("create_task", **task))["id"]
            progress = ("mcp", (note, {**number, "task_id": task_id, "attempt": 1}))
            write = json.loads(json.dumps(WRITE[name]).replace("{worktree}", str(place)))
            model.steps = [*steps, tuple(write), progress, ("text", "All is done.")]
            where = {"definition": "code-reviewer", "assigned_worktree": "lab", "environment": address}
            spawned = await call("spawn_agent", profile="plain", persona_id="implementer", **where)
            found = await given.reached(served.workbench, task_id, "completed", "failed")
            found["unused"] = spawned["unused"]
            said = [line["message"] for line in (await call("get_task_logs", task_id=task_id))["lines"]]
            found["said"] = "\n".join(said)
    return model, found, place


def own_tools(model: FakeModel) -> set[str]:
    """The names of the tools that the model was offered."""
    offered = next(said for _, said in model.requests if said.get("tools") and "You review" in json.dumps(said))
    tools = [one for tool in offered["tools"] for one in tool.get("functionDeclarations", [tool])]
    return {str(tool.get("name")) for tool in tools}


LIMITS = {
    "list": "tools: Read, Grep, Glob",
    "plan": "permissionMode: plan",
    "refused": "disallowedTools: Bash, Edit, Write",
}


@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize("name", ["claude", "codex", "gemini"])
async def test_a_read_only_subagent_writes_nothing(
    settings: Settings, repository: Path, name: str, limits: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEY_OF_A_DEFINITION", KEY)
    model, task, place = await review(settings, name, LIMITS[limits], ("shell", "echo x > shell.txt"))
    assert task["status"] == "completed", (task.get("error_message"), model.prompts[-1][-3000:])
    assert "looked" in task["said"]
    assert not {"shell.txt", "written.txt"} & {one.name for one in place.iterdir()}, model.prompts[-1][-3500:]
    assert git("ls-tree", "-r", "--name-only", "wb/lab/main", cwd=repository).split() == ["README.md"]
    if limits == "list":
        assert not OWN[name] & own_tools(model)


async def test_claude_code_runs_only_the_commands_that_a_subagent_may_run(
    settings: Settings, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEY_OF_A_DEFINITION", KEY)
    steps: list[Step] = [("shell", "git log --format=SUBJECT-%s"), ("shell", "touch shell.txt")]
    model, task, place = await review(settings, "claude", "tools: Read, Bash(git log:*)", *steps)
    assert task["status"] == "completed", task
    assert "SUBJECT-" in model.prompts[-1].replace("SUBJECT-%s", "")
    assert not {"shell.txt", "written.txt"} & {one.name for one in place.iterdir()}


async def test_codex_reads_by_a_shell_that_can_write_nothing(
    settings: Settings, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEY_OF_A_DEFINITION", KEY)
    model, task, _ = await review(settings, "codex", "tools: Read", ("shell", "echo $((40 * 50)) && ls"))
    assert task["unused"] == [
        "With the profile plain, its agents read by a shell that can write nothing: Codex has no other tool to read."
    ]
    outputs = [str(one["output"]) for one in model.requests[-1][1]["input"] if one["type"] == "function_call_output"]
    assert "README.md" in outputs[0], outputs
    assert "2000" in outputs[0]
