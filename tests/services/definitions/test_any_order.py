"""Any order of tools and of changes by an editor, compared with a model of the directories."""

from __future__ import annotations

import asyncio
import copy
import shutil
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests.chance import SOAK
from tests.conftest import NewDatabase, with_store
from tests.services.definitions.rows import TOOL
from workbench.app import Workbench
from workbench.definition_files import DefinitionDirectory, directory
from workbench.errors import WorkbenchError
from workbench.rules.definitions.model import DEFAULT_PROMPT, Definition
from workbench.services import SERVICES
from workbench.state.settings import Settings
from workbench.store.base import Store
from workbench.trust.project_store import open_store

Fields = dict[str, Any]

AGENTS = st.sampled_from(["ada", "ada", "ada", "bob", "bob", "eve"])
"""The first exists from the beginning."""
NAMES = st.sampled_from(["tone", "style", "tone", "style", "Tone", "long-name_1"])
"""Of rules, references, tools and servers: two of them differ by case only."""
TEXTS = st.sampled_from(
    ["a", "b", "# Title\n\n- one\n- two", "key: [value", "---\nname: x\n---", " indented\n\ttab", "é ✓ # no comment"]
)
LEVELS = st.sampled_from([0, 5, 500, 999, -1, 1_000])
INCLUDES = st.sampled_from(["always", "manual", "agent"])
ENTRIES = st.sampled_from(["rule", "reference"])
SETTINGS = st.sampled_from(
    [("temperature", 0.25), ("temperature", "0.5"), ("temperature", 9), ("maxChatTurns", 3), ("a", "yes"), ("b", True)]
)
PROVIDERS = st.sampled_from(
    [
        ("openai", {"OPENAI_API_KEY": "env://A"}, ""),
        ("openai", {"OPENAI_API_KEY": "file:///b", "OPENAI_BASE_URL": "http://127.0.0.1:1"}, ""),
        ("ollama", {}, ""),
        ("ollama", {"OLLAMA_HOST": "nowhere"}, "INVALID_CONFIGURATION"),
        ("openai", {}, "INVALID_CONFIGURATION"),
        ("unknown", {}, "PROVIDER_UNKNOWN"),
    ]
)
"""Providers with configurations, and the code of the error of those that are wrong."""
BAD_SERVERS: list[Fields] = [{"url": "nowhere"}, {}]
SERVERS = st.sampled_from([{"command": "files", "args": ["-v"]}, {"url": "http://127.0.0.1:1/mcp"}, *BAD_SERVERS])
COMMENT = "# Made by hand."
SETTLED = 0.02
"""Seconds after which another change of a file has another time, also on older kernels."""


def entry(name: str, **fields: Any) -> Fields:
    """A rule or reference with its defaults."""
    return {"name": name, "description": "", "priorityLevel": 500, "include": "manual", **fields}


def empty(name: str, mode: str) -> Fields:
    """The content of a new definition."""
    parts: Fields = {"rule": {}, "reference": {}, "tool": {}, "provider": {}, "server": {}, "settings": {}}
    return {"name": name, "mode": mode, "description": "", "prompt": DEFAULT_PROMPT, **parts}


def content(definition: Definition) -> Fields:
    """The content of a definition, in the form of the model."""
    fields = definition.model_dump(mode="json", by_alias=True)
    written = definition.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    return {
        **{key: fields["metadata"][key] for key in ("name", "mode", "description")},
        "prompt": fields["prompt"],
        "rule": {rule["name"]: rule for rule in fields["rules"]},
        "reference": {reference["name"]: reference for reference in fields["references"]},
        "tool": {tool["name"]: tool for tool in fields["tools"]},
        "provider": fields["providers"],
        "server": written.get("mcpServers", {}),
        "settings": written.get("settings", {}),
    }


