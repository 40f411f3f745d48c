"""From a panel to a real project: each request is run once and answered, whatever happens to it."""

from __future__ import annotations

import getpass
import re
from pathlib import Path
from typing import Any

import pytest

from kernel_ext.hosting.host import KernelHost
from kernel_ext.panels import STATIC, PanelClosed
from kernel_ext.panels.request_handler import RequestHandler
from tests.panels.front_end import FrontEnd
from workbench.ops import collect
from workbench.services import SERVICES
from workbench.state.settings import Settings

SRC = Path(__file__).parents[2] / "kernel_ext" / "panels" / "src"
NOUNS = ("project", "session", "team", "agent")


def request(request_id: Any, op: str, **arguments: Any) -> dict[str, Any]:
    return {"kind": "action", "request": request_id, "op": op, "arguments": arguments}


def test_an_action_is_done_once_however_often_it_is_requested(any_host: KernelHost, page: FrontEnd) -> None:
    any_host.call("register", name="ada")
    requests = RequestHandler(any_host, page.take)
    for _ in range(3):
        requests.take(request("same", "approve", approval_id=1, choices={"agent_id": "first"}))
    page.until(lambda: len(page.answers()) == 3)
    requests.take(request("same", "approve", approval_id=1, choices={"agent_id": "first"}))
    page.until(lambda: len(page.answers()) == 4)
    assert all(answer == page.answers()[0] for answer in page.answers())
    outcome = page.answers()[0]["outcome"]["outcome"]
    assert (outcome["agent_id"], outcome["status"]) == ("first", "assigned")


def test_a_decision_in_a_shared_notebook_names_who_clicked(any_host: KernelHost, page: FrontEnd) -> None:
    requests = RequestHandler(any_host, page.take)
    for number, person in enumerate(("Zoë", "", 7), 1):
        any_host.call("register", name=f"agent-{number}")
        requests.take(request(str(number), "reject", approval_id=number) | {"person": person})
    page.until(lambda: len(page.answers()) == 3)
    decided = any_host.call("list_approvals", status="rejected")["approvals"]
    assert [approval["person"] for approval in decided] == ["Zoë", getpass.getuser(), getpass.getuser()]


@pytest.mark.parametrize(
    ("op", "arguments", "code"),
    [("reject", {"approval_id": 77}, "APPROVAL_NOT_FOUND"), ("no_such_operation", {}, "UNKNOWN_OPERATION")],
)
def test_a_refused_action_is_answered_with_its_code(
    any_host: KernelHost, page: FrontEnd, op: str, arguments: dict[str, Any], code: str
) -> None:
    RequestHandler(any_host, page.take).take(request("a", op, **arguments))
    page.until(lambda: bool(page.answers()))
    assert (page.answers()[0]["ok"], page.answers()[0]["error"]["code"]) == (False, code)


def test_a_malformed_request_is_refused(serving: KernelHost, page: FrontEnd) -> None:
    malformed = {"kind": "action", "request": "a", "op": "approve"}
    for message in (malformed, malformed | {"op": ["approve"], "arguments": {}}):
        page.messages.clear()
        RequestHandler(serving, page.take).take(message)
        assert [answer["error"]["code"] for answer in page.answers()] == ["BAD_MESSAGE"]


def test_a_new_token_is_sent_once_and_not_kept(any_host: KernelHost, page: FrontEnd) -> None:
    any_host.call("approve", approval_id=any_host.call("register", name="ada")["approval_id"])
    requests = RequestHandler(any_host, page.take)
    for count in (1, 2):
        requests.take(request("same", "issue_token", agent_id="ada"))
        page.until(lambda: len(page.answers()) == count)  # noqa: B023
    first, second = (answer["outcome"]["token"] for answer in page.answers())
    assert first != second
    assert requests._kept == {}


def test_a_repeated_request_that_reads_is_run_again(any_host: KernelHost, page: FrontEnd) -> None:
    any_host.call("create_task", title="Count", persona_id="tester")
    requests = RequestHandler(any_host, page.take)
    for priority in (1, 2):
        any_host.call("set_priority", task_id=1, priority=priority)
        requests.take(request("same", "get_task", task_id=1))
        page.until(lambda: len(page.answers()) == priority)  # noqa: B023
    assert [answer["outcome"]["priority"] for answer in page.answers()] == [1, 2]


