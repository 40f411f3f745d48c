"""The contract with a task's command: its input, its answer, and that nothing of it is left behind."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.conftest import ended
from tests.worker.runner import Run, Runner
from workbench.confinement import BoxLimits, abilities
from workbench.drivers import AgentSetup
from workbench.rules.profile import Profile, parse
from workbench.rules.secrets.forms import MASK
from workbench.state.settings import shipped
from workbench.worker import attempt
from workbench.worker.attempt import NOT_STARTED, AttemptOutcome

pytestmark = [pytest.mark.anyio, pytest.mark.long, pytest.mark.timeout(60)]


# What it gets


@pytest.mark.parametrize("description", ["", "é\n" * 100, "x" * 5_000_000])
async def test_the_task_comes_as_json_on_standard_input(run: Runner, description: str) -> None:
    assert (await run("cat > got.json", description)).ok
    got = json.loads((run.place / "got.json").read_text("utf-8"))
    assert got == {"id": 7, "attempt": 2, "title": "t", "description": description, "run": "cat > got.json"}


async def test_a_command_need_not_read_its_input(run: Runner) -> None:
    assert (await run("exec true", "x" * 5_000_000)).ok


async def test_the_environment_names_the_task_attempt_result_persona_and_added_variables(run: Runner) -> None:
    await run("env; cat $WORKBENCH_PERSONA", COLOUR="blue")
    env = run.env
    assert (env["WORKBENCH_TASK_ID"], env["WORKBENCH_ATTEMPT"], env["COLOUR"]) == ("7", "2", "blue")
    assert (env["WORKBENCH_AGENT"], env["WORKBENCH_PROJECT"]) == ("ada", str(run.place))
    assert json.loads(env["WORKBENCH_TASK"])["title"] == "t"
    assert run.lines[-1] == "You are thorough."
    assert Path(env["WORKBENCH_RESULT"]).parent == Path(env["HOME"]) == Path(env["TMPDIR"])
    assert list(run.scratch.iterdir()) == [], "the scratch directory is gone"


async def test_a_task_that_is_too_long_for_a_variable_is_in_a_file(run: Runner) -> None:
    assert (await run("cp $WORKBENCH_TASK_FILE got.json; echo ${WORKBENCH_TASK-none}", "x" * 200_000)).ok
    assert run.lines == ["none"]
    assert len(json.loads((run.place / "got.json").read_text())["description"]) == 200_000


@pytest.mark.parametrize(
    ("what", "lines"),
    [
        ("pwd; echo $((6 * 7)) | cat", ["{place}", "42"]),
        (["echo", "$((6 * 7))", "a b"], ["$((6 * 7)) a b"]),
        (["pwd"], ["{place}"]),
    ],
)
async def test_a_command_runs_in_its_directory_and_in_a_shell_if_it_is_a_string(
    run: Runner, what: Run, lines: list[str]
) -> None:
    assert (await run(what)).ok
    assert run.lines == [line.format(place=run.place) for line in lines]


# How it ends


@pytest.mark.parametrize(
    ("what", "error", "named"),
    [
        ("exit 1", "The command ended with status 1.", "exit status 1"),
        ("exit 75", "The command ended with status 75 and asked to be tried again.", "exit status 75"),
        ("kill -9 $$", "The command ended by the signal SIGKILL.", "signal 9"),
        ("echo out; echo err >&2; exit 3", "The command ended with status 3: err\nout\nerr", "exit status 3"),
        ("exec >&- 2>&-; sleep 0.05; exit 4", "The command ended with status 4.", "exit status 4"),
        (["/no/such/program"], "The command could not be started: /no/such/program: there is no such", NOT_STARTED),
        (["/etc"], "The command could not be started: /etc: Permission denied.", NOT_STARTED),
        ("no-such-program", "The command could not be started: /bin/sh: 1: no-such-program: ", NOT_STARTED),
        ("echo a\0b", "The command could not be started: embedded null byte", NOT_STARTED),
        (["echo", "x" * 4_000_000], "The command could not be started: [Errno 7]", NOT_STARTED),
        ("printf 'a\\0b' >&2; exit 1", "The command ended with status 1: a\N{REPLACEMENT CHARACTER}b", "exit status 1"),
        (f"{sys.executable} -c 'raise KeyError(1)'", "The command ended with status 1: KeyError: 1", "KeyError"),
        (f"{sys.executable} -c 'raise StopIteration(1)'", "The command ended with status 1: StopIt", "StopIteration"),
        (f"{sys.executable} -c 'raise SystemExit(4)'", "The command ended with status 4.", "exit status 4"),
        (None, "This task has no command", None),
        ("", "This task has no command", None),
        ([], "This task has no command", None),
    ],
)
async def test_a_failure_states_and_classifies_how_the_command_ended(
    run: Runner, what: Run, error: str, named: str | None
) -> None:
    outcome = await run(what)
    assert (outcome.ok, outcome.retryable) == (False, named not in (NOT_STARTED, None))
    assert outcome.error_class == named
    assert outcome.error.startswith(error)


async def test_a_missing_directory_fails_the_attempt(run: Runner) -> None:
    run.place.rmdir()
    outcome = await run("true")
    assert (outcome.ok, outcome.retryable) == (False, False)


async def test_an_error_carries_the_last_lines_only(run: Runner) -> None:
    outcome = await run("seq 100; exit 1")
    assert outcome.error.splitlines() == ["The command ended with status 1: 100", *map(str, range(86, 101))]
    assert run.lines == [str(n) for n in range(1, 101)]


# What it leaves behind


@pytest.mark.parametrize("status", [0, 1])
async def test_background_processes_of_a_command_end_with_it(run: Runner, status: int) -> None:
    outcome = await run(f"sleep 600 & echo $!; (sleep 600; echo late) & exit {status}")
    assert outcome.ok == (status == 0)
    await ended(int(run.lines[0]))
    assert len(run.lines) == 1


LEAVE = {
    "in a session of its own": "setsid sh -c 'echo $$; exec sleep 600' & sleep 0.3",
    "twice forked": "(setsid sh -c 'sleep 600 & echo $!' &) ; sleep 0.3",
    "without environment": "setsid env -i sh -c 'echo $$; exec sleep 600' & sleep 0.3",
    "deaf": "trap '' TERM HUP; setsid sh -c 'echo $$; while :; do sleep 1; done' & sleep 0.3",
}


@pytest.mark.parametrize("how", LEAVE)
async def test_a_process_that_left_the_group_ends_with_the_command(run: Runner, how: str) -> None:
    assert (await run.alone(LEAVE[how])).ok
    await ended(int(run.lines[0]))


async def test_a_process_that_left_the_group_and_is_not_adopted_is_known_by_its_mark(run: Runner) -> None:
    assert (await run(LEAVE["twice forked"])).ok
    await ended(int(run.lines[0]))


async def cancelled(run: Runner, command: str) -> None:
    """Cancel a command that has said something."""
    running = asyncio.create_task(run(command))
    await run.has_output.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_a_cancelled_command_may_clean_up(run: Runner) -> None:
    await cancelled(run, "trap 'echo bye > bye; exit' TERM; echo ready; sleep 600 & wait")
    assert (run.place / "bye").read_text() == "bye\n"


async def test_a_cancelled_command_that_does_not_end_is_killed_with_its_children(run: Runner) -> None:
    run.grace = 0.05
    await cancelled(run, "trap '' TERM; sleep 600 & echo $$ $!; wait; sleep 600")
    await ended(*map(int, run.lines[0].split()))


@pytest.mark.parametrize("ends", ["true", "false", "exec sleep 600"])
async def test_an_attempt_leaves_no_scratch_directory_and_no_open_file(run: Runner, ends: str) -> None:
    count: Callable[[], int] = psutil.Process().num_fds
    before = count()
    running: asyncio.Task[Any] = asyncio.create_task(run(f"echo ready; {ends}"))
    await run.has_output.wait()
    if "sleep" in ends:
        running.cancel()
    await asyncio.wait({running})
    assert list(run.scratch.iterdir()) == []
    assert count() == before


async def test_a_scratch_directory_that_forbids_to_be_emptied_is_emptied(run: Runner) -> None:
    assert (await run("mkdir -p $HOME/a/b; touch $HOME/a/b/c; ln -s / $HOME/a/root; chmod 0 $HOME/a/b $HOME/a")).ok
    assert list(run.scratch.iterdir()) == []
    assert Path("/etc").is_dir()


async def test_a_deeply_nested_scratch_directory_is_removed(
    run: Runner,
) -> None:
    nest = "import os\nfor _ in range(3_000): os.mkdir('deep'); os.chdir('deep')"
    assert (await run(f'cd $HOME && {sys.executable} -c "{nest}"')).ok
    assert list(run.scratch.iterdir()) == []


async def test_files_left_by_a_killed_supervisor_do_not_prevent_the_next_attempt(run: Runner) -> None:
    (run.scratch / "7-2").mkdir()
    (run.scratch / "7-2" / "result.json").write_text('{"result": "of another attempt"}')
    assert await run("true") == AttemptOutcome(True)
    assert list(run.scratch.iterdir()) == []


# What it may use

FILL = "import os, time; os.fork(); os.fork(); x = b'x' * 60_000_000; time.sleep(600)"


@pytest.mark.parametrize(
    ("limits", "what", "why"),
    [
        (BoxLimits(wall_seconds=0.3), "sleep 600", "it took longer than 0.3 s"),
        (BoxLimits(cpu_seconds=0.5), "while :; do :; done", "s of processor time, more than 0.5 s"),
        (BoxLimits(cpu_seconds=0.5), "setsid sh -c 'while :; do :; done' & sleep 600", "s of processor time"),
        (BoxLimits(memory_bytes=100_000_000), [sys.executable, "-c", FILL], "bytes of memory, more than 100,000,000"),
    ],
)
async def test_a_command_that_exceeds_a_limit_is_ended_with_all_it_started(
    run: Runner, limits: BoxLimits, what: Run, why: str
) -> None:
    run.limits = limits
    outcome = await run.alone(what)
    assert (outcome.ok, outcome.retryable, outcome.error_class) == (False, True, "LIMIT")
    assert outcome.error.startswith("The command was ended: ")
    assert why in outcome.error


# Other profiles


def profile(**more: Any) -> Profile:
    """A profile of one's own."""
    return Profile(name="mine", summary="Mine.", **more)


