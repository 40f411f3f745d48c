"""Claude Code, Codex and Gemini CLI as agents, where they are installed, with a model whose replies are scripted.

npm ci --prefix tests/worker/programs
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conftest import Served, git
from tests.services.personalities.exchange.conftest import free_port
from tests.services.worktrees.lab import finished as settled
from tests.shells.mcp.catalogue import Tools, returning, text, tools
from tests.upstream.servers import SERVER as TOOLS_SERVER
from tests.worker.fake_model import FakeModel, Step, answering
from workbench.analytics.live import Live, refresh
from workbench.app import Workbench
from workbench.client import McpClient
from workbench.client.discovery import find_server
from workbench.client.http import HttpClient
from workbench.rules.definitions.secrets import MASK
from workbench.settings import Settings, shipped
from workbench.shells.serve import Servers
from workbench.withheld import trust, withheld

__all__ = ["tools"]
pytestmark = [pytest.mark.anyio, pytest.mark.node, pytest.mark.timeout(180)]

CODEX = """
model = "fake"
model_provider = "fake"

[model_providers.fake]
name = "fake"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "CODEX_API_KEY"
request_max_retries = 0

"""
NOTE = "half of it is there"
PROGRAMS = Path(__file__).with_name("programs") / "node_modules" / ".bin"
"""The programs, and the Node.js that they need."""


@pytest.fixture(autouse=True)
def _installed_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}")


def for_test(settings: Settings, name: str, model: FakeModel) -> dict[str, str]:
    """Lead a program to the model: a profile of the project's own of the same name; the variables it needs."""
    profile: dict[str, Any] = yaml.safe_load(shipped("data", "profiles", f"{name}.yaml").read_text("utf-8"))
    profile["connect"] = ["server", model.port]
    if name == "codex":
        config = profile["files"][".codex/config.toml"]
        profile["files"][".codex/config.toml"] = CODEX.replace("{url}", model.url) + config
    (settings.home / "profiles").mkdir(parents=True, exist_ok=True)
    (settings.home / "profiles" / f"{name}.yaml").write_text(yaml.safe_dump(profile), "utf-8")
    trust(settings.project, withheld(settings.project))
    return {
        "claude": {"ANTHROPIC_BASE_URL": model.url, "ANTHROPIC_API_KEY": "none"},
        "codex": {"CODEX_API_KEY": "none"},
        "gemini": {"GOOGLE_GEMINI_BASE_URL": model.url, "GEMINI_API_KEY": "none"},
    }[name]


@asynccontextmanager
async def open_and_served(settings: Settings) -> AsyncIterator[Served]:
    """The project with its servers running."""
    async with Workbench.open(settings) as workbench, Servers(workbench) as servers:
        yield Served(workbench, await servers.start(0), servers)


async def finished(served: Served, task_id: int) -> dict[str, Any]:
    """The task, once it has ended."""
    while (await served.workbench.call("wait_for_task", task_id=task_id))["status"] not in ("completed", "failed"):
        pass
    return await served.workbench.call("get_task", task_id=task_id)


