"""A run is started once for each key, ends once, and knows what it was made of."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import git
from tests.services.runs.conftest import Lab
from workbench.app import Workbench
from workbench.errors import BadInput, Conflict, NotFound
from workbench.process import process_identity
from workbench.state.settings import Settings

pytestmark = pytest.mark.anyio

HERE = process_identity()


def gone() -> str:
    """The name of a process that has ended."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        name = process_identity(process.pid)
        process.communicate()
    return name


async def test_a_run_records_its_parameters_commit_and_environment(lab: Lab, settings: Settings) -> None:
    about = {"parameters": {"lr": 0.1, "layers": [1, 2]}, "environment": {"python": "3.11"}, "tags": ["b", "a"]}
    made = await lab.start("first", notebook="train.ipynb", output="out/train.ipynb", **about)
    assert (made["id"], made["already"], made["state"], made["tries"]) == (1, False, "running", 1)
    run = await lab.call("get_run", run_id=1)
    assert {name: run[name] for name in about} == about | {"tags": ["a", "b"]}
    assert (run["name"], run["notebook"], run["output"]) == ("first", "train.ipynb", "out/train.ipynb")
    assert (run["git_commit"], run["git_dirty"]) == (git("rev-parse", "HEAD", cwd=settings.project), False)
    assert (run["created_by"], run["series"], run["files"], run["metrics"]) == ("operator", [], [], {})


async def test_changed_files_and_a_notebook_that_git_does_not_track_make_the_commit_dirty(
    lab: Lab, settings: Settings
) -> None:
    (settings.project / "[a] b.ipynb").write_text("{}")
    assert (await lab.start(notebook="[a] b.ipynb"))["git_dirty"] is True
    (settings.project / "loop").symlink_to("loop")
    for name in ("../elsewhere.ipynb", "n" * 300 + ".ipynb", "loop/x.ipynb"):  # outside, or no file can be called so
        assert (await lab.start(notebook=name))["git_dirty"] is False
    git("add", "--", ":(literal)[a] b.ipynb", cwd=settings.project)
    git("commit", "-qm", "The notebook", cwd=settings.project)
    assert (await lab.start(notebook="[a] b.ipynb"))["git_dirty"] is False
    (settings.project / "README.md").write_text("changed\n")
    assert (await lab.start())["git_dirty"] is True


async def test_a_directory_without_a_repository_has_no_commit(tmp_path: Path, database: dict[str, Any]) -> None:
    async with Workbench.open(Settings(project=tmp_path, port=0, **database)) as workbench:
        run = await workbench.call("start_run", name="trial")
        assert (run["git_commit"], run["git_dirty"]) == (None, None)


async def test_the_hashes_of_definitions_are_recorded(lab: Lab, settings: Settings) -> None:
    path = settings.home / "agents" / "helper" / "agent.yaml"
    path.parent.mkdir(parents=True)
    path.write_text("metadata:\n  id: helper\n  name: Helper\nsettings:\n  model: test:echo\n")
    made = await lab.start(definitions=["Helper"])
    first = (await lab.call("get_run", run_id=made["id"]))["definitions"]
    path.write_text(path.read_text().replace("echo", "other"))
    second = (await lab.call("get_run", run_id=(await lab.start(definitions=["./agents/helper"]))["id"]))["definitions"]
    assert list(first) == list(second) == ["Helper"]
    assert first != second


async def test_a_completed_key_is_returned_as_it_is(lab: Lab) -> None:
    made = await lab.start(key="k", parameters={"a": 1})
    await lab.record(made["id"], {"loss": 0.5})
    await lab.call("end_run", run_id=made["id"])
    again = await lab.start(key="k", parameters={"a": 2})
    assert (again["already"], again["id"], again["tries"]) == (True, made["id"], 1)
    assert (again["parameters"], again["metrics"]) == ({"a": 1}, {"loss": 0.5})
    assert len(await lab.events("run.started")) == 1