async def test_a_template_is_filled_in_once_and_other_braces_stay(run: Runner) -> None:
    run.profile = profile(command=["echo", "{task_id}/{attempt} {title} ${x} {description} {}"], environment={"A": "b"})
    assert (await run(None, "{token} {task_id}")).ok
    assert run.lines == ["7/2 t ${x} {token} {task_id} {}"]


async def test_a_prompt_comes_on_standard_input(run: Runner) -> None:
    run.profile = profile(command=["cat"], stdin="prompt", prompt="{persona}\nDo: {description}", answer="output")
    assert await run(None, "this") == AttemptOutcome(True, {"answer": "You are thorough.\nDo: this"})


async def test_only_profiles_that_talk_to_the_server_get_the_token(run: Runner) -> None:
    run.profile = profile(command=["sh", "-c", "env; cat $HOME/*.*"])
    assert (await run(None)).ok
    assert "wba_secret" not in "\n".join(run.lines)
    files = {".cli/config.toml": 'token = "{token}"', ".cli/a.json": '["{description}"]'}
    shown = 'cat "{mcp_config}" $HOME/.cli/config.toml $HOME/.cli/a.json; echo; stat -c %a {mcp_config} $HOME/.cli'
    run.profile = profile(command=["sh", "-c", shown], token=True, files=files)
    run.lines.clear()
    assert (await run(None, 'say "hi"\n')).ok
    config, *modes = "".join(run.lines[:-2]), *run.lines[-2:]
    assert '{"Authorization": "Bearer ••••••"}' in config
    assert config.endswith('token = "••••••"["say \\"hi\\"\\n"]')
    assert modes == ["600", "700"]


