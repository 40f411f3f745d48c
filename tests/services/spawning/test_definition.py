"""Agents spawned with a definition: its parts in their commands, and the recorded version."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests import given
from tests.conftest import Admit, Served
from tests.services.processes.running import agent, process, spawn
from tests.worker.working import done, output_of, ran
from workbench.errors import BadInput, NotFound, Refused, WorkbenchError
from workbench.rules.definitions.composition import text_hash
from workbench.rules.secrets.forms import MASK
from workbench.trust.withheld import trust, withheld

pytestmark = [pytest.mark.anyio, pytest.mark.long, pytest.mark.timeout(60)]

PROMPT, ALWAYS, ON_REQUEST = "You review.", "Be kind.", "Look twice."
SHOW = 'cd "$WORKBENCH_DEFINITION" && cat "$WORKBENCH_SYSTEM_PROMPT" prompt.md rules/*.md agent.yaml'
FREE = {"permissionRequired": False}


async def define(served: Served, **more: Any) -> str:
    """A definition with the persona `implementer`, a rule, and one that is used on request; its id."""
    call = served.workbench.call
    definition = await call(
        "agent_create", agentPath="./agents/reviewer", name="Reviewer", initialPrompt=PROMPT, **more
    )
    rules = {"kind": {"text": ALWAYS, "include": "always"}, "twice": {"text": ON_REQUEST, "include": "manual"}}
    for name, rule in rules.items():
        await call("agent_add_rule", agentTarget="Reviewer", rule={"name": name, **rule})
    file = file_of(served)
    file.write_text(file.read_text().replace("metadata:\n", "metadata:\n  persona: implementer\n"))
    return str(definition["agentId"])


async def version(served: Served) -> str:
    """The content hash of the definition as it is now."""
    return str((await served.workbench.call("agent_get_info", agentTarget="Reviewer"))["contentHash"])


async def text_of(served: Served, task_id: int) -> str:
    """The output of a task's command."""
    return "\n".join(await output_of(served, task_id))


def file_of(served: Served, name: str = "agent.yaml", definition: str = "reviewer") -> Path:
    """A file of a definition."""
    return served.workbench.settings.home / "agents" / definition / name


def write_profiles(served: Served, **texts: str) -> None:
    """Profiles of the project's own, trusted."""
    settings = served.workbench.settings
    (settings.home / "profiles").mkdir()
    for name, text in texts.items():
        (settings.home / "profiles" / f"{name}.yaml").write_text(f"summary: x\n{text}\n")
    trust(settings.project, withheld(settings.project))


async def test_a_command_finds_the_definition_in_files_and_the_run_names_its_content(served: Served, lab: Path) -> None:
    definition_id = await define(served)
    made = await served.workbench.call("spawn_agent", definition="Reviewer", include=["twice"], assigned_worktree="lab")
    assert (made["agent_id"], made["definition_id"], made["unused"]) == ("Reviewer", definition_id, [])
    task = await done(served, SHOW)
    shown = await text_of(served, task["id"])
    sent = f"{PROMPT}\n\n# Rules\n\n## kind\n\n{ALWAYS}\n\n## twice\n\n{ON_REQUEST}"
    assert shown.startswith(sent)
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
    for record in (attempt, running, event["data"]):
        assert (record["prompt_hash"], record["include"]) == (text_hash(sent), ["twice"])


async def test_a_restarted_agent_has_its_definition_as_it_is_then_wherever_it_was_moved(
    served: Served, lab: Path
) -> None:
    definition_id = await define(served)
    await spawn(served, definition=definition_id, name="walt", assigned_worktree="lab")
    first = await done(served)
    file_of(served, "prompt.md").write_text("You doubt.\n")
    again = await done(served, SHOW)
    assert PROMPT in await text_of(served, again["id"])
    agents = served.workbench.settings.home / "agents"
    (agents / "reviewer").rename(agents / "critic")
    await served.workbench.call("restart_agent", agent_id="walt")
    third = await done(served, SHOW)
    assert (await text_of(served, third["id"])).startswith("You doubt.")
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
    file = file_of(served)
    text = file.read_text()
    file.write_text("metadata: [")
    await given.refuses("INVALID_CONFIGURATION", served.workbench.call("restart_agent", agent_id="walt"))
    assert (await process(served, "walt"))["pid"] == made["pid"]
    file.write_text(text)
    await served.workbench.call("agent_delete", agentTarget="Reviewer", confirm=True)
    await given.refuses("AGENT_NOT_FOUND", served.workbench.call("restart_agent", agent_id="walt"))
    assert (await process(served, "walt"))["running"]


