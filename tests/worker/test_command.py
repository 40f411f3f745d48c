"""The contract with a task's command: what it is given, what it may answer, and that nothing of it stays."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.conftest import ended
from workbench.worker import command
from workbench.worker.command import Outcome, run_command

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(30)]

Run = str | list[str] | None


@dataclass
class Runner:
    """Runs commands in a directory and keeps what they say."""

    place: Path
    lines: list[str] = field(default_factory=list)
    heard: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self, run: Run, description: str = "", **extra: str) -> Outcome:
        task = {"id": 7, "attempt": 2, "title": "t", "description": description, "run": run}
        return await run_command(task, self.place, self.hear, extra)

    def hear(self, line: str) -> None:
        self.lines.append(line)
        self.heard.set()


@pytest.fixture
def run(tmp_path: Path) -> Runner:
    """`await run("echo hi")`, then look at `run.lines`."""
    return Runner(tmp_path)


# What it is given


@pytest.mark.parametrize("description", ["", "é\n" * 100, "x" * 5_000_000])
async def test_the_task_comes_as_json_on_standard_input(run: Runner, tmp_path: Path, description: str) -> None:
    assert (await run("cat > got.json", description)).ok
    got = json.loads((tmp_path / "got.json").read_text("utf-8"))
    assert got == {"id": 7, "attempt": 2, "title": "t", "description": description, "run": "cat > got.json"}


async def test_a_command_need_not_read_its_input(run: Runner) -> None:
    assert (await run("exec true", "x" * 5_000_000)).ok


async def test_the_environment_names_task_attempt_and_result_and_what_was_added(run: Runner) -> None:
    await run("env", GIT_AUTHOR_NAME="ada")
    env = dict(line.partition("=")[::2] for line in run.lines)
    assert (env["WORKBENCH_TASK_ID"], env["WORKBENCH_ATTEMPT"], env["GIT_AUTHOR_NAME"]) == ("7", "2", "ada")
    assert env["PATH"] == os.environ["PATH"]
    answer = Path(env["WORKBENCH_RESULT"])
    assert answer.name == "result.json"
    assert not answer.parent.exists(), "the scratch directory is gone"


@pytest.mark.parametrize(
    ("what", "lines"),
    [
        ("pwd; echo $((6 * 7)) | cat", ["{place}", "42"]),
        (["echo", "$((6 * 7))", "a b"], ["$((6 * 7)) a b"]),
        (["pwd"], ["{place}"]),
    ],
)
async def test_a_string_goes_to_the_shell_and_a_list_is_executed_in_the_place(
    run: Runner, what: Run, lines: list[str]
) -> None:
    assert (await run(what)).ok
    assert run.lines == [line.format(place=run.place) for line in lines]


# How it ends


@pytest.mark.parametrize(
    ("what", "error", "retryable"),
    [
        ("exit 1", "The command ended with status 1.", True),
        ("exit 75", "The command ended with status 75 and asked to be tried again.", True),
        ("kill -9 $$", "The command ended with status -9.", True),
        ("echo out; echo err >&2; exit 3", "The command ended with status 3.\nout\nerr", True),
        ("exec >&- 2>&-; sleep 0.05; exit 4", "The command ended with status 4.", True),
        (["/no/such/program"], "The command could not be started: [Errno 2]", False),
        (["/etc"], "The command could not be started: [Errno 13]", False),
        ("echo a\0b", "The command could not be started: embedded null byte", False),
        (["echo", "x" * 4_000_000], "The command could not be started: [Errno 7]", False),
        (None, "This task has no command", False),
        ("", "This task has no command", False),
        ([], "This task has no command", False),
    ],
)
async def test_a_failure_says_how_it_ended_and_whether_to_try_again(
    run: Runner, what: Run, error: str, retryable: bool
) -> None:
    outcome = await run(what)
    assert (outcome.ok, outcome.retryable) == (False, retryable)
    assert outcome.error.startswith(error)


async def test_a_place_that_is_gone_is_no_crash(tmp_path: Path) -> None:
    outcome = await Runner(tmp_path / "gone")("true")
    assert (outcome.ok, outcome.retryable) == (False, False)


async def test_an_error_carries_the_last_lines_only(run: Runner) -> None:
    outcome = await run("seq 100; exit 1")
    assert outcome.error.splitlines() == ["The command ended with status 1.", *map(str, range(86, 101))]
    assert run.lines == [str(n) for n in range(1, 101)]


# What it says


@pytest.mark.parametrize(
    ("what", "lines"),
    [
        (r"printf 'a\r\nb\nc'", ["a", "b", "c"]),
        (r"printf '\303\251 \377 \303'", ["é \N{REPLACEMENT CHARACTER} \N{REPLACEMENT CHARACTER}"]),
        (r"echo one; echo two >&2; echo three", ["one", "two", "three"]),
        (r"printf '\n\n'", ["", ""]),
        (r"printf 'a\000b\n'", ["a\0b"]),
    ],
)
async def test_each_line_of_output_is_told_as_text(run: Runner, what: str, lines: list[str]) -> None:
    assert (await run(what)).ok
    assert run.lines == lines


@pytest.mark.parametrize("size", [1_000, 1_500_000, 5_000_000])
async def test_a_line_too_long_to_keep_does_not_stop_what_comes_after(run: Runner, size: int) -> None:
    assert (await run(f"echo first; head -c {size} /dev/zero | tr '\\0' x; echo; echo last")).ok
    assert (run.lines[0], run.lines[-1]) == ("first", "last")
    assert ("[a line too long to keep]" in run.lines) == (size > 1_000_000)
    assert max(map(len, run.lines)) <= 1_000_000 * 2


async def test_much_output_is_told_whole_and_in_order(run: Runner) -> None:
    assert (await run("seq 50000")).ok
    assert run.lines == [str(n) for n in range(1, 50_001)]


# What it answers


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (None, Outcome(True)),
        ("{}", Outcome(True, None, [])),
        (
            '{"result": {"n": [1, null, "é"]}, "artifacts": ["a.csv"], "more": 1}',
            Outcome(True, {"n": [1, None, "é"]}, ["a.csv"]),
        ),
        ('{"result": 0}', Outcome(True, 0, [])),
    ],
)
async def test_the_result_file_is_the_answer(run: Runner, tmp_path: Path, answer: str | None, outcome: Outcome) -> None:
    if answer is not None:
        (tmp_path / "answer").write_text(answer, "utf-8")
    assert await run("if [ -e answer ]; then cp answer $WORKBENCH_RESULT; fi") == outcome


@pytest.mark.parametrize(
    ("what", "why"),
    [
        ("echo '{' > $WORKBENCH_RESULT", "Expecting property name"),
        (": > $WORKBENCH_RESULT", "Expecting value"),
        ("echo '[1]' > $WORKBENCH_RESULT", "it is not an object"),
        ("""echo '{"artifacts": "a"}' > $WORKBENCH_RESULT""", "artifacts is not a list of strings"),
        ("""echo '{"artifacts": [1]}' > $WORKBENCH_RESULT""", "artifacts is not a list of strings"),
        ("""echo '{"result": NaN}' > $WORKBENCH_RESULT""", "not JSON compliant"),
        ("""echo '{"result": 1e999}' > $WORKBENCH_RESULT""", "not JSON compliant"),
        (r"""echo '{"result": "\\ud800"}' > $WORKBENCH_RESULT""", "surrogates not allowed"),
        (r"printf '\377' > $WORKBENCH_RESULT", "can't decode"),
        ("head -c 100000 /dev/zero | tr '\\0' '[' > $WORKBENCH_RESULT", ""),
        ("truncate -s 10000001 $WORKBENCH_RESULT", "it has more than 10,000,000 bytes"),
        ("mkdir $WORKBENCH_RESULT", "it is not a file"),
        ("mkfifo $WORKBENCH_RESULT", "it is not a file"),
        ("ln -s /dev/zero $WORKBENCH_RESULT", "it is not a file"),
    ],
)
async def test_a_result_file_that_cannot_be_used_fails_the_task_for_good(run: Runner, what: str, why: str) -> None:
    outcome = await run(what)
    assert (outcome.ok, outcome.retryable) == (False, False)
    assert outcome.error.startswith("The result file cannot be used: ")
    assert why in outcome.error


async def test_the_answer_of_a_command_that_failed_does_not_count(run: Runner) -> None:
    outcome = await run("""echo '{"result": 1}' > $WORKBENCH_RESULT; exit 1""")
    assert (outcome.ok, outcome.result) == (False, None)


# What it leaves behind


@pytest.mark.parametrize("status", [0, 1])
async def test_what_a_command_left_in_the_background_ends_with_it(run: Runner, status: int) -> None:
    outcome = await run(f"sleep 600 & echo $!; (sleep 600; echo late) & exit {status}")
    assert outcome.ok == (status == 0)
    await ended(int(run.lines[0]))
    assert len(run.lines) == 1


async def test_who_left_the_group_and_keeps_the_output_open_is_not_waited_for(
    run: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "DRAIN_SECONDS", 0.05)
    assert (await run("setsid sh -c 'echo $$; exec sleep 600' & sleep 0.2")).ok
    os.kill(int(run.lines[0]), signal.SIGKILL)


async def test_who_is_cancelled_may_clean_up(run: Runner, tmp_path: Path) -> None:
    running = asyncio.create_task(run("trap 'echo bye > bye; exit' TERM; echo ready; sleep 600 & wait"))
    await run.heard.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert (tmp_path / "bye").read_text() == "bye\n"


async def test_who_does_not_end_when_cancelled_is_killed_with_all_its_children(
    run: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "GRACE_SECONDS", 0.05)
    running = asyncio.create_task(run("trap '' TERM; sleep 600 & echo $$ $!; wait; sleep 600"))
    await run.heard.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await ended(*map(int, run.lines[0].split()))


@pytest.mark.parametrize("ends", ["true", "false", "exec sleep 600"])
async def test_no_scratch_directory_and_no_descriptor_stays(
    run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ends: str
) -> None:
    monkeypatch.setattr(command.tempfile, "tempdir", str(tmp_path))
    count: Callable[[], int] = psutil.Process().num_fds
    before = count()
    running: asyncio.Task[Any] = asyncio.create_task(run(f"echo ready; {ends}"))
    await run.heard.wait()
    if "sleep" in ends:
        running.cancel()
    await asyncio.wait({running})
    assert list(tmp_path.glob("workbench-task-*")) == []
    assert count() == before
