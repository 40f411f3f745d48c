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

from tests import given
from tests.conftest import Served, git
from tests.services.personalities.exchange.conftest import free_port
from tests.services.processes.running import serving
from tests.services.worktrees.lab import finished as settled
from tests.shells.mcp.catalogue import Tools, returning, text, tools
from tests.upstream.servers import SERVER as TOOLS_SERVER
from tests.worker.fake_model import FakeModel, Step, answering
from workbench.analytics.live import Live, refresh
from workbench.client import McpClient
from workbench.client.discovery import find_server
from workbench.client.http import HttpClient
from workbench.rules.secrets.forms import MASK
from workbench.state.settings import Settings, shipped
from workbench.trust.withheld import trust, withheld

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
CODEX_FILE = ".codex/config.toml"
NOTE = "half of it is there"
KEY = "sk-of-the-definition"
PROGRAMS = Path(__file__).with_name("programs") / "node_modules" / ".bin"
"""The programs, and the Node.js that they need."""
PROVIDERS = {"claude": "anthropic", "codex": "openai", "gemini": "gemini"}
SHELLS = {"claude": "Bash", "codex": "shell", "gemini": "run_shell_command"}
KEYS = {"claude": "ANTHROPIC_API_KEY", "codex": "OPENAI_API_KEY", "gemini": "GOOGLE_API_KEY"}
SERVER = Path(__file__).parents[1] / "services" / "definitions" / "mcp_server.py"


@pytest.fixture(autouse=True)
def _installed_programs(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}")
    name = request.getfixturevalue("name") if "name" in request.fixturenames else "claude"
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed")


def for_test(settings: Settings, name: str, model: FakeModel) -> dict[str, str]:
    """Lead a program to the model: a profile of the project's own of the same name, and `plain` for an agent whose
    definition has a provider; the address it needs."""
    shipped_one = shipped("data", "profiles", f"{name}.yaml").read_text("utf-8")
    profile: dict[str, Any] = yaml.safe_load(shipped_one) | {"connect": ["server", model.port]}
    (settings.home / "profiles").mkdir(parents=True, exist_ok=True)
    for which in ("plain", name):
        if which == "codex":
            profile["files"][CODEX_FILE] = CODEX.format(url=model.url) + profile["files"][CODEX_FILE]
        (settings.home / "profiles" / f"{which}.yaml").write_text(yaml.safe_dump(profile), "utf-8")
    trust(settings.project, withheld(settings.project))
    return {
        "claude": {"ANTHROPIC_BASE_URL": model.url},
        "codex": {"OPENAI_BASE_URL": f"{model.url}/v1"},
        "gemini": {"GOOGLE_GEMINI_BASE_URL": model.url},
    }[name]


async def define(served: Served, name: str, provider: dict[str, str]) -> str:
    """A definition that an MCP client makes, with an MCP server and a key; its content hash."""
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
        await client.call("agent_install_provider", agentTarget="critic", providerType=PROVIDERS[name], config=provider)
        return str((await client.call("agent_get_info", agentTarget="critic"))["contentHash"])


WAYS = {"ada": ("own", "answer"), "bob": ("exit", "early", "late"), "eve": ("never",)}
"""The ways in which a program ends a task: by `complete_task` although it left a result, too, by its answer, by a
result that it left, by `complete_task` before its work is done, by `complete_task` without an exit, not at all. The
agents make them at the same time; ada has a definition."""
RESULT = ("shell", 'echo \'{"result": "by its exit"}\' > $WORKBENCH_RESULT')


def script(way: str, task_id: int) -> list[Step]:
    """The script of the model for the program."""
    make = ("shell", f"echo {way} > {way}.txt")
    done = ("mcp", ("complete_task", {"task_id": task_id, "result_data": way}))
    calls: list[Step] = [
        ("mcp", ("report_task_progress", {"task_id": task_id, "attempt": 1, "progress_note": NOTE})),
        ("mcp", ("small__add", {"a": 20_000, "b": 345})),
        ("mcp", ("count_penguins", {})),
        ("mcp", ("get_reference", {"reference_name": "style"})),
    ]
    hang, end = [("shell", "tail -f /dev/null")] * 20, ("text", "All is done.")  # Codex asks anew every 10 s
    return {
        "own": [*calls, make, RESULT, done, end],
        "answer": [make, ("text", f"{KEY} is the key.")],
        "exit": [make, RESULT, end],
        "early": [done, make, end],
        "late": [make, done, *hang, end],
        "never": [make, *hang, end],
    }[way]