async def test_a_program_that_takes_a_prompt_gets_the_system_prompt_before_it(served: Served, lab: Path) -> None:
    await define(served)
    own = "stdin: prompt\ncommand: [cat, '{system_prompt_file}', '-']"
    write_profiles(served, plain="stdin: prompt\ncommand: [cat]", own=own)
    texts = {}
    for profile in ("plain", "own"):
        await spawn(served, definition="Reviewer", name=profile, profile=profile, assigned_worktree="lab")
        task = await done(served, None, title="Do it", assigned_agent_id=profile)
        texts[profile] = await text_of(served, task["id"])
    assert all(text.startswith(PROMPT) and text.count(PROMPT) == 1 for text in texts.values()), texts
    assert all("# Your task: Do it" in text for text in texts.values())


async def test_a_spawned_agent_names_the_settings_that_its_profile_ignores(served: Served, lab: Path) -> None:
    await define(served, initialSettings={"model": "anthropic:claude-test"})
    made = await spawn(served, definition="Reviewer", assigned_worktree="lab")
    assert made["unused"] == ["The profile script does not use a model."]
    assert (await served.workbench.call("restart_agent", agent_id=made["agent_id"]))["unused"] == made["unused"]


async def test_a_spawned_agent_is_told_of_budgets_in_dollars_when_its_model_has_no_price(
    served: Served, lab: Path
) -> None:
    await define(served, initialSettings={"model": "anthropic:claude-test"})
    write_profiles(served, mine="program: claude\nstdin: prompt\ncommand: [cat]")
    for scope in ("project", "persona:implementer", "persona:reviewer"):
        await served.workbench.call("set_budget", scope=scope, usd=5)
    made = await spawn(served, definition="Reviewer", profile="mine", assigned_worktree="lab")
    told = "The price of claude-test is not known, and the budget of persona implementer, the project is in US dollars"
    assert [one for one in made["unused"] if one.startswith(told)]


# What is refused


@pytest.mark.parametrize(
    ("arguments", "error", "code"),
    [
        ({"definition": "nothing"}, NotFound, "AGENT_NOT_FOUND"),
        ({"definition": "../x"}, BadInput, "INVALID_PATH"),
        ({"definition": "Reviewer", "include": ["no"]}, NotFound, "kind, twice"),
        ({"include": ["kind"]}, BadInput, "DEFINITION_REQUIRED"),
        ({"persona_id": None}, BadInput, "PERSONA_REQUIRED"),
        ({"definition": "Plain", "persona_id": None}, BadInput, "names no persona"),
        ({"definition": "Foreign"}, BadInput, "DEFINITION_DOES_NOT_FIT"),
    ],
)
async def test_an_invalid_spawn_is_refused_before_anything_is_created(
    served: Served, arguments: dict[str, Any], error: type[WorkbenchError], code: str
) -> None:
    await define(served)
    create = {"Plain": {}, "Foreign": {"initialSettings": {"model": "openai:gpt"}}}
    for name, more in create.items():
        await served.workbench.call("agent_create", agentPath=f"./agents/{name}", name=name, **more)
    write_profiles(served, mine="program: claude\ncommand: ['true']")
    with pytest.raises(error, match=code):
        await spawn(served, profile="mine", **arguments)
    assert (await served.workbench.call("list_agents"))["agents"] == []


async def test_the_operator_trusts_an_agents_definition_before_it_runs(served: Served, admit: Admit, lab: Path) -> None:
    paula = await admit("paula", "planner", definitions=True)
    create = {"agentPath": "./agents/armed", "name": "Armed"}
    await served.workbench.dispatch(paula.caller, "agent_create", create)
    file = file_of(served, definition="armed")
    server = {"files": {"command": "true", "serverToolDefaults": FREE}}
    file.write_text(file.read_text() + f"mcpServers: {json.dumps(server)}\n")
    write_profiles(
        served, mine="program: claude\ndriver: text\ntoken: true\ncommand: [sh, -c, 'cat $1', sh, '{mcp_config}']"
    )
    how = {"definition": "Armed", "profile": "mine", "name": "walt", "assigned_worktree": "lab"}
    refused = await given.refuses("DEFINITION_NOT_TRUSTED", spawn(served, **how))
    assert (await served.workbench.call("list_agents", search="walt"))["agents"] == []
    await spawn(served, definition="Armed", name="harmless", assigned_worktree="lab")  # it uses the files alone
    await served.workbench.call("approve", approval_id=refused.details["approval_id"])
    await spawn(served, **how)
    task = await ran(served, None, assigned_agent_id="walt")
    assert '"command": "true"' in await text_of(served, task["id"])
    file.write_text(file.read_text().replace('"true"', '"false"'))
    await given.refuses("DEFINITION_NOT_TRUSTED", served.workbench.call("restart_agent", agent_id="walt"))
    assert (await process(served, "walt"))["running"]