class Definitions(RuleBasedStateMachine):
    """Clients, an editor and git change up to three definitions."""

    def __init__(self, new_database: NewDatabase, empty_store: Path) -> None:
        super().__init__()
        self.closing = ExitStack()
        self.runner = self.closing.enter_context(asyncio.Runner())
        patch = self.closing.enter_context(pytest.MonkeyPatch.context())
        patch.setattr(directory, "SETTLED_NANOSECONDS", SETTLED * 1e9)
        folder = self.closing.enter_context(TemporaryDirectory())
        settings = with_store(Settings(project=Path(folder), **new_database()), empty_store)
        self.agents = settings.home / "agents"
        store = open_store(settings)
        self.closing.callback(store.close)
        self.workbench = self.runner.run(self.open(settings, store))
        self.model: dict[str, Fields] = {}
        self.foreign: dict[str, set[str]] = {}
        self.commented: set[str] = set()
        self.broken: dict[str, str] = {}
        """The text of the `agent.yaml` before it was broken."""
        self.repository = Path(folder) / "commit"
        self.commit = copy.deepcopy((self.model, self.foreign, self.commented))

    async def open(self, settings: Settings, store: Store) -> Workbench:
        """Without `Workbench.open`: nothing happens but what the rules do."""
        return Workbench(settings, store, SERVICES)

    def teardown(self) -> None:
        self.closing.close()

    def call(self, name: str, /, **arguments: Any) -> Fields:
        return self.runner.run(self.workbench.call(name, **arguments))

    def answer(self, name: str, /, **arguments: Any) -> str:
        """The code of the error of a call, empty if it succeeded."""
        try:
            self.call(name, **arguments)
        except WorkbenchError as error:
            return error.code
        return ""

    def expected(self, agent: str, code: str) -> str:
        """The code of the error of a change of a definition, if a `code` is expected of it otherwise."""
        if agent in self.broken:
            return "INVALID_CONFIGURATION"
        return code if agent in self.model else "AGENT_NOT_FOUND"

    def change(self, agent: str, name: str, arguments: Fields, code: str, change: Callable[[Fields], object]) -> None:
        """Call a tool, check its answer, and change the model if it succeeded."""
        wanted = self.expected(agent, code)
        assert self.answer(name, agentTarget=f"./agents/{agent}", **arguments) == wanted
        if not wanted:
            change(self.model[agent])

    @initialize()
    def begin_with_one(self) -> None:
        self.create("ada", "tools")
        self.add_entry("ada", "rule", "tone", "a", 500, "manual")
        self.add_entry("ada", "reference", "style", "b", 5, "always")
        self.add_tool("ada", "tone", "Do {text}")
        self.configure_provider("ada", "install", ("openai", {"OPENAI_API_KEY": "env://A"}, ""))
        self.configure_server("ada", "style", "add", {"command": "files"})

    # Tools

    @rule(agent=AGENTS, mode=st.sampled_from(["interactive", "tools"]))
    def create(self, agent: str, mode: str) -> None:
        is_taken = agent in self.model or self.foreign.get(agent)
        code = self.answer("agent_create", agentPath=f"./agents/{agent}", name=agent, mode=mode)
        assert code == ("AGENT_EXISTS" if is_taken else "")
        if not is_taken:
            self.model[agent] = empty(agent, mode)

    @rule(source=AGENTS, agent=AGENTS)
    def clone(self, source: str, agent: str) -> None:
        is_taken = agent in self.model or self.foreign.get(agent)
        wanted = self.expected(source, "AGENT_EXISTS" if is_taken else "")
        target = f"./agents/{agent}"
        assert self.answer("agent_clone", sourceAgent=f"./agents/{source}", targetPath=target, newName=agent) == wanted
        if not wanted:
            self.model[agent] = {**copy.deepcopy(self.model[source]), "name": agent}

    @rule(agent=AGENTS, confirm=st.sampled_from([True, True, False, "true", 1]))
    def delete(self, agent: str, confirm: Any) -> None:
        code = self.answer("agent_delete", agentTarget=f"./agents/{agent}", confirm=confirm)
        if confirm is not True:
            assert code == "CONFIRMATION_REQUIRED"
        else:
            assert code == self.expected(agent, "")
            if not code:
                del self.model[agent]
                self.commented.discard(agent)

    @rule(agent=AGENTS, noun=ENTRIES, name=NAMES, text=TEXTS, level=LEVELS, include=INCLUDES)
    def add_entry(self, agent: str, noun: str, name: str, text: str, level: int, include: str) -> None:
        new = entry(name, text=text, priorityLevel=level, include=include)
        if not 0 <= level <= 999:
            assert self.answer(f"agent_add_{noun}", agentTarget=agent, **{noun: new}) == "VALIDATION_ERROR"
            return
        code = "ALREADY_EXISTS" if self.has(agent, noun, name) else ""
        self.change(agent, f"agent_add_{noun}", {noun: new}, code, lambda it: it[noun].update({name: new}))

    @rule(agent=AGENTS, noun=ENTRIES, name=NAMES, text=st.none() | TEXTS, new_name=st.none() | NAMES)
    def update_entry(self, agent: str, noun: str, name: str, text: str | None, new_name: str | None) -> None:
        changes = {key: value for key, value in (("text", text), ("name", new_name)) if value is not None}

        def change(it: Fields) -> None:
            old = it[noun].pop(name)
            it[noun][new_name or name] = {**old, **changes}

        is_taken = new_name and new_name.lower() != name.lower() and self.has(agent, noun, new_name)
        code = "NOT_FOUND" if not self.has_exactly(agent, noun, name) else "ALREADY_EXISTS" if is_taken else ""
        self.change(agent, f"agent_update_{noun}", {f"{noun}Name": name, noun: changes}, code, change)

    @rule(agent=AGENTS, noun=ENTRIES | st.just("tool"), name=NAMES)
    def delete_part(self, agent: str, noun: str, name: str) -> None:
        code = "" if self.has_exactly(agent, noun, name) else "NOT_FOUND"
        self.change(agent, f"agent_delete_{noun}", {f"{noun}Name": name}, code, lambda it: it[noun].pop(name))

    @rule(agent=AGENTS, name=NAMES, prompt=st.sampled_from(["Do {text}", "{name}", "Do {other}"]))
    def add_tool(self, agent: str, name: str, prompt: str) -> None:
        new = {**TOOL, "name": name, "prompt": prompt}
        if prompt == "Do {other}":
            assert self.answer("agent_add_tool", agentTarget=agent, tool=new) == "VALIDATION_ERROR"
            return
        code = "ALREADY_EXISTS" if self.has(agent, "tool", name) else ""
        code = self.in_mode_tools(agent, code)
        self.change(agent, "agent_add_tool", {"tool": new}, code, lambda it: it["tool"].update({name: new}))

    @rule(agent=AGENTS, name=NAMES, prompt=st.sampled_from(["Do it: {text}", "Do {other}"]))
    def update_tool(self, agent: str, name: str, prompt: str) -> None:
        code = "" if self.has_exactly(agent, "tool", name) else "NOT_FOUND"
        if not code and prompt == "Do {other}":
            code = "VALIDATION_ERROR"
        code, changes = self.in_mode_tools(agent, code), {"toolName": name, "tool": {"prompt": prompt}}
        self.change(agent, "agent_update_tool", changes, code, lambda it: it["tool"][name].update(prompt=prompt))

    @rule(agent=AGENTS, prompt=TEXTS)
    def set_prompt(self, agent: str, prompt: str) -> None:
        self.change(agent, "agent_set_system_prompt", {"prompt": prompt}, "", lambda it: it.update(prompt=prompt))

    @rule(agent=AGENTS, setting=SETTINGS)
    def set_setting(self, agent: str, setting: tuple[str, Any]) -> None:
        key, value = setting

        def change(it: Fields) -> None:
            it["settings"][key] = float(value) if key == "temperature" else value

        code = "VALIDATION_ERROR" if value == 9 else ""
        self.change(agent, "agent_set_setting", {"key": key, "value": value}, code, change)

    @rule(agent=AGENTS, mode=st.sampled_from(["interactive", "autonomous", "tools"]), description=TEXTS)
    def update_metadata(self, agent: str, mode: str, description: str) -> None:
        changes = {"mode": mode, "description": description}
        self.change(agent, "agent_update_metadata", {"metadata": changes}, "", lambda it: it.update(changes))

    @rule(agent=AGENTS, verb=st.sampled_from(["install", "update"]), provider=PROVIDERS)
    def configure_provider(self, agent: str, verb: str, provider: tuple[str, Fields, str]) -> None:
        name, config, code = provider
        is_there = self.has(agent, "provider", name)
        if verb == "install":
            code = "ALREADY_EXISTS" if is_there else code
        elif name != "unknown":
            code = code if is_there else "NOT_FOUND"
        arguments = {"providerType": name, "config": config}
        self.change(agent, f"agent_{verb}_provider", arguments, code, lambda it: it["provider"].update({name: config}))

    @rule(agent=AGENTS, name=st.sampled_from(["openai", "ollama"]))
    def uninstall_provider(self, agent: str, name: str) -> None:
        code = "" if self.has(agent, "provider", name) else "NOT_FOUND"
        arguments = {"providerType": name}
        self.change(agent, "agent_uninstall_provider", arguments, code, lambda it: it["provider"].pop(name))

    @rule(agent=AGENTS, name=NAMES, verb=st.sampled_from(["add", "update"]), config=SERVERS)
    def configure_server(self, agent: str, name: str, verb: str, config: Fields) -> None:
        if config in BAD_SERVERS:
            answer = self.answer(f"agent_{verb}_mcp_server", agentTarget=agent, serverName=name, config=config)
            assert answer == "VALIDATION_ERROR"
            return
        code = "ALREADY_EXISTS" if self.has(agent, "server", name) else ""
        if verb == "update":
            code = "" if self.has_exactly(agent, "server", name) else "NOT_FOUND"
        arguments = {"serverName": name, "config": config}
        self.change(agent, f"agent_{verb}_mcp_server", arguments, code, lambda it: it["server"].update({name: config}))

    @rule(agent=AGENTS, name=NAMES)
    def delete_server(self, agent: str, name: str) -> None:
        code = "" if self.has_exactly(agent, "server", name) else "NOT_FOUND"
        self.change(agent, "agent_delete_mcp_server", {"serverName": name}, code, lambda it: it["server"].pop(name))

    # An editor, and git

    @rule(agent=AGENTS, text=TEXTS)
    def edit_prompt(self, agent: str, text: str) -> None:
        if agent in self.model:
            (self.agents / agent / "prompt.md").write_text(f"\n{text}\n\n")
            self.model[agent]["prompt"] = text

    @rule(agent=AGENTS, noun=ENTRIES, name=NAMES, text=TEXTS, level=st.sampled_from([0, 999]))
    def edit_entry(self, agent: str, noun: str, name: str, text: str, level: int) -> None:
        is_twin = self.has(agent, noun, name) and not self.has_exactly(agent, noun, name)
        if agent in self.model and not is_twin:
            path = self.agents / agent / f"{noun}s" / f"{name}.md"
            path.parent.mkdir(exist_ok=True)
            path.write_text(f"---\n# how urgent\npriorityLevel: {level}\n---\n{text}\n")
            self.model[agent][noun][name] = entry(name, text=text, priorityLevel=level)

    @rule(agent=AGENTS, noun=ENTRIES, name=NAMES)
    def remove_a_file(self, agent: str, noun: str, name: str) -> None:
        if self.has_exactly(agent, noun, name):
            (self.agents / agent / f"{noun}s" / f"{name}.md").unlink()
            del self.model[agent][noun][name]

    @rule(agent=AGENTS)
    def comment(self, agent: str) -> None:
        if agent in self.model.keys() - self.broken.keys() - self.commented:
            path = self.agents / agent / "agent.yaml"
            path.write_text(f"{COMMENT}\n{path.read_text()}")
            self.commented.add(agent)

    @rule(agent=AGENTS)
    def break_or_repair(self, agent: str) -> None:
        if agent in self.model:
            path = self.agents / agent / "agent.yaml"
            text = self.broken.pop(agent, None)
            if text is None:
                self.broken[agent] = path.read_text()
            path.write_text(text or "metadata: [")

    @rule(agent=AGENTS, name=st.sampled_from([".prompt.md.swp", "notes.txt", "rules/draft.txt"]))
    def leave_another_file(self, agent: str, name: str) -> None:
        if agent in self.model:
            path = self.agents / agent / name
            path.parent.mkdir(exist_ok=True)
            path.write_text("unsaved")
            self.foreign.setdefault(agent, set()).add(name)

    @rule()
    def let_files_settle(self) -> None:
        """Until they have, what is read is not cached."""
        time.sleep(SETTLED)

    @precondition(lambda self: not self.broken)
    @rule()
    def commit_all(self) -> None:
        shutil.rmtree(self.repository, ignore_errors=True)
        shutil.copytree(self.agents, self.repository, ignore=shutil.ignore_patterns(".workbench"))
        self.commit = copy.deepcopy((self.model, self.foreign, self.commented))

    @precondition(lambda self: self.repository.exists())
    @rule()
    def check_out(self) -> None:
        for path in self.agents.iterdir():
            if path.name != ".workbench":
                shutil.rmtree(path)
        shutil.copytree(self.repository, self.agents, dirs_exist_ok=True)
        self.model, self.foreign, self.commented = copy.deepcopy(self.commit)
        self.broken = {}

    # What is always so

    @invariant()
    def the_list_names_all_and_says_which_cannot_be_read(self) -> None:
        listed = self.call("agent_list")
        readable = self.model.keys() - self.broken.keys()
        assert [agent["path"] for agent in listed["agents"]] == [f"./agents/{agent}" for agent in sorted(readable)]
        assert len(listed["problems"]) == len(self.broken)

    @invariant()
    def the_disk_is_as_the_model_says(self) -> None:
        for agent in self.model.keys() - self.broken.keys():
            place = self.agents / agent
            assert content(DefinitionDirectory(place).read().definition) == self.model[agent]
            assert place.joinpath("agent.yaml").read_text().startswith(COMMENT) == (agent in self.commented)
        for agent, names in self.foreign.items():
            assert all((self.agents / agent / name).read_text() == "unsaved" for name in names)

    @invariant()
    def the_answers_are_as_the_model_says(self) -> None:
        for agent, fields in self.model.items():
            if agent in self.broken:
                assert self.answer("agent_get_info", agentTarget=f"./agents/{agent}") == "INVALID_CONFIGURATION"
                continue
            info = self.call("agent_get_info", agentTarget=agent)
            assert all(info[key] == fields[key] for key in ("name", "mode", "description"))
            counts = (info["ruleCount"], info["referenceCount"], info["toolCount"], info["mcpServerCount"])
            assert counts == tuple(len(fields[noun]) for noun in ("rule", "reference", "tool", "server"))
            assert info["installedProviders"] == sorted(fields["provider"])
            assert fields["settings"].items() <= info["settings"].items()
            for noun in ("rule", "reference"):
                entries = self.call(f"agent_list_{noun}s", agentTarget=agent)[f"{noun}s"]
                assert entries == sorted(fields[noun].values(), key=lambda one: (one["priorityLevel"], one["name"]))
            assert self.call("agent_get_system_prompt", agentTarget=agent)["prompt"] == fields["prompt"]

    def has(self, agent: str, noun: str, name: str) -> bool:
        """Whether there is a part of this name, in upper or lower case."""
        return name.lower() in map(str.lower, self.model.get(agent, {}).get(noun, ()))

    def has_exactly(self, agent: str, noun: str, name: str) -> bool:
        """Whether there is a part of exactly this name."""
        return name in self.model.get(agent, {}).get(noun, ())

    def in_mode_tools(self, agent: str, code: str) -> str:
        """The code of the error of a change of exported tools, if a `code` is expected of it otherwise."""
        return code if self.model.get(agent, {"mode": "tools"})["mode"] == "tools" else "WRONG_MODE"


@pytest.mark.timeout(400)  # the search for a short example takes long
def test_definitions_are_what_the_model_says_in_any_order(new_database: NewDatabase, empty_store: Path) -> None:
    few = hypothesis.settings(max_examples=6, stateful_step_count=25, deadline=None)
    run_state_machine_as_test(partial(Definitions, new_database, empty_store), settings=few)


@pytest.mark.chaos
@pytest.mark.timeout(3_000)
def test_definitions_are_what_the_model_says_in_many_orders(new_database: NewDatabase, empty_store: Path) -> None:
    many = hypothesis.settings(max_examples=1_000 if SOAK else 25, stateful_step_count=20, deadline=None)
    run_state_machine_as_test(partial(Definitions, new_database, empty_store), settings=many)
