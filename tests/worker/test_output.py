"""The output of a command, line by line, and its answer; any output is text."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest

from tests.worker.runner import Runner
from workbench.worker.attempt import AttemptOutcome

pytestmark = [pytest.mark.anyio, pytest.mark.long, pytest.mark.timeout(60)]


# Its output


@pytest.mark.parametrize(
    ("what", "lines"),
    [
        (r"printf 'a\r\nb\nc'", ["a", "b", "c"]),
        (r"printf '\303\251 \377 \303'", ["é \N{REPLACEMENT CHARACTER} \N{REPLACEMENT CHARACTER}"]),
        (r"echo one; echo two >&2; echo three", ["one", "two", "three"]),
        (r"printf '\n\n'", ["", ""]),
        (r"printf 'a\000b\n'", ["a\N{REPLACEMENT CHARACTER}b"]),
    ],
)
async def test_each_line_of_output_is_passed_on_as_text(run: Runner, what: str, lines: list[str]) -> None:
    assert (await run(what)).ok
    assert run.lines == lines


@pytest.mark.parametrize("size", [1_000, 1_500_000, 5_000_000])
async def test_a_line_too_long_to_keep_does_not_stop_what_comes_after(run: Runner, size: int) -> None:
    assert (await run(f"echo first; head -c {size} /dev/zero | tr '\\0' x; echo; echo last")).ok
    assert (run.lines[0], run.lines[-1]) == ("first", "last")
    assert ("[a line too long to keep]" in run.lines) == (size > 1_000_000)
    assert max(map(len, run.lines)) <= 1_000_000 * 2


async def test_much_output_is_passed_on_completely_and_in_order(run: Runner) -> None:
    assert (await run("seq 50000")).ok
    assert run.lines == [str(n) for n in range(1, 50_001)]


async def test_a_flood_of_lines_leaves_turns_to_others_such_as_heartbeats(run: Runner) -> None:
    flood, at_turns = asyncio.create_task(run("yes | head -n 300000")), [0]
    while not flood.done():
        await asyncio.sleep(0)
        at_turns.append(len(run.lines))
    assert (await flood).ok
    assert len(run.lines) == 300_000
    assert max(later - before for before, later in pairwise(at_turns)) < 30_000, "fewer than a full pipe has"


# What it answers


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (None, AttemptOutcome(True)),
        ("{}", AttemptOutcome(True)),
        ('{"result": [null, "é"], "artifacts": ["answer"]}', AttemptOutcome(True, [None, "é"], ("answer",))),
        ('{"result": 0}', AttemptOutcome(True, 0)),
        ('{"accuracy": 0.9, "result": 1}', AttemptOutcome(True, {"accuracy": 0.9, "result": 1})),
        ('{"metrics": {"f1": 1}, "result": {"n": 2}}', AttemptOutcome(True, {"n": 2, "metrics": {"f1": 1}})),
        ('{"metrics": {"f1": 1}, "result": 2}', AttemptOutcome(True, {"result": 2, "metrics": {"f1": 1}})),
        ('\ufeff{"metrics": 1}', AttemptOutcome(True, {"metrics": 1})),
    ],
)
async def test_the_result_file_is_the_answer(run: Runner, answer: str | None, outcome: AttemptOutcome) -> None:
    if answer is not None:
        (run.place / "answer").write_text(answer, "utf-8")
    assert await run("if [ -e answer ]; then cp answer $WORKBENCH_RESULT; fi") == outcome


@pytest.mark.parametrize(
    ("what", "why"),
    [
        ("echo '{' > $WORKBENCH_RESULT", "Expecting property name"),
        (": > $WORKBENCH_RESULT", "Expecting value"),
        ("echo '[1]' > $WORKBENCH_RESULT", "it is not an object"),
        ("""echo '{"artifacts": "a"}' > $WORKBENCH_RESULT""", "artifacts is not a list of names"),
        ("""echo '{"artifacts": [1]}' > $WORKBENCH_RESULT""", "artifacts is not a list of names"),
        ("""echo '{"artifacts": [""]}' > $WORKBENCH_RESULT""", "artifacts is not a list of names"),
        (r"""echo '{"result": "\\ud800"}' > $WORKBENCH_RESULT""", "half of a character"),
        (r"printf '\377' > $WORKBENCH_RESULT", "can't decode"),
        ("head -c 100000 /dev/zero | tr '\\0' '[' > $WORKBENCH_RESULT", ""),
        ("truncate -s 10000001 $WORKBENCH_RESULT", "it has more than 10,000,000 bytes"),
        ("mkdir $WORKBENCH_RESULT", "it is not a file"),
        ("mkfifo $WORKBENCH_RESULT", "it is not a file"),
        ("ln -s /dev/zero $WORKBENCH_RESULT", "it is not a file"),
    ],
)
async def test_an_unusable_result_file_fails_the_task_finally(run: Runner, what: str, why: str) -> None:
    outcome = await run(what)
    assert (outcome.ok, outcome.retryable) == (False, False)
    assert outcome.error.startswith("The result file cannot be used: ")
    assert why in outcome.error


async def test_an_infinite_number_or_nan_is_recorded_as_null_and_named(run: Runner) -> None:
    answer = '{"loss": [1, NaN], "n": {"most": 1e999}}'
    outcome = await run(f"echo '{answer}' > $WORKBENCH_RESULT")
    assert (outcome.ok, outcome.result) == (True, {"loss": [1, None], "n": {"most": None}})
    assert run.lines == ["[the result has loss[1] = nan, n.most = inf, which JSON cannot say: null is recorded]"]


async def test_an_artifact_that_is_no_file_of_the_worktree_is_named_in_the_log(run: Runner) -> None:
    named = '["made.png", "lost.png", "commit:abc", "https://a.example/b"]'
    outcome = await run(f"""touch made.png; echo '{{"artifacts": {named}}}' > $WORKBENCH_RESULT""")
    assert len(outcome.artifacts) == 4
    assert run.lines == ["[the result names the artifact lost.png, which is no file of the worktree]"]


async def test_the_answer_of_a_command_that_failed_does_not_count(run: Runner) -> None:
    outcome = await run("""echo '{"result": 1}' > $WORKBENCH_RESULT; exit 1""")
    assert (outcome.ok, outcome.result) == (False, None)