async def test_a_secret_reaches_the_program_but_none_of_its_records(
    served: Served, lab: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_KEY", "sk-very-secret")
    await define(served)
    config = {"providerType": "anthropic", "config": {"ANTHROPIC_API_KEY": "env://A_KEY"}}
    await served.workbench.call("agent_install_provider", agentTarget="Reviewer", **config)
    script = (
        'echo "key: $ANTHROPIC_API_KEY"; [ "$WORKBENCH_TASK_ID" = 1 ] || exit 3; '
        'echo "{\\"result\\": {\\"$ANTHROPIC_API_KEY\\": [\\"$ANTHROPIC_API_KEY\\"]}}" > $WORKBENCH_RESULT'
    )
    command = json.dumps(["sh", "-c", script, "sh"])
    write_profiles(served, mine=f"program: claude\ndriver: text\ncommand: {command}")
    await spawn(served, definition="Reviewer", name="walt", profile="mine", assigned_worktree="lab")
    first, second = [await ran(served, None, max_retries=0) for _ in range(2)]
    assert first["result_data"] == {MASK: [MASK]}
    assert second["error_message"].endswith(f"key: {MASK}")
    assert await text_of(served, first["id"]) == f"key: {MASK}"
    log = (await process(served, "walt"))["log"]
    assert "sk-very-secret" not in Path(log).read_text()


async def test_an_agent_whose_secret_cannot_be_read_is_not_spawned(served: Served, lab: Path) -> None:
    await define(served)
    config = {"providerType": "anthropic", "config": {"ANTHROPIC_API_KEY": "env://NO_SUCH_KEY"}}
    await served.workbench.call("agent_install_provider", agentTarget="Reviewer", **config)
    write_profiles(served, mine="program: claude\ncommand: ['true']")
    how = {"definition": "Reviewer", "name": "walt", "profile": "mine", "assigned_worktree": "lab"}
    refused = await given.refuses("SECRET_UNRESOLVED", spawn(served, **how))
    (found,) = (await served.workbench.call("list_agents", search="walt"))["agents"]
    assert found["registration_status"] == "inactive"
    ended = await process(served, "walt")
    assert (ended["running"], ended["reason"]) == (False, refused.message)


async def test_the_person_sees_which_definition_a_planners_agent_has(served: Served, admit: Admit) -> None:
    definition_id = await define(served)
    paula = await admit("paula", "planner")
    made = await served.workbench.dispatch(
        paula.caller, "spawn_agent", {"definition": "Reviewer", "new_worktree": True}
    )
    approval = await served.workbench.call("get_approval", approval_id=made["approval_id"])
    assert approval["payload"]["definition"] == {
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
    task = await ran(served, SHOW.replace("rules/*.md", ""))
    assert (await text_of(served, task["id"])).startswith("You are another."), task["error_message"]
    await served.workbench.call("update_agent", agent_id="walt", changes={"definition": None})
    await served.workbench.call("restart_agent", agent_id="walt")
    task = await done(served, 'echo "[$WORKBENCH_DEFINITION]"')
    assert await text_of(served, task["id"]) == "[]"
    assert task["attempts"][0]["definition_hash"] is None


async def test_a_role_from_a_definition_needs_trust_whatever_runs_it(served: Served, lab: Path) -> None:
    await define(served)
    how = {"definition": "Reviewer", "assigned_worktree": "lab"}
    assert (await served.workbench.call("spawn_agent", **how))["role"] == "worker"
    file = file_of(served)
    file.write_text(file.read_text().replace("persona: implementer", "persona: planner"))
    refused = await given.refuses("DEFINITION_NOT_TRUSTED", served.workbench.call("spawn_agent", **how))
    assert (await served.workbench.call("spawn_agent", persona_id="implementer", **how))["role"] == "worker"
    await served.workbench.call("approve", approval_id=refused.details["approval_id"])
    assert (await served.workbench.call("spawn_agent", **how))["role"] == "planner"
