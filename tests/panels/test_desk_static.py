"""The desk without a front end: plain tables, the same on every run, and no comm. And its comm when there is one."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from pathlib import Path
from queue import Queue
from types import SimpleNamespace
from typing import Any

import pytest

from kernel_ext.hosting.host import KernelHost
from kernel_ext.panels import WIDGET_VIEW, PanelClosed, has_frontend, panel, publisher
from kernel_ext.panels.desk import Desk, definition_table, inbox_table, process_table

EXPECTED = """\
Waiting for you
Name             Kind          Request
<b>Eve</b> & co  registration  reviewer, as b-Eve-b-co, in no session

Agents
Agent  Name  State     Persona  Role    Permission  Session  Team
ada    ada   assigned           worker  write       Day 1

Tasks: 0 of 3 completed
Id  Task      State                 Persona   Worktree  Agent  Progress
1   Parent    pending               tester                     0 %
2   · Child   pending               tester                     0 %
3   <i>3</i>  blocked, waits for 1  reviewer  w1               0 %"""


@pytest.fixture
def host(serving: KernelHost, monkeypatch: pytest.MonkeyPatch) -> KernelHost:
    for name in ("WORKBENCH_FRONTEND", "JPY_SESSION_NAME"):
        monkeypatch.delenv(name, raising=False)
    return serving


def text(desk: Desk) -> str:
    data, _ = desk._repr_mimebundle_()
    return str(data["text/plain"])


def fill(host: KernelHost) -> None:
    host.call("create_session", project_id=host.call("create_project", name="Lab")["id"], name="Day 1")
    host.call("approve", approval_id=host.call("register", name="ada")["approval_id"], choices={"session_id": "Day 1"})
    host.call("register", name="<b>Eve</b> & co", persona_id="reviewer")
    host.call("create_task", title="Parent", persona_id="tester")
    host.call("create_task", title="Child", persona_id="tester", parent_task_id=1)
    host.call("create_task", title="<i>3</i>", persona_id="reviewer", target_worktree="w1", dependencies=[1])


def test_without_a_front_end_there_are_tables_and_no_comm(host: KernelHost) -> None:
    fill(host)
    desk = Desk(host)
    data, _ = desk._repr_mimebundle_()
    assert set(data) == {"text/plain", "text/html"}
    assert data["text/plain"] == EXPECTED
    assert "<b>" not in data["text/html"]
    assert "&lt;b&gt;Eve&lt;/b&gt; &amp; co" in data["text/html"]
    assert desk.comm is None
    desk.close()
    desk.close()


EMPTY = "Waiting for you\nNothing is waiting for you.\n\nAgents\nNo agents yet.\n\nTasks\nNo tasks yet."
LIVE_ONLY = "Chat\nIt is shown only live, in a notebook whose kernel runs. Run this cell to see it."


def test_an_empty_live_only_or_stopped_panel_says_so(host: KernelHost) -> None:
    desk = Desk(host)
    assert text(desk) == EMPTY
    assert text(Desk(host, tab="Chat", alone=True)) == LIVE_ONLY
    assert text(Desk(host, tab="Inbox", alone=True)) == "Waiting for you\nNothing is waiting for you."
    desk.close()
    assert desk.last_state == ""  # what was never displayed is not read again at the end
    host.stop()
    assert "NOT_STARTED" in text(desk)


def test_worktrees_and_definitions_are_tables_and_say_why_one_cannot_be_read(host: KernelHost) -> None:
    path = Path(host.call("create_worktree", name="robust")["path"])
    (path / "left.txt").write_text("not committed")
    lines = text(Desk(host)).split("Worktrees\n")[1].splitlines()
    assert [line.split() for line in lines] == [
        ["Worktree", "Branch", "State", "Commits", "Files", "Uncommitted", "Conflicts"],
        ["robust", "wb/robust/main", "→", "main", "active", "0", "ahead,", "0", "behind", "0", "1"],
    ]
    host.call("agent_create", agentPath="./agents/reviewer", name="Reviewer", description="Reads changes")
    (broken := host.settings.home / "agents" / "broken").mkdir()
    (broken / "agent.yaml").write_text("metadata: [1\n")
    lines = text(Desk(host)).split("Definitions\n")[1].split("\n\n")[0].splitlines()
    assert [line.split(maxsplit=2) for line in lines[::2]] == [
        ["Definition", "Mode", "Description"],
        ["Reviewer", "interactive", "Reads changes"],
    ]
    assert lines[1].split()[0] == "./agents/broken:"


def test_the_first_of_many_definitions_are_listed() -> None:
    rows = {str(number): {"id": str(number), "name": f"a{number:03}", "mode": "tools"} for number in range(60)}
    table = definition_table(rows)
    assert ([row[0] for row in table.rows[:2]], len(table.rows), table.note) == (["a000", "a001"], 50, "… and 10 more")


MERGE = {"worktree": "robust", "branch": "wb/robust/main", "target": "main", "conflicts": []}
CALL = {"tool": "f", "caller": "ada", "arguments": {"path": "a"}}
NPX = 'mcpServers.a: starts "npx"'


@pytest.mark.parametrize(
    ("kind", "payload", "name", "request_"),
    [
        ("integration", MERGE | {"ahead": 1, "files": ["a"]}, "robust", "wb/robust/main into main: 1 commit, 1 file"),
        (
            "integration",
            MERGE | {"ahead": 2, "files": ["a", "b"]},
            "robust",
            "wb/robust/main into main: 2 commits, 2 files",
        ),
        ("trust", {"definition": "Reviewer", "needs": [{"summary": NPX}]}, "Reviewer", NPX),
        ("tool_call", CALL, "f", 'called by ada with {"path":"a"}'),
    ],
)
def test_a_row_of_the_inbox_states_its_request(kind: str, payload: dict[str, Any], name: str, request_: str) -> None:
    assert inbox_table([{"kind": kind, "subject": "x", "payload": payload}]).rows == [[name, kind, request_]]


def test_a_row_of_the_inbox_shows_the_beginning_of_long_arguments() -> None:
    payload = CALL | {"arguments": {"path": "a" * 500}}
    [[_, _, request]] = inbox_table([{"kind": "tool_call", "subject": "x", "payload": payload}]).rows
    assert request.startswith('called by ada with {"path":"aaa')
    assert len(request) < 300


def test_runs_are_a_table_without_times_alone_and_beside_the_others(host: KernelHost) -> None:
    assert text(Desk(host, tab="Runs", alone=True)).startswith("Runs\nThere are no runs yet.")
    host.call(
        "record_metrics", run_id=host.call("start_run", name="first", parameters={"lr": 0.1})["id"], metrics={"loss": 1}
    )
    host.call("end_run", run_id="first")
    host.call("start_run", name="<b>second</b>", tags=["best"])
    lines = text(Desk(host, tab="Runs", alone=True)).splitlines()
    assert [line.split() for line in lines] == [
        ["Runs"],
        ["Run", "Name", "State", "lr", "Metrics", "Tags"],
        ["2", "<b>second</b>", "running", "best"],
        ["1", "first", "completed", "0.1", "loss=1"],
    ]
    assert text(Desk(host)).endswith("\n".join(lines))


def test_the_first_of_many_tasks_and_the_newest_of_many_runs_are_listed(host: KernelHost) -> None:
    for number in range(53):
        host.call("create_task", title=f"{number}", persona_id="tester")
    assert "… and 3 more" in text(Desk(host))
    for number in range(51):
        host.call("start_run", name=f"{number}")
    shown = text(Desk(host, tab="Runs", alone=True)).splitlines()
    assert (len(shown), shown[2].split()[1], shown[-1]) == (53, "50", "… and more")


@pytest.mark.parametrize(
    ("process", "state", "confinement"),
    [
        ({"state": "queued", "queue_place": 2}, "queued, number 2", "not confined"),
        ({"state": "running", "confinement": {"enforced": True, "missing": []}}, "running", "confined"),
        (
            {"state": "ended", "exit_code": 3, "confinement": {"enforced": True, "missing": ["ports"]}},
            "ended with 3",
            "confined, but for ports",
        ),
    ],
)
def test_processes_are_described_in_words(process: dict[str, Any], state: str, confinement: str) -> None:
    row = {"id": "ada", "persona_id": "tester", "profile": "script", "worktree": "w", **process}
    assert process_table({"ada": row}).rows == [["ada", "tester", "script", state, "w", confinement]]


@pytest.mark.parametrize(("value", "expected"), [("1", True), ("0", False), ("no", False), ("", False)])
def test_the_environment_overrides_what_the_kernel_knows(
    monkeypatch: pytest.MonkeyPatch, value: str, expected: bool
) -> None:
    monkeypatch.setenv("WORKBENCH_FRONTEND", value)
    assert has_frontend() is expected


def test_with_a_front_end_the_widget_comes_first_and_the_tables_stay(
    host: KernelHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORKBENCH_FRONTEND", "1")
    desk = Desk(host)
    data, _ = desk._repr_mimebundle_()
    assert set(data) == {WIDGET_VIEW, "text/plain", "text/html"}
    lead, _, tables = data["text/plain"].partition("\n\n")
    assert re.fullmatch(r"Workbench, as it was on .+:.+\. It is not live here: trust the notebook .+ state\.", lead)
    assert tables.startswith("Waiting for you")
    assert repr(desk) == "Desk()"
    desk.close()


@pytest.fixture
def live(host: KernelHost, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    """A desk with an open comm."""
    monkeypatch.setenv("WORKBENCH_FRONTEND", "1")
    desk = Desk(host)
    desk.open()
    yield desk
    desk.close()


@pytest.mark.parametrize(
    ("environment", "is_shared"),
    [("WORKBENCH_FRONTEND", False), ("WORKBENCH_FRONTEND", True), ("JPY_SESSION_NAME", False)],
)
def test_the_tables_are_updated_while_no_page_is_live_and_at_the_end_of_a_shared_notebook(
    host: KernelHost, monkeypatch: pytest.MonkeyPatch, environment: str, is_shared: bool
) -> None:
    monkeypatch.setenv(environment, "1")
    monkeypatch.setattr(publisher, "KEEP_SECONDS", 0)
    monkeypatch.setattr(panel, "get_ipython", lambda: SimpleNamespace(kernel=True))
    published: Queue[tuple[dict[str, Any], bool]] = Queue()
    monkeypatch.setattr(Desk, "_publish", lambda _, data, update=False: published.put((data, update)))
    desk = Desk(host)
    desk._ipython_display_()
    first, is_update = published.get(timeout=20)
    assert (WIDGET_VIEW in first, is_update) == (environment == "WORKBENCH_FRONTEND", False)
    assert "Nothing is waiting for you." in first["text/plain"]
    host.call("register", name="Eve")
    while "Eve" not in (now := published.get(timeout=20))[0]["text/plain"]:
        pass
    assert (WIDGET_VIEW in now[0], now[1]) == (WIDGET_VIEW in first, True)
    assert now[0]["text/plain"].startswith("Workbench, as it was on ")
    desk.on_message({"kind": "resync", "shared": is_shared})  # a page is live: what it shows is not replaced
    host.call("register", name="Joe")
    assert published.empty()
    desk.close()
    assert published.empty() == (not is_shared)
    if is_shared:  # the server saves the notebook, and knows only what was published
        data, is_update = published.get()
        assert (data.keys(), is_update) == ({"text/plain", "text/html"}, True)
        assert "To open the panel, run this cell again." in data["text/plain"]


def test_a_message_to_a_closed_panel_is_refused(live: Desk) -> None:
    live.post({"kind": "snapshot"}, [])
    live.comm.close()
    with pytest.raises(PanelClosed):
        live.post({"kind": "snapshot"}, [])


def test_a_message_that_the_comm_refuses_is_not_lost_silently(
    live: Desk, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    sent: list[str] = []
    changed = threading.Condition()

    def publish(_: str, data: dict[str, Any], **__: Any) -> None:
        if data["method"] != "custom":
            return
        with changed:
            kind = data["content"]["kind"]
            if not sent and kind == "snapshot":
                sent.append("failed")
                raise ValueError("the comm refuses it")
            sent.append(kind)
            changed.notify_all()

    monkeypatch.setattr(live.comm, "publish_msg", publish)
    live.on_message({"kind": "resync"})
    with changed:
        assert changed.wait_for(lambda: "snapshot" in sent, 20), sent
    assert sent[:3] == ["failed", "retrying", "snapshot"]
    assert "the comm refuses it" in caplog.text


def test_the_last_state_is_kept_while_a_page_follows_and_at_the_end(host: KernelHost, live: Desk) -> None:
    kept = threading.Condition()

    def notify(_: Any) -> None:
        with kept:
            kept.notify_all()

    live.observe(notify, "last_state")
    fill(host)
    live.on_message({"kind": "resync"})
    with kept:
        assert kept.wait_for(lambda: "&lt;b&gt;Eve&lt;/b&gt;" in live.last_state, 20)
    assert live.last_state.startswith("<p>Workbench, as it was on ")
    assert live.panel_id == live.model_id
    before = live.last_state
    live.close()
    host.stop()
    live.close()
    assert "&lt;b&gt;Eve&lt;/b&gt;" in live.last_state
    assert "NOT_STARTED" not in live.last_state
    assert len(live.last_state) >= len(before)
