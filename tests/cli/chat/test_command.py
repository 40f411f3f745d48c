"""`workbench chat` and `workbench conversations`, as a person types them, with a server."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from subprocess import PIPE
from typing import Any

import pexpect
import pytest

from tests.cli.conftest import data
from tests.conftest import Command, Served
from workbench.state.settings import Settings

pytestmark = [pytest.mark.anyio, pytest.mark.long, pytest.mark.timeout(120)]

FINE = [{"say": "It is fine."}, {"say": "Still fine."}]
ASKED, END = "Run it? o: once, c: in this conversation, a: always, n: no", "\x04"
SLOW = [{"say": "one two three four five six seven", "pause": 2}]


@pytest.fixture
def assistant(served: Served) -> Callable[..., Any]:
    """`await assistant(script)`: a definition whose model follows a script."""

    async def define(script: list[dict[str, Any]] = FINE) -> None:
        call = served.workbench.call
        await call("agent_create", agentPath="./agents/assistant", name="assistant", description="Answers")
        for key, value in (("model", "test:script"), ("script", script)):
            await call("agent_set_setting", agentTarget="assistant", key=key, value=value)

    return define


async def test_a_question_is_answered_and_the_conversation_continued(
    assistant: Callable[..., Any], command: Command
) -> None:
    await assistant()
    ran = await command("chat", "assistant", "How is it?")
    assert (ran.status, ran.out, ran.err) == (0, "It is fine.\n", "")
    [conversation] = data(await command("--json", "conversations"))["conversations"]
    assert (conversation["title"], conversation["definition"], conversation["turns"]) == ("How is it?", "assistant", 2)
    assert (await command("chat", "--continue", conversation["id"], "And now?")).out == "Still fine.\n"
    shown = await command("conversations", "show", conversation["id"])
    assert shown.out == "How is it?\n\n> How is it?\n\nIt is fine.\n\n> And now?\n\nStill fine.\n"


async def test_a_question_comes_from_standard_input(
    assistant: Callable[..., Any], settings: Settings, command: Command
) -> None:
    await assistant()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "workbench.cli", "--json", "chat", "assistant"),
        env=os.environ | {"WORKBENCH_PROJECT": str(settings.project)},
        stdin=PIPE,
        stdout=PIPE,
    )
    out, _ = await process.communicate(b"How is it?\n")
    assert '"content": "It is fine."' in out.decode()
    assert process.returncode == 0
    ran = await command("chat", "assistant")
    assert ran.status == 2
    assert "What is the question?" in ran.err


async def test_a_bad_chat_command_has_a_code_and_begins_no_conversation(
    assistant: Callable[..., Any], command: Command
) -> None:
    await assistant()
    for arguments, code in (
        (("nobody", "Hello"), "AGENT_NOT_FOUND"),
        (("assistant", "Hello", "--model", "nowhere:x"), "PROVIDER_UNKNOWN"),
        (("assistant", "Hello", "--continue", "1"), "BAD_USAGE"),
        (("--continue", "1", "Hello"), "CONVERSATION_NOT_FOUND"),
    ):
        ran = await command("chat", *arguments)
        assert (ran.status, ran.out) == (1, "")
        assert ran.err.startswith(f"{code}: ")
    assert (await command("chat", "assistant", " ")).status == 2
    assert data(await command("--json", "conversations"))["conversations"] == []


async def test_a_conversation_is_renamed_retried_exported_and_deleted(
    assistant: Callable[..., Any], command: Command, tmp_path: Path
) -> None:
    await assistant()
    await command("chat", "assistant", "How is it?", "--title", "Weather", "--turns", "2")
    [conversation] = data(await command("--json", "conversations"))["conversations"]
    assert (conversation["title"], conversation["limits"]["turns"]) == ("Weather", 2)
    assert (await command("conversations", "rename", conversation["id"], "Climate")).status == 0
    assert (await command("conversations", "retry", conversation["id"])).out == "It is fine.\n"
    ran = await command("conversations", "retry", conversation["id"])
    assert (ran.status, ran.err.partition(":")[0]) == (1, "CHAT_LIMIT")
    assert (await command("conversations", "export", conversation["id"], "-o", str(tmp_path / "a.ipynb"))).status == 0
    assert (tmp_path / "a.ipynb").read_text().startswith("{")
    assert "It is fine." in (await command("conversations", "export", conversation["id"])).out
    refused = await command("conversations", "delete", conversation["id"])
    assert refused.err.startswith("NOT_CONFIRMED: ")
    assert (await command("conversations", "delete", conversation["id"], "--yes")).status == 0
    assert (await command("conversations")).out == "There are no conversations. `workbench chat` begins one.\n"


async def talk(settings: Settings, arguments: Sequence[str], *steps: tuple[str, str | None]) -> None:
    """`workbench chat` in a terminal: what it shows each time, and what is typed then; None is Ctrl-C."""
    env = os.environ | {"WORKBENCH_PROJECT": str(settings.project), "TERM": "dumb"}

    def talked() -> None:
        argv = ["-m", "workbench.cli", "chat", "assistant", *arguments]
        terminal = pexpect.spawn(sys.executable, argv, env=env, timeout=60)
        for shown, answer in steps:
            terminal.expect_exact(shown.encode())
            assert b"Warning" not in terminal.before
            if answer is None:
                terminal.sendintr()
            elif answer:
                terminal.send(answer)
        terminal.expect(pexpect.EOF)
        terminal.wait()
        assert terminal.exitstatus == 0

    await asyncio.to_thread(talked)


async def test_a_person_at_a_terminal_asks_again_and_again(
    assistant: Callable[..., Any], served: Served, settings: Settings
) -> None:
    await assistant()
    first, second = [("It is fine.", ""), ("> ", "And now?\n")], [("Still fine.", ""), ("> ", END)]
    await talk(settings, [], ("> ", "How is it?\n"), *first, *second)
    [conversation] = (await served.workbench.call("list_conversations"))["conversations"]
    assert conversation["turns"] == 4


async def test_ctrl_c_stops_the_answer_and_not_the_conversation(
    assistant: Callable[..., Any], served: Served, settings: Settings
) -> None:
    await assistant(SLOW)
    await talk(settings, [], ("> ", "Count\n"), ("one", None), ("Stopped.", ""), ("> ", END))
    [conversation] = (await served.workbench.call("list_conversations"))["conversations"]
    turns = (await served.workbench.call("list_turns", conversation_id=conversation["id"]))["turns"]
    assert turns[-1]["state"] == "stopped"
    assert turns[-1]["content"].startswith("one")


CALLING = [{"calls": [{"tool": "small__add", "input": {"a": 1, "b": 2}}]}, {"say": "Done."}]


async def add_server(served: Served, settings: Settings) -> Path:
    """Use the tests' MCP server, `small`; its file. A program reads the project, but not these tests."""
    program = Path(shutil.copy(Path(__file__).parents[2] / "upstream" / "tools_server.py", settings.project))
    config = {"command": sys.executable, "args": [str(program)]}
    added = await served.workbench.call("add_tool_server", name="small", config=config)
    assert added["state"] == "ready", added["problem"]
    return program