@pytest.mark.parametrize("state", ["failed", "cancelled", "lost"])
async def test_a_key_that_did_not_complete_starts_again_without_its_old_values(
    lab: Lab, settings: Settings, state: str
) -> None:
    made = await lab.start(key="k")
    (settings.project / "plot.txt").write_text("x")
    await lab.call("add_run_artifact", run_id=made["id"], path="plot.txt")
    await lab.record(made["id"], {"loss": [0.5, 0.4]})
    await lab.call("end_run", run_id=made["id"], state=state, error_code="WRONG", error="It went wrong.")
    again = await lab.start(key="k", tags=["second"])
    assert (again["already"], again["id"], again["tries"], again["state"]) == (False, made["id"], 2, "running")
    assert (again["metrics"], again["artifacts"], again["error"], again["ended_at"]) == ({}, 0, None, None)
    for late in (lab.record(made["id"], {"loss": 9}, tries=1), lab.call("end_run", run_id=made["id"], tries=1)):
        with pytest.raises(Conflict, match="RUN_RESTARTED"):
            await late
    await lab.record(made["id"], {"loss": 0.3}, tries=2)
    assert await lab.series(made["id"]) == {"loss": [[0, 0.3]]}


async def test_a_running_key_is_started_again_only_by_its_own_process_unless_that_has_ended(lab: Lab) -> None:
    made = await lab.start(key="k", process=HERE)
    repeated = await lab.start(key="k", process=HERE)
    assert (repeated["id"], repeated["tries"], repeated["already"]) == (made["id"], 1, False)
    for other in (None, "elsewhere:[4026531836]/1:1.0"):
        with pytest.raises(Conflict, match="RUN_RUNNING"):
            await lab.start(key="k", process=other)
    assert len(await lab.events("run.started")) == 1
    await lab.start(key="of one that ended", process=gone())
    again = await lab.start(key="of one that ended", process=HERE)
    assert (again["tries"], again["state"]) == (2, "running")
    kinds = [(event["kind"], event["data"].get("state")) for event in await lab.events()]
    assert kinds[1:] == [("run.started", None), ("run.ended", "lost"), ("run.started", None)]


async def test_a_run_whose_process_has_ended_is_shown_as_lost(lab: Lab) -> None:
    lost = await lab.start(process=gone())
    kept = [await lab.start(process=name) for name in (HERE, None, "elsewhere:[1]/1:1.0", "what is this")]
    assert await lab.list(state="lost") == [lost["id"]]
    assert sorted(await lab.list(state="running")) == [run["id"] for run in kept]
    run = await lab.call("get_run", run_id=lost["id"])
    assert (run["state"], run["error_code"]) == ("lost", "RUN_LOST")
    assert run["ended_at"] is not None


async def test_the_end_of_a_run_is_recorded_once_unless_the_run_was_lost(lab: Lab) -> None:
    made = (await lab.start())["id"]
    ended = await lab.call("end_run", run_id=made, state="failed", error_code="E", error="why", output="a.ipynb")
    assert (ended["state"], ended["error_code"], ended["error"]) == ("failed", "E", "why")
    assert ended == await lab.call("end_run", run_id=made, state="failed", error="another")
    with pytest.raises(Conflict, match="RUN_ENDED"):
        await lab.call("end_run", run_id=made)
    lost = (await lab.start(process=gone()))["id"]
    await lab.list()
    assert (await lab.call("end_run", run_id=lost))["state"] == "completed"
    assert [event["data"]["state"] for event in await lab.events("run.ended")] == ["failed", "lost", "completed"]


async def test_a_run_with_missing_references_or_too_large_parameters_is_refused(lab: Lab) -> None:
    with pytest.raises(NotFound, match="SWEEP_NOT_FOUND"):
        await lab.start(sweep_id=3)
    with pytest.raises(NotFound, match="SESSION_NOT_FOUND"):
        await lab.start(session_id="nowhere")
    with pytest.raises(NotFound, match="AGENT_NOT_FOUND"):
        await lab.start(definitions=["nobody"])
    with pytest.raises(BadInput, match="RUN_TOO_LARGE"):
        await lab.start(parameters={"text": "x" * 300_000})
    with pytest.raises(NotFound, match="RUN_NOT_FOUND"):
        await lab.call("end_run", run_id=1)
    assert await lab.list() == []
