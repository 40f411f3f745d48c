"""What is done is checked: a command must pass on the commit of an attempt before its task is completed."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests import given
from tests.conftest import Admit, Served, git, limited
from tests.worker.working import done, ran, working
from workbench.services.attempts import checks
from workbench.services.worktrees.trials import Trial
from workbench.state.settings import Settings
from workbench.worker import supervised, supervisor

pytestmark = [pytest.mark.anyio, pytest.mark.long, pytest.mark.timeout(90)]


@pytest.fixture(autouse=True)
def _short_polls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "WAIT_SECONDS", 0.2)
    monkeypatch.setattr(supervised, "OCCUPIED_SECONDS", 0.02)


@pytest.fixture
def settings(settings: Settings, on_disk: Path, request: pytest.FixtureRequest) -> Settings:
    changes = {"retry_base_seconds": 0.0, "max_retries": 2, "confinement_write": str(on_disk)}
    return settings.model_copy(update=changes | getattr(request, "param", {}))


def check_of(task: Mapping[str, Any], attempt: int = 1) -> dict[str, Any]:
    """The check of an attempt at a task."""
    return dict(task["attempts"][attempt - 1]["check"])


async def test_a_task_is_completed_when_its_check_passes_on_its_commit(served: Served, settle: Admit) -> None:
    ada = await settle("ada", "lab")
    measured = 'test "$(cat new.txt)" = good && echo \'{"metrics": {"accuracy": 0.5}}\' > "$WORKBENCH_RESULT"'
    said = '{"result": 1, "metrics": {"accuracy": 1.0}}'
    async with working(served, ada.token):
        task = await done(served, f"echo good > new.txt; echo '{said}' > $WORKBENCH_RESULT", check=measured)
    check = check_of(task)
    assert (task["evidence"], check["state"], check["tries"]) == ("checked", "passed", 1)
    assert check["metrics"] == {"accuracy": 0.5}, "what the worker says that it measured is another thing"
    assert check["commit"] == git("rev-parse", "wb/lab/main", cwd=served.workbench.settings.project)
    (event,) = (await served.workbench.call("list_events", kinds=["check.ended"]))["events"]
    assert event["data"]["commit"] == check["commit"]


async def test_who_claims_to_be_done_and_is_not_has_failed_and_the_next_one_is_told(
    served: Served, settle: Admit
) -> None:
    ada = await settle("ada", "lab")
    measured = 'echo \'{"metrics": {"n": 0}}\' > $WORKBENCH_RESULT'
    told = "grep -q 'nothing is [2]' $WORKBENCH_TASK_FILE && echo good > new.txt; true"
    async with working(served, ada.token):
        task = await done(
            served, told, check=f"test -e new.txt || {{ {measured}; echo nothing is $((1 + 1)); exit 3; }}"
        )
    first, second = task["attempts"]
    assert (first["outcome"], first["error_class"], second["outcome"]) == ("failed", "check", "completed")
    assert check_of(task)["metrics"] == {"n": 0}
    assert first["error_message"] == "The check failed with status 3.\nnothing is 2"
    assert (check_of(task)["state"], check_of(task, 2)["state"]) == ("failed", "passed")


async def test_a_check_that_passes_when_it_is_run_again_is_flaky(served: Served, settle: Admit, on_disk: Path) -> None:
    ada = await settle("ada", "lab")
    once = f"test -e {on_disk}/seen || {{ touch {on_disk}/seen; exit 1; }}"
    async with working(served, ada.token):
        task = await done(served, "echo 1 > new.txt", check={"run": once, "repeats": 1})
    assert (task["evidence"], check_of(task)["tries"]) == ("flaky", 2)


async def test_the_files_of_a_check_are_those_of_the_target_not_of_the_attempt(served: Served, settle: Admit) -> None:
    project = served.workbench.settings.project
    (project / "exam").mkdir()
    (project / "exam" / "run.sh").write_text("test ! -e exam/help && test $(sh answer) = 42\n")
    git("add", ".", cwd=project)
    git("commit", "-qm", "An exam", cwd=project)
    ada = await settle("ada", "lab")
    cheat = "echo true > exam/run.sh; touch exam/help; echo 'echo true > exam/run.sh; echo 41' > answer"
    async with working(served, ada.token):
        again = {"run": "sh exam/run.sh", "files": ["exam"], "repeats": 1}
        task = await ran(served, cheat, check=again, max_retries=0)
        assert (task["status"], check_of(task)["state"]) == ("failed", "failed"), "nor what a run made of them"
        honest = {"run": "sh exam/run.sh", "files": ["exam"]}
        assert (await done(served, "touch exam/help; echo echo 42 > answer", check=honest))["evidence"] == "checked"
        nowhere = await ran(served, "echo 1 > it", check={"run": "true", "files": ["test"]})
        assert (nowhere["status"], len(nowhere["attempts"])) == ("failed", 1), "no attempt can give the target files"
        assert nowhere["error_message"].startswith("The check cannot be run: CHECK_FILES_MISSING: ")
        assert "main, which has nothing at test. " in nowhere["error_message"]


@limited(setup="echo true > exam/run.sh")
async def test_the_setup_changes_no_file_of_a_check(served: Served, settle: Admit) -> None:
    project = served.workbench.settings.project
    (project / "exam").mkdir()
    (project / "exam" / "run.sh").write_text("exit 1\n")
    git("add", ".", cwd=project)
    git("commit", "-qm", "An exam", cwd=project)
    ada = await settle("ada", "lab")
    async with working(served, ada.token):
        task = await ran(served, "echo 1 > it", check={"run": "sh exam/run.sh", "files": ["exam"]}, max_retries=0)
    assert task["error_message"] == "The check failed with status 1."


async def test_a_check_that_hangs_floods_or_writes_what_it_should_not_has_failed(served: Served, settle: Admit) -> None:
    ada = await settle("ada", "lab")
    bad = (
        ({"run": "sleep 100", "seconds": 0.5}, "it took longer than 0.5 s"),
        ("head -c 100000000 /dev/zero", "it wrote more than 64 MB"),
        (
            'echo \'{"metrics": {"a": "b"}}\' > $WORKBENCH_RESULT',
            "has passed, but not with its result.\nThe result file",
        ),
        ('echo \'{"metrics": {"\\ud800": 1}}\' > $WORKBENCH_RESULT', "half of a character"),
        ("echo '[' > $WORKBENCH_RESULT", "The result file cannot be used"),
        ("ln -s /etc/passwd $WORKBENCH_RESULT", "The result file cannot be used"),
        ("no-such-program", "not found"),
        ("kill -9 $$", "was ended by the signal 9"),
    )
    async with working(served, ada.token):
        for check, says in bad:
            task = await ran(served, "echo 1 >> new.txt", check=check, max_retries=0)
            assert task["status"] == "failed"
            assert says in task["error_message"], task["error_message"]


async def test_what_changed_nothing_is_marked_and_fails_only_where_that_was_demanded(
    served: Served, settle: Admit
) -> None:
    ada = await settle("ada", "lab")
    async with working(served, ada.token):
        assert (await done(served, "true"))["evidence"] == "said"
        failed = await ran(served, "true", done_when="changed", max_retries=0)
        assert (failed["status"], failed["attempts"][0]["error_class"]) == ("failed", "unchanged")
        assert (await done(served, "echo 1 > new.txt", done_when="changed"))["evidence"] == "changed"


async def test_a_check_that_was_cut_off_by_a_fault_is_run_again(
    served: Served, settle: Admit, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada, metrics, faults = await settle("ada", "lab"), checks._metrics, [RuntimeError("a fault of the server")]

    def once(trial: Trial) -> dict[str, float] | None:
        if faults:
            raise faults.pop()
        return metrics(trial)

    monkeypatch.setattr(checks, "_metrics", once)
    async with working(served, ada.token):
        assert (await done(served, "echo 1 > new.txt", check="true"))["evidence"] == "checked"
    assert faults == []


async def test_a_check_ends_with_its_attempt_and_a_task_that_waits_for_another_now_is_put_back(
    served: Served, settle: Admit, on_disk: Path
) -> None:
    workbench, ada = served.workbench, await settle("ada", "lab")
    waiting = f"until test -e {on_disk}/go; do sleep 0.05; done"
    cancelled, put_back = [await given.task(workbench, check=waiting, target_worktree="lab") for _ in range(2)]

    async def now(task_id: int) -> dict[str, Any] | None:
        return dict(await given.task_now(workbench, task_id))["attempts"][0]["check"]

    async def is_running(task_id: int) -> bool:
        return ((await now(task_id)) or {}).get("state") == "running"

    for task_id in (cancelled, put_back):
        await given.claim(workbench, ada, task_id)
        await given.done_by(workbench, ada, "complete_task", task_id)
    for task_id in (cancelled, put_back):
        await given.until(partial(is_running, task_id))
    await workbench.call("cancel_task", task_id=cancelled)
    await workbench.call("add_dependency", task_id=put_back, depends_on=await given.task(workbench))

    async def is_forgotten() -> bool:
        return await now(cancelled) is None

    await given.until(is_forgotten)
    (on_disk / "go").touch()
    task = await given.reached(workbench, put_back, "pending", "completed", "failed")
    assert (task["status"], task["attempts"][0]["outcome"], task["retry_count"]) == ("pending", "released", 0)


async def test_an_agent_without_a_supervisor_is_checked_too(served: Served, settle: Admit) -> None:
    workbench = served.workbench
    ada = await settle("ada", "lab")
    for name, state, status in (("true", "passed", "completed"), ("exit 1", "failed", "failed")):
        task_id = await given.task(workbench, check=name, target_worktree="lab", max_retries=0)
        await given.claim(workbench, ada, task_id)
        finish = await given.done_by(workbench, ada, "complete_task", task_id, result_data={"a": 1})
        assert (finish["status"], finish["takes_effect"]) == ("in_progress", "when its check has passed")
        task = await given.reached(workbench, task_id, "completed", "failed")
        assert (task["status"], check_of(task)["state"]) == (status, state)
    assert task["attempts"][0]["error_class"] == "check"


async def test_a_task_that_is_to_be_checked_has_a_check(served: Served) -> None:
    error = await given.refuses("NO_CHECK", given.task(served.workbench, done_when="checked"))
    assert "give the command" in error.message
    await served.workbench.call("save_persona", persona_id="careful", text="---\ncheck: 'true'\n---\nBe careful.")
    task = await given.whole_task(served.workbench, persona_id="careful", done_when="checked")
    assert task["check"] is None, "it is its persona's"
    plan = "plan: p\ntasks:\n  - {name: a, title: A, persona: careful, done_when: checked}\n"
    assert (await served.workbench.call("create_plan", text=plan, dry_run=True))["changed"]
    for extra in ({"dry_run": True}, {}):  # what it would refuse, a dry run refuses
        text = plan.replace("careful", "implementer")
        error = await given.refuses("NO_CHECK", served.workbench.call("create_plan", text=text, **extra))
        assert error.message.startswith("Line 3, a: A task that is done when it is checked needs a check")
    await served.workbench.call("create_plan", text=plan.replace(", done_when: checked", ""))
    bare = plan.replace("careful", "implementer")
    await given.refuses("NO_CHECK", served.workbench.call("create_plan", text=bare, update=True))


@pytest.mark.parametrize("is_supervised", [True, False])
async def test_a_task_fails_for_good_whose_persona_has_lost_the_check_that_was_demanded(
    is_supervised: bool, served: Served, settle: Admit
) -> None:
    workbench = served.workbench
    await workbench.call("save_persona", persona_id="careful", text="---\ncheck: 'true'\n---\nBe careful.")
    ada = await settle("ada", "lab", persona_id="careful")
    terms = {"persona_id": "careful", "done_when": "checked", "target_worktree": "lab"}
    task_id = await given.task(workbench, run="echo 1 > new.txt", **terms)
    await workbench.call("save_persona", persona_id="careful", text="---\n---\nBe careful.")
    if is_supervised:
        async with working(served, ada.token):
            task = await given.reached(workbench, task_id, "completed", "failed")
    else:
        await given.claim(workbench, ada, task_id)
        await given.done_by(workbench, ada, "complete_task", task_id)
        task = await given.task_now(workbench, task_id)
    assert (task["status"], task["attempts"][0]["error_class"], task["retry_count"]) == ("failed", "check", 0)
    assert "its persona has no check any more" in task["error_message"]