@pytest.mark.parametrize(
    ("answer", "end", "permission"),
    [
        ("o", "← small__add: ", None),
        ("c", "← small__add: ", "always"),
        ("a", "← small__add: ", "always"),
        ("n", "✗ small__add: TOOL_DENIED", None),
        ("", "✗ small__add: TOOL_DENIED", None),  # it does not say that it deletes nothing
    ],
)
async def test_a_person_at_a_terminal_is_asked_before_a_tool_runs(
    assistant: Callable[..., Any], served: Served, settings: Settings, answer: str, end: str, permission: str | None
) -> None:
    await assistant(CALLING)
    await add_server(served, settings)
    question = [("→ small__add(a=1, b=2) · MCP", ""), ('"a": 1', ""), (f"{ASKED} [n]: ", f"{answer}\n")]
    await talk(settings, ["Add them"], *question, (end, ""), ("Done.", ""))
    permissions = (await served.workbench.call("list_tool_permissions"))["permissions"]
    assert [permission["permission"] for permission in permissions if permission["tool"] == "small__add"] == (
        [permission] if permission else []
    )


async def test_the_terminal_shows_the_changes_of_a_tool_when_it_asks(
    assistant: Callable[..., Any], served: Served, settings: Settings
) -> None:
    await assistant(CALLING)
    program, call = await add_server(served, settings), served.workbench.call
    await call("set_tool_permission", name="small__add", permission="always")
    program.write_text(program.read_text().replace("Add two numbers.", "Add two numbers,\nand send them away."))
    await call("restart_tool_server", name="small")
    changed = "  description\r\n  - Add two numbers.\r\n  + Add two numbers,\r\n  + and send them away."
    question = [("The tool is not what you allowed", ""), (changed, ""), (f"{ASKED} [n]: ", "\n")]
    await talk(settings, ["Add them"], *question, ("✗ small__add: TOOL_DENIED", ""))