async def test_without_a_result_file_the_answer_file_is_the_result(run: Runner) -> None:
    run.profile = profile(command=["sh", "-c", "echo noise; echo Done. > {scratch}/last.md"], answer_file="last.md")
    assert await run(None) == AttemptOutcome(True, {"answer": "Done."})


async def test_files_of_the_home_directory_are_copied_if_they_are_there(
    run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".cli").mkdir()
    (tmp_path / ".cli" / "login").write_text("secret")
    monkeypatch.setenv("HOME", str(tmp_path))
    run.profile = profile(command=["sh", "-c", "ls -A $HOME/.cli; cat $HOME/.cli/login"], copies=[".cli/login", ".no"])
    assert (await run(None)).ok
    assert run.lines == ["login", "secret"]


PYTHON = parse("python", shipped("data", "profiles", "python.yaml").read_text("utf-8"))
MODULE = """
import os
from datetime import date
from decimal import Decimal

def whole(task):
    return {"id": task["id"], "here": os.getcwd()}

async def later(task):
    return [task["title"]]

def nothing(task):
    print("worked")

def again(task):
    raise SystemExit(75)

def wrong(task):
    raise ValueError("no such penguin")

class Kinds:
    @staticmethod
    def inner(task):
        return {"loss": float("nan"), "cost": Decimal("0.5"), "when": {date(2026, 1, 2)}}

def strange(task):
    return {"model": [object()]}
"""


