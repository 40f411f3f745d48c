"""From a real project to a panel: a snapshot, then what changes; and what happens when a message cannot be sent."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest

from kernel_ext.hosting.host import KernelHost
from kernel_ext.panels import PanelClosed
from kernel_ext.panels import publisher as publisher_module
from kernel_ext.panels.publisher import Publisher, newest_event
from kernel_ext.panels.sources import read_tasks
from tests.panels.front_end import WAIT_SECONDS, FrontEnd
from tests.services.personalities.known import know, profile
from workbench.state.settings import Settings

Follow = Callable[..., Publisher]


@pytest.fixture
def follow(serving: KernelHost, page: FrontEnd) -> Iterator[Follow]:
    """Shows the project in the page, until the test ends."""
    with ExitStack() as ends:

        def follow(*keep: Callable[[Any], None]) -> Publisher:
            made = Publisher(serving, page.take, *keep)
            ends.callback(made.stop)
            made.resync()
            return made

        yield follow


@pytest.fixture
def publisher(any_host: KernelHost, page: FrontEnd) -> Iterator[Publisher]:
    made = Publisher(any_host, page.take)
    made.resync()
    page.until(lambda: page.version is not None)
    yield made
    made.stop()


def tasks(host: KernelHost) -> Any:
    return host.submit(read_tasks(host.acall)).result(WAIT_SECONDS)


def test_a_page_follows_everything_and_gets_a_snapshot_when_it_asks_again(
    serving: KernelHost, publisher: Publisher, page: FrontEnd
) -> None:
    serving.call("register", name="ada")
    page.until(lambda: page.names() == {"ada"})
    parent = serving.call("create_task", title="Parent", persona_id="tester")["id"]
    serving.call("create_task", title="Child", persona_id="tester", parent_task_id=parent)
    serving.call("approve", approval_id=1)
    page.until(lambda: len(page.tables["tasks"]) == 2 and not page.tables["approvals"])
    assert page.tables["tasks"] == tasks(serving)
    assert page.kinds()[0] == "snapshot"
    assert set(page.kinds()[1:]) == {"diff"}
    publisher.resync()
    page.until(lambda: page.kinds().count("snapshot") == 2)
    serving.call("register", name="bert")
    page.until(lambda: page.names() == {"bert"})


def test_many_events_at_once_are_a_few_messages(serving: KernelHost, publisher: Publisher, page: FrontEnd) -> None:
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda n: serving.call("create_task", title=f"{n}", persona_id="tester"), range(200)))
    page.until(lambda: len(page.tables["tasks"]) == 200)
    assert page.kinds().count("diff") < 100
    assert page.tables["tasks"] == tasks(serving)


def test_a_few_changed_tasks_are_read_one_by_one_with_their_dependants(
    serving: KernelHost, page: FrontEnd, follow: Follow
) -> None:
    lines = "".join(f"- {{name: t{n}, title: T, persona: tester}}\n" for n in range(200))
    last = "- {name: last, title: Last, persona: tester, after: [t7]}\n"
    made = serving.call("create_plan", text=f"plan: many\ntasks:\n{lines}{last}")["tasks"]
    follow()
    page.until(lambda: len(page.tables.get("tasks", {})) == 201)
    assert page.tables["tasks"][made["last"]]["blocked"] is True
    serving.call("remove_dependency", task_id=made["last"], depends_on=made["t7"])
    serving.call("cancel_task", task_id=made["t7"], reason="Not needed")
    serving.call("set_priority", task_id=made["t9"], priority=900)
    page.until(lambda: page.tables["tasks"][made["t9"]]["priority"] == 900)
    page.until(lambda: page.tables["tasks"] == tasks(serving))


def test_a_page_learns_what_events_were_about_even_when_no_row_has_changed(
    serving: KernelHost, publisher: Publisher, page: FrontEnd
) -> None:
    task_id = serving.call("create_task", title="Parent", persona_id="tester")["id"]
    serving.call("set_priority", task_id=task_id, priority=900)
    page.until(lambda: page.tables["tasks"].get(task_id, {}).get("priority") == 900)
    before = len(page.messages)
    serving.call("set_priority", task_id=task_id, priority=900)
    page.until(lambda: any(message.get("touched") == [f"task:{task_id}"] for message in page.messages[before:]))


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


def test_a_panel_that_is_not_displayed_sends_nothing(serving: KernelHost, page: FrontEnd) -> None:
    publisher = Publisher(serving, page.take)
    serving.call("register", name="ada")
    publisher.stop()
    assert page.messages == []


def test_a_stopped_host_is_reported_and_found_again(serving: KernelHost, page: FrontEnd, follow: Follow) -> None:
    publisher = follow()
    page.until(lambda: "snapshot" in page.kinds())
    serving.stop()
    page.until(lambda: page.kinds()[-1] == "stopped")
    publisher.resync()
    page.until(lambda: page.kinds().count("stopped") == 2)
    assert page.messages[-1]["error"]["code"] == "NOT_STARTED"
    serving.start(0)
    publisher.resync()
    page.until(lambda: page.kinds().count("snapshot") == 2)
    serving.call("register", name="ada")
    page.until(lambda: "ada" in page.names())
    assert "retrying" not in page.kinds()


def test_the_newest_event_is_found(serving: KernelHost) -> None:
    before = serving.submit(newest_event(serving)).result(WAIT_SECONDS)
    for number in range(1, 9):
        serving.call("create_task", title=f"{number}", persona_id="tester")
        assert serving.submit(newest_event(serving)).result(WAIT_SECONDS) == before + number


def test_agents_projects_rules_tools_and_definitions_follow_their_changes(
    serving: KernelHost, publisher: Publisher, page: FrontEnd
) -> None:
    project = serving.call("create_project", name="Lab")["id"]
    session = serving.call("create_session", project_id=project, name="Day 1")["id"]
    team = serving.call("create_team", name="Night", session_id=session)["id"]
    registration = serving.call("register", name="ada", persona_id="tester")
    serving.call("approve", approval_id=registration["approval_id"], choices={"team_id": team})
    page.until(lambda: page.tables["agents"].get("ada", {}).get("team_id") == team)
    page.until(lambda: page.tables["sessions"][session]["agents"] == 1)
    serving.call("update_agent", agent_id="ada", changes={"agent_id": "first", "tool": "read"})
    page.until(lambda: set(page.tables["agents"]) == {"first"})
    assert page.tables["agents"]["first"]["tool"] == "read"
    serving.call("delete_project", project_id=project)
    page.until(lambda: not page.tables["projects"] and not page.tables["sessions"] and not page.tables["teams"])

    assert set(page.tables["tools"]) == {"register", "read", "write"}
    serving.call("add_admission_rule", name="night", pattern="worker-*", grants={"tool": "read"})
    serving.call("allow_agent", agent_id="ada")
    serving.call("update_agent_tool", tool_id="write", enabled=False)
    page.until(lambda: "night" in page.tables["rules"] and "ada" in page.tables["allowlist"])
    page.until(lambda: page.tables["tools"]["write"]["enabled"] is False)
    serving.call("remove_admission_rule", name="night")
    page.until(lambda: not page.tables["rules"])

    serving.call("agent_create", agentPath="./agents/reviewer", name="Reviewer")
    page.until(lambda: "./agents/reviewer" in page.tables.get("definitions", {}))
    row = page.tables["definitions"]["./agents/reviewer"]
    assert {"id", "definition_id", "name", "mode"} == set(row)
    serving.call("agent_delete", agentTarget="Reviewer", confirm=True)
    page.until(lambda: not page.tables["definitions"])


def test_only_changed_personalities_are_read_again(serving: KernelHost, page: FrontEnd, follow: Follow) -> None:
    asked: list[dict[str, Any]] = []
    call = serving.acall

    async def noted(name: str, /, **arguments: Any) -> dict[str, Any]:
        if name == "list_personalities":
            asked.append(arguments)
        return await call(name, **arguments)

    serving.acall = noted  # type: ignore[method-assign]
    workbench = serving.workbench
    assert workbench is not None
    for n in range(20):
        serving.wait(know(workbench, profile(f"agent-{n}", mood="calm")))
    follow()
    page.until(lambda: len(page.tables.get("personalities", {})) == 20)
    serving.wait(know(workbench, profile("agent-7", "1.1", mood="keen"), at=2))
    serving.call("publish_personality", name="mine")
    page.until(lambda: page.tables["personalities"]["agent-7"]["version"] == "1.1")
    page.until(lambda: "mine" in page.tables["personalities"])
    serving.call("withdraw_personality", name="mine")
    page.until(lambda: "mine" not in page.tables["personalities"])
    assert len(page.tables["personalities"]) == 20
    assert {name for arguments in asked for name in arguments.get("names", [])} == {"agent-7", "mine"}


def test_a_list_of_many_pages_is_read_to_its_end(serving: KernelHost, page: FrontEnd, follow: Follow) -> None:
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda n: serving.call("create_project", name=f"project {n}"), range(520)))
    follow()
    page.until(lambda: page.version is not None)
    assert {row["name"] for row in page.tables["projects"].values()} == {f"project {n}" for n in range(520)}


@pytest.mark.long
def test_a_flood_of_events_tells_a_page_only_that_anything_may_have_changed(
    serving: KernelHost, publisher: Publisher, page: FrontEnd
) -> None:
    lines = "".join(f"- {{name: t{n}, title: T, persona: tester}}\n" for n in range(1_100))
    serving.call("create_plan", text=f"plan: many\ntasks:\n{lines}")
    page.until(lambda: len(page.tables["tasks"]) == 1_100)
    assert None in [message["touched"] for message in page.messages if message["kind"] == "diff"]


@pytest.mark.parametrize("message", ["snapshot", "diff", "second snapshot"])
def test_a_message_that_cannot_be_sent_is_logged_and_a_snapshot_follows_after_a_pause(
    serving: KernelHost, page: FrontEnd, follow: Follow, caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch, message: str,
) -> None:  # fmt: skip
    monkeypatch.setattr(publisher_module, "RETRY_SECONDS", 0.1)
    if message == "snapshot":
        page.failures.append(ValueError("not JSON"))
    publisher = follow()
    if message != "snapshot":
        page.until(lambda: {"worktrees", "conflicts", "processes"} <= set(page.tables))
        page.failures.append(ValueError("not JSON"))
        publisher.resync() if message == "second snapshot" else serving.call("register", name="ada")
    page.until(lambda: "retrying" in page.kinds())
    serving.call("register", name="bert")
    page.until(lambda: "bert" in page.names())
    assert page.kinds()[page.kinds().index("retrying") + 1] == "snapshot"
    assert "not JSON" in caplog.text


def test_a_closed_page_ends_the_publisher_and_nothing_is_logged(
    serving: KernelHost, page: FrontEnd, follow: Follow, caplog: pytest.LogCaptureFixture
) -> None:
    publisher = follow()
    page.until(lambda: {"worktrees", "conflicts", "processes"} <= set(page.tables))
    page.failures.append(PanelClosed())
    serving.call("register", name="ada")
    page.until(lambda: page.kinds()[-1] == "stopped")
    assert [record for record in caplog.records if record.name.startswith("kernel_ext")] == []
    publisher.resync()
    page.until(lambda: page.names() == {"ada"})


def test_the_publisher_keeps_tables_and_hides_a_failure_to_keep_them_from_the_page(
    serving: KernelHost, page: FrontEnd, follow: Follow, caplog: pytest.LogCaptureFixture
) -> None:
    kept: list[Any] = []

    def keep(tables: Any) -> None:
        kept.append(tables)
        raise ValueError("it cannot be drawn")

    publisher = follow(keep)
    page.until(lambda: page.version is not None)
    serving.call("register", name="ada")
    page.until(lambda: page.names() == {"ada"})
    assert "retrying" not in page.kinds()
    assert set(kept[0]) >= {"approvals", "agents", "tasks"}
    assert "it cannot be drawn" in caplog.text
    assert publisher.tables is not None


@pytest.mark.parametrize("is_looked_at", [True, False])
def test_what_changes_with_time_alone_is_sent_only_while_somebody_looks(
    serving: KernelHost, page: FrontEnd, follow: Follow, monkeypatch: pytest.MonkeyPatch, is_looked_at: bool
) -> None:
    """An agent that waits for work must not keep the kernel of a hub active for ever."""
    token = serving.call("register", name="ada")["token"]
    serving.call("approve", approval_id=1)
    serving.wait(serving.acall_as(token, "whoami"))
    monkeypatch.setattr(publisher_module, "REFRESH_SECONDS", 0.05)
    monkeypatch.setattr(publisher_module, "LOOK_SECONDS", 60.0 if is_looked_at else 0.0)
    follow().note_look()
    page.until(lambda: page.version is not None)
    before = page.tables["agents"]
    assert serving.workbench is not None
    serving.workbench._noted.clear()
    serving.wait(serving.acall_as(token, "whoami"))
    if is_looked_at:
        page.until(lambda: page.tables["agents"] != before)
    serving.call("create_task", title="Later", persona_id="tester")
    page.until(lambda: len(page.tables["tasks"]) == 1)
    assert (page.tables["agents"] != before) == is_looked_at


def test_the_publisher_keeps_but_does_not_send_tables_that_the_page_reads(
    serving: KernelHost, page: FrontEnd, follow: Follow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publisher_module, "KEEP_SECONDS", 0)
    kept = SimpleQueue[Any]()
    publisher = follow(kept.put)
    page.until(lambda: page.version is not None)
    run = serving.call("start_run", name="first")["id"]
    while run not in kept.get(timeout=WAIT_SECONDS)["runs"]:
        pass
    serving.call("end_run", run_id=run)
    while kept.get(timeout=WAIT_SECONDS)["runs"][run]["state"] != "completed":
        pass
    assert publisher.tables is not None
    assert publisher.tables["runs"][run]["name"] == "first"
    assert "runs" not in page.tables