@pytest.mark.timeout(400)
@pytest.mark.parametrize("name", ["claude", "codex", "gemini"])
async def test_a_real_program_does_tasks_and_ends_them_in_every_way(
    settings: Settings, repository: Path, name: str, monkeypatch: pytest.MonkeyPatch, tools: Tools
) -> None:
    monkeypatch.setenv("KEY_OF_A_DEFINITION", KEY)
    tools.offer("count_penguins", returning(text("THERE-ARE-344")), reads=False)
    server = {"command": sys.executable, "args": [str(shutil.copy(TOOLS_SERVER, repository / "server.py"))]}
    more = {"heartbeat_seconds": 1.0, "finish_grace_seconds": 8.0, "tool_server_start_seconds": 60.0}
    chosen = settings.model_copy(update=more | {"confinement_read": str(SERVER.parents[2])})
    with answering(("text", "There is nothing to do.")) as model:
        address = for_test(chosen, name, model)
        async with serving(chosen) as served:
            call = served.workbench.call
            provider = {KEYS[name]: "env://KEY_OF_A_DEFINITION"} | (address if name == "codex" else {})
            version = await define(served, name, provider)
            assert (await call("add_tool_server", name="small", config=server))["state"] == "ready"
            for tool in ("small__add", "count_penguins"):
                await call("set_tool_permission", name=tool, permission="always")
            tasks = {}
            for agent, ways in WAYS.items():
                await call("create_worktree", name=agent)
                new = {"title": "t", "persona_id": "implementer", "target_worktree": agent, "max_retries": 0}
                tasks |= {way: (await call("create_task", description=f"DAY-{way}", **new))["id"] for way in ways}
            model.scripts |= {f"DAY-{way}": script(way, task_id) for way, task_id in tasks.items()}
            how: dict[str, Any] = {"profile": "plain", "persona_id": "implementer"}
            granted = {"definition": "critic", "tools": ["small", "notebook"], "limits": {"wall_seconds": 200}}
            spawned = await call(
                "spawn_agent", name="ada", assigned_worktree="ada", environment=address, **how, **granted
            )
            assert spawned["unused"] == ["The profile plain does not use the setting maxChatTurns."] * (name == "codex")
            monkeypatch.setenv("GEMINI_API_KEY", "none")
            [profile] = [profile for profile in (await call("list_profiles"))["profiles"] if profile["name"] == name]
            assert (profile["source"], profile["available"]) == ("project", True)
            keys = {"codex": "CODEX_API_KEY", "gemini": "GEMINI_API_KEY"}
            how |= {"profile": name, "environment": address | {keys.get(name, KEYS[name]): "none"}}
            logs = [spawned["log"]]
            for agent, seconds in (("bob", 200), ("eve", 40)):
                where = {"name": agent, "assigned_worktree": agent, "limits": {"wall_seconds": seconds}}
                logs.append((await call("spawn_agent", **how, **where))["log"])
            found = {
                way: await given.reached(served.workbench, task_id, "completed", "failed")
                for way, task_id in tasks.items()
            }

            async def called() -> Any:
                calls = (await call("list_tool_calls"))["calls"]
                ended = {(one["tool_name"], one["task_id"]) for one in calls if one["state"] == "completed"}
                return calls if {(SHELLS[name], tasks[way]) for way in ("own", "exit")} <= ended else None

            async def said() -> Any:  # a program may end before its last answer is recorded
                said = (await call("get_transcript", task_id=tasks["exit"]))["messages"]
                return said if said and "text" in said[-1]["parts"][-1] else None

            async def booked() -> Any:
                costs = (await call("list_costs", by="attempt"))["costs"]
                asked = sum("count" not in path for path, _ in model.requests)
                return costs if sum(row["requests"] for row in costs) == asked else None

            calls, transcript, costs = [await given.until(look) for look in (called, said, booked)]
            messages = [line["message"] for line in (await call("get_task_logs", task_id=tasks["own"]))["lines"]]
            log = "".join(Path(log).read_text() for log in logs)
    result = {"late": "late", "early": "early", "own": "own", "exit": "by its exit", "never": None}
    answer = found["answer"].pop("result_data")["answer"]
    states = {way: (task["status"], task.get("result_data"), len(task["attempts"])) for way, task in found.items()}
    expected = {way: ("failed" if way == "never" else "completed", result.get(way), 1) for way in tasks}
    assert states == expected, (found, log)
    for agent, ways in WAYS.items():
        for way in set(ways) - {"never"}:
            commit = next(
                artifact for artifact in found[way]["artifacts"] if artifact.startswith("commit:")
            ).removeprefix("commit:")
            assert git("show", f"{commit}:{way}.txt", cwd=repository) == way
            assert git("show", f"wb/{agent}/main:{way}.txt", cwd=repository) == way
    assert "took longer" in found["never"]["error_message"]
    kept = found["never"]["attempts"][0]["kept"]["ref"]
    assert git("show", f"{kept}:never.txt", cwd=repository) == "never"
    assert "never.txt" not in git("ls-tree", "--name-only", "wb/eve/main", cwd=repository).split()
    made = {(one["tool_name"], one["source"], one["state"], one["task_id"], one["offered_by"]) for one in calls}
    assert {call[:-1] for call in made if call[-1] != f"program:{name}"} == {
        ("small__add", "mcp", "completed", tasks["own"]),
        ("count_penguins", "local", "completed", tasks["own"]),
    }
    assert {(SHELLS[name], "local", "completed", tasks[way], f"program:{name}") for way in ("own", "exit")} <= made
    assert found["own"]["attempts"][0]["definition_hash"] == version
    assert NOTE in messages
    assert answer.endswith(f"{MASK} is the key.")
    assert KEY not in log
    assert "wba_" not in log + "".join(messages)
    whole = [row for row in costs if row["name"] in {f"{tasks[way]}.1" for way in ("own", "answer", "exit")}]
    assert [row["requests"] for row in whole] == [row["input_tokens"] for row in whole]
    assert [row["requests"] for row in whole] == [row["output_tokens"] for row in whole]
    assert len(whole) == 3
    parts = [part for one in transcript if one["role"] == "assistant" for part in one["parts"]]
    made = [json.dumps(part["arguments"]) for part in parts if "tool_call" in part]
    assert ["exit > exit.txt" in made[0], "by its exit" in made[1], len(made)] == [True, True, 2]
    assert parts[-1] == {"text": "All is done."}
    check_what_the_model_was_told(model, name)


