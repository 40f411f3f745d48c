"""The bridge between a panel and a real host: in the process that serves, and attached to one."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from kernel_ext.host import KernelHost
from kernel_ext.panels.bridge import Actions, Publisher, newest_event
from kernel_ext.panels.rows import apply, by_id
from kernel_ext.panels.sources import read_tasks
from workbench.settings import Settings

WAIT_SECONDS = 20


class FrontEnd:
    """What a page does with messages: keeps the tables, notices gaps, remembers answers."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []
        self.tables: dict[str, Any] = {}
        self.version: int | None = None
        self._news = threading.Condition()

    def take(self, content: dict[str, Any], buffers: list[bytes]) -> None:
        with self._news:
            self.messages.append(content)
            if content["kind"] == "snapshot":
                rows = json.loads(buffers[0])
                self.tables, self.version = {name: by_id(table) for name, table in rows.items()}, content["ver"]
            if content["kind"] == "diff":
                assert content["base"] == self.version, "a message was lost"
                self.tables, self.version = apply(self.tables, json.loads(buffers[0])), content["ver"]
            self._news.notify_all()

    def until(self, done: Callable[[], bool]) -> None:
        with self._news:
            assert self._news.wait_for(done, WAIT_SECONDS), self.messages[-5:]

    def kinds(self) -> list[str]:
        return [message["kind"] for message in self.messages]

    def answers(self) -> list[dict[str, Any]]:
        return [message for message in self.messages if message["kind"] == "answer"]

    def names(self) -> set[str]:
        return {row["payload"]["name"] for row in self.tables.get("approvals", {}).values()}


@pytest.fixture
def serving(settings: Settings) -> Iterator[KernelHost]:
    host = KernelHost(settings)
    host.start(0)
    yield host
    host.stop()


@pytest.fixture(params=["serving", "attached"])
def host(serving: KernelHost, request: pytest.FixtureRequest) -> Iterator[KernelHost]:
    if request.param == "serving":
        yield serving
        return
    second = KernelHost(serving.settings)
    second.start()
    assert second.attached
    yield second
    second.stop()


@pytest.fixture
def page() -> FrontEnd:
    return FrontEnd()


@pytest.fixture
def publisher(host: KernelHost, page: FrontEnd) -> Iterator[Publisher]:
    made = Publisher(host, page.take)
    made.resync()
    page.until(lambda: page.version is not None)
    yield made
    made.stop()


def tasks(host: KernelHost) -> Any:
    return host.submit(read_tasks(host.acall)).result(WAIT_SECONDS)


def request(request_id: str, op: str, **arguments: Any) -> dict[str, Any]:
    return {"kind": "action", "id": request_id, "op": op, "arguments": arguments}


def test_a_page_is_told_of_everything_that_happens(serving: KernelHost, publisher: Publisher, page: FrontEnd) -> None:
    serving.call("register", name="ada")
    page.until(lambda: page.names() == {"ada"})
    parent = serving.call("create_task", title="Parent", persona_id="tester")["id"]
    serving.call("create_task", title="Child", persona_id="tester", parent_task_id=parent)
    serving.call("approve", approval_id=1)
    page.until(lambda: len(page.tables["tasks"]) == 2 and not page.tables["approvals"])
    assert page.tables["tasks"] == tasks(serving)
    assert page.kinds()[0] == "snapshot"
    assert set(page.kinds()[1:]) == {"diff"}


def test_much_that_happens_at_once_is_a_few_messages(serving: KernelHost, publisher: Publisher, page: FrontEnd) -> None:
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda n: serving.call("create_task", title=f"{n}", persona_id="tester"), range(200)))
    page.until(lambda: len(page.tables["tasks"]) == 200)
    assert page.kinds().count("diff") < 100
    assert page.tables["tasks"] == tasks(serving)


def test_a_few_of_many_tasks_are_read_one_by_one_with_those_that_wait_for_them(
    serving: KernelHost, page: FrontEnd
) -> None:
    lines = "".join(f"- {{name: t{n}, title: T, persona: tester}}\n" for n in range(200))
    last = "- {name: last, title: Last, persona: tester, after: [t7]}\n"
    made = serving.call("create_plan", text=f"plan: many\ntasks:\n{lines}{last}")["tasks"]
    publisher = Publisher(serving, page.take)
    publisher.resync()
    page.until(lambda: len(page.tables.get("tasks", {})) == 201)
    assert page.tables["tasks"][made["last"]]["blocked"] is True
    serving.call("remove_dependency", task_id=made["last"], depends_on=made["t7"])
    serving.call("cancel_task", task_id=made["t7"], reason="Not needed")
    serving.call("set_priority", task_id=made["t9"], priority=900)
    page.until(lambda: page.tables["tasks"][made["t9"]]["priority"] == 900)
    page.until(lambda: page.tables["tasks"] == tasks(serving))
    publisher.stop()


