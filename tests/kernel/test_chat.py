"""`%%chat` and `wb.chat`, in a kernel that serves a project, with the provider `test`."""

from __future__ import annotations

import getpass
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.kernel.conftest import Kernel, started

pytestmark = [pytest.mark.long, pytest.mark.timeout(180)]

SCRIPT = """
assistant = wb.definitions.create("assistant", description="Answers")
assistant.settings["model"] = "test:script"
assistant.settings["script"] = [{"say": "It is *fine*."}, {"say": "Still fine."}]
slow = wb.definitions.create("slow", description="Takes its time")
slow.settings["model"] = "test:script"
slow.settings["script"] = [{"say": "one two three four five six seven eight nine ten", "pause": 2}]
"""
PAUSING = """
import time
@wb.tool(read_only=True)
def pause(seconds: float) -> float:
    "Wait."
    time.sleep(seconds)
    return seconds
slow.settings["script"] = [{"calls": [{"tool": "pause", "input": {"seconds": s}} for s in (0.3, 1)]}, {"say": "Done."}]
"""


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    """A kernel that serves a project with two definitions."""
    home = tmp_path_factory.mktemp("chat")
    (home / "project").mkdir()
    with started(home, cwd=home / "project") as kernel:
        kernel.run("%workbench start --port 0")
        kernel.run(SCRIPT)
        yield kernel
        kernel.run("%workbench stop")


@contextmanager
def page(kernel: Kernel, front_end: str = "1") -> Iterator[None]:
    """Tell the cells that a page is their front end."""
    kernel.run(f"import os; os.environ['WORKBENCH_FRONTEND'] = '{front_end}'")
    try:
        yield
    finally:
        kernel.run("del os.environ['WORKBENCH_FRONTEND']")


SHOWN = ("display_data", "update_display_data", "execute_result", "stream")


def test_a_cell_shows_the_answer_and_continues_the_conversation(running: Kernel) -> None:
    assert running.run("%%chat assistant --new\nHow is it?") == "It is *fine*."
    assert running.run("%%chat assistant\nAnd now?") == "Still fine."
    assert running.run("%%chat -o last\nAnd now?") == "It is *fine*."
    assert running.run("last.text, last.state") == "('It is *fine*.', 'completed')"
    assert running.run("len(wb.chats.open(None).turns)") == "6"


def test_in_a_batch_run_the_answer_is_one_output(running: Kernel) -> None:
    [output] = running.outputs("%%chat assistant --new\nHow is it?", *SHOWN)
    assert output["content"]["data"] == {"text/plain": "It is *fine*.", "text/html": "<p>It is <em>fine</em>.</p>\n"}


def test_in_a_page_the_text_grows_in_its_output(running: Kernel) -> None:
    running.run("slow.settings['script'] = [{'say': 'one two three', 'pause': 0.4}]")
    with page(running):
        shown = running.outputs("%%chat slow --new\nCount", *SHOWN)
    kinds = [message["msg_type"] for message in shown]
    assert kinds == ["display_data", *["update_display_data"] * (len(shown) - 1)]
    assert len({message["content"]["transient"]["display_id"] for message in shown}) == 1
    texts = [message["content"]["data"]["text/plain"] for message in shown]
    assert texts == sorted(texts, key=len)
    assert len(texts) > 1
    assert texts[-1] == "one two three"


def test_in_a_page_each_of_several_calls_has_one_card(running: Kernel) -> None:
    running.run(PAUSING)
    with page(running):
        shown = running.outputs("%%chat slow --new\nLook around", *SHOWN)
    made = [message["content"] for message in shown if message["msg_type"] == "display_data"]
    assert len({one["transient"]["display_id"] for one in made}) == len(made) == 3


@pytest.mark.parametrize("front_end", ["0", "1"])
def test_an_interrupt_stops_the_answer_and_keeps_what_came(running: Kernel, front_end: str) -> None:
    running.run("slow.settings['script'] = [{'say': 'one two three four five', 'pause': 1}]")
    running.run("chat = wb.chat('slow')")
    running.run(INTERRUPT)
    with page(running, front_end):
        text, error = running.attempt("chat.ask('Count')")
    assert str(error).startswith("Interrupted: ANSWER_STOPPED: ")
    assert "The answer was stopped." in text
    assert running.run("chat.turns[-1]['state']") == "'stopped'"
    kept = running.run("chat.turns[-1]['content']").strip("'")
    assert kept.startswith("one")
    assert not kept.endswith("five")
    assert running.run("chat.info['answer_id'] is None") == "True"