def check_what_the_model_was_told(model: FakeModel, name: str) -> None:
    """Assert that only the agent's own prompt, tools and settings reached the model."""
    told = "".join(model.prompts)
    assert model.keys == {KEY, "none"}
    first = next(one for one in model.prompts if f"PROMPT-OF-{name}" in one)
    for part in ("DAY-own", "RULE-ALWAYS", "REFERENCE-ALWAYS", "STYLE-OFFERED", "greet"):  # the last: a tool of its own
        assert part in first
    assert "REFERENCE-READ" not in first
    for part in ("20345", "THERE-ARE-344", "REFERENCE-READ"):  # the results of its calls
        assert part in told
    undefined = next(one for one in model.prompts if "DAY-exit" in one)
    assert "You do one task at a time and finish it." in undefined
    assert f"PROMPT-OF-{name}" not in undefined
    assert "do not claim tasks" in told  # the server's instructions for an agent under a supervisor
    assert "gemini-test" in told + "".join(path for path, _ in model.requests)
    assert "waits_for" not in told  # output schemas, which alone have this word, do not reach the model
    assert "RULE-ON-REQUEST" not in told
    assert "wba_" not in told


SETTINGS = {"maxChatTurns": 3, "maxOutputTokens": 4321, "temperature": 0.2, "topP": 0.9, "toolPermission": "never"}
IGNORED = {
    "claude": {"temperature", "topP"},
    "codex": {"maxChatTurns", "maxOutputTokens", "temperature", "topP"},
    "gemini": {"maxOutputTokens", "temperature", "topP"},
}
"""What a program has no setting for."""
STEPS = 5


def sampling(said: dict[str, Any]) -> dict[str, Any]:
    """The sampling settings of a request, in the words of any provider."""
    words = ("temperature", "top_p", "topP", "max_tokens", "max_output_tokens", "maxOutputTokens")
    return {word: value for word, value in (said | said.get("generationConfig", {})).items() if word in words}