@pytest.mark.parametrize("name", ["claude", "codex", "gemini"])
async def test_a_real_program_does_a_task_in_its_worktree(
    settings: Settings, repository: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed")
    monkeypatch.setenv("GEMINI_API_KEY", "none")
    progress = ("report_task_progress", {"task_id": 1, "attempt": 1, "progress_note": NOTE})
    made = 'echo made > made.txt && echo \'{"result": "as told"}\' > $WORKBENCH_RESULT'
    with answering(("mcp", progress), ("shell", made), ("text", "All is done.")) as model:
        variables = for_test(settings, name, model)
        async with open_and_served(settings) as served:
            call = served.workbench.call
            found = {one["name"]: one for one in (await call("list_profiles"))["profiles"]}
            assert (found[name]["source"], found[name]["available"]) == ("project", True)
            await call("create_worktree", name="lab")
            new = {"title": "Make a file", "description": "It is called made.txt.", "persona_id": "implementer"}
            task_id = (await call("create_task", **new, target_worktree="lab", max_retries=0))["id"]
            how = {"profile": name, "environment": variables, "limits": {"wall_seconds": 100}, "task_id": task_id}
            spawned = await call("spawn_agent", persona_id="implementer", assigned_worktree="lab", name="ada", **how)
            task = await finished(served, task_id)
            log = Path(spawned["log"]).read_text()
            assert (task["status"], task["result_data"]) == ("completed", "as told"), (task["error_message"], log)
            said = [line["message"] for line in (await call("get_task_logs", task_id=task_id))["lines"]]
            assert NOTE in said
            assert "wba_" not in log + "".join(said)
    assert git("show", "wb/lab/main:made.txt", cwd=repository) == "made"
    told = "".join(model.prompts)
    assert "It is called made.txt." in told
    assert "You do one task at a time and finish it." in told
    assert "do not claim tasks" in told  # the server's instructions for an agent under a supervisor
    assert "waits_for" not in told  # output schemas, which alone have this word, do not reach the model
    assert "wba_" not in told


@pytest.mark.parametrize("name", ["claude", "codex", "gemini"])
async def test_a_real_program_calls_the_tools_that_its_agent_was_granted(
    settings: Settings, repository: Path, name: str, monkeypatch: pytest.MonkeyPatch, tools: Tools
) -> None:
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed")
    monkeypatch.setenv("GEMINI_API_KEY", "none")
    tools.offer("count_penguins", returning(text("THERE-ARE-344")), reads=False)
    server = {"command": sys.executable, "args": [str(shutil.copy(TOOLS_SERVER, repository / "server.py"))]}
    steps = ("mcp", ("small__add", {"a": 20_000, "b": 345})), ("mcp", ("count_penguins", {}))
    made = ("shell", 'echo \'{"result": "as told"}\' > $WORKBENCH_RESULT')
    with answering(*steps, made, ("text", "All is done.")) as model:
        variables = for_test(settings, name, model)
        async with open_and_served(settings.model_copy(update={"tool_server_start_seconds": 60.0})) as served:
            call = served.workbench.call
            added = await call("add_tool_server", name="small", config=server)
            for tool in ("small__add", "count_penguins"):
                await call("set_tool_permission", name=tool, permission="always")
            await call("create_worktree", name="lab")
            new = {"title": "t", "persona_id": "implementer", "target_worktree": "lab", "max_retries": 0}
            task_id = (await call("create_task", **new))["id"]
            how = {"profile": name, "environment": variables, "limits": {"wall_seconds": 100}, "task_id": task_id}
            spawned = await call("spawn_agent", persona_id="implementer", tools=["small", "notebook"], **how)
            task = await finished(served, task_id)
            calls = (await call("list_tool_calls"))["calls"]
            log = Path(spawned["log"]).read_text()
    assert added["state"] == "ready", added
    assert (task["status"], task["result_data"]) == ("completed", "as told"), (task["error_message"], log)
    assert {(one["tool_name"], one["source"], one["state"], one["task_id"]) for one in calls} == {
        ("small__add", "mcp", "completed", task_id),
        ("count_penguins", "local", "completed", task_id),
    }
    told = "".join(model.prompts)
    assert "20345" in told
    assert "THERE-ARE-344" in told


CALLS = """
SELECT c.id, c.tool_name, p.owner, c.version, c.task_id, c.attempt, c.commit_id
FROM tool_calls c JOIN tasks t ON t.id = c.task_id JOIN personalities p ON p.name = c.server
WHERE c.kind = 'trait'
"""


@asynccontextmanager
async def stand_alone_agent(directory: Path, first_contact: str) -> AsyncIterator[HttpClient]:
    """`workbench koi agent`, a node and a process of its own, with a function that its first contact may call."""
    trait = {"description": "Evaluate.", "is_callable": True, "function": "workbench.demo.traits:calculate"}
    agent = {"name": "helper", "base_url": f"http://127.0.0.1:{free_port()}/koi-net", "traits": {"calculate": trait}}
    network = {"first_contact": first_contact, "first_contact_may_call": True}
    directory.mkdir()
    config = directory / "agent.json"
    config.write_text(json.dumps({"agent": agent, "network": network}), "utf-8")
    argv = (*(sys.executable, "-m", "workbench.cli", "koi", "agent"), "--config", config, "--directory", directory)
    process = await asyncio.create_subprocess_exec(*map(str, argv), stdout=asyncio.subprocess.DEVNULL)
    try:
        while (server := await find_server(directory / ".aiswarm" / "server.json")) is None:
            assert process.returncode is None
            await asyncio.sleep(0.05)
        async with HttpClient(server.info.url, server.operator_token) as client:
            yield client
    finally:
        process.terminate()
        await process.wait()


async def test_claude_code_in_a_worktree_calls_a_function_of_another_process_on_the_network(
    settings: Settings, repository: Path, tmp_path: Path
) -> None:
    if shutil.which("claude") is None:
        pytest.skip("claude is not installed")
    asked = ("mcp", ("helper__calculate", {"expression": "6 * (3 + 4) * 1000"}))
    made = ("shell", 'echo made > made.txt && echo \'{"result": "as told"}\' > $WORKBENCH_RESULT')
    with answering(asked, made, ("text", "All is done.")) as model:
        variables = for_test(settings, "claude", model)
        async with open_and_served(settings) as served:
            call = served.workbench.call
            joined = await call("join_network", name="lab")
            async with stand_alone_agent(tmp_path / "helper", joined["base_url"]) as helper:
                while not (await call("list_tools", kind="trait"))["tools"]:
                    await asyncio.sleep(0.05)
                await call("set_tool_permission", name="helper__calculate", permission="always")
                await call("create_worktree", name="lab")
                new = {"title": "t", "persona_id": "implementer", "target_worktree": "lab", "max_retries": 0}
                task_id = (await call("create_task", **new))["id"]
                how = {"profile": "claude", "environment": variables, "limits": {"wall_seconds": 100}}
                spawned = await call(
                    "spawn_agent", persona_id="implementer", tools=["helper"], name="ada", task_id=task_id, **how
                )
                task, log = await finished(served, task_id), Path(spawned["log"]).read_text()
                assert task["status"] == "completed", (task["error_message"], log)
                question = (await call("integrate_worktree", worktree_name="lab"))["approval_id"]
                await call("approve", approval_id=question)
                await settled(served.workbench, question)
                live = Live()
                [found] = live.answer(await refresh(live, served.workbench.store), CALLS).fetchall()
                [received] = (await helper.call("list_tool_calls"))["calls"]
                owner = (await helper.call("get_network"))["rid"]
    merged = git("rev-parse", "main", cwd=repository)
    assert git("show", f"{merged}:made.txt", cwd=repository) == "made"
    assert found[1:] == ("helper__calculate", owner, received["version"], task_id, 1, merged)
    assert received["version"]
    assert (received["state"], received["origin_node"]) == ("completed", joined["rid"])
    assert (received["origin_call"], received["origin_caller"]) == (found[0], spawned["agent_id"])
    assert "42000" in "".join(model.prompts)


PROVIDERS = {"claude": "anthropic", "codex": "openai", "gemini": "gemini"}
KEYS = {"claude": "ANTHROPIC_API_KEY", "codex": "OPENAI_API_KEY", "gemini": "GOOGLE_API_KEY"}
SERVER = Path(__file__).parents[1] / "services" / "definitions" / "mcp_server.py"


async def define(served: Served, name: str) -> str:
    """A definition that an MCP client makes, with an MCP server; its content hash."""
    rules = {"name": "kind", "text": "RULE-ALWAYS", "include": "always"}, {"name": "calm", "text": "RULE-ON-REQUEST"}
    offered = {"name": "style", "description": "STYLE-OFFERED", "text": "REFERENCE-READ", "include": "agent"}
    reference = {"name": "facts", "text": "REFERENCE-ALWAYS", "include": "always", "priorityLevel": 1}
    async with McpClient(served.info.mcp_url, served.workbench.operator_token) as client:
        chosen = {"model": f"{PROVIDERS[name]}:gemini-test", "maxChatTurns": 30}
        create = {"agentPath": "./agents/critic", "name": "critic", "initialPrompt": f"PROMPT-OF-{name}"}
        await client.call("agent_create", **create, initialSettings=chosen)
        for rule in rules:
            await client.call("agent_add_rule", agentTarget="critic", rule=rule)
        for one in (reference, offered):
            await client.call("agent_add_reference", agentTarget="critic", reference=one)
        server = {"command": sys.executable, "args": [str(SERVER)], "serverToolDefaults": {"permissionRequired": False}}
        await client.call("agent_add_mcp_server", agentTarget="critic", serverName="notes", config=server)
        return str((await client.call("agent_get_info", agentTarget="critic"))["contentHash"])


@pytest.mark.parametrize("name", ["claude", "codex", "gemini"])
async def test_a_real_program_follows_a_definition_that_a_client_made(
    settings: Settings, repository: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed")
    monkeypatch.setenv("GEMINI_API_KEY", "none")
    read = ("mcp", ("get_reference", {"reference_name": "style"}))
    made = ("shell", 'echo \'{"result": "as told"}\' > $WORKBENCH_RESULT')
    with answering(read, made, ("text", "All is done.")) as model:
        variables = for_test(settings, name, model)
        readable = settings.model_copy(update={"confinement_read": str(SERVER.parents[2])})
        async with open_and_served(readable) as served:
            call, version = served.workbench.call, await define(served, name)
            await call("create_worktree", name="lab")
            new = {"title": "t", "description": "THE-TASK", "persona_id": "implementer", "max_retries": 0}
            task_id = (await call("create_task", **new, target_worktree="lab"))["id"]
            how = {"profile": name, "environment": variables, "limits": {"wall_seconds": 100}, "task_id": task_id}
            spawned = await call("spawn_agent", persona_id="implementer", definition="critic", **how)
            unused = ["The profile codex does not use the setting maxChatTurns."] if name == "codex" else []
            assert spawned["unused"] == unused
            task = await finished(served, task_id)
            log = Path(spawned["log"]).read_text()
    assert (task["status"], task["result_data"]) == ("completed", "as told"), (task["error_message"], log)
    assert task["attempts"][0]["definition_hash"] == version
    first, told = next(one for one in model.prompts if f"PROMPT-OF-{name}" in one), "".join(model.prompts)
    for part in ("THE-TASK", "RULE-ALWAYS", "REFERENCE-ALWAYS", "STYLE-OFFERED"):
        assert part in first
    assert "gemini-test" in told + "".join(model.paths)
    assert "RULE-ON-REQUEST" not in told
    assert "REFERENCE-READ" not in first
    assert "REFERENCE-READ" in told
    assert "greet" in first  # the tool of its MCP server
    assert "wba_" not in told


@pytest.mark.parametrize("name", ["claude", "codex", "gemini"])
async def test_a_real_program_uses_the_key_of_its_definition(
    settings: Settings, repository: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed")
    monkeypatch.setenv("KEY_OF_A_DEFINITION", "sk-of-the-definition")
    with answering(("text", "sk-of-the-definition is the key.")) as model:
        for_test(settings, name, model)
        if name == "codex":  # with no provider of its own, but the ports that `for_test` opens
            profile = settings.home / "profiles" / "codex.yaml"
            profile.write_text(profile.read_text().replace('model_provider = "fake"', ""))
            trust(settings.project, withheld(settings.project))
        config = dict.fromkeys([KEYS[name]], "env://KEY_OF_A_DEFINITION")
        addresses = {"claude": {"ANTHROPIC_BASE_URL": model.url}, "gemini": {"GOOGLE_GEMINI_BASE_URL": model.url}}
        if name == "codex":
            config["OPENAI_BASE_URL"] = f"{model.url}/v1"
        async with open_and_served(settings) as served:
            call = served.workbench.call
            await call("agent_create", agentPath="./agents/critic", name="critic")
            await call("agent_install_provider", agentTarget="critic", providerType=PROVIDERS[name], config=config)
            await call("create_worktree", name="lab")
            new = {"title": "t", "persona_id": "implementer", "max_retries": 0, "target_worktree": "lab"}
            task_id = (await call("create_task", **new))["id"]
            how = {"profile": name, "environment": addresses.get(name, {}), "limits": {"wall_seconds": 100}}
            spawned = await call("spawn_agent", persona_id="implementer", definition="critic", task_id=task_id, **how)
            task = await finished(served, task_id)
            log = Path(spawned["log"]).read_text()
    assert task["status"] == "completed", (task["error_message"], log)
    assert task["result_data"]["answer"].endswith(f"{MASK} is the key.")
    assert model.keys == {"sk-of-the-definition"}
    assert "sk-of-the-definition" not in log


DAY = ("own", "exit", "both", "early", "late", "never")
"""The ways in which a program ends a task: by `complete_task`, by its exit, by both, by `complete_task` before its work
is done, by `complete_task` without an exit, not at all."""
WALL_SECONDS = 40


def script(way: str, task_id: int) -> list[Step]:
    """What the model has the program do."""
    make, done = (
        ("shell", f"echo {way} > {way}.txt"),
        ("mcp", ("complete_task", {"task_id": task_id, "result_data": way})),
    )
    result = ("shell", 'echo \'{"result": "by its exit"}\' > $WORKBENCH_RESULT')
    hang, end = [("shell", "tail -f /dev/null")] * 20, ("text", "All is done.")  # Codex asks anew every 10 s
    return {
        "own": [make, done, end],
        "exit": [make, result, end],
        "both": [make, result, done, end],
        "early": [done, make, end],
        "late": [make, done, *hang, end],
        "never": [make, *hang, end],
    }[way]


@pytest.mark.timeout(400)
@pytest.mark.parametrize("name", ["claude", "codex", "gemini"])
async def test_a_real_program_ends_its_tasks_in_every_way(
    settings: Settings, repository: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed")
    monkeypatch.setenv("GEMINI_API_KEY", "none")
    quick = settings.model_copy(update={"heartbeat_seconds": 1.0, "finish_grace_seconds": 8.0})
    with answering(("text", "There is nothing to do.")) as model:
        variables = for_test(quick, name, model)
        async with open_and_served(quick) as served:
            call = served.workbench.call
            await call("create_worktree", name="lab")
            new = {"persona_id": "implementer", "target_worktree": "lab", "max_retries": 0}
            tasks = {way: (await call("create_task", title="t", description=f"DAY-{way}", **new))["id"] for way in DAY}
            model.scripts |= {f"DAY-{way}": script(way, task_id) for way, task_id in tasks.items()}
            how = {"profile": name, "environment": variables, "limits": {"wall_seconds": WALL_SECONDS}}
            spawned = await call("spawn_agent", persona_id="implementer", assigned_worktree="lab", name="ada", **how)
            found = {way: await finished(served, task_id) for way, task_id in tasks.items()}
            log = Path(spawned["log"]).read_text()
    states = {way: (task["status"], task["result_data"], len(task["attempts"])) for way, task in found.items()}
    by_itself = {way: ("completed", way, 1) for way in DAY}
    others = {"exit": ("completed", "by its exit", 1), "never": ("failed", None, 1)}
    assert states == by_itself | others, (found, log)
    for way in set(DAY) - {"never"}:
        commit = next(one for one in found[way]["artifacts"] if one.startswith("commit:")).removeprefix("commit:")
        assert git("show", f"{commit}:{way}.txt", cwd=repository) == way
        assert git("show", f"wb/lab/main:{way}.txt", cwd=repository) == way
    assert "took longer" in found["never"]["error_message"]
    kept = found["never"]["attempts"][0]["kept"]["ref"]
    assert git("show", f"{kept}:never.txt", cwd=repository) == "never"
    assert "never.txt" not in git("ls-tree", "--name-only", "wb/lab/main", cwd=repository).split()