def test_a_request_that_cannot_be_answered_is_not_run(serving: KernelHost, page: FrontEnd) -> None:
    serving.call("register", name="ada")
    requests = RequestHandler(serving, page.take)
    for request_id in (None, "", "x" * 65, 7, []):
        requests.take(request(request_id, "approve", approval_id=1))
    assert page.messages == []
    assert serving.call("list_approvals")["approvals"] != []


def test_an_action_without_a_running_host_is_refused_at_once(settings: Settings, page: FrontEnd) -> None:
    RequestHandler(KernelHost(settings), page.take).take(request("a", "approve", approval_id=1))
    assert page.answers()[0]["error"]["code"] == "NOT_STARTED"


def test_every_operation_that_the_panel_asks_for_exists() -> None:
    text = "\n".join(path.read_text() for path in SRC.rglob("*.js"))
    matches = set(re.findall(r'\.(?:run|send|decide)\(\s*"(\w+)"', text))
    matches |= set(re.findall(r'"(agent_(?!id")\w+)"', text))
    for prefix, suffix in re.findall(r"`(\w+_)\$\{noun\}(s?)`", text):
        matches |= {f"{prefix}{noun}{suffix}" for noun in NOUNS}
    catalogue = set(collect(SERVICES))
    made_up = {f"{verb}_agent" for verb in ("create", "update")} - catalogue
    assert len(matches) > 40
    assert matches - made_up <= catalogue


def test_a_request_that_takes_long_is_accepted_and_answered_when_it_is_done(
    any_host: KernelHost, page: FrontEnd
) -> None:
    requests = RequestHandler(any_host, page.take, accepted_after=0.05)
    after = any_host.call("list_events", after=None)["next_after"]
    waiting = request("a", "list_events", after=after, wait_seconds=20)
    requests.take(waiting)
    page.until(lambda: page.kinds() == ["accepted"])
    requests.take(waiting)
    page.until(lambda: page.kinds() == ["accepted", "accepted"])
    any_host.call("create_project", name="Lab")
    page.until(lambda: len(page.answers()) == 2)
    assert all(answer["outcome"]["events"] for answer in page.answers())


def test_an_answer_that_cannot_be_sent_is_logged_and_the_page_gets_an_error(
    serving: KernelHost, page: FrontEnd, caplog: pytest.LogCaptureFixture
) -> None:
    page.failures.append(ValueError("not JSON"))
    RequestHandler(serving, page.take).take(request("a", "list_projects"))
    page.until(lambda: bool(page.answers()))
    assert page.answers()[0]["error"]["code"] == "INTERNAL_ERROR"
    assert "not JSON" in caplog.text


def test_an_answer_to_a_closed_page_is_dropped(
    serving: KernelHost, page: FrontEnd, caplog: pytest.LogCaptureFixture
) -> None:
    requests = RequestHandler(serving, page.take)
    page.failures.append(PanelClosed())
    requests.take(request("a", "list_projects"))
    requests.take(request("b", "list_projects"))
    page.until(lambda: bool(page.answers()))
    assert [answer["ok"] for answer in page.answers()] == [True]
    assert [record for record in caplog.records if record.name.startswith("kernel_ext")] == []


def test_a_bundle_that_is_not_sent_with_the_widget_is_sent_on_request(settings: Settings) -> None:
    sent: list[tuple[dict[str, Any], list[bytes]]] = []
    requests = RequestHandler(KernelHost(settings), lambda content, buffers: sent.append((content, buffers)))
    requests.take({"kind": "asset", "request": "a", "name": "highlight"})
    requests.take({"kind": "asset", "request": "b", "name": "../desk"})
    assert sent[0] == (
        {"kind": "answer", "request": "a", "ok": True},
        [(STATIC / "highlight.js").read_bytes()],
    )
    assert (sent[1][0]["ok"], sent[1][0]["error"]["code"]) == (False, "BAD_MESSAGE")