@pytest.mark.parametrize("name", ["claude", "codex", "gemini"])
async def test_a_real_program_sends_its_model_only_the_settings_of_its_definition(
    settings: Settings, repository: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEY_OF_A_DEFINITION", KEY)
    more = {"tool_server_start_seconds": 60.0, "confinement_read": str(SERVER.parents[2])}
    chosen = settings.model_copy(update=more)
    unused = {}
    tasks: list[int] = []
    with answering(*[("shell", "true")] * STEPS, ("text", "All is done.")) as model:
        address = for_test(chosen, name, model)
        provider = {KEYS[name]: "env://KEY_OF_A_DEFINITION"} | (address if name == "codex" else {})
        async with serving(chosen) as served:
            call = served.workbench.call
            for agent, stated in (("ada", SETTINGS | {"model": f"{PROVIDERS[name]}:gemini-test"}), ("bob", {})):
                create = {"name": agent, "initialPrompt": f"PROMPT-OF-{agent}", "initialSettings": stated}
                await call("agent_create", agentPath=f"./agents/{agent}", **create)
                server = {"command": sys.executable, "args": [str(SERVER)]}
                await call("agent_add_mcp_server", agentTarget=agent, serverName="notes", config=server)
                how = {"providerType": PROVIDERS[name], "config": provider}
                await call("agent_install_provider", agentTarget=agent, **how)
                await call("create_worktree", name=agent)
                new = {"title": "t", "persona_id": "implementer", "target_worktree": agent, "max_retries": 0}
                tasks.append((await call("create_task", **new))["id"])
                where = {"name": agent, "definition": agent, "assigned_worktree": agent, "environment": address}
                unused[agent] = (await call("spawn_agent", profile="plain", persona_id="implementer", **where))[
                    "unused"
                ]
            for task_id in tasks:
                await given.reached(served.workbench, task_id, "completed", "failed")
    used, own = (
        [(path, said) for path, said in model.requests if f"PROMPT-OF-{agent}" in json.dumps(said)]
        for agent in ("ada", "bob")
    )
    limit = {"max_tokens": SETTINGS["maxOutputTokens"]} if name == "claude" else {}
    assert unused["ada"] == [f"The profile plain does not use the setting {key}." for key in sorted(IGNORED[name])]
    assert len(used) == (STEPS + 1 if name == "codex" else SETTINGS["maxChatTurns"])
    assert name == "codex" or len(own) == STEPS + 1  # the model that Codex chooses has no tool for a command line
    # a tool that needs no permission, as the setting says; Codex may ask before a slow server has said what it offers
    assert "knows nothing" in json.dumps(used[-1][1])
    for path, said in used:
        assert "gemini-test" in (path if name == "gemini" else said["model"])
        assert sampling(said) == sampling(own[0][1]) | limit
    for path, said in own:
        assert "gemini-test" not in path + str(said.get("model"))
        assert "knows nothing" not in json.dumps(said)
        assert not limit.items() & sampling(said).items()


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
    asked = ("mcp", ("helper__calculate", {"expression": "6 * (3 + 4) * 1000"}))
    made = ("shell", 'echo made > made.txt && echo \'{"result": "as told"}\' > $WORKBENCH_RESULT')
    with answering(asked, made, ("text", "All is done.")) as model:
        variables = for_test(settings, "claude", model) | {"ANTHROPIC_API_KEY": "none"}
        async with serving(settings) as served:
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
                    "spawn_agent",
                    persona_id="implementer",
                    tools=["network:helper"],
                    name="ada",
                    task_id=task_id,
                    **how,
                )
                task, log = (
                    await given.reached(served.workbench, task_id, "completed", "failed"),
                    Path(spawned["log"]).read_text(),
                )
                assert task["status"] == "completed", (task["error_message"], log)
                question = (await call("integrate_worktree", worktree_name="lab"))["approval_id"]
                await call("approve", approval_id=question)
                await settled(served.workbench, question)
                live = Live()
                [row] = live.answer(await refresh(live, served.workbench.store), CALLS).fetchall()
                [received] = (await helper.call("list_tool_calls"))["calls"]
                owner = (await helper.call("get_network"))["rid"]
    merged = git("rev-parse", "main", cwd=repository)
    assert git("show", f"{merged}:made.txt", cwd=repository) == "made"
    assert row[1:] == ("helper__calculate", owner, received["version"], task_id, 1, merged)
    assert received["version"]
    assert (received["state"], received["origin_node"]) == ("completed", joined["rid"])
    assert (received["origin_call"], received["origin_caller"]) == (row[0], spawned["agent_id"])
    assert "42000" in "".join(model.prompts)
