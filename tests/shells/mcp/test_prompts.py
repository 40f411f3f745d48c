"""Prompts over MCP."""

from __future__ import annotations

import re

import pytest
from mcp.client import Client
from mcp.shared.exceptions import MCPError
from mcp.types import INVALID_PARAMS

from tests import given
from tests.conftest import Admit, Served
from tests.services.worktrees.lab import commit
from tests.shells.mcp.sessions import session
from workbench.rules.tasks import plan as rules

pytestmark = pytest.mark.anyio


async def names(client: Client) -> list[str]:
    return [prompt.name for prompt in (await client.list_prompts()).prompts]


async def texts(client: Client, name: str, **arguments: str) -> list[str]:
    content = [message.content for message in (await client.get_prompt(name, arguments)).messages]
    return [block.resource.text if block.type == "resource" else block.text for block in content]  # type: ignore


async def test_prompts_are_offered_only_to_callers_with_the_needed_level(
    served: Served, admit: Admit, era: str
) -> None:
    agents = [await admit("eve", tool="read"), await admit("ada"), await admit("pam", role="planner")]
    tokens = [None, *(agent.token for agent in agents), served.workbench.operator_token]
    offered = []
    for token in tokens:
        async with session(served, token, era) as client:
            offered.append(await names(client))
            assert all(prompt.title and prompt.description for prompt in (await client.list_prompts()).prompts)
            if "plan" not in offered[-1]:
                with pytest.raises(MCPError) as caught:
                    await client.get_prompt("plan", {"goal": "Fly"})
                assert (caught.value.code, caught.value.data["code"]) == (INVALID_PARAMS, "UNKNOWN_PROMPT")
    assert offered == [[], ["review"], ["day", "review"], ["day", "plan", "review"], ["day", "plan", "review"]]


async def test_a_prompt_contains_its_arguments(served: Served, admit: Admit, era: str) -> None:
    commit(await given.worktree(served.workbench), "birds.txt", "penguin\n")
    async with session(served, (await admit("pam", role="planner")).token, era) as client:
        [text] = await texts(client, "plan", goal="Count the {goal} penguins")
        assert "\n\nCount the {goal} penguins\n\n" in text
        [text, diff] = await texts(client, "review", worktree="lab")
        assert "the worktree lab" in text
        assert diff.endswith("+penguin")
        [text] = await texts(client, "day")
        assert "heartbeat_and_get_tasks" in text


async def test_arguments_that_do_not_fit_are_refused(served: Served) -> None:
    async with session(served, served.workbench.operator_token) as client:
        for name, arguments, code in [
            ("plan", {}, "INVALID_ARGUMENTS"),
            ("plan", {"goal": " "}, "INVALID_ARGUMENTS"),
            ("plan", {"goal": "Fly", "until": "noon"}, "INVALID_ARGUMENTS"),
            ("day", {"goal": "Fly"}, "INVALID_ARGUMENTS"),
            ("review", {"worktree": "nowhere"}, "WORKTREE_NOT_FOUND"),
        ]:
            with pytest.raises(MCPError) as caught:
                await client.get_prompt(name, arguments)
            assert (caught.value.code, caught.value.data["code"]) == (INVALID_PARAMS, code)


async def test_prompts_contain_a_valid_plan_and_name_existing_tools(served: Served, admit: Admit) -> None:
    pam = await admit("pam", role="planner")
    async with session(served, pam.token) as client:
        written = {"day": await texts(client, "day"), "plan": await texts(client, "plan", goal="Fly")}
        offered = {tool.name for tool in (await client.list_tools()).tools}
    [example] = re.findall(r"```yaml\n(.*?)```", written["plan"][0], re.DOTALL)
    parsed = rules.parse("\n".join(line[3:] for line in example.split("\n")), personas={"implementer", "reviewer"})
    assert [task.name for task in parsed.tasks] == ["parse", "review"]
    for [text] in written.values():
        named = {word for word in re.findall(r"`(\w+)`", text) if "_" in word}
        assert named - offered - {"LEASE_LOST", "wait_seconds", "dry_run"} == set()