def test_a_page_is_told_of_tasks_that_something_happened_to_though_their_rows_are_the_same(
    serving: KernelHost, publisher: Publisher, page: FrontEnd
) -> None:
    task_id = serving.call("create_task", title="Parent", persona_id="tester")["id"]
    serving.call("set_priority", task_id=task_id, priority=900)
    page.until(lambda: page.tables["tasks"].get(task_id, {}).get("priority") == 900)
    seen = len(page.messages)
    serving.call("set_priority", task_id=task_id, priority=900)
    page.until(lambda: any(message.get("touched") == [task_id] for message in page.messages[seen:]))


def test_worktrees_and_processes_follow_the_first_snapshot_and_are_live(
    serving: KernelHost, publisher: Publisher, page: FrontEnd
) -> None:
    page.until(lambda: {"worktrees", "conflicts", "processes"} <= set(page.tables))
    assert page.messages[0]["kind"] == "snapshot"
    path = Path(serving.call("create_worktree", name="robust")["path"])
    page.until(lambda: "robust" in page.tables["worktrees"])
    assert page.tables["worktrees"]["robust"]["uncommitted"] == 0
    (path / "left.txt").write_text("not committed")
    serving.call("create_worktree", name="other")
    page.until(lambda: page.tables["worktrees"]["robust"]["dirty"] == ["left.txt"])
    assert set(page.tables["conflicts"]) == {""}
    assert page.tables["processes"] == {}


def test_a_project_without_a_repository_says_why_it_has_no_worktrees(tmp_path: Path, page: FrontEnd) -> None:
    host = KernelHost(Settings(project=tmp_path))
    host.start(0)
    publisher = Publisher(host, page.take)
    try:
        publisher.resync()
        page.until(lambda: "" in page.tables.get("worktrees", {}))
        assert page.tables["worktrees"][""]["error"]["code"] == "NOT_A_REPOSITORY"
        host.call("create_task", title="It goes on", persona_id="tester")
        page.until(lambda: len(page.tables["tasks"]) == 1)
    finally:
        publisher.stop()
        host.stop()


def test_a_page_that_asks_again_gets_everything_and_goes_on(
    serving: KernelHost, publisher: Publisher, page: FrontEnd
) -> None:
    serving.call("register", name="ada")
    page.until(lambda: page.names() == {"ada"})
    publisher.resync()
    page.until(lambda: page.kinds().count("snapshot") == 2)
    serving.call("register", name="bert")
    page.until(lambda: page.names() == {"ada", "bert"})


def test_a_panel_nobody_looks_at_sends_nothing(serving: KernelHost, page: FrontEnd) -> None:
    publisher = Publisher(serving, page.take)
    serving.call("register", name="ada")
    publisher.stop()
    assert page.messages == []


def test_a_stopped_host_is_told_and_found_again(serving: KernelHost, page: FrontEnd) -> None:
    publisher = Publisher(serving, page.take)
    publisher.resync()
    page.until(lambda: "snapshot" in page.kinds())
    serving.stop()
    page.until(lambda: page.kinds()[-1] == "stopped")
    publisher.resync()
    page.until(lambda: page.kinds().count("stopped") == 2)
    assert page.messages[-1]["error"]["code"] == "NOT_STARTED"
    serving.start(0)
    publisher.resync()
    page.until(lambda: page.kinds().count("snapshot") == 2)
    publisher.stop()


@pytest.mark.parametrize("events", [0, 1, 2, 3, 7, 8])
def test_the_newest_event_is_found(serving: KernelHost, events: int) -> None:
    before = serving.submit(newest_event(serving)).result(WAIT_SECONDS)
    for number in range(events):
        serving.call("create_task", title=f"{number}", persona_id="tester")
    assert serving.submit(newest_event(serving)).result(WAIT_SECONDS) == before + events


def test_an_action_is_done_once_however_often_it_is_asked_for(host: KernelHost, page: FrontEnd) -> None:
    host.call("register", name="ada")
    actions = Actions(host, page.take)
    for _ in range(3):
        actions.take(request("same", "approve", approval_id=1, choices={"agent_id": "first"}))
    page.until(lambda: len(page.answers()) == 3)
    actions.take(request("same", "approve", approval_id=1, choices={"agent_id": "first"}))
    page.until(lambda: len(page.answers()) == 4)
    assert all(answer == page.answers()[0] for answer in page.answers())
    assert page.answers()[0]["outcome"]["outcome"] == {"agent_id": "first", "status": "assigned"}


