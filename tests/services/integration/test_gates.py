"""Gates: commands that have to pass on the result of a merge, in a box, before it is made."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from tests import given
from tests.confinement.outside_hosts import GREETING, host, serve_files
from tests.conftest import admitted, git
from tests.services.worktrees.lab import approval, ask, commit, everything, finished, settled, states, worktree_row
from tests.unkillable import unkillable
from workbench.app import Workbench
from workbench.confinement import abilities
from workbench.errors import BadInput, Conflict
from workbench.services.worktrees import trials
from workbench.shells.serve import Servers
from workbench.state.settings import Settings
from workbench.trust.withheld import trust, withheld

pytestmark = [pytest.mark.anyio, pytest.mark.long]

PASS = "test -f new.txt"
UNTIL_GO = 'until test -e "$HOME/go"; do sleep 0.05; done'
confined = pytest.mark.skipif(not abilities().complete, reason=abilities().summary)


@asynccontextmanager
async def project(settings: Settings, *gates: str, served: bool = False, **more: Any) -> AsyncIterator[Workbench]:
    """A project with gates, served or not."""
    changed = settings.model_copy(update={"integration_gates": gates, **more})
    async with Workbench.open(changed) as workbench, Servers(workbench) as servers:
        if served:
            await servers.start(0)
        yield workbench


@asynccontextmanager
async def open_with_request(settings: Settings, *gates: str, **more: Any) -> AsyncIterator[tuple[Workbench, int]]:
    """A project with gates, and the approval of an integration that was asked for."""
    async with project(settings, *gates, **more) as workbench:
        commit(await given.worktree(workbench))
        yield workbench, await ask(workbench)


def leftovers(repository: Path) -> list[str]:
    """The remains of gates."""
    return sorted(path.name for path in (repository / ".aiswarm" / "gates").glob("*"))


async def at_work(workbench: Workbench, question: int) -> None:
    """Return once the gate of an approval runs."""

    async def is_running() -> bool:
        return states(await approval(workbench, question)) == ["running"]

    await given.until(is_running)


async def test_gates_run_in_the_call_and_a_failed_one_needs_a_choice(settings: Settings, repository: Path) -> None:
    talkative, fails = "seq 1 20000; printf 'last \\000 \\377'", "echo said; echo why >&2; exit 3"
    async with open_with_request(settings, fails, PASS, talkative) as (workbench, question):
        first, second, third = (await approval(workbench, question))["payload"]["gates"]
        assert (first["state"], first["exit_code"], first["output"]) == ("failed", 3, "said\nwhy\n")
        assert (second["command"], second["state"], second["exit_code"]) == (PASS, "passed", 0)
        assert len(third["output"]) < 17_000
        assert third["output"].endswith("20000\nlast � �")
        assert third["output"].split("\n")[0].isdecimal()
        assert leftovers(repository) == []
        assert len(git("worktree", "list", cwd=repository).splitlines()) == 2
        before = everything(repository)
        error = await given.refuses("GATES_FAILED", workbench.call("approve", approval_id=question))
        assert error.details["gates"] == [fails]
        assert everything(repository) == before
        assert (await approval(workbench, question))["status"] == "pending"
        for wrong in ({"despite_gates": "yes"}, {"despite": True}):
            await given.refuses("INVALID_ARGUMENTS", workbench.call("approve", approval_id=question, choices=wrong))
        decided = await workbench.call("approve", approval_id=question, choices={"despite_gates": True})
        assert decided["outcome"]["state"] == "integrated"
        assert (repository / "new.txt").exists()


async def test_a_secret_in_a_gate_is_in_no_event(settings: Settings) -> None:
    secret = "sk-ant-api03-" + "Zx9" * 20
    async with open_with_request(settings, f"true {secret}") as (workbench, question):
        assert states(await approval(workbench, question)) == ["passed"]
        events = (await workbench.call("list_events", limit=1_000))["events"]
        assert [one["data"]["command"] for one in events if one["kind"] == "gate.ended"] == ["true ••••••"]
        assert secret not in str(events)


async def test_a_gate_refused_a_path_by_its_box_names_the_setting(settings: Settings) -> None:
    if not abilities().abi:
        pytest.skip(abilities().summary)
    # Not below /dev/shm, of which a box has its own.
    with TemporaryDirectory(dir="/var/tmp") as directory:
        data = Path(directory, "data.csv")
        data.write_text("1")
        await _be_refused(settings, data)


async def _be_refused(settings: Settings, data: Path) -> None:
    async with open_with_request(settings, f"cat {data}") as (workbench, question):
        (gate,) = (await approval(workbench, question))["payload"]["gates"]
        assert gate["state"] == "failed"
        assert (
            f"- {data} cannot be read, by its rules for files: the setting confinement_read opens it" in gate["output"]
        )


@confined
@pytest.mark.parametrize("namespaces", ["auto", "off"])
async def test_a_gate_reaches_the_hosts_of_the_settings_and_is_told_of_others(
    settings: Settings, tmp_path: Path, namespaces: str
) -> None:
    with host(serve_files(tmp_path / "outside")) as server:
        fetch = f"curl -sSf http://localhost:{server.port}/hi"
        hosts = {"network": (f"localhost:{server.port}",), "private": ("127.0.0.0/8", "::1")}
        more = {**hosts, "confinement_namespaces": namespaces}
        async with open_with_request(settings, fetch, f"{fetch} http://evil.test", **more) as (workbench, question):
            first, second = (await approval(workbench, question))["payload"]["gates"]
    assert (first["state"], first["output"]) == ("passed", GREETING)
    assert second["state"] == "failed"
    assert "- HOST_NOT_ALLOWED: evil.test" in second["output"]
    assert "it is not among the hosts of the box, by its rules for hosts: the setting network opens" in second["output"]


async def test_gates_run_on_the_result_of_the_merge_without_uncommitted_files(
    settings: Settings, repository: Path
) -> None:
    async with project(settings, "ls; git log -1 --format=%s%n%b; git rev-parse HEAD") as workbench:
        commit(await given.worktree(workbench))
        commit(repository, "mine.txt")
        (repository / "uncommitted.txt").write_text("mine alone")
        found = await approval(workbench, await ask(workbench))
        (gate,) = found["payload"]["gates"]
        words = gate["output"].split("\n")
        assert words[:3] == ["README.md", "mine.txt", "new.txt"]
        assert words[3] == "Integrate lab"
        assert words[-2] == found["payload"]["merged_commit"]
        decided = await workbench.call("approve", approval_id=found["id"])
        assert decided["outcome"]["commit"] == found["payload"]["merged_commit"]
        assert git("rev-parse", "main", cwd=repository) == found["payload"]["merged_commit"]


@confined
async def test_filters_of_the_person_run_over_a_workers_files_in_the_box_only(
    settings: Settings, repository: Path, tmp_path: Path
) -> None:
    marker = tmp_path / "marker"
    git("config", "filter.strip.smudge", "sh tools/strip.sh", cwd=repository)
    async with project(settings, "cat new.txt") as workbench:
        lab = await given.worktree(workbench)
        (lab / "tools").mkdir()
        (lab / "tools" / "strip.sh").write_text(f"touch {marker} 2>/dev/null; sed s/new/stripped/\n")
        (lab / ".gitattributes").write_text("*.txt filter=strip\n")
        commit(lab)
        found = await approval(workbench, await ask(workbench))
        assert found["payload"]["gates"][0]["output"] == "stripped\n"
        second = await given.worktree(workbench, "second", source_branch="wb/lab/main")
        assert (second / "new.txt").read_text() == "stripped\n"
        assert not marker.exists()


@confined
async def test_files_stay_as_stored_while_their_filter_cannot_run_in_the_box(
    settings: Settings, repository: Path, tmp_path: Path
) -> None:
    store = tmp_path / "store"
    store.mkdir()
    (store / "1").write_text("much data\n")
    (store / "fetch").write_text(f"#!/bin/sh\nread id && cat {store}/$id\n")
    (store / "fetch").chmod(0o755)
    git("config", "filter.large.smudge", str(store / "fetch"), cwd=repository)
    git("config", "filter.large.clean", "cat", cwd=repository)
    git("config", "filter.large.required", "true", cwd=repository)
    (repository / ".gitattributes").write_text("*.bin filter=large\n")
    commit(repository, "data.bin", "1\n")
    async with project(settings) as workbench:
        assert (await given.worktree(workbench) / "data.bin").read_text() == "1\n"
    async with project(settings, confinement_read=str(store)) as workbench:
        assert (await given.worktree(workbench, "second") / "data.bin").read_text() == "much data\n"


async def test_a_gate_that_takes_too_long_is_ended_with_all_it_started(settings: Settings) -> None:
    async with open_with_request(settings, "sleep 0.601e3 & echo begun; wait", gate_seconds=1.0) as (
        workbench,
        question,
    ):
        (gate,) = (await approval(workbench, question))["payload"]["gates"]
        assert (gate["state"], gate["exit_code"], gate["output"]) == (
            "timeout",
            None,
            "begun\nThe command was ended: it took longer than 1 s.",
        )
        assert gate["seconds"] >= 1.0
    assert [command for command in _commands() if command.startswith("sleep 0.601e3")] == []


def _commands() -> list[str]:
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            text = entry.read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
        except OSError:
            continue
        found.append(text if entry.parent.name != str(os.getpid()) else "")
    return found


async def test_an_unkillable_process_of_a_gate_does_not_change_the_verdict(
    settings: Settings, repository: Path
) -> None:
    gate = "sleep 600 & echo $! > pid.part; mv pid.part pid; until [ -e go ]; do sleep 0.01; done"
    async with project(settings, gate) as workbench:
        commit(await given.worktree(workbench))
        asking = asyncio.create_task(ask(workbench))
        (pid,) = await given.until(lambda: list((repository / ".aiswarm" / "gates").glob("**/pid")))
        with unkillable(int(pid.read_text())):
            (pid.parent / "go").touch()
            assert states(await approval(workbench, await asking)) == ["passed"]
            assert leftovers(repository) == []


async def test_integrate_worktree_returns_while_the_gates_run(
    settings: Settings, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The output of a gate is stored while it runs; only its states are announced."""
    monkeypatch.setattr(trials, "REPORT_SECONDS", 0.0)
    gate = f"for line in 1 2 3 4; do echo $line; sleep 0.2; done; {UNTIL_GO}"
    async with open_with_request(settings, gate, served=True) as (workbench, question):
        assert states(await approval(workbench, question)) in (["waiting"], ["running"])
        while "4" not in (await approval(workbench, question))["payload"]["gates"][0]["output"]:
            await asyncio.sleep(0.02)
        _let_go(repository, question)
        assert states(await settled(workbench, question)) == ["passed"]
        # The commit that would be merged, the gate running, the gate passed.
        assert len((await workbench.call("list_events", kinds=["approval.updated"]))["events"]) == 3
        await workbench.call("approve", approval_id=question)
        assert (await finished(workbench, question))["outcome"]["state"] == "integrated"
        assert (repository / "new.txt").exists()


