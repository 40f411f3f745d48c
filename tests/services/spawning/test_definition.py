"""Agents that are spawned with a definition: what their commands get of it, and which version is recorded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests import given
from tests.conftest import Admit, Served
from tests.services.processes.running import agent, process, spawn
from workbench.errors import BadInput, NotFound, Refused, Unavailable, WorkbenchError
from workbench.rules.definitions.secrets import MASK
from workbench.withheld import trust, withheld

pytestmark = [pytest.mark.anyio, pytest.mark.long, pytest.mark.timeout(60)]

PROMPT, ALWAYS, ON_REQUEST = "You review.", "Be kind.", "Look twice."
SHOW = 'cd "$WORKBENCH_DEFINITION" && cat "$WORKBENCH_SYSTEM_PROMPT" prompt.md rules/*.md agent.yaml'
FREE = {"permissionRequired": False}


async def define(served: Served, **more: Any) -> str:
    """A definition with the persona `implementer`, a rule, and one that is used on request; its id."""
    call = served.workbench.call
    made = await call("agent_create", agentPath="./agents/reviewer", name="Reviewer", initialPrompt=PROMPT, **more)
    rules = {"kind": {"text": ALWAYS, "include": "always"}, "twice": {"text": ON_REQUEST, "include": "manual"}}
    for name, rule in rules.items():
        await call("agent_add_rule", agentTarget="Reviewer", rule={"name": name, **rule})
    file = served.workbench.settings.home / "agents" / "reviewer" / "agent.yaml"
    file.write_text(file.read_text().replace("metadata:\n", "metadata:\n  persona: implementer\n"))
    return str(made["agentId"])


async def version(served: Served) -> str:
    """The content hash of the definition as it is now."""
    return str((await served.workbench.call("agent_get_info", agentTarget="Reviewer"))["contentHash"])


async def output(served: Served, task_id: int) -> str:
    """What the command of a task wrote."""
    lines = (await served.workbench.call("get_task_logs", task_id=task_id))["lines"]
    return "\n".join(line["message"] for line in lines)


async def test_a_command_finds_the_definition_in_files_and_the_run_names_its_content(served: Served, lab: Path) -> None:
    definition_id = await define(served)
    made = await served.workbench.call("spawn_agent", definition="Reviewer", include=["twice"], assigned_worktree="lab")
    assert (made["agent_id"], made["definition_id"], made["unused"]) == ("Reviewer", definition_id, [])
    task = await given.reached(served.workbench, await given.task(served.workbench, run=SHOW), "completed", "failed")
    shown = await output(served, task["id"])
    assert task["status"] == "completed", task["error_message"]
    assert shown.startswith(f"{PROMPT}\n\n# Rules\n\n## kind\n\n{ALWAYS}\n\n## twice\n\n{ON_REQUEST}")
    assert f"id: {definition_id}" in shown
    now = await version(served)
    (attempt,) = task["attempts"]
    assert (attempt["definition_id"], attempt["definition_hash"]) == (definition_id, now)
    found = await agent(served, "Reviewer")
    assert (found["name"], found["persona_id"], found["definition"]) == ("Reviewer", "implementer", "Reviewer")
    assert (found["definition_id"], found["definition_hash"]) == (definition_id, now)
    running = await process(served, "Reviewer")
    assert (running["definition"], running["definition_hash"]) == ("Reviewer", now)
    (event,) = (await served.workbench.call("list_events", kinds=["agent.spawned"]))["events"]
    assert (event["data"]["definition"], event["data"]["definition_hash"]) == (definition_id, now)


async def test_a_restarted_agent_has_its_definition_as_it_is_then_wherever_it_was_moved(
    served: Served, lab: Path
) -> None:
    definition_id = await define(served)
    await spawn(served, definition=definition_id, name="walt", assigned_worktree="lab")
    first = await given.reached(served.workbench, await given.task(served.workbench, run="true"), "completed")
    prompt = served.workbench.settings.home / "agents" / "reviewer" / "prompt.md"
    prompt.write_text("You doubt.\n")
    again = await given.reached(served.workbench, await given.task(served.workbench, run=SHOW), "completed")
    assert PROMPT in await output(served, again["id"])
    agents = served.workbench.settings.home / "agents"
    (agents / "reviewer").rename(agents / "critic")
    await served.workbench.call("restart_agent", agent_id="walt")
    third = await given.reached(served.workbench, await given.task(served.workbench, run=SHOW), "completed")
    assert (await output(served, third["id"])).startswith("You doubt.")
    hashes = [task["attempts"][0]["definition_hash"] for task in (first, again, third)]
    assert hashes[0] == hashes[1] != hashes[2] == await version(served)
    assert (await process(served, "walt"))["definition_hash"] == hashes[2]
    counted = (await served.workbench.call("agent_analytics", agentTarget="Reviewer"))["versions"]
    assert [(one["hash"], one["starts"], one["completed"]) for one in counted] == [(hashes[0], 1, 2), (hashes[2], 1, 1)]


async def test_an_agent_whose_definition_is_gone_or_broken_is_not_ended_for_a_restart(
    served: Served, lab: Path
) -> None:
    await define(served)
    made = await spawn(served, definition="Reviewer", name="walt", assigned_worktree="lab")
    file = served.workbench.settings.home / "agents" / "reviewer" / "agent.yaml"
    text = file.read_text()
    file.write_text("metadata: [")
    with pytest.raises(WorkbenchError, match="INVALID_CONFIGURATION"):
        await served.workbench.call("restart_agent", agent_id="walt")
    assert (await process(served, "walt"))["pid"] == made["pid"]
    file.write_text(text)
    await served.workbench.call("agent_delete", agentTarget="Reviewer", confirm=True)
    with pytest.raises(NotFound, match="AGENT_NOT_FOUND"):
        await served.workbench.call("restart_agent", agent_id="walt")
    assert (await process(served, "walt"))["running"]


async def test_a_program_that_takes_a_prompt_gets_the_system_prompt_before_it(served: Served, lab: Path) -> None:
    await define(served)
    own = served.workbench.settings.home / "profiles"
    own.mkdir()
    (own / "plain.yaml").write_text("summary: x\nstdin: prompt\ncommand: [cat]\n")
    (own / "own.yaml").write_text("summary: x\nstdin: prompt\ncommand: [cat, '{system_prompt_file}', '-']\n")
    trust(served.workbench.settings.project, withheld(served.workbench.settings.project))
    texts = {}
    for profile in ("plain", "own"):
        await spawn(served, definition="Reviewer", name=profile, profile=profile, assigned_worktree="lab")
        task = {"title": "Do it", "persona_id": "implementer", "assigned_agent_id": profile}
        task_id = (await served.workbench.call("create_task", **task))["id"]
        await given.reached(served.workbench, task_id, "completed")
        texts[profile] = await output(served, task_id)
    assert all(text.startswith(PROMPT) and text.count(PROMPT) == 1 for text in texts.values()), texts
    assert all("# Your task: Do it" in text for text in texts.values())


async def test_what_the_profile_does_not_use_is_said(served: Served, lab: Path) -> None:
    await define(served, initialSettings={"model": "anthropic:claude-test"})
    made = await spawn(served, definition="Reviewer", assigned_worktree="lab")
    assert made["unused"] == ["The profile script does not use a model."]
    assert (await served.workbench.call("restart_agent", agent_id=made["agent_id"]))["unused"] == made["unused"]


# What is refused


@pytest.mark.parametrize(
    ("arguments", "error", "code"),
    [
        pytest.param({"definition": "nothing"}, NotFound, "AGENT_NOT_FOUND", id="unknown"),
        pytest.param({"definition": "../x"}, BadInput, "INVALID_PATH", id="path"),
        pytest.param({"definition": "Reviewer", "include": ["no"]}, NotFound, "kind, twice", id="include"),
        pytest.param({"include": ["kind"]}, BadInput, "DEFINITION_REQUIRED", id="include alone"),
        pytest.param({"persona_id": None}, BadInput, "PERSONA_REQUIRED", id="no persona"),
        pytest.param({"definition": "Plain", "persona_id": None}, BadInput, "names no persona", id="none in it"),
        pytest.param({"definition": "Foreign"}, BadInput, "DEFINITION_DOES_NOT_FIT", id="model"),
    ],
)
async def test_a_spawn_that_makes_no_sense_is_refused_before_anything_is_made(
    served: Served, arguments: dict[str, Any], error: type[WorkbenchError], code: str
) -> None:
    await define(served)
    create = {"Plain": {}, "Foreign": {"initialSettings": {"model": "openai:gpt"}}}
    for name, more in create.items():
        await served.workbench.call("agent_create", agentPath=f"./agents/{name}", name=name, **more)
    profiles = served.workbench.settings.home / "profiles"
    profiles.mkdir()
    (profiles / "mine.yaml").write_text("summary: x\nprogram: claude\ncommand: ['true']\n")
    trust(served.workbench.settings.project, withheld(served.workbench.settings.project))
    with pytest.raises(error, match=code):
        await spawn(served, profile="mine", **arguments)
    assert (await served.workbench.call("list_agents"))["agents"] == []


async def test_what_an_agent_wrote_is_trusted_by_the_person_before_it_runs(
    served: Served, admit: Admit, lab: Path
) -> None:
    paula = await admit("paula", "planner", definitions=True)
    create = {"agentPath": "./agents/armed", "name": "Armed"}
    await served.workbench.dispatch(paula.caller, "agent_create", create)
    file = served.workbench.settings.home / "agents" / "armed" / "agent.yaml"
    server = {"files": {"command": "true", "serverToolDefaults": FREE}}
    file.write_text(file.read_text() + f"mcpServers: {json.dumps(server)}\n")
    profiles = served.workbench.settings.home / "profiles"
    profiles.mkdir()
    (profiles / "mine.yaml").write_text(
        "summary: x\nprogram: claude\ntoken: true\ncommand: [sh, -c, 'cat $1', sh, '{mcp_config}']\n"
    )
    trust(served.workbench.settings.project, withheld(served.workbench.settings.project))
    how = {"definition": "Armed", "profile": "mine", "name": "walt", "assigned_worktree": "lab"}
    with pytest.raises(Refused, match="DEFINITION_NOT_TRUSTED") as refused:
        await spawn(served, **how)
    assert (await served.workbench.call("list_agents", search="walt"))["agents"] == []
    await spawn(served, definition="Armed", name="harmless", assigned_worktree="lab")  # it uses the files alone
    await served.workbench.call("approve", approval_id=refused.value.details["approval_id"])
    await spawn(served, **how)
    new = {"title": "t", "persona_id": "implementer", "assigned_agent_id": "walt"}
    task_id = (await served.workbench.call("create_task", **new))["id"]
    await given.reached(served.workbench, task_id, "completed", "failed")
    assert '"command": "true"' in await output(served, task_id)
    file.write_text(file.read_text().replace('"true"', '"false"'))
    with pytest.raises(Refused, match="DEFINITION_NOT_TRUSTED"):
        await served.workbench.call("restart_agent", agent_id="walt")
    assert (await process(served, "walt"))["running"]


async def test_a_secret_reaches_the_program_and_nothing_that_it_writes(
    served: Served, lab: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_KEY", "sk-very-secret")
    await define(served)
    config = {"providerType": "anthropic", "config": {"ANTHROPIC_API_KEY": "env://A_KEY"}}
    await served.workbench.call("agent_install_provider", agentTarget="Reviewer", **config)
    profiles = served.workbench.settings.home / "profiles"
    profiles.mkdir()
    script = (
        'echo "key: $ANTHROPIC_API_KEY"; [ "$WORKBENCH_TASK_ID" = 1 ] || exit 3; '
        'echo "{\\"result\\": {\\"$ANTHROPIC_API_KEY\\": [\\"$ANTHROPIC_API_KEY\\"]}}" > $WORKBENCH_RESULT'
    )
    command = json.dumps(["sh", "-c", script, "sh"])
    (profiles / "mine.yaml").write_text(f"summary: x\nprogram: claude\ncommand: {command}\n")
    trust(served.workbench.settings.project, withheld(served.workbench.settings.project))
    await spawn(served, definition="Reviewer", name="walt", profile="mine", assigned_worktree="lab")
    new = {"title": "t", "persona_id": "implementer", "max_retries": 0}
    ids = [(await served.workbench.call("create_task", **new))["id"] for _ in range(2)]
    done, failed = [await given.reached(served.workbench, task_id, "completed", "failed") for task_id in ids]
    assert done["result_data"] == {MASK: [MASK]}
    assert failed["error_message"].endswith(f"key: {MASK}")
    assert await output(served, ids[0]) == f"key: {MASK}"
    log = (await process(served, "walt"))["log"]
    assert "sk-very-secret" not in Path(log).read_text()


async def test_an_agent_whose_secret_cannot_be_read_is_not_spawned(served: Served, lab: Path) -> None:
    await define(served)
    config = {"providerType": "anthropic", "config": {"ANTHROPIC_API_KEY": "env://NO_SUCH_KEY"}}
    await served.workbench.call("agent_install_provider", agentTarget="Reviewer", **config)
    profiles = served.workbench.settings.home / "profiles"
    profiles.mkdir()
    (profiles / "mine.yaml").write_text("summary: x\nprogram: claude\ncommand: ['true']\n")
    trust(served.workbench.settings.project, withheld(served.workbench.settings.project))
    with pytest.raises(Unavailable, match="SECRET_UNRESOLVED") as refused:
        await spawn(served, definition="Reviewer", name="walt", profile="mine", assigned_worktree="lab")
    (found,) = (await served.workbench.call("list_agents", search="walt"))["agents"]
    assert found["registration_status"] == "inactive"
    ended = await process(served, "walt")
    assert (ended["running"], ended["reason"]) == (False, str(refused.value.message))


async def test_the_person_sees_which_definition_a_planners_agent_has(served: Served, admit: Admit) -> None:
    definition_id = await define(served)
    paula = await admit("paula", "planner")
    made = await served.workbench.dispatch(
        paula.caller, "spawn_agent", {"definition": "Reviewer", "new_worktree": True}
    )
    found = await served.workbench.call("get_approval", approval_id=made["approval_id"])
    assert found["payload"]["definition"] == {
        "id": definition_id,
        "name": "Reviewer",
        "hash": await version(served),
        "self_tools": "read",
    }
    with pytest.raises(Refused, match="so your agents may not"):
        await spawn(served, paula, definition="Reviewer", self_tools="write")
    await served.workbench.call("approve", approval_id=made["approval_id"], choices={"agent_id": "walt"})
    assert (await agent(served, "walt"))["definition_id"] == definition_id


async def test_an_agent_that_was_given_another_definition_has_it_after_a_restart(served: Served, lab: Path) -> None:
    await define(served)
    other = {"agentPath": "./agents/other", "name": "Other", "initialPrompt": "You are another."}
    await served.workbench.call("agent_create", **other)
    await spawn(served, definition="Reviewer", name="walt", assigned_worktree="lab")
    await served.workbench.call("update_agent", agent_id="walt", changes={"definition": "Other"})
    await served.workbench.call("restart_agent", agent_id="walt")
    task = await given.reached(
        served.workbench, await given.task(served.workbench, run=SHOW.replace("rules/*.md", "")), "completed", "failed"
    )
    assert (await output(served, task["id"])).startswith("You are another."), task["error_message"]
    await served.workbench.call("update_agent", agent_id="walt", changes={"definition": None})
    await served.workbench.call("restart_agent", agent_id="walt")
    task = await given.reached(
        served.workbench, await given.task(served.workbench, run='echo "[$WORKBENCH_DEFINITION]"'), "completed"
    )
    assert await output(served, task["id"]) == "[]"
    assert task["attempts"][0]["definition_hash"] is None