def test_a_refused_action_is_answered_with_its_code(host: KernelHost, page: FrontEnd) -> None:
    Actions(host, page.take).take(request("a", "reject", approval_id=77))
    page.until(lambda: bool(page.answers()))
    assert (page.answers()[0]["ok"], page.answers()[0]["error"]["code"]) == (False, "APPROVAL_NOT_FOUND")


@pytest.mark.parametrize(
    "message",
    [
        request("a", "spawn_agent", persona_id="tester"),
        {"kind": "action", "id": "a", "op": "approve"},
        {"kind": "action", "id": "a", "op": ["approve"], "arguments": {}},
    ],
    ids=["not offered", "no arguments", "not a name"],
)
def test_a_panel_may_only_ask_for_what_it_offers(serving: KernelHost, page: FrontEnd, message: dict[str, Any]) -> None:
    Actions(serving, page.take).take(message)
    assert page.answers()[0]["error"]["code"] == "BAD_MESSAGE"


def test_agents_and_where_they_belong_are_told_as_they_change(
    serving: KernelHost, publisher: Publisher, page: FrontEnd
) -> None:
    project = serving.call("create_project", name="Lab")["id"]
    session = serving.call("create_session", project_id=project, name="Day 1")["id"]
    team = serving.call("create_team", name="Night", session_id=session)["id"]
    made = serving.call("register", name="ada", persona_id="tester")
    serving.call("approve", approval_id=made["approval_id"], choices={"team_id": team})
    page.until(lambda: page.tables["agents"].get("ada", {}).get("team_id") == team)
    page.until(lambda: page.tables["sessions"][session]["agents"] == 1)
    serving.call("update_agent", agent_id="ada", changes={"agent_id": "first", "tool": "read"})
    page.until(lambda: set(page.tables["agents"]) == {"first"})
    assert page.tables["agents"]["first"]["tool"] == "read"
    serving.call("delete_project", project_id=project)
    page.until(lambda: not page.tables["projects"] and not page.tables["sessions"] and not page.tables["teams"])


def test_rules_tools_and_the_allowlist_are_told_as_they_change(
    serving: KernelHost, publisher: Publisher, page: FrontEnd
) -> None:
    assert set(page.tables["tools"]) == {"register", "read", "write"}
    serving.call("add_admission_rule", name="night", pattern="worker-*", grants={"tool": "read"})
    serving.call("allow_agent", agent_id="ada")
    serving.call("update_agent_tool", tool_id="write", enabled=False)
    page.until(lambda: "night" in page.tables["rules"] and "ada" in page.tables["allowlist"])
    page.until(lambda: page.tables["tools"]["write"]["enabled"] is False)
    serving.call("remove_admission_rule", name="night")
    page.until(lambda: not page.tables["rules"])


def test_a_list_of_many_pages_is_told_whole(serving: KernelHost, page: FrontEnd) -> None:
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda n: serving.call("create_project", name=f"project {n}"), range(520)))
    publisher = Publisher(serving, page.take)
    publisher.resync()
    page.until(lambda: page.version is not None)
    publisher.stop()
    assert {row["name"] for row in page.tables["projects"].values()} == {f"project {n}" for n in range(520)}


def test_a_new_token_is_sent_once_and_not_remembered(host: KernelHost, page: FrontEnd) -> None:
    host.call("approve", approval_id=host.call("register", name="ada")["approval_id"])
    actions = Actions(host, page.take)
    for _ in range(2):
        actions.take(request("same", "issue_token", agent_id="ada"))
    page.until(lambda: len(page.answers()) == 2)
    first, second = (answer["outcome"]["token"] for answer in page.answers())
    assert first != second
    assert actions._answers == {}


def test_what_is_only_read_is_read_anew(host: KernelHost, page: FrontEnd) -> None:
    host.call("create_task", title="Count", persona_id="tester")
    actions = Actions(host, page.take)
    for priority in (1, 2):
        host.call("set_priority", task_id=1, priority=priority)
        actions.take(request("same", "get_task", task_id=1))
        page.until(lambda: len(page.answers()) == priority)  # noqa: B023
    assert [answer["outcome"]["priority"] for answer in page.answers()] == [1, 2]


@pytest.mark.parametrize("request_id", [None, "", "x" * 65, 7, []])
def test_a_request_that_cannot_be_answered_is_not_run(serving: KernelHost, page: FrontEnd, request_id: Any) -> None:
    serving.call("register", name="ada")
    Actions(serving, page.take).take(request(request_id, "approve", approval_id=1))
    assert page.messages == []
    assert serving.call("list_approvals")["approvals"] != []


def test_an_action_without_a_running_host_is_refused_at_once(settings: Settings, page: FrontEnd) -> None:
    Actions(KernelHost(settings), page.take).take(request("a", "approve", approval_id=1))
    assert page.answers()[0]["error"]["code"] == "NOT_STARTED"