def _let_go(repository: Path, question: int) -> None:
    (repository / ".aiswarm" / "gates" / str(question) / "scratch" / "go").touch()


async def test_approving_while_gates_run_queues_and_merges_when_they_pass(settings: Settings, repository: Path) -> None:
    async with open_with_request(settings, UNTIL_GO, served=True) as (workbench, question):
        decided = await workbench.call("approve", approval_id=question)
        assert decided["outcome"] == {"worktree": "lab", "state": "queued", "commit": None}
        assert (decided["approval"]["status"], decided["approval"]["settled"]) == ("approved", False)
        found = await worktree_row(workbench)
        assert (found["status"], found["queue_place"], found["approval_id"]) == ("integrating", 1, question)
        for name in ("discard_worktree", "integrate_worktree", "update_worktree"):
            with pytest.raises(Conflict, match=r"WORKTREE_CLOSED.*integrating"):
                await workbench.call(name, worktree_name="lab")
        await at_work(workbench, question)
        _let_go(repository, question)
        found = await finished(workbench, question)
        assert (found["status"], found["outcome"]["state"]) == ("approved", "integrated")
        assert found["outcome"]["commit"] == git("rev-parse", "main", cwd=repository)
        assert (await given.kinds(workbench, "worktree.*"))[-2:] == ["worktree.integrating", "worktree.integrated"]