@pytest.mark.parametrize(
    ("function", "result", "error"),
    [
        ("work:whole", {"id": 7, "here": "{place}"}, ""),
        ("pack.work:later", ["t"], ""),
        ("work:nothing", None, ""),
        ("work:again", None, "asked to be tried again"),
        ("work:wrong", None, "ValueError: no such penguin"),
        ("work:missing", None, "AttributeError"),
        ("nowhere:f", None, "ModuleNotFoundError"),
        ("work:Kinds.inner", {"loss": "NaN", "cost": 0.5, "when": ["2026-01-02"]}, ""),
        ("work:strange", None, "NotPlain: result.model[0] is object: JSON has no form of it"),
    ],
)
async def test_a_function_of_the_project_is_called_with_the_task(
    run: Runner, function: str, result: Any, error: str
) -> None:
    (run.place / "work.py").write_text(MODULE)
    (run.place / "src" / "pack").mkdir(parents=True)
    (run.place / "src" / "pack" / "work.py").write_text(MODULE)
    run.profile, run.function = PYTHON, function
    outcome = await run(None)
    assert outcome.ok == (not error)
    assert error in outcome.error
    if isinstance(result, dict) and "here" in result:
        result["here"] = str(run.place)
    assert outcome.result == result


# What its box refuses


async def test_a_command_that_its_box_refused_a_path_is_told_which_one_and_the_setting(
    run: Runner, tmp_path: Path
) -> None:
    if not abilities().abi:
        pytest.skip(abilities().summary)
    data = tmp_path / "data.csv"
    data.write_text("1,2,3")
    run.confined = True
    outcome = await run(f"cat {data}; exit 3")
    first, _, why = outcome.error.splitlines()
    assert first == f"The command ended with status 3: cat: {data}: Permission denied"
    assert why.startswith(f"- {data} cannot be read, by its rules for files: the setting confinement_read opens it")
    assert (await run("echo Permission denied; exit 3")).error == "The command ended with status 3: Permission denied"
    run.confined = False
    assert (await run(f"echo {data}: Permission denied; exit 3")).error.endswith("Permission denied")


async def test_a_command_that_its_box_refused_a_host_is_told_which_one_and_the_setting(run: Runner) -> None:
    if not abilities().abi:
        pytest.skip(abilities().summary)
    run.confined, run.hosts = True, ("good.example",)
    outcome = await run("curl -sSf http://evil.test/ > /dev/null")
    assert "- HOST_NOT_ALLOWED: evil.test" in outcome.error
    assert "by its rules for hosts: the setting network opens it, with" in outcome.error
    assert "confinement_connect" not in outcome.error
    assert (await run("echo done")).ok


async def test_a_secret_at_the_cut_of_a_long_output_is_masked(run: Runner) -> None:
    secret, rest = f"sk-{'s' * 60}", attempt.OUTPUT_LIMIT - 30  # the limit cuts through the secret
    run.definition = AgentSetup(id="d", name="d", hash="h", system_prompt="", files={}, secrets=(secret,))
    outcome = await run(f"printf %s {secret}; head -c {rest} /dev/zero | tr '\\0' x; exit 1")
    assert "x" in outcome.error
    assert "ssss" not in outcome.error + "".join(run.lines)


async def test_a_login_that_cannot_be_read_fails_the_attempt_with_why(
    run: Runner, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".cli.json").symlink_to("/proc/self/mem")  # even root reads nothing there
    run.profile = profile(command=["true"], copies=[".cli.json"])
    ended = await run(None)
    assert (ended.ok, ended.retryable, ended.error_class) == (False, False, NOT_STARTED)
    assert ended.error.startswith("The command could not be started: ")


async def test_secrets_given_to_a_command_are_masked_in_its_output_and_result(
    run: Runner, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PASSED_KEY", passed := "hunter2-of-the-person")
    login, given, opaque = "sk-ant-oat01-abcdefghijklmnop", "correct horse", "aB3dE5fG7hJ9kL1mN3pQ"
    (tmp_path / ".cli.json").write_text(json.dumps({"claudeAiOauth": {"accessToken": login}, "plan": "max"}))
    wrote = '{"result": {"env": "%s"}, "artifacts": ["%s"]}'
    shown = f'env; cat $HOME/.cli.json; printf \'{wrote}\' "$OPAQUE" "$DB_PASSWORD" > {{result_file}}; exit $STATUS'
    more = {"token": True, "passes": ["PASSED_KEY"], "copies": [".cli.json"]}
    run.profile = profile(command=["sh", "-c", f"{shown} # {{token}}"], **more)
    run.secret_variables = ("CITY",)
    variables = {"DB_PASSWORD": given, "OPAQUE": opaque, "LEVEL": "thorough", "CITY": "Reykjavik"}
    ended = await run(None, **variables, STATUS="0")
    failed = await run(None, **variables, STATUS="3")
    said = f"{ended} {failed} {run.lines}"
    assert [
        one for one in (passed, login, given, opaque, "Reykjavik", "wba_of_the_attempt", "wba_secret") if one in said
    ] == []
    assert (ended.result, ended.artifacts) == ({"env": MASK}, (MASK,))
    assert "LEVEL=thorough" in run.lines