INTERRUPT = """
import signal, threading, time
def interrupt():
    while not (chat.turns and chat.turns[-1]["content"].startswith("one")):
        time.sleep(0.02)
    signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
threading.Thread(target=interrupt, daemon=True).start()
"""


def test_an_answer_that_fails_fails_the_cell_with_its_code(running: Kernel) -> None:
    error = running.error("%%chat --model openai:gpt-x\nHello")
    assert "INVALID_CONFIGURATION: " in error or "SECRET" in error
    running.run("keyless = wb.chats.open(None)")
    assert running.run("keyless.turns[-1]['state']") == "'failed'"
    assert "✗" not in running.run("keyless")


def test_a_mistake_is_one_line_with_a_code_and_names_the_command_to_run_next(running: Kernel) -> None:
    running.fail_in_a_line(
        {
            "%%chat nobody\nHello": "AGENT_NOT_FOUND: ",
            "%%chat --model nowhere:x\nHello": "PROVIDER_UNKNOWN: ",
            "%%chat --continue 1\nHello": "CONVERSATION_NOT_FOUND: ",
            "%%chat assistant --nw\nHello": "BAD_COMMAND: ",
            "%workbench chat assistant": "BAD_COMMAND: ",
        }
    )
    assert "`%workbench define`" in running.error("%%chat nobody\nHello")
    assert "agent_list" in running.error("%workbench call agent_get_info agentTarget=nobody")


def test_a_conversation_is_an_object(running: Kernel) -> None:
    running.run("talk = wb.chat('assistant', title='Weather')")
    assert running.run("talk.ask('How is it?')") == "It is *fine*."
    assert running.run("talk").splitlines() == ["Weather", "", "> How is it?", "", "It is *fine*."]
    assert running.run("talk.retry().text").endswith("'It is *fine*.'")
    assert running.run("len(talk.turns)") == "2"
    assert running.run("talk.update(title='Climate').info['title']") == "'Climate'"
    assert "It is *fine*." in running.run("print(talk.export())")
    assert running.run("import json; len(json.loads(talk.export('notebook'))['cells']) > 1") == "True"
    assert "Climate" in running.run("%workbench conversations")
    running.run("talk.delete()")
    assert running.fail("talk.turns")["evalue"].startswith("CONVERSATION_NOT_FOUND: ")


def test_the_command_asks_too_and_a_deleted_conversation_is_begun_again(running: Kernel) -> None:
    assert running.run("%workbench chat assistant 'How is it?' --new") == "It is *fine*."
    assert running.run("%workbench chat --continue {wb.chats.open(None).id} 'And now?'") == "Still fine."
    running.run("wb.chats.open(None).delete()")
    assert running.run("%%chat assistant\nHow is it?") == "It is *fine*."


def test_a_kernel_that_is_attached_chats_too(running: Kernel, tmp_path: Path) -> None:
    project = running.run("print(wb.settings.project)").strip()
    with started(tmp_path, cwd=Path(project), env=os.environ) as other:
        assert "Attached to process" in other.run("%workbench start")
        assert other.run("%%chat assistant\nHow is it?") == "It is *fine*."
        other.run("%workbench stop")


def test_a_chat_cell_shows_the_decision_on_a_tool_call(running: Kernel) -> None:
    running.run("@wb.tool\ndef add(a: int, b: int) -> int:\n    return a + b")
    running.run(
        "slow.settings['script'] = [{'calls': [{'tool': 'add', 'input': {'a': 1, 'b': 2}}]}, {'say': 'It is 3.'}]"
    )
    running.run(APPROVE)
    with page(running):
        shown = [
            message["content"]["data"]["text/plain"] for message in running.outputs("%%chat slow --new\nAdd", *SHOWN)
        ]
    assert '→ add(a=1, b=2)\n← add: {"result":3}' in shown
    assert f"Approved by {getpass.getuser()}: the tool call of add." in shown
    assert shown[-1] == "It is 3."


APPROVE = """
import threading
from kernel_ext.panels.question import CellQuestion
asked, display = threading.Event(), CellQuestion._ipython_display_
def displayed(self):
    display(self)
    asked.set()
CellQuestion._ipython_display_ = displayed
def approve():
    asked.wait()
    [one] = wb.call("list_approvals", kind="tool_call")["approvals"]
    wb.call("approve", approval_id=one["id"])
threading.Thread(target=approve, daemon=True).start()
"""