async def test_an_approved_merge_whose_gates_fail_is_asked_again(settings: Settings, repository: Path) -> None:
    async with open_with_request(settings, f"{UNTIL_GO}; exit 1", served=True) as (workbench, question):
        await workbench.call("approve", approval_id=question)
        await at_work(workbench, question)
        _let_go(repository, question)
        found = await finished(workbench, question)
        assert (found["status"], found["outcome"]["code"]) == ("failed", "GATES_FAILED")
        assert (await worktree_row(workbench))["status"] == "active"
        while not (waiting := (await workbench.call("list_approvals"))["approvals"]):
            await asyncio.sleep(0.02)
        assert waiting[0]["payload"]["refused"]["code"] == "GATES_FAILED"
        assert not (repository / "new.txt").exists()
        await workbench.call("reject", approval_id=waiting[0]["id"])


async def test_gates_run_again_when_the_target_moved(settings: Settings, repository: Path) -> None:
    async with open_with_request(settings, "test ! -e broken.txt", served=True) as (workbench, question):
        first = (await settled(workbench, question))["payload"]
        assert [gate["state"] for gate in first["gates"]] == ["passed"]
        commit(repository, "fine.txt")
        assert (await workbench.call("approve", approval_id=question))["outcome"]["state"] == "queued"
        found = await finished(workbench, question)
        assert found["outcome"]["state"] == "integrated"
        assert found["outcome"]["commit"] == found["payload"]["merged_commit"] != first["merged_commit"]

        commit(await given.worktree(workbench, "other"), "other.txt")
        question = await ask(workbench, "other")
        await settled(workbench, question)
        commit(repository, "broken.txt")
        await workbench.call("approve", approval_id=question)
        assert (await finished(workbench, question))["outcome"]["code"] == "GATES_FAILED"


