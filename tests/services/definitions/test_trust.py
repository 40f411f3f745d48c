"""The author of a definition's needs decides whether they are trusted; others are shown and asked for first."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conftest import Admit
from tests.services.definitions.conftest import create
from workbench.app import Workbench
from workbench.errors import Refused
from workbench.ops import OPERATOR, SYSTEM, Caller
from workbench.services.definitions import changes, models, trust
from workbench.state.settings import Settings

pytestmark = pytest.mark.anyio
AGENT_YAML = """\
metadata:
  id: theirs
  name: Theirs
mcpServers:
  files:
    command: npx
    args: [-y, server]
    env:
      API_TOKEN: hunter2
      LEVEL: env://LEVEL
"""
IMPORTED = """\
workbenchAgent: 1
metadata: {id: x, name: New}
rules: [{name: r, text: EVIL}]
"""
PROGRAM = 'mcpServers.files: starts "npx" "-y" "server" with API_TOKEN=••••••, LEVEL=env://LEVEL'


@pytest.fixture
def theirs(settings: Settings) -> str:
    """The path of a definition that came with the repository."""
    return came_with_the_repository(settings, AGENT_YAML)


def came_with_the_repository(settings: Settings, text: str, name: str = "theirs") -> str:
    """Write an `agent.yaml` as git does; its path."""
    path = settings.home / "agents" / name / "agent.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return f"./agents/{name}"


@pytest.fixture
async def ada(admit: Admit) -> Caller:
    """A planner that may manage definitions."""
    admitted = await admit("ada", role="planner", definitions=True)
    caller: Caller = admitted.caller
    return caller


async def require(workbench: Workbench, target: str, caller: Caller = OPERATOR) -> None:
    """Require trust in a definition, as spawning does before it uses one."""
    ctx = workbench._ctx.of(caller)
    await trust.require(ctx, await changes.read(ctx, target))


async def refusal_of(workbench: Workbench, target: str, caller: Caller = OPERATOR) -> Refused:
    """Why a definition is not used."""
    with pytest.raises(Refused, match="DEFINITION_NOT_TRUSTED") as caught:
        await require(workbench, target, caller)
    return caught.value


async def pending(workbench: Workbench) -> list[dict[str, Any]]:
    """The questions about trust that wait."""
    return list((await workbench.call("list_approvals", kind="trust"))["approvals"])


async def decide(workbench: Workbench, error: Refused, how: str = "approve", **more: Any) -> dict[str, Any]:
    """Decide the question of a refusal; returns the outcome."""
    return await workbench.call(how, approval_id=error.details["approval_id"], **more)


async def written(workbench: Workbench, caller: Caller, target: str, **sections: Any) -> None:
    """Change sections of a definition, as the operations of those sections do."""
    ctx = workbench._ctx.of(caller)
    await changes.change(ctx, target, lambda definition: changes.updated(definition, **sections), "changed")


SERVER = {"files": {"command": "npx", "args": ["-y", "server"]}}


@pytest.fixture
async def mine(workbench: Workbench) -> str:
    """The path of a definition for which the operator wrote a server."""
    await create(workbench, "mine")
    await written(workbench, OPERATOR, "mine", mcp_servers=SERVER)
    return "./agents/mine"


async def test_a_definition_from_a_repository_is_refused_with_a_question_of_trust(
    workbench: Workbench, theirs: str, ada: Caller
) -> None:
    error = await refusal_of(workbench, theirs)
    (question,) = await pending(workbench)
    assert error.details == {"approval_id": question["id"], "needs": [PROGRAM]}
    assert error.message == (
        f"The definition Theirs needs what is not trusted: {PROGRAM}. "
        f"The operator decides about it: approval {question['id']}."
    )
    environment = {"API_TOKEN": "••••••", "LEVEL": "env://LEVEL"}
    details = {"command": "npx", "arguments": ["-y", "server"], "environment": environment}
    assert question["payload"] == {
        "definition": "Theirs",
        "definition_id": "theirs",
        "path": "./agents/theirs",
        "needs": [{"kind": "program", "name": "mcpServers.files", "summary": PROGRAM, "details": details}],
    }
    for who in (ada, OPERATOR, ada):
        assert (await refusal_of(workbench, theirs, who)).details["approval_id"] == question["id"]
    assert await pending(workbench) == [question]


async def test_a_trusted_definition_is_used_until_it_changes(
    workbench: Workbench, theirs: str, settings: Settings
) -> None:
    error = await refusal_of(workbench, theirs)
    assert (await decide(workbench, error))["outcome"] == {
        "definition": "Theirs",
        "state": "trusted",
        "needs": ["mcpServers.files"],
    }
    await require(workbench, theirs)
    came_with_the_repository(settings, AGENT_YAML.replace("hunter2", "hunter3"))
    again = await refusal_of(workbench, theirs)
    assert again.details["approval_id"] != error.details["approval_id"]
    came_with_the_repository(settings, AGENT_YAML)
    await require(workbench, theirs)


async def test_a_decision_covers_the_shown_definition_and_a_change_replaces_the_question(
    workbench: Workbench, theirs: str, settings: Settings
) -> None:
    first = await refusal_of(workbench, theirs)
    came_with_the_repository(settings, AGENT_YAML.replace("npx", "evil"))
    await decide(workbench, first)
    second = await refusal_of(workbench, theirs)
    assert "evil" in second.message
    came_with_the_repository(settings, AGENT_YAML.replace("npx", "worse"))
    third = await refusal_of(workbench, theirs)
    assert [question["id"] for question in await pending(workbench)] == [third.details["approval_id"]]
    closed = await workbench.call("get_approval", approval_id=second.details["approval_id"])
    assert (closed["status"], closed["reason"]) == ("failed", "What it asked about has changed.")
    await decide(workbench, third)
    await require(workbench, theirs)


async def test_only_the_operator_reopens_a_refused_question_of_trust(
    workbench: Workbench, theirs: str, ada: Caller
) -> None:
    error = await refusal_of(workbench, theirs)
    await decide(workbench, error, "reject", reason="No network here")
    for who in (ada, SYSTEM):
        again = await refusal_of(workbench, theirs, who)
        assert again.details["approval_id"] is None
        assert again.message.endswith("The operator refused it: No network here.")
        assert await pending(workbench) == []
    reopened = await refusal_of(workbench, theirs)
    await decide(workbench, reopened)
    await require(workbench, theirs, ada)


async def test_a_refused_need_does_not_refuse_a_new_one(
    workbench: Workbench, theirs: str, settings: Settings, ada: Caller
) -> None:
    error = await refusal_of(workbench, theirs)
    await decide(workbench, error, "reject", reason="No network here")
    came_with_the_repository(settings, f"{AGENT_YAML}  other:\n    command: python\n")
    both = await refusal_of(workbench, theirs, ada)
    [question] = await pending(workbench)
    assert (both.details["approval_id"], len(both.details["needs"])) == (question["id"], 2)
    assert [need["name"] for need in question["payload"]["needs"]] == ["mcpServers.other"]
    await workbench.call("approve", approval_id=question["id"])
    still = await refusal_of(workbench, theirs, ada)
    assert still.details["approval_id"] is None
    assert [need.partition(":")[0] for need in still.details["needs"]] == ["mcpServers.files"]


async def test_a_definition_written_by_the_operator_is_trusted_at_once(workbench: Workbench) -> None:
    await create(workbench, "mine", initialSettings={"toolPermission": "never"})
    await require(workbench, "mine")
    assert await pending(workbench) == []


async def test_a_server_written_by_an_agent_needs_the_operators_trust(workbench: Workbench, ada: Caller) -> None:
    await workbench.dispatch(ada, "agent_create", {"agentPath": "./agents/hers", "name": "hers"})
    await require(workbench, "hers", ada)
    await written(workbench, ada, "hers", mcp_servers=SERVER)
    error = await refusal_of(workbench, "hers", ada)
    (question,) = await pending(workbench)
    assert (question["id"], question["requester"]) == (error.details["approval_id"], "ada")
    waited = await workbench.dispatch(ada, "get_approval", {"approval_id": question["id"]})
    assert waited["payload"] == question["payload"]


async def test_an_agents_change_to_a_trusted_definition_needs_trust_again(
    workbench: Workbench, ada: Caller, mine: str
) -> None:
    await require(workbench, "mine")
    await written(workbench, ada, "mine", mcp_servers={"files": {"command": "npx", "args": ["-y", "evil"]}})
    await refusal_of(workbench, "mine", ada)
    await refusal_of(workbench, "mine")


async def test_an_operators_change_of_another_part_trusts_nothing(workbench: Workbench, theirs: str) -> None:
    await written(workbench, OPERATOR, theirs, prompt="You work.")
    await refusal_of(workbench, theirs)
    await written(workbench, OPERATOR, theirs, settings={"toolPermission": "never"})
    error = await refusal_of(workbench, theirs)
    assert error.details["needs"] == [PROGRAM]


async def test_an_operators_change_trusts_only_the_changed_part(workbench: Workbench, settings: Settings) -> None:
    theirs = came_with_the_repository(
        settings, "metadata: {id: a, name: A}\nproviders:\n  openai: {OPENAI_BASE_URL: http://evil.example}\n"
    )
    config = {"OPENAI_BASE_URL": "http://evil.example", "OPENAI_API_KEY": "env://KEY"}
    await written(workbench, OPERATOR, theirs, providers={"openai": config})
    await refusal_of(workbench, theirs)


async def test_a_copy_inherits_the_trust_of_its_source_unless_an_agent_made_it(
    workbench: Workbench, theirs: str, ada: Caller
) -> None:
    await workbench.call("agent_clone", sourceAgent=theirs, targetPath="./agents/early")
    await decide(workbench, await refusal_of(workbench, theirs))
    await workbench.call("agent_clone", sourceAgent=theirs, targetPath="./agents/late")
    await workbench.dispatch(ada, "agent_clone", {"sourceAgent": theirs, "targetPath": "./agents/hers"})
    await refusal_of(workbench, "./agents/early")
    await require(workbench, "./agents/late")
    await refusal_of(workbench, "./agents/hers", ada)


async def test_an_agent_passes_on_the_trust_of_its_own_definition(workbench: Workbench, admit: Admit) -> None:
    definition = await create(workbench, "own")
    await written(workbench, OPERATOR, "own", mcp_servers=SERVER)
    admitted = await admit("ada", role="planner", definitions=True, definition="own")
    ada: Caller = admitted.caller
    assert ada.definition == definition["agentId"]
    await workbench.dispatch(ada, "agent_create", {"agentPath": "./agents/hers", "name": "hers"})
    await written(workbench, ada, "hers", mcp_servers=SERVER)
    await require(workbench, "hers", ada)
    more = SERVER | {"other": {"command": "npx", "args": ["-y", "server"]}}
    await written(workbench, ada, "hers", mcp_servers=more)
    error = await refusal_of(workbench, "hers", ada)
    assert error.details["needs"] == ['mcpServers.other: starts "npx" "-y" "server"']


async def test_an_imported_definition_needs_trust_even_if_it_existed_before(workbench: Workbench, mine: str) -> None:
    info = await workbench.call("agent_get_info", agentTarget=mine)
    file = (await workbench.call("agent_export", agentTarget=mine))["content"]
    await workbench.call("agent_import", agentPath="./agents/imported", content=file, newName="imported")
    await refusal_of(workbench, "./agents/imported")
    await workbench.call("agent_delete", agentTarget=mine, confirm=True)
    back = await workbench.call("agent_import", agentPath=mine, content=file)
    assert back["agentId"] == info["id"]
    await refusal_of(workbench, mine)


async def test_a_rule_that_a_trusted_program_runs_cannot_be_changed_unasked(
    workbench: Workbench, settings: Settings, ada: Caller
) -> None:
    await create(workbench, "mine")
    rule = {"name": "run", "text": "echo harmless"}
    await workbench.call("agent_add_rule", agentTarget="mine", rule=rule)
    server = {"run": {"command": "sh", "args": [".aiswarm/agents/mine/rules/run.md"]}}
    await written(workbench, OPERATOR, "mine", mcp_servers=server)
    await require(workbench, "mine")
    changed = {"agentTarget": "mine", "ruleName": "run", "rule": {"text": "reboot"}}
    await workbench.dispatch(ada, "agent_update_rule", changed)
    await refusal_of(workbench, "mine")


async def test_a_question_of_trust_closes_when_its_need_or_definition_is_removed(
    workbench: Workbench, theirs: str, settings: Settings
) -> None:
    await refusal_of(workbench, theirs)
    await written(workbench, OPERATOR, theirs, prompt="Not this.")
    assert len(await pending(workbench)) == 1
    await written(workbench, OPERATOR, theirs, mcp_servers={})
    assert await pending(workbench) == []
    await require(workbench, theirs)
    came_with_the_repository(settings, AGENT_YAML)
    await refusal_of(workbench, theirs)
    await workbench.call("agent_delete", agentTarget=theirs, confirm=True)
    assert await pending(workbench) == []


async def test_trust_is_shown_asked_for_and_revoked(workbench: Workbench, theirs: str, ada: Caller) -> None:
    target = {"agentTarget": theirs}
    shown = await workbench.dispatch(ada, "agent_get_trust", target)
    assert (shown["trusted"], shown["approvalId"]) == (False, None)
    assert [(need["name"], need["trusted"]) for need in shown["needs"]] == [("mcpServers.files", False)]
    asked = await workbench.dispatch(ada, "agent_request_trust", target)
    assert asked["approvalId"] == (await pending(workbench))[0]["id"]
    await workbench.call("approve", approval_id=asked["approvalId"])
    assert (await workbench.dispatch(ada, "agent_get_trust", target))["trusted"]
    with pytest.raises(Refused, match="FORBIDDEN"):
        await workbench.dispatch(ada, "agent_revoke_trust", target)
    await workbench.call("agent_revoke_trust", **target)
    await refusal_of(workbench, theirs)


async def test_questions_of_trust_show_no_secret(workbench: Workbench, theirs: str) -> None:
    error = await refusal_of(workbench, theirs)
    texts = [
        str(error.as_dict()),
        str(await workbench.call("list_approvals", status=None)),
        str(await workbench.call("agent_get_trust", agentTarget=theirs)),
        str(await decide(workbench, error)),
        str(await workbench.call("list_events", limit=500)),
    ]
    assert [text for text in texts if "hunter2" in text] == []


async def test_a_role_above_worker_needs_trust(workbench: Workbench, settings: Settings) -> None:
    text = "metadata: {id: nice, name: nice, persona: planner}\n"
    path = came_with_the_repository(settings, text, "nice")
    error = await refusal_of(workbench, path)
    said = "metadata.persona: its agents get the role planner, of the persona planner"
    assert error.details["needs"] == [said]
    await decide(workbench, error)
    await require(workbench, path)
    await require(workbench, came_with_the_repository(settings, text.replace("planner", "tester"), "nice"))


async def test_a_role_given_by_a_planner_needs_trust_and_one_by_the_operator_does_not(
    workbench: Workbench, ada: Caller
) -> None:
    await create(workbench, "mine")
    arguments = {"agentTarget": "mine", "metadata": {"persona": "planner"}}
    await workbench.dispatch(ada, "agent_update_metadata", arguments)
    assert (await refusal_of(workbench, "mine")).details["needs"][0].startswith("metadata.persona: ")
    await create(workbench, "own")
    await workbench.call("agent_update_metadata", **{**arguments, "agentTarget": "own"})
    await require(workbench, "own")


async def test_a_prompt_changed_by_an_agent_needs_trust_until_it_was_shown(workbench: Workbench, ada: Caller) -> None:
    await create(workbench, "mine")
    await workbench.dispatch(ada, "agent_set_system_prompt", {"agentTarget": "mine", "prompt": "EVIL"})
    error = await refusal_of(workbench, "mine")
    assert error.details["needs"] == ['prompt: an agent wrote "EVIL"']
    await workbench.call("agent_set_setting", agentTarget="mine", key="temperature", value=0.1)
    await decide(workbench, await refusal_of(workbench, "mine"))
    await require(workbench, "mine")
    await workbench.call("agent_revoke_trust", agentTarget="mine")
    await refusal_of(workbench, "mine")
    await workbench.call("agent_set_system_prompt", agentTarget="mine", prompt="Mine.")
    await require(workbench, "mine")


@pytest.mark.parametrize(
    ("op", "arguments", "name"),
    [
        ("agent_create", {"name": "new", "initialPrompt": "EVIL"}, "prompt"),
        ("agent_import", {"content": IMPORTED}, "rules.r"),
    ],
)
async def test_a_text_written_by_an_agent_needs_trust_even_in_a_copy(
    workbench: Workbench, ada: Caller, op: str, arguments: dict[str, Any], name: str
) -> None:
    await workbench.dispatch(ada, op, {"agentPath": "./agents/new", **arguments})
    needs = [f'{name}: an agent wrote "EVIL"']
    await workbench.call("agent_clone", sourceAgent="./agents/new", targetPath="./agents/copy")
    for path in ("./agents/copy", "./agents/new"):
        error = await refusal_of(workbench, path)
        assert error.details["needs"] == needs
    await decide(workbench, error)
    await require(workbench, "./agents/new")
    await workbench.dispatch(ada, "agent_clone", {"sourceAgent": "./agents/new", "targetPath": "./agents/third"})
    await require(workbench, "./agents/third")


@pytest.mark.parametrize(
    ("op", "section", "item"),
    [
        ("agent_add_rule", "rule", {"name": "r", "text": "EVIL"}),
        ("agent_add_reference", "reference", {"name": "r", "text": "EVIL"}),
    ],
)
async def test_a_rule_or_reference_written_by_an_agent_needs_trust(
    workbench: Workbench, ada: Caller, op: str, section: str, item: dict[str, Any]
) -> None:
    await create(workbench, "mine")
    await workbench.dispatch(ada, op, {"agentTarget": "mine", section: item})
    error = await refusal_of(workbench, "mine")
    assert error.details["needs"] == [f'{section}s.r: an agent wrote "EVIL"']
    await decide(workbench, error)
    await require(workbench, "mine")


async def test_a_built_in_prompt_that_an_agent_uses_needs_no_trust(workbench: Workbench, ada: Caller) -> None:
    template = (await workbench.call("agent_list_templates"))["templates"][0]["name"]
    await workbench.dispatch(ada, "agent_create_from_template", {"templateName": template, "agentPath": "./agents/a"})
    await workbench.dispatch(ada, "agent_create", {"agentPath": "./agents/b", "name": "b"})
    for path in ("./agents/a", "./agents/b"):
        texts = (await workbench.call("agent_get_trust", agentTarget=path))["needs"]
        assert [need for need in texts if need["kind"] == "prompt"] == []


async def test_a_model_is_not_asked_with_a_text_that_an_agent_wrote(workbench: Workbench, ada: Caller) -> None:
    await create(workbench, "mine")
    await workbench.dispatch(ada, "agent_set_system_prompt", {"agentTarget": "mine", "prompt": "EVIL"})
    ctx = workbench._ctx.of(OPERATOR)
    with pytest.raises(Refused, match="DEFINITION_NOT_TRUSTED"):
        await models.ready(ctx, await changes.read(ctx, "mine"), "openai:gpt")