async def test_a_rejection_or_a_new_commit_stops_the_gates(settings: Settings, repository: Path) -> None:
    async with project(settings, "sleep 600", served=True) as workbench:
        place = await given.worktree(workbench)
        commit(place)
        first = await ask(workbench)
        await at_work(workbench, first)
        commit(place, "more.txt")
        second = await ask(workbench)
        await at_work(workbench, second)
        assert (await approval(workbench, first))["status"] == "failed"
        await workbench.call("reject", approval_id=second)
        await given.until(lambda: not leftovers(repository))


async def test_the_next_server_runs_gates_that_a_stopped_one_left(settings: Settings, repository: Path) -> None:
    gate = UNTIL_GO.replace("0.05", "0.602")
    async with open_with_request(settings, gate, served=True) as (workbench, question):
        await at_work(workbench, question)
        assert any("sleep 0.602" in command for command in _commands())
        assert (await workbench.call("approve", approval_id=question))["outcome"]["state"] == "queued"
    assert not [command for command in _commands() if "sleep 0.602" in command]
    async with project(settings, gate, served=True) as workbench:
        await given.until((repository / ".aiswarm" / "gates" / str(question) / "scratch").exists)
        _let_go(repository, question)
        assert (await finished(workbench, question))["outcome"]["state"] == "integrated"


async def test_gates_can_stand_in_the_projects_file(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (repository / ".aiswarm").mkdir(exist_ok=True)
    (repository / ".aiswarm" / "settings.toml").write_text('integration_gates = ["pytest -q", "make lint"]\n')
    trust(repository, withheld(repository))
    assert Settings(project=repository).integration_gates == ("pytest -q", "make lint")
    monkeypatch.setenv("WORKBENCH_INTEGRATION_GATES", "one\n\ntwo three\n")
    assert Settings(project=repository).integration_gates == ("one", "two three")
    monkeypatch.setenv("WORKBENCH_INTEGRATION_GATES", '["four"]')
    assert Settings(project=repository).integration_gates == ("four",)
    assert Settings(project=repository, integration_gates=()).integration_gates == ()


@pytest.mark.parametrize("text", ["integration_gate = []", "port = ", "project = '/'", "\xff"])
def test_a_mistake_in_the_projects_file_is_reported(repository: Path, text: str) -> None:
    (repository / ".aiswarm").mkdir(exist_ok=True)
    (repository / ".aiswarm" / "settings.toml").write_bytes(text.encode("latin-1"))
    with pytest.raises(BadInput, match=r"BAD_SETTINGS.*settings\.toml"):
        Settings(project=repository)


async def test_no_gate_is_begun_beside_a_task_that_is_alone_on_the_machine(
    settings: Settings, repository: Path, tmp_path: Path
) -> None:
    async with project(settings, PASS, served=True) as workbench:
        commit(await given.worktree(workbench))
        ada = await admitted(workbench, "ada")
        timing = await given.task(workbench, needs={"exclusive": True})
        await given.claim(workbench, ada, timing)
        question = await ask(workbench)
        await workbench.duties["running gates"].perform(workbench._ctx)
        assert states(await approval(workbench, question)) == ["waiting"]
        async with workbench.feed.subscribe("gate.ended") as events:
            await given.done_by(workbench, ada, "complete_task", timing)
            assert (await anext(events)).data["state"] == "passed"
